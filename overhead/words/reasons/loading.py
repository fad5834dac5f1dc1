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
    "no-possible-size": "the file gives {given:.3g} {unit}, no possible size",
}
