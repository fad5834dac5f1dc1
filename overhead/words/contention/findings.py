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
    worst = found.losses[0]
    advice = (
        f"Use {PEER_WORDS[found.way].advice}{', or several processes' if found.processes else ''}"
    )
    together = (
        f"{worst.peers} {found.way} together do {number(worst.ratio)} times as much work as one"
        " alone"
    )
    title = f"{advice}: {together} through {name(worst.row)}, {called(worst.row)}."
    cases = [
        f"{name(one.row)} {called(one.row)}, {one.peers} {found.way}: {factor_spread(one.ratio)}"
        for one in found.losses
    ]
    if found.processes:
        cases.append(
            f"{worst.peers} processes through {name(worst.row)}: {factor_spread(found.processes)}"
        )
    named = f"A case is listed if its whole interval is below {found.below:g}."
    return FindingWords(title, f"{'; '.join(cases)}. {named} {_CONDITIONS[found.way]}")
