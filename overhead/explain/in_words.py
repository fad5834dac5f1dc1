"""An explanation as some lines of text, as Python prints it."""

from __future__ import annotations

from overhead.explain.record import Explanation
from overhead.reading.format import MICRO, micro_spread, plain
from overhead.words.explain.alternatives import alternative_line
from overhead.words.explain.step import device_of, heading
from overhead.words.reasons import sentence


def brief_text(found: Explanation) -> str:
    """The verdict, the time of a step and the alternatives; ``record.to_dict`` has all."""
    program = found.program
    lines = [heading(plain(program.function), plain(program.file), device_of(found))]
    lines += map(sentence, found.verdict.sentences)
    if found.step.wall.measured:
        lines.append(f"a step: {micro_spread(found.step.wall)} {MICRO}")
    lines += map(alternative_line, found.alternatives)
    return "\n".join(lines)
