"""Findings on waits in words: after each dispatch, and after each step of a loop."""

from __future__ import annotations

from overhead.reading.findings.waiting import SynchronisingCosts, WaitEachCosts
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import instead, intervals, stack
from overhead.words.format import MICRO, factor_spread, micro, number, spread
from overhead.words.names import CALLER_WORDS

_ACTS = {
    "item": ".item()",
    "cpu": ".cpu()",
    "nonzero": "nonzero()",
    "branch": "a Python branch on a tensor",
    "stream": "a stream synchronisation",
    "device": "torch.cuda.synchronize()",
}
"""Synchronising acts as readers know them."""


@words_for(WaitEachCosts)
def wait_each(found: WaitEachCosts) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"Wait once, not after each {first.before.unit}. In {stack(first)}: {instead(first)}.",
        f"{intervals(found.changes)}. This applies if the CPU can go on without each result.",
    )


@words_for(SynchronisingCosts)
def synchronise_each_step(found: SynchronisingCosts) -> FindingWords:
    adds = found.adds / 1e3
    return FindingWords(
        f"Take {_ACTS[found.act]} out of the loop: {CALLER_WORDS[found.record.caller]}, each call"
        f" adds {number(adds)} {MICRO} to a step of {micro(found.alone)} {MICRO}.",
        f"In PyTorch, each call adds {spread(adds)} {MICRO}, and a step with the call takes"
        f" {factor_spread(found.slowdown)} as long. The same holds for every value that Python"
        " reads back.",
    )
