"""Why a figure of a case has no value or is not sure, how its value was formed, and what a process
could not measure.

``n`` is the length of a chain: how many launches, dispatches, calls or steps it has.
"""

TEMPLATES = {
    # How far the processes differ.
    "no-process-came-to-it": "no process measured this case",
    "one-process": "1 process",
    "one-process-has-no-spread": (
        "only one process measured this case, so the variation between processes is not known"
    ),
    "half-width": (
        "95 % interval from {processes} processes (Student's t): ±{share:.2%}, ±{target:.0%} is"
        " allowed"
    ),
    "half-width-at-canary": (
        "95 % interval from {processes} processes (Student's t), at the CPU speed at which the"
        " reference loop takes {canary_us:.1f} µs: ±{share:.2%}, ±{target:.0%} is allowed"
    ),
    "half-width-of-zero": (
        "95 % interval from {processes} processes (Student's t); the value is 0, so an interval of"
        " ±{target:.0%} cannot be reached"
    ),
    "half-width-of-zero-at-canary": (
        "95 % interval from {processes} processes (Student's t), at the CPU speed at which the"
        " reference loop takes {canary_us:.1f} µs; the value is 0, so an interval of ±{target:.0%}"
        " cannot be reached"
    ),
    "too-wide": "the interval is ±{share:.1%}, ±{target:.0%} is allowed",
    "too-wide-beside-zero": "the value is 0, so an interval of ±{target:.0%} cannot be reached",
    "more-processes-would-do": "about {processes} processes would make the interval narrow enough",
    "lowest-and-highest-mean": (
        "median, lowest and highest mean of {processes} processes; the operating system chose their"
        " processors, and no sample is left out; a range, not a confidence interval"
    ),
    "percentiles-of-means": (
        "median, 10th and 90th percentile of the means of {processes} processes; the operating"
        " system chose their processors, and no sample is left out; a range, not a confidence"
        " interval"
    ),
    "mean-of-one-process": (
        "mean of 1 process; the operating system chose its processor, and no sample is left out; a"
        " range, not a confidence interval"
    ),
    "lowest-and-highest-turns": (
        "highest over lowest turn of a process: median, lowest and highest of {processes}"
        " processes; the operating system chose their processors, and no sample is left out; a"
        " range, not a confidence interval"
    ),
    "percentiles-of-turns": (
        "highest over lowest turn of a process: median, 10th and 90th percentile of {processes}"
        " processes; the operating system chose their processors, and no sample is left out; a"
        " range, not a confidence interval"
    ),
    "turns-of-one-process": (
        "highest over lowest turn of 1 process; the operating system chose its processor, and no"
        " sample is left out; a range, not a confidence interval"
    ),
    # Whether there is a value.
    "no-round-sampled": "no round was sampled",
    "too-few-sizes": "chains of fewer than two lengths were timed",
    "cpu-clock-cannot-measure": "the CPU clock of the calling thread cannot measure this wait",
    "one-step-of-the-poll": (
        "the library checks so rarely whether work is finished that all chains seem to take equally"
        " long"
    ),
    "slope-not-above-zero": "in one process the cost is {least_ns:.3g} ns, not above zero",
    "slope-not-told-from-zero": (
        "in one process the cost is {least_ns:.3g} ns, which cannot be told from 0"
    ),
    "slope-too-small-for-clock": (
        "the longest chain takes only {reach_ns:.0f} ns more than the shortest, and the clock"
        " counts in steps of {step_ns:.0f} ns"
    ),
    "slope-too-small-for-device-clock": (
        "the longest chain takes only {reach_ns:.0f} ns more than the shortest, and the device's"
        " clock counts in steps of {step_ns:.0f} ns"
    ),
    "clock-too-coarse": (
        "the clock is too coarse: the longest chain takes {longest_ns:.0f} ns, and the clock counts"
        " in steps of {step_ns:.0f} ns"
    ),
    # Whether T(n) is a line.
    "issue-bends-as-total-does": (
        "the whole time is no straight line over n either, so a full queue is not the reason"
    ),
    "above-the-line": (
        "chains of n = {n:,} took longer than chains of other lengths predict: by {share:.0%} of"
        " what the longest chain adds to the shortest, more than the times vary"
    ),
    "below-the-line": (
        "chains of n = {n:,} took less time than chains of other lengths predict: by {share:.0%} of"
        " what the longest chain adds to the shortest, more than the times vary"
    ),
    "upper-half-steeper": (
        "in the longer chains the cost is {change:.1%} higher than in the shorter ones"
    ),
    "upper-half-flatter": (
        "in the longer chains the cost is {change:.1%} lower than in the shorter ones"
    ),
    "intercept-below-zero": (
        "the one-off cost would be {intercept_us:4-digits} µs, below zero, so the times over n"
        " are no"
        " straight line"
    ),
    "bends-at-anchor": (
        "{slope_us:4-digits} µs each up to n = {units:,}, {beyond_us:4-digits} µs each from there"
        " to n ="
        " {anchor:,}"
    ),
    "bends-before-far-anchor": (
        "{slope_us:4-digits} µs each up to n = {units:,}, {beyond_us:4-digits} µs each on average"
        " up to n ="
        " {anchor:,}"
    ),
    "not-checked-beyond": "not seen to hold for chains longer than n = {units:,}: {why}",
    "no-anchor-in-two-processes": "fewer than two processes timed a longer chain",
    "anchors-differ": (
        "the time of n = {anchor:,} differs by {least:+.1%} to {most:+.1%} from what this cost"
        " predicts"
    ),
    "one-unit-is-off": (
        "a single one takes {single_us:4-digits} µs, and the line over n predicts"
        " {expected_us:4-digits} µs"
    ),
    # Whether the cost is one value.
    "drifts-in-rounds": (
        "the cost changes within a process, from {early_us:4-digits} µs to {late_us:4-digits} µs,"
        " and the"
        " speed of the CPU does not explain this change"
    ),
    "drifts-after-rounds": (
        "the cost changes within a process, from {early_us:4-digits} µs to {late_us:4-digits} µs"
        " at its end"
    ),
    "slow-samples-are-work": (
        "in most processes slow samples add {share:.0%}, and no other thread explains this:"
        " {mean_us:4-digits} µs with slow samples"
    ),
    "waits-differ": (
        "in most processes many waits differ from the others, and no other thread explains this:"
        " the median is {median_us:4-digits} µs, the mean {mean_us:4-digits} µs"
    ),
    "two-speeds": (
        "two speeds, {fast_us:4-digits} µs and {slow_us:4-digits} µs, told apart by the"
        " {by:told-by}"
    ),
    "two-long-speeds": (
        "two speeds, {fast_us:,.0f} µs and {slow_us:,.0f} µs, told apart by the {by:told-by}"
    ),
    "two-speeds-one-long": (
        "two speeds, {fast_us:4-digits} µs and {slow_us:,.0f} µs, told apart by the {by:told-by}"
    ),
    "two-speeds-few-rounds": (
        "the cost has two speeds, and there are too few rounds of each for a one-off cost"
    ),
    "rounds-of-two-speeds": (
        "{processes} processes: {slow_share:.0%} of the rounds have the slower speed"
    ),
    # What to know of how it was measured.
    "rounds-left-out": (
        "{share:.0%} of the rounds are left out: the CPU was slow, or ran at another clock"
        " frequency"
    ),
    "canary-was-off": "in {share:.0%} of the rounds the reference loop was off by over {by:.0%}",
    "ladder-too-short": "the longest chain is shorter than wanted: {why}",
    "wait-spins": (
        "the CPU is busy while it waits for the device, so CPU work during the wait cannot be told"
        " from waiting"
    ),
    "drift-judged-over": "only the first {seconds:.1f} s of a process were checked for drift",
    # Cases beside each other.
    "no-round-in-common": "the two cases were never measured in the same round",
    "no-passes": "this API has no passes",
    "cost-not-determined": "the patterns that were measured cannot tell this cost from the others",
    "difference-not-separable": "not separable: the difference may be 0",
    "cost-not-separable": "not separable: the cost may be 0",
    # What a process could not measure.
    "no-case-left": "no case is left",
    "rounds-done": "{rounds} rounds",
    "time-is-over": "the time for sampling, {seconds:.1f} s, is over",
    "n-is-bounded": "this stack allows no chain longer than n = {most}",
    "sample-too-long": "a longer chain would take over {most_ms:.0f} ms",
    "anchor-too-long": "a chain of n = {units} would take {seconds:.0f} s",
    "units-too-long": "a chain of n = {units} would take about {milliseconds:.0f} ms",
    "first-units-too-long": (
        "a chain of n = {units} takes {took_ms:.0f} ms, and a sample may take {most_ms:.0f} ms"
    ),
    "sample-would-show-poll": (
        "the library checks only every {poll_ms:.0f} ms whether work is finished, so a sample would"
        " show this pause"
    ),
    "one-length-of-device-time": (
        "the cost needs two lengths of chains, and no chain is longer than n = {units}"
    ),
    "device-clock-stands": "the device's clock shows no time: {spans} ns",
    "clock-stands": "the clock is too coarse: it did not move while it was read",
    "units-not-executed": "{issued} launches or steps were issued, and {executed} ran",
    "uncounted-units-not-run": (
        "{units} launches or steps for the device time or for recordings did not run"
    ),
    "work-done-on-reading": (
        "reading the values takes {few_us:.0f} µs after n = 1 and {many_us:.0f} µs after n ="
        " {units}, so the work seems to be done only when the values are read"
    ),
}
