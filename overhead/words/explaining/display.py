"""An explained step in one line."""

from __future__ import annotations

from overhead.explaining.record import Explanation
from overhead.words.explaining.step import device_of, heading
from overhead.words.format import MICRO, micro_spread
from overhead.words.reasons import sentence


def explanation_line(found: Explanation) -> str:
    """The result of ``overhead explain`` in one line, as an object of Python shows it: what was
    explained, the time of a step, and the first sentence of the verdict.
    """
    program = found.program
    parts = [heading(program.function, program.file, device_of(found))]
    if found.step.wall.measured:
        parts.append(f"a step: {micro_spread(found.step.wall)} {MICRO}")
    if found.verdict.sentences:
        parts.append(sentence(found.verdict.sentences[0]))
    return "; ".join(parts)
