"""Why a workload has no kernel in a language, and how results differ from the reference."""

TEMPLATES = {
    "off-by-more-than-allowed": "{why} the result is off by {off:.2g}; {bound:g} is allowed",
    "counters-differ": "the counters show {steps} steps; {expected} were asked for",
    "step-redone": "when step {step} is computed again",
    "language-has-no-tanh": "the language of these kernels has no tanh",
    "body-is-for-one-number": (
        "the body of this workload computes one number for each element, not {numbers:,}"
    ),
}
