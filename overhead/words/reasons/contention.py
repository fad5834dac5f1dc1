"""What limits several processes or threads, with the figures that show it, and why they were not measured."""

TEMPLATES = {
    "not-with-fewer": "not measured, because with K={peers}: {why}",
    "window-without-rows": "the time window holds no measurement, or a damaged one",
    "no-window-of-kind": "no time window with {kind} chains was measured",
    "beyond-seconds-of-contention": (
        "it does not fit into the {seconds:.0f} s of this measurement; overhead contention --seconds gives it more"
    ),
    "one-thread-at-a-time": (
        "all chains of a process share one {shares}, and {of} lets only one thread at a time use a {shares}"
    ),
    "left-out": "left out: {target}, {way}: {why}",
    "measuring-set": "{way}: {target}, set {number} of {sets}",
    "no-common-clock": "its loop runs in another program, whose clock cannot be compared with ours",
    # What was seen. The limits below begin with it.
    "peers-slower": "Each takes {slowdown:.3g} times as long as one alone",
    "peers-handing-over": "{seen}; its enqueue time is {issue:micro-spread} µs, and {alone:micro-spread} µs alone",
    "no-processor": "each of them waited for a processor {ready:percent-spread} of the time",
    "no-processor-alone-too": (
        "each of them waited for a processor {ready:percent-spread} of the time (one alone: {alone:percent})"
    ),
    "no-clear-slowdown": (
        "Each takes {slowdown:.3g} times as long as one alone ({least:.3g} to {most:.3g}): no clear slowdown."
    ),
    "no-clear-slowdown-one-set": (
        "Each takes {slowdown:.3g} times as long as one alone (measured once): no clear slowdown."
    ),
    "peers-without-processor": "{seen}; {want}. Use fewer, or give them more processors.",
    "peers-perhaps-without-processor": "{seen}; {want}. The interval does not tell whether that is the cause.",
    "want-lengthens-enqueue": "{seen}; {want}, which also lengthens the enqueue time.",
    "busy-processors-slower": "{seen}, but it hardly waited longer for a processor: each processor is slower.",
    "processors-share-core": (
        "{seen}, and the CPU time grew {cpu:spread} times: the processors share a core, memory or power."
    ),
    "neither-processors-nor-cpu-time": "{seen}. Neither waiting for a processor nor their CPU time explains it.",
    "slower-processors-or-spinning-lock": (
        "{seen}, and the CPU time grew {cpu:spread} times: the processors are slower, or a lock keeps them busy."
    ),
    "enqueue-time-tells-nothing": "{seen}. Here the enqueue time does not tell whether the device or a lock limits.",
    "peers-wait-for-device": "{seen}: the device limits.",
    "device-gives-slices": (
        "{seen}: the device gives time slices of {slice:micro} µs, and each switch takes {switch:micro} µs."
    ),
    "lock-or-device": "{seen}: a lock or the device limits; the interval does not tell which.",
    "lock-or-short-queue": "{seen}, which is not all of the cost: a lock limits, or a device with a short queue.",
    "lock-of-driver-or-system": "{seen}: a lock of the driver or of the operating system limits.",
    "lock-of-library-or-driver": "{seen}: a lock of the library or of the driver limits.",
    "interpreter-or-lock": (
        "{seen}: Python's interpreter or a lock of the library limits. Calls from compiled code would tell which, and "
        "were not measured."
    ),
    "lock-of-python": (
        "{seen}. Together they need {each:spread} times the time that they need from compiled code: Python's lock (the "
        "GIL) limits."
    ),
    "lock-not-of-python": (
        "{seen}. Together they need {each:spread} times the time that they need from compiled code: a lock that is not "
        "Python's limits."
    ),
    "lock-of-python-or-library": (
        "{seen}. Together they need {each:spread} times the time that they need from compiled code: Python's lock (the "
        "GIL) limits, or one of the library or driver."
    ),
    "measured-again": "measured again",
}
