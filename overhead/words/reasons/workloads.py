"""Why a workload has no kernel in a language, and how results differ from the reference."""

TEMPLATES = {
    "off-by-more-than-allowed": "{why} off by {off:.2g}, {bound:g} is allowed",
    "counters-differ": "{steps} steps by the counters, {expected} asked for",
    "step-redone": "step {step} redone",
    "language-has-no-tanh": "its language has no tanh",
    "body-is-for-one-number": "its body is for one number an element, not {numbers:,}",
}
