"""What limits several processes or threads, with the figures that show it, and why they were not
measured.
"""

TEMPLATES = {
    "not-with-fewer": "not measured, because with K={peers}: {why}",
    "window-without-rows": "the time window holds no measurement, or a damaged one",
    "no-window-of-kind": "no time window with {kind} chains was measured",
    "beyond-seconds-of-contention": (
        "this set does not fit into the {seconds:.0f} s of this measurement; overhead contention"
        " --seconds gives more time"
    ),
    "one-thread-at-a-time": (
        "all chains of a process share one {shares}, and {of} lets only one thread at a time use a"
        " {shares}"
    ),
    "left-out": "left out: {target}, {way}: {why}",
    "measuring-set": "{way}: {target}, set {number} of {sets}",
    "no-common-clock": (
        "the loop of this stack runs in another program, whose clock cannot be compared with"
        " overhead's"
    ),
    # What was seen. The limits below begin with it.
    "peers-slower": (
        "Each launch takes {slowdown:.3g} times as long as with one process or thread alone"
    ),
    "peers-handing-over": (
        "{seen}; the enqueue time went from {alone:micro-spread} µs alone to"
        " {issue:micro-spread} µs"
    ),
    "no-processor": "each one waited for a CPU core {ready:percent-spread} of the time",
    "no-processor-alone-too": (
        "each one waited for a CPU core {ready:percent-spread} of the time (one alone:"
        " {alone:percent})"
    ),
    "no-clear-slowdown": (
        "Each launch takes {slowdown:.3g} times as long as with one process or thread alone"
        " ({least:.3g} to {most:.3g}): no clear slowdown."
    ),
    "no-clear-slowdown-one-set": (
        "Each launch takes {slowdown:.3g} times as long as with one process or thread alone"
        " (measured once): no clear slowdown."
    ),
    "peers-without-processor": (
        "{seen}; {want}. Use fewer processes or threads, or give the program more CPU cores."
    ),
    "peers-perhaps-without-processor": (
        "{seen}; {want}. The interval does not tell whether this wait is the cause."
    ),
    "want-lengthens-enqueue": "{seen}; {want}, and this wait also lengthens the enqueue time.",
    "busy-processors-slower": (
        "{seen}, but hardly waited longer for a CPU core: each CPU core is slower."
    ),
    "processors-share-core": (
        "{seen}, and the CPU time grew {cpu:spread} times: the CPU threads share a core, memory or"
        " power."
    ),
    "neither-processors-nor-cpu-time": (
        "{seen}. Neither waiting for a CPU core nor the CPU time explains this."
    ),
    "slower-processors-or-spinning-lock": (
        "{seen}, and the CPU time grew {cpu:spread} times: the CPU cores are slower, or a lock"
        " keeps them busy."
    ),
    "enqueue-time-tells-nothing": (
        "{seen}. Here the enqueue time does not tell what limits the speed, the device or a lock."
    ),
    "peers-wait-for-device": "{seen}: the speed of the device is the limit.",
    "device-gives-slices": (
        "{seen}: the device works for one at a time, in slices of {slice:micro} µs, and each switch"
        " takes {switch:micro} µs."
    ),
    "lock-or-device": (
        "{seen}: a lock or the device is the limit; the interval does not tell which."
    ),
    "lock-or-short-queue": (
        "{seen}, which is not all of the cost: a lock is the limit, or a device with a short queue."
    ),
    "lock-of-driver-or-system": (
        "{seen}: a lock of the driver or of the operating system is the limit."
    ),
    "lock-of-library-or-driver": "{seen}: a lock of the library or of the driver is the limit.",
    "interpreter-or-lock": (
        "{seen}: Python's interpreter or a lock of the library is the limit. Calls from compiled"
        " code would tell which, and they were not measured."
    ),
    "lock-of-python": (
        "{seen}. With calls from Python, all threads take {each:spread} times as long as with calls"
        " from compiled code: Python's lock (the GIL) is the limit."
    ),
    "lock-not-of-python": (
        "{seen}. With calls from Python, all threads take {each:spread} times as long as with calls"
        " from compiled code: a lock that is not Python's is the limit."
    ),
    "lock-of-python-or-library": (
        "{seen}. With calls from Python, all threads take {each:spread} times as long as with calls"
        " from compiled code: Python's lock (the GIL) is the limit, or a lock of the library or"
        " driver."
    ),
    "measured-again": "measured again",
}
