"""Findings on how a stack is called, in words: from compiled code, and by a shorter way into the
library.
"""

from __future__ import annotations

from overhead.reading.findings.calling import CompiledCodePays, ShortWayPays
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import cost, instead, intervals, others, sentences, stack
from overhead.words.format import MICRO, listed, percent, percent_spread
from overhead.words.names import CALLER_WORDS, LAYERS


@words_for(CompiledCodePays)
def from_compiled_code(found: CompiledCodePays) -> FindingWords:
    """The finding that the same calls cost less from compiled code than from Python: what to do,
    for the stack that gains most, and behind it the other stacks and Python's share.
    """
    # The stack that gains most. ``before``: its case from Python; ``after``: from compiled code.
    first = found.changes[0]
    title = (
        f"Call {stack(first)} from compiled code: {cost(first.after)} {MICRO} a"
        f" {first.before.unit} instead of {cost(first.before)} {MICRO} from Python"
    )
    shares = []
    for python in found.shares:
        shares.append(f"{percent_spread(python.share)} through {python.row.split_name}")
        if python.row.stack == first.target.stack:
            title = f"{title} (Python takes {percent(python.share)} of the CPU time)"
    title = f"{title}."
    share = f"Python's share of the CPU time of a call: {listed(shares)}." if shares else ""
    layers = _layers(found)
    return FindingWords(title, sentences(intervals(first), others(found.changes), share, layers))


def _layers(found: CompiledCodePays) -> str:
    """What the wrapper objects of the first stack cost: its CPU time by layer, and the cost without
    them; '' where neither was measured.
    """
    name = stack(found.changes[0])
    texts = []
    if found.layers is not None:
        shares = []
        for layer in found.layers.shares:
            if not layer.doubt:
                shares.append(f"{LAYERS[layer.name]} {percent(layer.of_host)}")
        texts.append(f"CPU time through {name} by layer: {listed(shares)}.")
    without = found.without_wrappers
    if without is not None and without.measured("complete") is not None:
        caller = CALLER_WORDS[without.caller]
        texts.append(f"{name} {caller}: {cost(without)} {MICRO} a {without.unit}.")
    return sentences(*texts)


@words_for(ShortWayPays)
def short_way(found: ShortWayPays) -> FindingWords:
    """That another way to launch the same kernel costs less."""
    first = found.changes[0]
    title = f"{found.advice}: {instead(first)}."
    condition = "If the launches, and not the kernels, limit the speed (host-bound)."
    return FindingWords(title, sentences(intervals(first), others(found.changes), condition))
