"""Why a figure of a case has no value or is not sure, how its value was formed, and what a process could not measure.

``{us}`` is the sign of the microsecond: ``us`` in a file, ``µs`` in a terminal.
"""

TEMPLATES = {
    # How far the processes differ.
    "no-process-came-to-it": "no process came to this figure",
    "one-process": "1 process",
    "one-process-has-no-spread": "one process says nothing of how far another would differ",
    "half-width": "{processes} processes, Student's t: half-width {share:.2%}, target {target:.0%}",
    "half-width-at-canary": (
        "{processes} processes, Student's t where the canary's loop takes {canary_us:.1f} {us}: "
        "half-width {share:.2%}, target {target:.0%}"
    ),
    "half-width-of-zero": "{processes} processes, Student's t: half-width inf%, target {target:.0%}",
    "half-width-of-zero-at-canary": (
        "{processes} processes, Student's t where the canary's loop takes {canary_us:.1f} {us}: "
        "half-width inf%, target {target:.0%}"
    ),
    "too-wide": "half-width {share:.1%}, target {target:.0%}",
    "too-wide-beside-zero": "half-width inf%, target {target:.0%}",
    "more-processes-would-do": "about {processes} processes would do",
    "lowest-and-highest-mean": (
        "median of the means of {processes} processes, with the lowest and the highest; the operating system chose the "
        "processors and nothing is left out; a spread, not a confidence interval"
    ),
    "percentiles-of-means": (
        "median of the means of {processes} processes, with the 10th and the 90th percentile; the operating system "
        "chose the processors and nothing is left out; a spread, not a confidence interval"
    ),
    "mean-of-one-process": (
        "median of the means of 1 process, with the lowest and the highest; the operating system chose the processors "
        "and nothing is left out; a spread, not a confidence interval"
    ),
    "lowest-and-highest-turns": (
        "median of the ratios of highest to lowest turn of {processes} processes, with the lowest and the highest; the "
        "operating system chose the processors and nothing is left out; a spread, not a confidence interval"
    ),
    "percentiles-of-turns": (
        "median of the ratios of highest to lowest turn of {processes} processes, with the 10th and the 90th "
        "percentile; the operating system chose the processors and nothing is left out; a spread, not a confidence "
        "interval"
    ),
    "turns-of-one-process": (
        "median of the ratios of highest to lowest turn of 1 process, with the lowest and the highest; the operating "
        "system chose the processors and nothing is left out; a spread, not a confidence interval"
    ),
    # Whether there is a value.
    "no-round-sampled": "no round was sampled",
    "too-few-sizes": "fewer than two different n were sampled",
    "cpu-clock-cannot-measure": "the caller's CPU clock cannot measure this wait",
    "one-step-of-the-poll": "all samples lie on one step of the polling wait",
    "slope-not-above-zero": "the slope of a process is {least_ns:.3g} ns",
    "slope-not-told-from-zero": "the slope of a process is {least_ns:.3g} ns: not told from 0",
    "slope-too-small-for-clock": (
        "the slope adds {reach_ns:.0f} ns over the whole ladder, the clock steps by {step_ns:.0f} ns"
    ),
    "slope-too-small-for-device-clock": (
        "the slope adds {reach_ns:.0f} ns over the ladder, the device's clock steps by {step_ns:.0f} ns"
    ),
    "clock-too-coarse": (
        "clock too coarse: the longest chain takes {longest_ns:.0f} ns, the clock steps by {step_ns:.0f} ns"
    ),
    # Whether T(n) is a line.
    "issue-bends-as-total-does": "T(n) itself bends, so the bend of issue is no full queue",
    "above-the-line": "T({n}) lies +{share:.0%} of the ladder's rise off the line, beyond its own spread",
    "below-the-line": "T({n}) lies -{share:.0%} of the ladder's rise off the line, beyond its own spread",
    "upper-half-steeper": (
        "the slope of the upper half of the ladder differs by +{change:.1%} from that of the lower half"
    ),
    "upper-half-flatter": (
        "the slope of the upper half of the ladder differs by -{change:.1%} from that of the lower half"
    ),
    "intercept-below-zero": "the intercept is {intercept_us:.4g} {us}, which no line of costs can have",
    "bends-at-anchor": ("{slope_us:.4g} {us} a unit up to {units:,} units, {beyond_us:.4g} from there to {anchor:,}"),
    "bends-before-far-anchor": (
        "{slope_us:.4g} {us} a unit up to {units:,} units, {beyond_us:.4g} on average to {anchor:,}"
    ),
    "not-checked-beyond": "not checked beyond {units:,} units: {why}",
    "no-anchor-in-two-processes": "no anchor was taken in two processes",
    "anchors-differ": "T({anchor:,}) differs from the line by {least:+.1%} to {most:+.1%}",
    "one-unit-is-off": "T(1) is {single_us:.4g} {us}, where the line gives {expected_us:.4g}",
    # Whether the cost is one value.
    "drifts-in-rounds": (
        "the cost drifts within a process, {early_us:.4g} {us} early and {late_us:.4g} {us} late; "
        "the canary does not explain it"
    ),
    "drifts-after-rounds": (
        "the cost drifts within a process, {early_us:.4g} {us} in the rounds and {late_us:.4g} {us} at the end of the "
        "process"
    ),
    "slow-samples-are-work": (
        "slow samples take {share:.0%} more time in most processes, and no other thread explains it: "
        "{mean_us:.4g} {us} with them"
    ),
    "waits-differ": (
        "many waits differ from the others in most processes, and no other thread explains it: "
        "the median is {median_us:.4g} {us}, the mean {mean_us:.4g} {us}"
    ),
    "two-speeds": "two speeds, {fast_us:.4g} and {slow_us:.4g} {us}, told apart by the {by}",
    "two-long-speeds": "two speeds, {fast_us:,.0f} and {slow_us:,.0f} {us}, told apart by the {by}",
    "two-speeds-one-long": "two speeds, {fast_us:.4g} and {slow_us:,.0f} {us}, told apart by the {by}",
    "two-speeds-few-rounds": "two speeds, too few rounds of each for an intercept",
    "rounds-of-two-speeds": "{processes} processes: {slow_share:.0%} of the rounds are of the slower speed",
    # What to know of how it was measured.
    "rounds-left-out": "{share:.0%} of the rounds are left out: the processor was slow or at another clock",
    "canary-was-off": "the canary was off by over {by:.0%} in {share:.0%} of the rounds",
    "ladder-too-short": "the ladder ends below the wanted length: {why}",
    "wait-spins": "the wait spins, so work deferred into it is not told",
    "drift-judged-over": "drift judged over the first {seconds:.1f} s of a process",
    # Cases beside each other.
    "no-round-in-common": "the two cases have no round in common",
    "no-passes": "this API has no passes",
    "cost-not-determined": "the patterns measured do not tell this cost from the others",
    "difference-not-separable": "not separable: the interval of the difference reaches 0 or below",
    "cost-not-separable": "not separable: the interval of the cost reaches 0 or below",
    # What a process could not measure.
    "no-case-left": "no case left",
    "rounds-done": "{rounds} rounds",
    "time-is-over": "time: {seconds:.1f} s",
    "n-is-bounded": "the stack bounds n at {most}",
    "sample-too-long": "a longer sample would take over {most_ms:.0f} ms",
    "anchor-too-long": "{units} units would take {seconds:.0f} s",
    "units-too-long": "{units} units would take about {milliseconds:.0f} ms",
    "first-units-too-long": "{units} units take {took_ms:.0f} ms, and a sample may take {most_ms:.0f} ms",
    "sample-would-show-poll": "the wait polls every {poll_ms:.0f} ms, and a sample would show the poll",
    "one-length-of-device-time": "a slope needs two lengths, the chain holds {units} units at most",
    "device-clock-stands": "the device's clock shows no time: {spans} ns",
    "clock-stands": "clock too coarse: it did not move while it was read",
    "units-not-executed": "{issued} units issued, {executed} executed",
    "uncounted-units-not-run": "{units} units of the device time or of recordings did not run",
    "work-done-on-reading": (
        "reading the values takes {few_us:.0f} {us} after 1 unit and {many_us:.0f} {us} after {units}: "
        "the work seems to be done when the values are read"
    ),
}
