"""The figures of one call, or of several in turn, as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Heading, Part, Table, Text
from overhead.explain.timing import CallRatio, CallTiming, Timing
from overhead.explain.waits import NOTHING
from overhead.reading.format import (
    MICRO,
    TIMES,
    between,
    factor,
    listed,
    micro_spread,
    plain,
    spread,
)
from overhead.reading.next_run import no_next_run, range_text
from overhead.results import Figure

_WORDS = {
    "complete": "one more call with its work done, on an undisturbed processor",
    "met": "the same where the operating system chooses the processor: median and range of fresh processes",
    "issue": "the part of it until the call returns",
    "device": "the time that the device is busy with it",
    "fixed": "what any number of calls pays once, such as the wait",
    "naive": "a single call and its wait, timed as most benchmarks do",
}
_OPTIONAL = {"naive": 2, "fixed": 3, "issue": 4}
"""What a narrow terminal leaves out, the highest rank first."""
_OVERSTATED = 1.2
"""A sentence names the time of a single call, or the met cost, if it is this many times the cost or more."""
_LIBRARIES = ("torch", "jax", "cupy-cuda12x", "cupy-cuda13x", "numba", "wgpu", "wgpudawn", "numpy")
"""The first of these that a statement uses stands in the title."""
_LONGEST_SHOWN = 60
"""Characters of a statement in the table."""


def timing_blocks(timing: Timing) -> Iterator[Part]:
    """The table of the statements, what its columns mean, how the statements compare, and what is missing."""
    library = next((f", {name} {timing.versions[name]}" for name in _LIBRARIES if name in timing.versions), "")
    where = listed(list(dict.fromkeys(call.on for call in timing.calls)))
    calls_wait = any(call.wait != NOTHING.said for call in timing.calls)
    names = [name for name in _WORDS if calls_wait or name != "issue"]
    several = len(timing.calls) > 1
    rows = [
        [str(n) if several else "", plain(call.call, _LONGEST_SHOWN), *(_cell(call, name) for name in names)]
        for n, call in enumerate(timing.calls, 1)
    ]
    optional = {2 + names.index(name): rank for name, rank in _OPTIONAL.items() if name in names}
    columns = ["#", "call", *(f"{name}, {MICRO}" for name in names)]
    yield Table(
        f"The cost of a call, {where}{library}", columns, rows, numeric=range(2, len(columns)), optional=optional
    ).without_empty()
    yield Text(
        [f"{name}: {_WORDS[name]}." for name in names if any(_cell(call, name) for call in timing.calls)], quiet=True
    )
    yield Heading("What the figures say")
    yield Text(sentences(timing))


def sentences(timing: Timing) -> list[str]:
    """What the figures say: the ratios, what timing a single call would say, how it waits, what is missing."""
    calls = timing.calls
    said = [*map(_ratio, timing.ratios), *_overstated(calls)]
    waits: dict[str, list[str]] = {}
    for n, call in enumerate(calls, 1):
        said += _of_call(call, _of([str(n)], calls))
        waits.setdefault(call.wait, []).append(str(n))
    if any(call.status == "ok" for call in calls) and (unknown := no_next_run(timing.machine)):
        said.append(unknown)
    said += [f"Wait{_of(which, calls)}: {wait}." for wait, which in waits.items()]
    return [*said, "The values that a call computes are not checked.", *timing.notes]


def _of_call(call: CallTiming, which: str) -> Iterator[str]:
    """What is said of one statement. ``which``: `` of 2`` where there are several."""
    met, complete = call.value("met"), call.value("complete")
    if met and complete and met / complete >= _OVERSTATED:
        yield (
            f"In a program, expect the cost in the column met{which}: {factor(met / complete)} that in the column "
            "complete, which only an undisturbed processor reaches."
        )
    if again := range_text(call.next_run):
        yield (
            f"Next run: 9 of 10 runs on other machines of this kind should measure {again} {MICRO} for the quiet "
            f"cost (complete){which}. This assumes that it varies as the suite's cases do."
        )
    if call.bound == "device":
        yield f"The device decides the cost{which}: the host issues calls faster than the device finishes them."
    if call.status in ("noisy", "bimodal"):
        yield f"The cost{which} is {call.status}: {call.reason}."
    for reason, names in _missing(call).items():
        yield f"No {listed(names)}{which}: {reason}."
    if call.prints:
        yield f"The call{which} prints; its output is thrown away, and its time counts."


def _of(which: Sequence[str], calls: Sequence[CallTiming]) -> str:
    """`` of 1 and 3`` where this is said of some statements only."""
    return f" of {listed(list(which))}" if len(which) < len(calls) else ""


def _figure(call: CallTiming, name: str) -> Figure | None:
    return call.figure("device_busy" if name == "device" else name)


def _cell(call: CallTiming, name: str) -> str:
    figure = _figure(call, name)
    return micro_spread(figure) if figure is not None and figure.measured else ""


def _ratio(ratio: CallRatio) -> str:
    times = ratio.ratio.measured
    if times is None or not times.bounded:
        return f"{ratio.position} against 1: {ratio.ratio.reason or ratio.ratio.status}."
    if times.floor <= 1 <= times.ceiling:
        shown = between(times.floor, times.ceiling)
        return f"No measurable difference between {ratio.position} and 1: {shown}{TIMES}."
    interval = spread(times).replace(" (", f"{TIMES} (", 1)
    return f"{ratio.position} takes {interval} as long as 1, measured in turn in the same processes."


def _overstated(calls: Sequence[CallTiming]) -> list[str]:
    """How far a single timed call is from the cost, where that is far."""
    found = [
        (naive / complete, n)
        for n, call in enumerate(calls, 1)
        if (naive := call.value("naive")) and (complete := call.value("complete"))
    ]
    most, n = max(found, default=(0.0, 0))
    which = f" (of {n})" if len(calls) > 1 else ""
    said = f"Timing a single call and its wait{which} would report {factor(most)} the real cost."
    return [said] if most >= _OVERSTATED else []


def _missing(call: CallTiming) -> dict[str, list[str]]:
    """The names of the figures without a value, by reason."""
    found: dict[str, list[str]] = {}
    for name in _WORDS:
        figure = _figure(call, name)
        if figure is not None and not figure.measured:
            found.setdefault(figure.reason or call.reason or figure.status, []).append(name)
    if call.on != "CPU" and call.figure("device_busy") is None:
        found.setdefault(_no_device(call), []).append("device")
    return found


def _no_device(call: CallTiming) -> str:
    """Why the time of the device is missing."""
    span = call.figure("device_span")
    if span is None:
        return "this library has no clock of the device that is known here"
    if not span.measured:
        return span.reason or span.status
    return f"the device waited for work in between; at most {micro_spread(span)} {MICRO}"
