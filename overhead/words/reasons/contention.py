"""What limits peers, with the figures that show it, and why peers at once were not measured."""

TEMPLATES = {
    "not-with-fewer": "not measured, since with K={peers}: {why}",
    "window-without-rows": "the window has no rows, or bad ones",
    "no-window-of-kind": "no window with {kind} chains was measured",
    "beyond-seconds-of-contention": (
        "it does not fit the {seconds:.0f} s of this measurement; overhead contention --seconds gives it more"
    ),
    "one-thread-at-a-time": (
        "the chains of a process share a {shares}, and {of} lets only one thread use a {shares} at a time"
    ),
    "left-out": "left out: {target}, {way}: {why}",
    "measuring-set": "{way}: {target}, set {number} of {sets}",
    "no-common-clock": "its loop runs in another program, which keeps no common clock with the others",
    # What was seen of peers. The limits below begin with it.
    "peers-slower": "A unit takes {slowdown:.3g} times as long as alone",
    "peers-handing-over": (
        "{seen}; handing it over takes {issue:micro-spread} \u00b5s, alone {alone:micro-spread} \u00b5s"
    ),
    "no-processor": "for {ready:percent-spread} of the time a peer had no processor",
    "no-processor-alone-too": (
        "for {ready:percent-spread} of the time a peer had no processor, one alone for {alone:percent}"
    ),
    "no-clear-slowdown": (
        "A unit takes {slowdown:.3g} times as long as alone ({least:.3g} to {most:.3g}): no clear slowdown."
    ),
    "no-clear-slowdown-one-set": (
        "A unit takes {slowdown:.3g} times as long as alone (from one set of processes): no clear slowdown."
    ),
    "peers-without-processor": "{seen}; {want}.",
    "peers-perhaps-without-processor": "{seen}; {want}: the interval does not tell whether that is why.",
    "want-lengthens-enqueue": "{seen}; {want}, which makes the enqueue time longer too.",
    "busy-processors-slower": "{seen}, though it hardly waited longer for a processor: each one is slower.",
    "processors-share-core": (
        "{seen}, the CPU time {cpu:spread} times: processors that share a core, memory or power."
    ),
    "neither-processors-nor-cpu-time": "{seen}; neither a lack of processors nor their CPU time shows why.",
    "slower-processors-or-spinning-lock": (
        "{seen}, the CPU time {cpu:spread} times: slower processors, or a lock that spins."
    ),
    "enqueue-time-tells-nothing": "{seen}; the enqueue time does not tell the device from a lock here.",
    "peers-wait-for-device": "{seen}: the peers wait for the device.",
    "device-gives-slices": (
        "{seen}: the device gives slices of {slice:micro} \u00b5s, switching takes {switch:micro}."
    ),
    "lock-or-device": "{seen}: the interval does not tell a lock from the device.",
    "lock-or-short-queue": "{seen}, which is not all of the cost: a lock, or a device whose queue is short.",
    "lock-of-driver-or-system": "{seen}: the peers wait for a lock of the driver or the system.",
    "lock-of-library-or-driver": "{seen}: the threads wait for a lock of the library or driver.",
    "interpreter-or-lock": ("{seen}: the interpreter or a lock of the library; no compiled caller tells them apart."),
    "lock-of-python": (
        "{seen}; together they need {each:spread} times the time that they need from compiled code: Python's lock "
        "limits."
    ),
    "lock-not-of-python": (
        "{seen}; together they need {each:spread} times the time that they need from compiled code: the lock is not "
        "Python's."
    ),
    "lock-of-python-or-library": (
        "{seen}; together they need {each:spread} times the time that they need from compiled code: Python's lock, or "
        "one of the library or driver."
    ),
    "measured-again": "measured again",
}
