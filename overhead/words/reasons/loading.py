"""What a file says of its run as a whole, and why a figure of it is not shown."""

TEMPLATES = {
    "no-round-measured": "no round was measured",
    "processes-measured": "{worker}: {measured} of {planned} processes measured",
    "environment-of-workers": "environment variables of the workers: {variables}",
    "worker-died": "{worker}: 1 worker process died and did not count; the last: {why}",
    "workers-died": "{worker}: {processes} worker processes died and did not count; the last: {why}",
    "processor-drifts": (
        "the processor's speed drifts within the processes: the canary's loop takes {early_us:.1f} {us} early and "
        "{late_us:.1f} {us} late"
    ),
    "values-do-not-prove-work": "the values of the case do not prove its work",
    "unit-of-no-time": "its unit is {unit!r:.40}, and a time is in 'ns'",
    "interval-ends-before": "its interval begins at {low:.6g} and ends before, at {high:.6g}",
    "holds-to-before": "it holds from n = {least:,} to n = {most:,}, which is before",
    "answer-of-time": (
        "an answer of overhead time, which holds no samples; overhead show prints it, and to compare calls measure "
        "them in one command: overhead time CALL CALL"
    ),
    "answer-of-explain": "an answer of overhead explain, which holds no cases; overhead show prints it",
    "other-machine-of-same-id": "claims the machine id {id} of {holder}, and describes another machine",
    "no-run-here": "no fingerprint or journal here",
    "no-run-that-can-be-read": ("no fingerprint or journal here ({skipped} that cannot be read; the first: {why})"),
    "no-possible-size": "the file gives {given:.3g} {unit}, no possible size",
}
