"""An explanation and the time of a call as text, as Python prints them."""

from __future__ import annotations

from overhead.explain.record import Explanation
from overhead.explain.timing import CallTiming
from overhead.reading.plain_text import plain
from overhead.words.explain.alternatives import alternative_line
from overhead.words.explain.division import short_division
from overhead.words.explain.step import device_of, heading
from overhead.words.format import MICRO, micro_spread, time
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


def call_text(call: CallTiming) -> str:
    """The call, its cost, what unpinned processes pay where that is another time, and how it divides."""
    complete, met = call.figure("complete"), call.figure("met")
    name = ", ".join([call.call, *(f"{name} = {value}" for name, value in call.varied.items())])
    shown = [f"{name}: {time(complete) if complete else sentence(call.reason)}"]
    if met and (free := met.measured) and not free.floor <= (call.value("complete") or 0.0) <= free.ceiling:
        shown.append(f"met {time(met)}")
    if call.division is not None and call.division.parts:
        shown.append(f"of it {short_division(call.division)}" if call.on == "CPU" else short_division(call.division))
    return ", ".join(shown)
