"""The finding on how figures are measured, in words."""

from __future__ import annotations

from overhead.reading.findings.overstating import SingleShotOverstates
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import factor, factor_spread
from overhead.words.names import CALLER_WORDS


@words_for(SingleShotOverstates)
def single_shot(found: SingleShotOverstates) -> FindingWords:
    """How far the time of one launch with its wait lies above the cost of one more launch."""
    row = found.most.row
    called = CALLER_WORDS[row.records[row.first].caller]
    times = found.most.times
    title = (
        f"Do not time one launch and its wait: that shows up to {factor(times)} the cost of one"
        " more launch."
    )
    detail = (
        f"{factor_spread(times)} through {row.name}, {called}. Time chains of several lengths: the"
        " slope is the cost."
    )
    return FindingWords(title, detail)
