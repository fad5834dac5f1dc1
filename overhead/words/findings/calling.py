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
    first = found.changes[0]
    compiled, python = cost_text(first.after), cost_text(first.before)
    return FindingWords(
        f"Call {stack(first)} from compiled code: a {first.before.unit} costs {compiled} {MICRO}"
        f" instead of {python} {MICRO} from Python.",
        f"{intervals(found.changes)}. Both loops make the same calls of the library: one loop is"
        " Python, the other is compiled.",
    )


@words_for(ShortWayPays)
def short_way(found: ShortWayPays) -> FindingWords:
    first = found.changes[0]
    return FindingWords(
        f"{found.advice}: {instead(first)}.",
        f"{intervals(found.changes)}. This applies if the launches, and not the kernels, limit the"
        " speed (host-bound).",
    )
