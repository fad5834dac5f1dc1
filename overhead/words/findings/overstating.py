"""The finding on how figures are measured, in words."""

from __future__ import annotations

from overhead.reading.findings.overstating import SingleShotOverstates
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import factor_spread
from overhead.words.names import CALLER_WORDS


@words_for(SingleShotOverstates)
def single_shot(found: SingleShotOverstates) -> FindingWords:
    """How far the time of one launch with its wait lies above the cost of one more launch."""
    # ``times``: the time of one launch with its wait, over the cost of a launch.
    most = found.most
    called = CALLER_WORDS[most.record.caller]
    title = (
        f"Do not time one launch and its wait: through {most.row.name}, {called}, that shows"
        f" {factor_spread(most.times)} the cost of one more launch."
    )
    # The factor of a noisy cost may be higher, but with a wider interval.
    detail = (
        "Of the CPU-bound costs, this surely differs most (by the lower end of the interval). Time"
        " chains of several lengths: the slope is the cost."
    )
    return FindingWords(title, detail)
