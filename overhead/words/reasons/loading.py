"""What a file says of its run as a whole, and why a figure of it is not shown."""

TEMPLATES = {
    "no-round-measured": "no round was measured",
    "processes-measured": "{worker}: only {measured} of {planned} processes measured",
    "environment-of-workers": "measured with these environment variables: {variables}",
    "worker-died": "{worker}: 1 process died, and its samples do not count: {why}",
    "workers-died": (
        "{worker}: {processes} processes died, and their samples do not count; the last one: {why}"
    ),
    "processor-drifts": (
        "the speed of the CPU changed while a process ran: the reference loop took {early_us:.1f}"
        " µs at first and {late_us:.1f} µs at the end"
    ),
    "values-do-not-prove-work": (
        "the values that were read back do not prove that all work was done"
    ),
    "unit-of-no-time": "the figure has the unit {unit!r:.40}; a time must be in 'ns'",
    "interval-ends-before": (
        "the interval begins at {low:.6g} and ends at {high:.6g}, which is less"
    ),
    "holds-to-before": "the figure holds from n = {least:,} to n = {most:,}, which is less",
    "answer-of-time": (
        "this is an answer of overhead time; overhead show prints it. To compare calls, measure"
        " them in one command: overhead time CALL CALL"
    ),
    "answer-of-explain": "this is an answer of overhead explain; overhead show prints it",
    "other-machine-of-same-id": (
        "it has the machine id {id} of {holder}, but describes another machine"
    ),
    "runs-in-inner-folders": "the runs are in folders inside: name one of them, such as {folder}",
    "no-run-here": "there is no file of a run here",
    "no-run-that-can-be-read": (
        "there is no file of a run here that can be read ({skipped} cannot be read; the first:"
        " {why})"
    ),
    "no-possible-size": "the file gives {given:.3g} {unit}, which is not possible",
}
