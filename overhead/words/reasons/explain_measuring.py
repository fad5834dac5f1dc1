"""The sentences of what a measured step or call, and a recording of one, could not tell."""

from __future__ import annotations

TEMPLATES = {
    # What a step reaches, and what it computed.
    "reaches-too-many-objects": "this and later parts are not visited: the step reaches over {most:,} objects",
    "part-unreadable": "cannot be read: {error}",
    "set-without-order": "cannot be read: TypeError: the objects of a set have no order",
    "too-many-parts": "has over {most:,} parts",
    "part-too-large": "too large to compare",
    "part-of-unknown-type": "cannot be compared: {type}",
    "part-holds-other-things": "cannot be read: TypeError: {type} holds other things than numbers and text",
    "not-reached-by-alternative": "your alternative does not reach it",
    "alternative-lacks-changed-array": "your alternative has no reference to an array that the step changes",
    "value-only-of-step": "{name}: {value} and nothing",
    "value-only-of-alternative": "{name}: nothing and {value}",
    "values-differ": "{name}: {first} and {second}",
    "values-differ-by-share": "{name}: {first} and {second} (difference {share:.1e} of the largest value)",
    "no-values-to-compare": "there are no values to compare",
    "step-without-results": "the step returns nothing and changes no array: there are no results to compare",
    "results-not-finite": "the results are not finite, so they cannot be compared",
    "step-does-not-vary": (
        "the results of the step are the same in each step, so earlier results that are kept would look alike"
    ),
    "nothing-varied": "nothing could be varied, so earlier results that are kept would look alike",
    "alternative-does-not-vary-alike": (
        "the results of the step change with the values that it reaches, those of your alternative do not, or not in "
        "the same way: it may return earlier results, or hold its own copies"
    ),
    "alternative-stops-working": ("after more steps the results of your alternative are others than those of the step"),
    "not-compared": "not compared: {parts}",
    "part-not-compared": "{name} ({why})",
    "step-not-compared": "the step ({why})",
    "more-not-compared": "and {more:,} more",
    "step-cannot-be-repeated": "the step cannot be repeated: {why}",
    "step-cannot-be-repeated-at": "the step cannot be repeated: {why} ({line})",
    "step-not-repeatable": "the step itself gives different results in two processes",
    # Why an alternative does not apply, and what its times do not tell.
    "step-without-torch": "the step does not use PyTorch",
    "alternative-needs-cuda-device": "no CUDA device",
    "step-without-torch-on-cuda": "the step does not use PyTorch on CUDA",
    "same-as-default-mode-on-cpu": "on the CPU it is the same as the default mode",
    "reads-differ-between-steps": (
        "RuntimeError: the step reads more values from the device in some steps than in others"
    ),
    "step-not-capturable": "not capturable: state on the host that changes with every step: {names}",
    "optimiser-not-capturable": (
        "not capturable: state on the host that changes with every step: {names}; capturable=True keeps the counters "
        "of PyTorch's optimisers on the device"
    ),
    "no-time-for-alternative": "no time was left: a larger --seconds gives it some",
    "one-attempt": "one attempt, with the first step",
    "gain-not-resolved": "not resolved",
    "difference-not-known": "the difference is not known",
    "saves-no-time": "no step is saved time",
    "reference-of-gains": "the gains are relative to it",
    "measured-once": "measured once",
    "measured-too-few-times": "measured {number} times, too few for an interval",
    "nothing-is-made": "nothing is made",
    "step-not-resolved": "The time of a step is not resolved: measuring longer would not help.",
    "step-needs-seconds": "The time of a step is not resolved: --seconds {needed:,.0f} would be needed.",
    # What is done now.
    "waited-beside-seconds": "waited {seconds:.0f} s for another run; --seconds does not count this",
    "attempting": "{name}: one attempt",
    "attempting-with-compilation": "{name}: one attempt, which compiles the step",
    "running-the-step-once-more": "the step once more",
    "timing-in-turn": "timing the step and {names} in turn",
}
