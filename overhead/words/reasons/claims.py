"""Why a run has no value for a published claim."""

TEMPLATES = {
    "no-dispatches-counted": "no dispatches were counted: {why}",
    "nothing-to-set-against": "the test names nothing to compare it with",
    "no-ratio-of-zero": "one of the figures is not above zero, so there is no ratio",
    "too-few-cases-for-line": (
        "fewer than three cases that differ in {over} have a time and a count of dispatches"
    ),
    "did-not-alternate": "this run did not measure the two cases in turn in one process",
    "calls-not-timed-alone": "this run did not time the calls of this case one by one",
}
