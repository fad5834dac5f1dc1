"""Why two cases have no test, and why a file or a variant is not compared."""

TEMPLATES = {
    "two-machines": "BASE and NEW are two machines",
    "run-on-both-sides": "the run {file} is on both sides",
    "same-run": "the same run as {file}",
    "variant-alone": "no case with {base} is equal to one of its cases in everything else",
    "unit-differs": "{one} and {other} count different things: {mine} and {theirs}",
    "window-differs": (
        "{one} and {other} time different things: window.{field} is {mine} and {theirs}"
    ),
    "window-differs-on-a-side": (
        "runs of {side} time different things: window.{field} is {mine} and {theirs}"
    ),
    "kernel-differs": "{one} and {other} have different kernels {file}: {mine} and {theirs}",
    "kernel-differs-on-a-side": "runs of {side} have different kernels {file}: {mine} and {theirs}",
    "side-lacks-case": "{side}: {why}",
    "no-value": "no value in {side}: {why}",
    "no-value-busy-machine": (
        "no value in {side}: {why}; a busy machine does this: measure again when it is quiet"
        " (overhead doctor names what disturbs)"
    ),
    "work-not-done": (
        "{bad} of {runs:count run} of {side} did not do the work; the last such run is {last}:"
        " {why}"
    ),
    "no-readable-samples": "the raw samples of no run can be read: {why}",
    "no-raw-samples": "the raw samples of {file} are not beside it, so there is no test",
    "no-pair-of-runs-with-values": (
        "in no two runs that were taken in turn do both sides have a value"
    ),
    "one-process-a-side": (
        "each side has one process, so the variation between processes is not known"
    ),
    "only-between-runs": (
        "the change is larger than the variation between processes, but the variation between runs"
        " is not known: take several runs of each side, or measure both sides in turn"
    ),
}
