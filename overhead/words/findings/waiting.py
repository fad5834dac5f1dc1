"""Findings on waits in words: after each dispatch, and after each step of a loop."""

from __future__ import annotations

from overhead.reading.findings.waiting import SynchronisingCosts, WaitEachCosts
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import instead, intervals, others, sentences, stack
from overhead.words.format import MICRO, ends_text, factor_spread, micro, number
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
    """That a wait after each dispatch costs more than one wait at the end."""
    first = found.changes[0]
    title = f"Wait once, not after each {first.before.unit}: {instead(first)}, in {stack(first)}."
    condition = "If the CPU can go on without each result."
    return FindingWords(title, sentences(intervals(first), others(found.changes), condition))


@words_for(SynchronisingCosts)
def synchronise_each_step(found: SynchronisingCosts) -> FindingWords:
    """The finding that a call by which Python waits for the device in each step (``act``, such as
    ``.item()``) makes a loop slower.
    """
    added = found.adds / 1e3  # ns to µs
    act = _ACTS[found.act]
    caller = CALLER_WORDS[found.record.caller]
    alone = micro(found.alone)
    title = (
        f"Take {act} out of the loop: each adds {number(added)} {MICRO} to a step of {alone}"
        f" {MICRO}, and waits for the queued work."
    )
    slowdown = factor_spread(found.slowdown)
    detail = (
        f"PyTorch, {caller}: {ends_text(added)} {MICRO} more; a step with the call takes {slowdown}"
        " as long. The same holds for every value that Python reads back."
    )
    return FindingWords(title, detail)
