"""What limits several processes or threads, with the figures that show it, and why they were not measured."""

TEMPLATES = {
    "not-with-fewer": "not measured, because with K={peers}: {why}",
    "window-without-rows": "the time window holds no measurement, or a damaged one",
    "no-window-of-kind": "no time window with {kind} chains was measured",
    "beyond-seconds-of-contention": (
        "this measurement of {seconds:.0f} s has no time for it; overhead contention --seconds gives more time"
    ),
    "one-thread-at-a-time": (
        "all chains of a process share one {shares}, and {of} lets only one thread at a time use a {shares}"
    ),
    "left-out": "left out: {target}, {way}: {why}",
    "measuring-set": "{way}: {target}, set {number} of {sets}",
    "no-common-clock": "its loop runs in another program, whose clock cannot be compared with ours",
    # What was seen. The limits below begin with it.
    "peers-slower": "Each launch takes {slowdown:.3g} times as long as with one caller alone",
    "peers-handing-over": "{seen}; the enqueue time rose from {alone:micro-spread} µs alone to {issue:micro-spread} µs",
    "no-processor": "each caller waited for a CPU core {ready:percent-spread} of the time",
    "no-processor-alone-too": (
        "each caller waited for a CPU core {ready:percent-spread} of the time (with one caller alone: {alone:percent})"
    ),
    "no-clear-slowdown": (
        "Each launch takes {slowdown:.3g} times as long as with one caller alone ({least:.3g} to {most:.3g}): no "
        "clear slowdown."
    ),
    "no-clear-slowdown-one-set": (
        "Each launch takes {slowdown:.3g} times as long as with one caller alone (measured once): no clear slowdown."
    ),
    "peers-without-processor": "{seen}; {want}. Use fewer callers, or give them more CPU cores.",
    "peers-perhaps-without-processor": "{seen}; {want}. The interval does not tell whether this wait is the cause.",
    "want-lengthens-enqueue": "{seen}; {want}, which also lengthens the enqueue time.",
    "busy-processors-slower": "{seen}, but a caller hardly waited longer for a CPU core: each CPU core is slower.",
    "processors-share-core": (
        "{seen}, and the CPU time grew {cpu:spread} times: the callers share a CPU core, memory or power."
    ),
    "neither-processors-nor-cpu-time": "{seen}. Neither the wait for a CPU core nor the CPU time explains this.",
    "slower-processors-or-spinning-lock": (
        "{seen}, and the CPU time grew {cpu:spread} times: the CPU cores are slower, or a lock keeps them busy."
    ),
    "enqueue-time-tells-nothing": (
        "{seen}. In this case the enqueue time does not tell whether the device or a lock limits."
    ),
    "peers-wait-for-device": "{seen}: the device limits the launches.",
    "device-gives-slices": (
        "{seen}: the device gives time slices of {slice:micro} µs, and each switch takes {switch:micro} µs."
    ),
    "lock-or-device": "{seen}: a lock or the device limits; the interval does not tell which.",
    "lock-or-short-queue": "{seen}, which is not all of the cost: a lock limits, or a device with a short queue.",
    "lock-of-driver-or-system": "{seen}: a lock of the driver or of the operating system limits.",
    "lock-of-library-or-driver": "{seen}: a lock of the library or of the driver limits.",
    "interpreter-or-lock": (
        "{seen}: Python's interpreter or a lock of the library limits. Calls from compiled code would tell which, but "
        "were not measured."
    ),
    "lock-of-python": (
        "{seen}. From Python the callers need {each:spread} times as long as from compiled code: the cause is Python's "
        "lock (the GIL)."
    ),
    "lock-not-of-python": (
        "{seen}. From Python the callers need {each:spread} times as long as from compiled code: the cause is a lock, "
        "but not Python's lock."
    ),
    "lock-of-python-or-library": (
        "{seen}. From Python the callers need {each:spread} times as long as from compiled code: the cause is Python's "
        "lock (the GIL), or a lock of the library or of the driver."
    ),
    "measured-again": "measured again",
}
