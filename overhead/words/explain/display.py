"""The times of calls and an explained step in one line."""

from __future__ import annotations

from overhead.explain.record import Explanation
from overhead.explain.timing import CallTiming, Timing
from overhead.words.explain.division import short_division
from overhead.words.explain.step import device_of, heading
from overhead.words.format import MICRO, micro_spread, time
from overhead.words.reasons import sentence


def timing_line(found: Timing) -> str:
    """Each call with its cost."""
    return "; ".join(map(call_line, found.calls))


def call_line(call: CallTiming) -> str:
    """The call and its cost; also the unpinned cost, where that is another time."""
    complete, met = call.figure("complete"), call.figure("met")
    name = ", ".join([call.call, *(f"{name} = {value}" for name, value in call.varied.items())])
    shown = [f"{name}: {time(complete) if complete else sentence(call.reason)}"]
    if (
        met
        and (free := met.measured)
        and not free.floor <= (call.value("complete") or 0.0) <= free.ceiling
    ):
        shown.append(f"unpinned {time(met)}")
    if call.division is not None and call.division.parts:
        shown.append(
            f"of it {short_division(call.division)}"
            if call.on == "CPU"
            else short_division(call.division)
        )
    return ", ".join(shown)


def explanation_line(found: Explanation) -> str:
    """What was explained, the time of a step, and what is said first of it."""
    program = found.program
    said = [heading(program.function, program.file, device_of(found))]
    if found.step.wall.measured:
        said.append(f"a step: {micro_spread(found.step.wall)} {MICRO}")
    said += map(sentence, found.verdict.sentences[:1])
    return "; ".join(said)
