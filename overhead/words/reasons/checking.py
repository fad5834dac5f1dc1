"""What ``overhead check`` finds wrong in a stack."""

TEMPLATES = {
    "units-differ": "issue() was called for n = {issued}, and {executed} of them ran",
    "no-device-found": "no device was found",
    "compared-in-numpy": "compared with {workload} in NumPy",
    "targets-share-key": "two targets have the key {key}; give each its own device",
    "open-gave-no-chain": "open() returned {returned}; it must return a Chain",
    "parameter-not-read": (
        "open() never reads params[{parameter}], so this case is measured like the base case: read"
        " the parameter, or remove it"
    ),
    "chain-not-compared": (
        "the chain is no WorkChain, so nothing compares it with the reference of {workload}: return"
        " a WorkChain"
    ),
    "max-n-too-small": "max_n is {max_n}; max_n must be at least {least}",
    "units-named-differently": (
        "the unit is named {chain} in the chain and {case} in the case, and the file shows the name"
        " of the case: give both the same name"
    ),
    "synchronous-yet-pipelined": (
        "synchronous is True, but overlap is 'pipelined'; overlap must be 'serial', because nothing"
        " overlaps"
    ),
    "device-gave-other-types": "device({n}) returned {returned}; it must return two DeviceTime",
    "span-exceeds-calls": (
        "the span is {span_ns:.3g} ns for two calls that took {took_ns:.3g} ns: is the span given"
        " in ns?"
    ),
    "synchronous-yet-waits": (
        "synchronous is True, but wait() takes {one_us:.1f} µs after n = 1 and {none_us:.1f} µs"
        " after n = 0: does issue() return before the work is done?"
    ),
    "wait-does-not-wait": (
        "wait() takes {one_us:.1f} µs after n = 1 and {none_us:.1f} µs after n = 0: if issue()"
        " returns only when the work is done, synchronous must be True; if it returns earlier, does"
        " wait() wait for the work?"
    ),
    "work-left-after-units": (
        "the pattern is {pattern}, but {left_us:.1f} µs of work are left for wait() at the end:"
        " does the call return before its work is done?"
    ),
    "wait-returns-early": (
        "executed() takes {few_us:.0f} µs after n = 1 and its wait, and {many_us:.0f} µs after n ="
        " {n} and its wait: does wait() return before the work is done, or does the library do the"
        " work only when values are read?"
    ),
    "device-time-too-short": (
        "the device time is {device_ns:.2g} ns for one, but one more adds {unit_ns:.0f} ns to the"
        " whole time: is the span given in ns?"
    ),
    "span-of-one-unit": (
        "span is {few_ns:.0f} ns for n = {few} and {many_ns:.0f} ns for n = {many}: it must be the"
        " time of all n together, not of one"
    ),
}
