"""Findings on callers at once in words: several do less together than one alone."""

from __future__ import annotations

from overhead.contention.findings import DoLessTogether
from overhead.results import Way
from overhead.words.contention.peers import PEER_WORDS, called, name
from overhead.words.findings import FindingWords, words_for
from overhead.words.format import factor_spread, number

_CONDITIONS: dict[Way, str] = {
    "threads": "The threads share one context, and each thread runs a chain of its own.",
    "processes": "This applies if every process keeps the device or its driver busy.",
}


@words_for(DoLessTogether)
def do_less_together(found: DoLessTogether) -> FindingWords:
    """The finding that several callers at once (threads or processes, ``way``) do less work
    together than one alone: what to do, the worst case, and then all cases.
    """
    worst = found.losses[0]  # the losses begin with the worst
    stack = name(worst.row)
    advice = f"Use {PEER_WORDS[found.way].advice}"
    # Several processes through the worst stack surely do more than one: then they help.
    if found.processes is not None:
        advice += ", or several processes"
    times = number(worst.ratio)
    title = (
        f"{advice}: {worst.peers} {found.way} together do {times} times as much work as one alone"
        f" through {stack}, {called(worst.row)}."
    )
    cases = []
    for loss in found.losses:
        ratio = factor_spread(loss.ratio)
        cases.append(f"{name(loss.row)} {called(loss.row)}, {loss.peers} {found.way}: {ratio}")
    if found.processes is not None:
        cases.append(f"{worst.peers} processes through {stack}: {factor_spread(found.processes)}")
    # ``below``: how many times the work of one alone they must do, not to count as a loss.
    rule = f"A case is listed if its whole interval is below {found.below:g}."
    return FindingWords(title, f"{'; '.join(cases)}. {rule} {_CONDITIONS[found.way]}")
