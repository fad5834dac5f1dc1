"""An explanation as some lines of text, as Python prints it."""

from __future__ import annotations

from overhead.explain.record import Alternative, Explanation
from overhead.reading.format import MICRO, factor_spread, micro_spread, plain
from overhead.words.explain.alternatives import KIND_LABELS
from overhead.words.reasons import sentence


def brief_text(found: Explanation) -> str:
    """The verdict, the time of a step and the alternatives; ``record.to_dict`` has all."""
    on = found.program.device or found.machine.cpu
    lines = [f"{plain(found.program.function)} in {plain(found.program.file)}, on {on}"]
    lines += map(sentence, found.verdict.sentences)
    if found.step.wall.measured:
        lines.append(f"a step: {micro_spread(found.step.wall)} {MICRO}")
    lines += map(_alternative_line, found.alternatives)
    return "\n".join(lines)


def _alternative_line(one: Alternative) -> str:
    if one.gain.measured:
        gain = f"{factor_spread(one.gain.measured)} as fast"
    else:
        gain = sentence(one.reason or one.results)
    why = sentence(one.agreement) if one.status == "ok" else one.status
    return f"{plain(one.name)}{KIND_LABELS[one.kind]}: {'; '.join(filter(None, (gain, why)))}"


Explanation.in_words = brief_text
