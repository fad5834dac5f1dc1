"""Why two cases have no test, and why a file or a variant is not compared."""

TEMPLATES = {
    "two-machines": "BASE and NEW are two machines",
    "run-on-both-sides": "both sides hold the run {file}",
    "same-run": "the same run as {file}",
    "variant-alone": "none of its cases is equal to one with {base} on all other axes",
    "unit-differs": "unit differs between {one} and {other}: {mine} and {theirs}",
    "window-differs": "window.{field} differs between {one} and {other}: {mine} and {theirs}",
    "window-differs-on-a-side": "window.{field} differs between runs of {side}: {mine} and {theirs}",
    "kernel-differs": "kernel {file} differs between {one} and {other}: {mine} and {theirs}",
    "kernel-differs-on-a-side": "kernel {file} differs between runs of {side}: {mine} and {theirs}",
    "side-lacks-case": "{side}: {why}",
    "no-value": "no value in {side}: {why}",
    "no-value-busy-machine": (
        "no value in {side}: {why}; a busy machine does this: measure again when it is quiet, overhead doctor names "
        "what disturbs"
    ),
    "work-not-done": "{bad} of {runs:count run} of {side} did not do the work, the last {last}: {why}",
    "no-readable-samples": "no run whose raw samples can be read; {why}",
    "no-raw-samples": "no raw samples beside {file}, so there is no test",
    "no-pair-of-runs-with-values": "no two runs taken in turn in which both sides have a value",
    "one-process-a-side": "one process a side: no spread is known",
    "only-between-runs": (
        "the change exceeds the spread of the processes, and only the spread between runs forbids a verdict: take "
        "several runs a side, or measure in turn"
    ),
}
