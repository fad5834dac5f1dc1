"""The section of the machines' page on launch latencies in traces that others published, by GPU and
by recorder, beside our own.
"""

from __future__ import annotations

import collections
import dataclasses
import operator
import statistics
import urllib.parse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.report.across.vendors import look_of
from overhead.report.core.dots import (
    DotLook,
    DotRow,
    Head,
    Mark,
    dot_figure,
    narrow_dot_figure,
)
from overhead.report.core.draw import INK, WIDE_INCHES
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Origin, Value
from overhead.traces.published import OwnProgram, PublishedTrace, Recorder, published_traces
from overhead.words import traces as words
from overhead.words.format import MICRO

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_RECORDERS: tuple[Recorder, ...] = ("Kineto with CUPTI", "Kineto with roctracer", "Nsight Systems")
_OWN_MARKER = "D"


@dataclass(frozen=True)
class _Point:
    """A mark of a picture. ``gpu``: its row, with ``is_ours``; ``recorder``: its panel;
    ``is_latency``: or it is the host's work for each launch.
    """

    recorder: Recorder
    gpu: str
    value: Value
    is_latency: bool = True
    is_ours: bool = False
    with_profiler: bool = True

    @property
    def panel(self) -> str:
        """The title of its panel."""
        panel = words.latency_panel if self.is_latency else words.host_panel
        return panel(self.recorder)

    @property
    def row(self) -> str:
        """The label of its row."""
        return words.row_label(self.gpu, is_ours=self.is_ours)


def _origin(name: str, what: str) -> Origin:
    """Where a number stands in ``published.json``: in which entry, and in which field."""
    return Origin(operation="published", words=f"{name} {what}")


def _latency(trace: PublishedTrace | OwnProgram, name: str) -> Value:
    """The launch latency with its 10 and 90 % points, in microseconds."""
    assert trace.latency_us is not None
    origin = _origin(name, "latency")
    return Value(trace.latency_us, low=trace.low_us, high=trace.high_us, origin=origin)


def _published_points(traces: Iterable[PublishedTrace]) -> Iterator[_Point]:
    """The marks of published traces: the launch latency, and the host's work for each launch."""
    for trace in traces:
        if not trace.is_shown:
            continue
        name = f"{trace.repository}/{trace.path}"
        latency = _latency(trace, name)
        yield _Point(trace.recorder, trace.gpu, latency)
        if trace.host_us_each is not None:
            each = Value(trace.host_us_each, origin=_origin(name, "host"))
            yield _Point(trace.recorder, trace.gpu, each, is_latency=False)


def _own_points(programs: Iterable[OwnProgram]) -> Iterator[_Point]:
    """The marks of our own programs, which ran with the profiler and without."""
    for program in programs:
        latency = _latency(program, program.name)
        yield _Point(program.recorder, program.gpu, latency, is_ours=True)
        for times_us, what in ((program.profiled_host_us, "profiled"), (program.host_us, "alone")):
            each = _each_launch(times_us, program, what)
            yield _Point(
                program.recorder,
                program.gpu,
                each,
                is_latency=False,
                is_ours=True,
                with_profiler=what == "profiled",
            )


def _each_launch(times_us: Sequence[float], program: OwnProgram, what: str) -> Value:
    """The host's time for each launch: the median of the processes, with the lowest and highest."""
    each = [time_us / program.launches for time_us in times_us]
    origin = _origin(program.name, what)
    return Value(statistics.median(each), low=min(each), high=max(each), origin=origin)


def _link(trace: PublishedTrace) -> Cell:
    """The repository of a trace, with a link to the file at its commit."""
    path = urllib.parse.quote(trace.path)
    url = f"https://github.com/{trace.repository}/blob/{trace.commit}/{path}"
    return Cell(trace.repository, url=url, hover=trace.path)


def _found_idle(trace: PublishedTrace) -> str:
    return f"{trace.found_idle:,}"


def _median(trace: PublishedTrace) -> str:
    return words.micro(trace.latency_us)


def _idle(trace: PublishedTrace) -> str:
    return words.idle_share(trace.idle)


def _host_each(trace: PublishedTrace) -> str:
    return words.micro(trace.host_us_each)


_COLUMNS: list[Column[PublishedTrace]] = [
    Column("maker", _link),
    Column("GPU", operator.attrgetter("gpu")),
    Column("recorder", operator.attrgetter("recorder")),
    Column("library", operator.attrgetter("library")),
    Column("versions", operator.attrgetter("versions")),
    Column("launches that found the device idle", _found_idle, is_number=True),
    Column(words.LATENCY, _median, is_number=True),
    Column(words.LATENCY_RANGE, words.latency_range, is_number=True),
    Column("device idle", _idle, is_number=True),
    Column(words.HOST_EACH, _host_each, is_number=True),
    Column("overhead explain says", words.answer_of),
]


