"""Findings on batches in words: many dispatches in one pass, and many launches in one graph."""

from __future__ import annotations

import math

from overhead.reading.findings.batching import OnePassPays, ReplayPays
from overhead.reading.plain_text import plain
from overhead.results import formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import (
    called,
    cost,
    instead,
    intervals,
    others,
    sentences,
    stack,
)
from overhead.words.format import MICRO, count


@words_for(OnePassPays)
def one_pass(found: OnePassPays) -> FindingWords:
    """The finding that many dispatches in one pass cost less than a submission for each: what to
    do, for the stack that gains most, and behind it the other stacks and the condition.
    """
    # The stack that gains most.
    first = found.changes[0]
    title = f"Submit many dispatches as one pass: {instead(first)}, through {stack(first)}."
    condition = "If the CPU needs no result between the dispatches."
    return FindingWords(title, sentences(intervals(first), others(found.changes), condition))


@words_for(ReplayPays)
def replay(found: ReplayPays) -> FindingWords:
    """The finding that a node (launch) of a CUDA graph costs less than a launch by itself, and
    after how many replays making the graph has paid off.
    """
    first = found.changes[0]
    # What was launched, as a programmer writes it, where the run says it.
    operation = plain(str(first.before.window.get("operation", "")), 40)
    subject = operation or f"a launch through {stack(first)}"
    title = (
        f"Replay a CUDA graph: {subject} costs {cost(first.after)} {MICRO} as a node,"
        f" {cost(first.before)} {MICRO} as a launch."
    )
    making = ""
    # How many replays save as much as making the graph takes; rounded up to whole replays.
    if found.pays_after is not None:
        replays = max(1, math.ceil(found.pays_after.value))
        # The origin, of what and how the number was formed, is for the check of a page's numbers.
        after = count(replays, "replay", formed("ceil", found.pays_after.origin))
        title = f"{title} A graph pays off after {after}."
        making = f"A graph of {found.nodes} nodes by {found.maker}, {called(first)}."
    condition = "If the same launches repeat with the same shapes and addresses."
    detail = sentences(making, intervals(first), others(found.changes), condition)
    return FindingWords(title, detail)
