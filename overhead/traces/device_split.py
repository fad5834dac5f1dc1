"""Where the time of each device goes in a mean step: computing, collectives, waiting for other
ranks, copies, fills and idling. Pure; ns.

At each moment a device does one thing: it computes, whatever else runs; else it exchanges data in a
collective, else it waits for other ranks in one, else it copies, else it fills memory; else it is
idle. So the parts of a device add up to the time of the step.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from overhead.traces.collectives import WorkKind
from overhead.traces.earlier_work import delay_by_earlier_work_ns
from overhead.traces.trace import DeviceWork, StepTrace, TimeRange, Trace, union_of_spans

_Part = WorkKind | Literal["waiting"]
_IN_ORDER: Sequence[_Part] = ("compute", "collective", "waiting", "copy", "fill")
"""If several kinds of work run at a moment, it counts as the first of these."""
_FINEST_NS = 1.0
"""No device tells shorter times."""
_NO_WAITS: Mapping[DeviceWork, float] = {}
_SpansByPart = Mapping[_Part, np.ndarray]
"""By part of the time, a row of start and end for each piece of work, on the clock of the steps."""


@dataclass(frozen=True)
class TimeSplit:
    """Where the time of one device or one stream goes in a mean step, ns. ``stream``: empty for the
    device as a whole.

    ``step``: the mean step; ``compute``, ``collective``, ``waiting``, ``copy``, ``fill`` and
    ``idle`` add up to it. ``collective``: while nothing computes (exposed);
    ``collective_overlapped``: beside computing, with their waits. ``waiting``: the part of
    collectives in which they wait for other ranks, where that is known, while nothing computes.
    ``copy`` and ``fill``: while nothing before them in the list runs; ``copy_overlapped``,
    ``fill_overlapped``: beside that.
    """

    device: str
    stream: str
    step: float
    compute: float = 0.0
    collective: float = 0.0
    collective_overlapped: float = 0.0
    waiting: float = 0.0
    copy: float = 0.0
    copy_overlapped: float = 0.0
    fill: float = 0.0
    fill_overlapped: float = 0.0
    idle: float = 0.0

    @property
    def busy(self) -> float:
        """How long at least one piece of work runs, ns."""
        return self.step - self.idle


@dataclass(frozen=True)
class DeviceSplit:
    """Where the time of all devices goes. ``rows``: one for each device, by its name, each followed
    by one for each of its streams if several of them have work.

    ``together_ns``: how long at least one of the devices works in a mean step of ``step_ns``.
    """

    rows: Sequence[TimeSplit] = ()
    step_ns: float = 0.0
    together_ns: float = 0.0

    @property
    def devices(self) -> list[TimeSplit]:
        """The rows of whole devices."""
        return [row for row in self.rows if not row.stream]


def device_split(trace: Trace, waits: Mapping[DeviceWork, float] = _NO_WAITS) -> DeviceSplit:
    """Where the time of each device of a trace goes in a mean step; no rows for a trace without
    device work.

    All work of the recording counts that runs in the time of the steps, whoever issued it.
    ``waits``: for how long a collective waits for other ranks, ns, where that is known.
    """
    times = split_times(trace.steps)
    if not times.ranges:
        return DeviceSplit()
    work = trace.work or list(itertools.chain.from_iterable(step.device for step in trace.steps))
    clock = _StepClock(times.ranges)
    by_stream = _spans_by_stream(work, waits, clock)
    rows = []
    whole_devices = []
    for device in sorted(by_stream, key=_numbers_first):
        streams = by_stream[device]
        whole = _together(streams.values())
        whole_devices.append(whole)
        rows.append(_device_time(device, "", whole, clock, times.steps))
        if len(streams) > 1:
            for stream in sorted(streams, key=_numbers_first):
                rows.append(_device_time(device, stream, streams[stream], clock, times.steps))
    all_devices = _device_time("", "", _together(whole_devices), clock, times.steps)
    return DeviceSplit(rows, step_ns=all_devices.step, together_ns=all_devices.busy)


def _numbers_first(name: str) -> tuple[float, str]:
    """Sorts names that are numbers by their number, before all others."""
    return (float(name), "") if name.isdecimal() else (float("inf"), name)


@dataclass(frozen=True)
class SplitTimes:
    """The time that is split: ``ranges`` of the recording, in order, which hold so many ``steps``
    (a step may be there in part).
    """

    ranges: Sequence[TimeRange]
    steps: int


def split_times(steps: Sequence[StepTrace]) -> SplitTimes:
    """The time that counts as that of the steps: from the end of the first one to the end of the
    last one, without the time between marked steps in which none of their work runs. A single step
    counts whole, but for the time in which it waits for device work from before it.

    A step ends when its device work has ended. Counted from the start of the first step, the start
    on an idle device and the work left after the last step would count as idle time.
    """
    ordered = sorted(steps, key=lambda step: step.start)
    if not ordered:
        return SplitTimes([], 0)
    ends: list[float] = []
    spans: list[TimeRange] = []
    latest = float("-inf")
    for step in ordered:
        own_end = max([step.end, *(work.end for work in step.device)])
        latest = max(latest, own_end)
        ends.append(latest)
        spans.append((step.start, own_end))
    begin = ends[0]
    if len(ends) == 1:
        begin = ordered[0].start + delay_by_earlier_work_ns(ordered[0])
    ranges = []
    for start, end in union_of_spans(spans):
        if end > begin:
            ranges.append((max(start, begin), end))
    return SplitTimes(ranges, max(1, len(ends) - 1))


class _StepClock:
    """Tells how much of the time that is split has passed at a moment of the recording. Between the
    ranges that are split it stands still, so that what runs there takes no time.
    """

    def __init__(self, ranges: Sequence[TimeRange]) -> None:
        # Times from 1970 have no digits left for parts of a ns, so they count from the first range.
        self.begin = ranges[0][0]
        edges = np.array(ranges, dtype=float) - self.begin
        self._moments = edges.ravel()
        lengths = edges[:, 1] - edges[:, 0]
        passed = np.concatenate([[0.0], np.cumsum(lengths)])
        self._passed = np.stack([passed[:-1], passed[1:]], axis=1).ravel()
        self.total = float(passed[-1])

    def at(self, moments: np.ndarray) -> np.ndarray:
        """The time that has passed at each of these moments, ns."""
        passed: np.ndarray = np.interp(moments - self.begin, self._moments, self._passed)
        return passed


def _spans_by_stream(
    work: Iterable[DeviceWork], waits: Mapping[DeviceWork, float], clock: _StepClock
) -> dict[str, dict[str, _SpansByPart]]:
    """By device and stream, the work that takes time on the clock of the steps."""
    kinds: dict[tuple[str, bool], WorkKind] = {}  # names repeat, and telling the kind is slow
    moments: dict[tuple[str, _Part], list[TimeRange]] = defaultdict(list)
    for piece in work:
        known_by = (piece.name, piece.exchanges)
        if known_by not in kinds:
            kinds[known_by] = piece.kind
        kind = kinds[known_by]
        begin = piece.start
        if kind == "collective" and piece in waits:
            # A kernel waits first, until the last rank has come, and then exchanges.
            begin = min(piece.start + waits[piece], piece.end)
            moments[piece.stream, "waiting"].append((piece.start, begin))
        moments[piece.stream, kind].append((begin, piece.end))
    by_stream: dict[str, dict[str, _SpansByPart]] = defaultdict(dict)
    for (track, part), times in moments.items():
        on_clock = clock.at(np.array(times))
        spans = on_clock[on_clock[:, 1] > on_clock[:, 0]]
        if len(spans):
            device, _, stream = track.partition(":")
            parts = by_stream[device].get(stream, {})
            by_stream[device][stream] = {**parts, part: spans}
    return by_stream


def _together(streams: Iterable[_SpansByPart]) -> _SpansByPart:
    """The work of several streams as that of one device."""
    spans: dict[_Part, list[np.ndarray]] = defaultdict(list)
    for stream in streams:
        for part, of_stream in stream.items():
            spans[part].append(of_stream)
    return {part: np.concatenate(of_streams) for part, of_streams in spans.items()}


def _device_time(
    device: str, stream: str, spans: _SpansByPart, clock: _StepClock, steps: int
) -> TimeSplit:
    """The row of a device or a stream, made of all its work."""
    nothing = np.empty((0, 2))
    # ``exposed``: what a part adds to the time in which one of the parts before it runs.
    exposed: dict[_Part, float] = {}
    overlapped: dict[_Part, float] = {}
    together = nothing
    before_ns = 0.0
    for part in _IN_ORDER:
        own = spans.get(part, nothing)
        together = np.concatenate([together, own])
        busy_ns = _union_ns(together)
        exposed[part] = (busy_ns - before_ns) / steps
        overlapped[part] = max(0.0, _union_ns(own) / steps - exposed[part])
        before_ns = busy_ns
    of_collectives = [spans[part] for part in ("collective", "waiting") if part in spans]
    collectives_ns = _union_ns(np.concatenate([nothing, *of_collectives])) / steps
    exposed_collectives_ns = exposed["collective"] + exposed["waiting"]
    return TimeSplit(
        device=device,
        stream=stream,
        step=clock.total / steps,
        compute=exposed["compute"],
        collective=exposed["collective"],
        collective_overlapped=max(0.0, collectives_ns - exposed_collectives_ns),
        waiting=exposed["waiting"],
        copy=exposed["copy"],
        copy_overlapped=overlapped["copy"],
        fill=exposed["fill"],
        fill_overlapped=overlapped["fill"],
        idle=_without_rounding(clock.total - before_ns) / steps,
    )


def _without_rounding(ns: float) -> float:
    """The time, or 0 for what sums of numbers leave of nothing: no clock of a device is so fine."""
    return ns if ns >= _FINEST_NS else 0.0


def _union_ns(spans: np.ndarray) -> float:
    """How long at least one of these spans runs, ns. ``spans``: a row of start and end for each."""
    if not len(spans):
        return 0.0
    ordered = spans[np.argsort(spans[:, 0], kind="stable")]
    # When all spans so far have ended, before each span; what it adds begins there.
    ended = np.maximum.accumulate(ordered[:, 1])
    begins = ordered[1:, 0]
    adds = ended[1:] - np.maximum(begins, ended[:-1])
    first_ns = ordered[0, 1] - ordered[0, 0]
    return float(first_ns + np.maximum(adds, 0.0).sum())
