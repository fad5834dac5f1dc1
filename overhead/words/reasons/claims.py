"""Why a run has no value for a published claim."""

TEMPLATES = {
    "no-dispatches-counted": "no dispatches were counted: {why}",
    "nothing-to-set-against": "the test names nothing to set it against",
    "no-ratio-of-zero": "a figure that is not positive has no ratio",
    "too-few-cases-for-line": "fewer than three cases of other {over} have a time and a count of dispatches",
    "did-not-alternate": "the two cases did not alternate in one worker here",
    "calls-not-timed-alone": "the calls of this case were not timed one by one",
}
