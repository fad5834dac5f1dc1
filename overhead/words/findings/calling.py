"""Findings on how a stack is called, in words: from compiled code, and by a shorter way into the
library.
"""

from __future__ import annotations

from overhead.reading.findings.calling import CompiledCodePays, ShortWayPays
from overhead.words.findings import FindingWords, words_for
from overhead.words.findings._changes import instead, intervals, stack
from overhead.words.format import MICRO, cost_text


@words_for(CompiledCodePays)
def from_compiled_code(found: CompiledCodePays) -> FindingWords:
    """The finding that the same calls cost less from compiled code than from Python: what to do,
    for the stack that gains most, and behind it all stacks.
    """
    # The stack that gains most. ``before``: its case from Python; ``after``: from compiled code.
    first = found.changes[0]
    compiled = cost_text(first.after)
    python = cost_text(first.before)
    title = (
        f"Call {stack(first)} from compiled code: a {first.before.unit} costs {compiled} {MICRO}"
        f" instead of {python} {MICRO} from Python."
    )
    condition = (
        "Both loops make the same calls of the library: one loop is Python, the other is compiled."
    )
    return FindingWords(title, f"{intervals(found.changes)}. {condition}")


@words_for(ShortWayPays)
def short_way(found: ShortWayPays) -> FindingWords:
    """That another way to launch the same kernel costs less."""
    title = f"{found.advice}: {instead(found.changes[0])}."
    condition = "This applies if the launches, and not the kernels, limit the speed (host-bound)."
    return FindingWords(title, f"{intervals(found.changes)}. {condition}")
