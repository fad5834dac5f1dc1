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
    first = found.changes[0]
    return FindingWords(
        f"Batch: record many dispatches in one pass and submit once. Through {stack(first)}:"
        f" {instead(first)}.",
        f"{intervals(found.changes)}. This applies if the CPU needs no result between the"
        " dispatches.",
    )


@words_for(ReplayPays)
def replay(found: ReplayPays) -> FindingWords:
    first = found.changes[0]
    repaid = ""
    if (replays := found.pays_after) is not None:
        after = count(max(1, math.ceil(replays.value)), "replay", formed("ceil", replays.origin))
        repaid = f". Making a graph of {found.nodes} nodes pays off after {after}"
    return FindingWords(
        f"Use a CUDA graph, made by {found.maker}: {instead(first)}{repaid}.",
        f"{intervals(found.changes)}. This applies if a program repeats the same launches with the"
        " same shapes and addresses.",
    )
