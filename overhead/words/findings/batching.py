"""Findings on batches in words: many dispatches in one pass, and many launches in one graph."""

from __future__ import annotations

import math

from overhead.reading.findings.batching import OnePassPays, ReplayPays
from overhead.results import formed
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import instead, intervals, stack
from overhead.words.format import count


@words_for(OnePassPays)
def one_pass(found: OnePassPays) -> FindingWords:
    """The finding that many dispatches in one pass cost less than a submission for each: what to
    do, for the stack that gains most, and behind it all stacks and the condition.
    """
    # The stack that gains most.
    first = found.changes[0]
    title = (
        "Batch: record many dispatches in one pass and submit once."
        f" Through {stack(first)}: {instead(first)}."
    )
    condition = "This applies if the CPU needs no result between the dispatches."
    return FindingWords(title, f"{intervals(found.changes)}. {condition}")


@words_for(ReplayPays)
def replay(found: ReplayPays) -> FindingWords:
    """The finding that a node (launch) of a CUDA graph costs less than a launch by itself, and
    after how many replays making the graph has paid off.
    """
    title = f"Use a CUDA graph, made by {found.maker}: {instead(found.changes[0])}"
    # How many replays save as much as making the graph takes; rounded up to whole replays.
    if found.pays_after is not None:
        replays = max(1, math.ceil(found.pays_after.value))
        # The origin, of what and how the number was formed, is for the check of a page's numbers.
        after = count(replays, "replay", formed("ceil", found.pays_after.origin))
        title = f"{title}. Making a graph of {found.nodes} nodes pays off after {after}"
    condition = (
        "This applies if a program repeats the same launches with the same shapes and addresses."
    )
    return FindingWords(f"{title}.", f"{intervals(found.changes)}. {condition}")
