"""The times of calls in one line."""

from __future__ import annotations

from overhead.results import Figure
from overhead.timing.timing import CallTiming, Timing
from overhead.words.format import time
from overhead.words.reasons import sentence
from overhead.words.timing.division import short_division


def timing_line(found: Timing) -> str:
    """Each call with its cost."""
    return "; ".join(call_line(call) for call in found.calls)


def call_line(call: CallTiming) -> str:
    """The ``repr`` of a timed call: the call and its cost; the unpinned cost (no CPU core is fixed)
    where that is another time; and how the CPU time divides into Python and libraries.
    """
    complete = call.figure("complete")  # the cost
    names = [call.call]
    names += [f"{name} = {value}" for name, value in call.varied.items()]
    cost = time(complete) if complete else sentence(call.reason)
    shown = [f"{', '.join(names)}: {cost}"]
    # ``met``: the unpinned cost, by its name in the file.
    unpinned = call.figure("met")
    if unpinned and _is_another_time(unpinned, call.value("complete") or 0.0):
        shown.append(f"unpinned {time(unpinned)}")
    if call.division is not None and call.division.parts:
        division = short_division(call.division)
        # On a device the shares are of the CPU's time, which is not the cost.
        shown.append(f"of it {division}" if call.on == "CPU" else division)
    return ", ".join(shown)


def _is_another_time(unpinned: Figure, cost_ns: float) -> bool:
    """Whether the cost lies outside the range of the unpinned one."""
    known = unpinned.measured
    return known is not None and not known.floor <= cost_ns <= known.ceiling
