"""What ``overhead check`` finds wrong in a stack."""

TEMPLATES = {
    "units-differ": "{issued} units issued, {executed} executed",
    "no-device-found": "no device",
    "compared-in-numpy": "compared with {workload} in NumPy",
    "targets-share-key": "two targets have the key {key}; give each its own device",
    "open-gave-no-chain": "open() returned {returned}; it must be a Chain",
    "parameter-not-read": "open() never reads params[{parameter}], so this case is measured like the base case",
    "chain-not-compared": "the chain is no WorkChain, so nothing compares it with the reference of {workload}",
    "max-n-too-small": "max_n is {max_n}; a ladder needs at least {least}",
    "units-named-differently": "the chain's unit {chain} differs from the case's {case}, which is in the record",
    "synchronous-yet-pipelined": (
        "synchronous is True, but overlap is 'pipelined'; it must be 'serial', as nothing overlaps"
    ),
    "device-gave-other-types": "device({n}) returned {returned}, not DeviceTime twice",
    "span-exceeds-calls": "span is {span_ns:.3g} ns in two calls that took {took_ns:.3g} ns: is span in ns?",
    "synchronous-yet-waits": (
        "synchronous is True, but wait() takes {one_us:.1f} us after one unit and {none_us:.1f} us after none: "
        "does issue() return before the work is done?"
    ),
    "wait-does-not-wait": (
        "wait() takes {one_us:.1f} us after one unit and {none_us:.1f} us after none: if issue() returns only "
        "when the work is done, synchronous must be True; if it returns earlier, does wait() wait for the work?"
    ),
    "work-left-after-units": (
        "the pattern is {pattern}, but {left_us:.1f} us of work are left for wait() afterwards: does the call "
        "in each unit return before the unit has run?"
    ),
    "wait-returns-early": (
        "executed() takes {few_us:.0f} us after 1 unit and its wait, and {many_us:.0f} us after {n} units and "
        "their wait: does wait() return before the work is done, or does the library do it only when values "
        "are read?"
    ),
    "device-time-too-short": (
        "the device time of a unit is {device_ns:.2g} ns, but a unit adds {unit_ns:.0f} ns to T(n): is span in ns?"
    ),
    "span-of-one-unit": (
        "span is {few_ns:.0f} ns for {few} units and {many_ns:.0f} ns for {many}: it must be the time of all n "
        "units, not of one"
    ),
}
