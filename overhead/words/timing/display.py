"""The times of calls in one line."""

from __future__ import annotations

from overhead.timing.timing import CallTiming, Timing
from overhead.words.format import time
from overhead.words.reasons import sentence
from overhead.words.timing.division import short_division


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
