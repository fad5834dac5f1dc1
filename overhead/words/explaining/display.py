"""An explained step in one line."""

from __future__ import annotations

from overhead.explaining.record import Explanation
from overhead.words.explaining.step import device_of, heading
from overhead.words.format import MICRO, micro_spread
from overhead.words.reasons import sentence


def explanation_line(found: Explanation) -> str:
    """What was explained, the time of a step, and what is said first of it."""
    program = found.program
    said = [heading(program.function, program.file, device_of(found))]
    if found.step.wall.measured:
        said.append(f"a step: {micro_spread(found.step.wall)} {MICRO}")
    said += map(sentence, found.verdict.sentences[:1])
    return "; ".join(said)