@register_across("published-traces", words.TRACES_TITLE, 15)
def traces_of_others(machines: Machines) -> Iterator[Part]:
    """The section with the launch latencies of published traces: a figure with a panel for each
    recorder, the traces with their sources, those without a mark, and our own programs with the
    profiler and without.
    """
    data = published_traces()
    points = [*_published_points(data.trace), *_own_points(data.own)]
    opening = _answer(points)
    if opening:
        yield Text([opening], lead=True)
    shown = [trace for trace in data.trace if trace.is_shown]
    shown.sort(key=_place)
    latencies = [point for point in points if point.is_latency]
    yield Drawing(
        "published-traces",
        words.LATENCY_TITLE,
        opening or words.LATENCY_TITLE,
        words.TRACES_CAPTION,
        partial(_figure, latencies),
        partial(_narrow_figure, latencies),
    )
    host = [point for point in points if not point.is_latency]
    yield Drawing(
        "published-traces-cpu",
        words.HOST_TITLE,
        words.HOST_TITLE,
        words.HOST_CAPTION,
        partial(_figure, host),
        partial(_narrow_figure, host),
    )
    yield _own_table(data.own)
    yield table_of(words.PUBLISHED_TABLE, _COLUMNS, shown, sortable=True, folded=True)
    yield _left_out_table(data.trace)


def _place(trace: PublishedTrace) -> tuple[int, str, float]:
    """The order of the table: by recorder and GPU, the shortest latency first."""
    return _RECORDERS.index(trace.recorder), trace.gpu, trace.latency_us or 0.0


def _own_table(programs: Sequence[OwnProgram]) -> Table:
    """What the profiler adds to our own programs."""
    rows = []
    for program in programs:
        alone = _each_launch(program.host_us, program, "alone")
        profiled = _each_launch(program.profiled_host_us, program, "profiled")
        rows.append(
            [
                program.name,
                program.versions,
                f"{program.launches:g}",
                words.micro_range(alone),
                words.micro_range(profiled),
                words.micro(program.latency_us),
                words.idle_share(program.idle),
            ]
        )
    return Table(words.OWN_TABLE, words.OWN_COLUMNS, rows, numeric=(2, 3, 4, 5, 6), folded=True)


def _left_out_table(traces: Iterable[PublishedTrace]) -> Table:
    """How many traces have no mark for each reason."""
    counts = collections.Counter(trace.left_out for trace in traces)
    rows = []
    for code, reason in words.WHY_NO_MARK.items():
        if counts[code]:
            rows.append([reason, str(counts[code])])
    return Table(words.LEFT_OUT_TABLE, ["why", "files"], rows, numeric=(1,), folded=True)


def _answer(points: Sequence[_Point]) -> str:
    """What the section opens with: the range of the latencies of PyTorch's profiler on NVIDIA."""
    recorder: Recorder = "Kineto with CUPTI"
    panel = [point for point in points if point.is_latency and point.recorder == recorder]
    theirs = [point for point in panel if not point.is_ours]
    if not theirs:
        return ""
    ours = [point for point in panel if point.is_ours]
    return words.traces_answer(_ends(theirs), _ends(ours) if ours else None)


def _ends(points: Sequence[_Point]) -> tuple[Value, Value]:
    """The lowest and the highest of these values, without their intervals."""
    values = sorted([point.value for point in points], key=operator.attrgetter("value"))
    return _alone(values[0]), _alone(values[-1])


def _alone(value: Value) -> Value:
    return dataclasses.replace(value, low=None, high=None)


def _figure(points: Sequence[_Point]) -> Picture:
    """A picture: a panel for each recorder, with a row for each GPU."""
    look = DotLook(hollow=words.WITH_A_PROFILER)
    return dot_figure(_rows(points), MICRO, _shapes(points), width=WIDE_INCHES, look=look)


def _narrow_figure(points: Sequence[_Point]) -> Picture:
    """The same for a phone."""
    look = DotLook([Head(f"{MICRO}:", "", INK)], hollow=words.WITH_A_PROFILER)
    return narrow_dot_figure(_rows(points, are_narrow=True), MICRO, _shapes(points), look=look)


def _shapes(points: Iterable[_Point]) -> dict[str, tuple[str, str]]:
    """The legend: marker and colour of each vendor, and of our own marks."""
    shapes = {}
    for point in points:
        if point.is_ours:
            shapes["measured by us"] = (_OWN_MARKER, INK)
        else:
            vendor, marker, colour = look_of(point.gpu)
            shapes[f"published, {vendor}"] = (marker, colour)
    return shapes


def _rows(points: Iterable[_Point], *, are_narrow: bool = False) -> dict[str, list[DotRow]]:
    """The rows of each panel: a row for each GPU, the lowest value first."""
    by_row: dict[tuple[str, str], list[_Point]] = {}
    for point in points:
        by_row.setdefault((point.panel, point.row), []).append(point)
    panels: dict[str, list[tuple[float, DotRow]]] = {}
    for (panel, label), of_row in by_row.items():
        of_row.sort(key=_value)
        end = words.row_end([_alone(point.value) for point in of_row])
        row = DotRow(label, [_mark(point) for point in of_row], end=end)
        if are_narrow:
            row = dataclasses.replace(row, columns=(end,))
        panels.setdefault(panel, []).append((of_row[0].value.value, row))
    ordered = [*map(words.latency_panel, _RECORDERS), *map(words.host_panel, _RECORDERS)]
    rows = {}
    for panel in ordered:
        if panel in panels:
            by_value = sorted(panels[panel], key=operator.itemgetter(0))
            rows[panel] = [row for _, row in by_value]
    return rows


def _value(point: _Point) -> float:
    return point.value.value


def _mark(point: _Point) -> Mark:
    """The mark of a point: hollow if it was recorded with a profiler."""
    _, marker, colour = look_of(point.gpu)
    if point.is_ours:
        marker, colour = _OWN_MARKER, INK
    return Mark(point.value, colour, marker, hollow=point.with_profiler)
