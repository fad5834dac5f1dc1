"""What one dispatch, node, submission and wait cost on devices of every vendor: measured, and
published elsewhere.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.devices import without_brackets
from overhead.reading.plain_text import plain
from overhead.reading.precision import by_interval
from overhead.reading.published import Contract, PublishedPoint, publications
from overhead.reading.view import TargetView, View, first_with, with_fields
from overhead.report.core.dots import (
    DotLook,
    DotRow,
    Head,
    Mark,
    dot_figure,
    narrow_dot_figure,
)
from overhead.report.core.draw import INK, WIDE_INCHES
from overhead.report.core.machines import DOWNLOADS_FOLDER, Machines
from overhead.report.core.registry import register_across
from overhead.results import Figure, Fingerprint, Origin, Record, Value, facts_of, formed
from overhead.words.format import MICRO, spread
from overhead.words.report.machines import listed_name, shown_runs
from overhead.words.report.vendors import (
    ONLY_PUBLISHED_CAPTION,
    ONLY_PUBLISHED_TITLE,
    VENDORS_CAPTION,
    device_value,
    devices_at_end,
    measured_source,
    published_remark,
    published_source,
    row_name,
    short_row_name,
    values_at_end,
    vendors_answer,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

_UNITS = ("dispatch", "launch", "operation", "step")
_WORK = (*_UNITS, "node", "submit", "wait")
"""What a cost can be of, in the order of the tables."""
_ONE_MORE: tuple[Contract, ...] = ("slope", "back to back")
"""How the cost of one more unit is measured, without a wait between the units."""


@dataclass(frozen=True)
class _Panel:
    """A panel of the picture: it shows costs of these ``works`` that were taken by one of these
    ``contracts``.
    """

    title: str
    works: Sequence[str]
    contracts: Sequence[Contract]


_PANELS = (
    _Panel("Cost of one more dispatch, launch or operation", _UNITS, _ONE_MORE),
    _Panel("Cost of one more node of a CUDA graph or recording", ("node",), _ONE_MORE),
)
"""What is measured and published."""
_ONLY_PUBLISHED = (
    _Panel("100 dispatches and one wait, divided by 100", _UNITS, ("sequential",)),
    _Panel("Single-shot latency, and empty waits", (*_UNITS, "wait"), ("single",)),
    _Panel(
        "Launch latency, from a submission until the device starts",
        _UNITS,
        ("until start",),
    ),
    _Panel("The CPU time of the call alone", _WORK, ("host call",)),
)
"""What cannot be compared with our costs, as it contains a wait, or only CPU time."""


@dataclass(frozen=True)
class _Vendor:
    """A vendor. ``in_names``: a pattern of words in the names of its devices; ``marker``,
    ``colour``: how its devices are drawn.
    """

    in_names: str
    marker: str
    colour: str


_OTHER = "another vendor"
_VENDORS = {
    "NVIDIA": _Vendor("nvidia|geforce|quadro|tesla|rtx", "o", "#3d7a0b"),
    "AMD": _Vendor("amd|radeon|radv|gfx[0-9]", "s", "#b5432a"),
    "Intel": _Vendor("intel|iris|arc", "p", "#0067a5"),
    "Apple": _Vendor("apple", "^", "#4d5b68"),
    "Qualcomm": _Vendor("qualcomm|adreno", "v", "#7d1f7d"),
    "Arm": _Vendor("mali|arm", "P", "#94600a"),
    _OTHER: _Vendor("(?!)", "X", "#6b6b6b"),
}
"""The pattern of the last one matches no name."""


@dataclass(frozen=True)
class _Point:
    """A cost on one device: measured by us, or published elsewhere.

    ``what``: of what unit; ``contract``: how it was taken; ``row``: stack, API and caller in words;
    ``short_row``: the same in the picture; ``cost``: in microseconds; ``text``: the cost as the
    table prints it.
    """

    what: str
    contract: Contract
    row: str
    short_row: str
    api: str
    device: str
    vendor: str
    cost: Value
    text: str
    source: str | Cell
    remark: str
    is_published: bool


_POINT_COLUMNS: list[Column[_Point]] = [
    Column("what", operator.attrgetter("what")),
    Column("how measured", operator.attrgetter("contract")),
    Column("API, stack, caller", operator.attrgetter("row")),
    Column("vendor", operator.attrgetter("vendor")),
    Column("device", operator.attrgetter("device")),
    Column(MICRO, operator.attrgetter("text"), is_number=True),
    Column("source", operator.attrgetter("source")),
    Column("remarks", operator.attrgetter("remark")),
]


@register_across("vendors", "What a launch costs, by vendor", 10)
def vendors(machines: Machines) -> Iterator[Part]:
    """The section that sets our own launch costs beside published ones: a figure with a panel for
    each quantity and each way to measure it (only figures taken in one way compare), and tables of
    all points with their sources.
    """
    points = _points(machines)
    opening = _answer(points)
    if opening:
        yield Text([opening], lead=True)
    yield Drawing(
        "vendors",
        "The cost of one more launch, by vendor",
        opening or _PANELS[0].title,
        VENDORS_CAPTION,
        partial(_figure, points, _PANELS),
        partial(_narrow_figure, points, _PANELS),
    )
    yield Drawing(
        "vendors-published",
        ONLY_PUBLISHED_TITLE,
        "; ".join(panel.title for panel in _ONLY_PUBLISHED),
        ONLY_PUBLISHED_CAPTION,
        partial(_figure, points, _ONLY_PUBLISHED),
        partial(_narrow_figure, points, _ONLY_PUBLISHED),
        folded=True,
    )
    # Tables: what each way to measure means, then the published points, then ours.
    meanings = list(publications().contract.items())
    yield Table("How a figure was measured", ["how measured", "meaning"], meanings, folded=True)
    published = [point for point in points if point.is_published]
    yield table_of("Published, with sources", _POINT_COLUMNS, published, sortable=True, folded=True)
    measured = [point for point in points if not point.is_published]
    yield table_of(
        "Measured by us: the base cases of each stack",
        _POINT_COLUMNS,
        measured,
        sortable=True,
        folded=True,
    )


@register_across("machines", "The machines", 20)
def machines_table(machines: Machines) -> Iterator[Part]:
    """A section with a table of the machines of a report: a row for each, with the run that is
    shown of it, what that measured, and its file.
    """
    yield Text([shown_runs(len(machines.views))], quiet=True)
    rows: list[list[str | Cell]] = []
    for view in machines.views:
        run = view.fingerprint
        name = listed_name(run.machine, is_own=run is machines.own.fingerprint)
        processor = plain(run.machine.cpu, 60)
        day = run.created[:10]
        file = Cell("JSON", path=f"{DOWNLOADS_FOLDER}/{run.machine.id}.json")
        rows.append([name, processor, day, run.profile, ", ".join(view.stacks), file])
    columns = ["machine", "processor", "measured", "profile", "stacks", "file"]
    yield Table("The machines", columns, rows)


def vendor(record: Record, cpu: str) -> str:
    """The vendor of the device that a case ran on: ``NVIDIA``; of the CPU, ``AMD CPU``; "software"
    for a GPU that is imitated; or "another vendor". ``cpu``: the name of the machine's processor.
    """
    if record.software:
        return "software"
    if record.api == "CPU":
        return f"{_vendor_in(cpu)} CPU"
    return _vendor_in(record.adapter)


def look_of(device: str) -> tuple[str, str, str]:
    """The vendor of a device by its name, and the marker and colour of its marks."""
    name = _vendor_in(device)
    known = _VENDORS[name]
    return name, known.marker, known.colour


def _vendor_in(device: str) -> str:
    """The vendor that the name of a device holds a word of."""
    # No letter may stand before the word, so that it is no part of another one.
    for name, known in _VENDORS.items():
        if re.search(rf"(?<![a-z])({known.in_names})", device, re.I):
            return name
    return _OTHER


def _points(machines: Machines) -> list[_Point]:
    """All points, measured and published, in the order of the tables: by unit, by how they were
    taken, by API and row, and the cheapest first.
    """
    # ``contract``: how a figure was taken; in the order of the list of publications.
    contracts = [*publications().contract]

    def place(point: _Point) -> tuple[int, int, str, str, float]:
        # ``what``: the unit that the cost is of; ``row``: API, stack and caller in words.
        work = _WORK.index(point.what)
        contract = contracts.index(point.contract)
        return work, contract, point.api, point.row, point.cost.value

    points = [*_measured(machines)]
    for published in publications().point:
        points.append(_published(published))
    return sorted(points, key=place)


def _measured(machines: Machines) -> Iterable[_Point]:
    """The points of every machine: each from the run that is shown of it, or from the newest other
    run that has it.
    """
    newest_first = sorted(machines.runs, key=lambda run: run.fingerprint.created, reverse=True)
    # A run that set environment variables for itself does not stand for its machine.
    usual = [run for run in newest_first if not run.fingerprint.environment]
    # By machine, unit, way to measure, row and device: the first point that is found.
    found: dict[object, _Point] = {}
    # ``views``: one run of each machine, the one that its page shows.
    for view in (*machines.views, *usual):
        run = view.fingerprint
        # ``without_floor``: without the reference call, which does nothing.
        for target in view.without_floor:
            # Without a step, the base case of the target is one of a larger workload.
            if not target.has_step:
                continue
            for taken in _taken(view, target):
                point = _measured_point(run, target, taken)
                if point is not None:
                    key = (run.machine.id, point.what, point.contract, point.row, point.device)
                    # The runs that are shown come first, so their points stay.
                    found.setdefault(key, point)
    return found.values()


@dataclass(frozen=True)
class _Taken:
    """A figure of a run, with its record: what it is a cost of, and how it was taken."""

    what: str
    contract: Contract
    record: Record
    figure: Figure | None


def _measured_point(run: Fingerprint, target: TargetView, taken: _Taken) -> _Point | None:
    """The point (a cost on one device) of a figure of a run; None if the figure has no value, or is
    of a unit that the tables do not have. ``taken``: the figure, and how it was measured.
    """
    cost_ns = taken.figure.measured if taken.figure is not None else None
    if cost_ns is None or taken.what not in _WORK:
        return None
    record = taken.record
    is_cpu = target.base.api == "CPU"
    device = run.machine.cpu if is_cpu else without_brackets(target.base.adapter)
    # A published figure may be of a kernel without arguments, so the row of ours says so too.
    with_arguments = record.params.get("arguments") != 0
    label = target.facts.label
    # The words that name API, stack and caller; a published point of the same has the same.
    named = (taken.what, record.api, label, record.caller)
    row = row_name(*named, with_arguments=with_arguments)
    # ``ok`` or ``noisy`` by its interval alone, whatever other figures of the case are.
    status = by_interval(cost_ns).status
    return _Point(
        what=taken.what,
        contract=taken.contract,
        row=row,
        short_row=short_row_name(*named, with_arguments=with_arguments),
        api=record.api,
        device=plain(device, 40),
        vendor=vendor(record, run.machine.cpu),
        cost=cost_ns / 1e3,
        text=spread(cost_ns / 1e3),
        source=measured_source(run),
        remark="" if status == "ok" else status,
        is_published=False,
    )


def _taken(view: View, target: TargetView) -> Iterator[_Taken]:
    """The figures of a target (a stack on a device) that can stand beside published ones: the cost
    of its base case from each caller and without arguments, of a node of a graph, of a submission,
    and what it costs to wait.
    """
    # ``base``: the usual way to launch through this stack. "slope": the cost of one more unit in a
    # chain; "single": one unit with its wait.
    base = target.base
    records = with_fields(target.records, workload="step")
    like_base = with_fields(records, pattern=base.pattern, dependency=base.dependency)

    for record in with_fields(like_base, params=base.params):
        # "ffi", a Python loop over bare C functions, only serves to split the CPU time by layer.
        if record.caller != "ffi":
            yield _Taken(record.unit, "slope", record, record.figure("complete"))
    if "arguments" in base.params:
        without_arguments = {**base.params, "arguments": 0}
        for record in with_fields(like_base, params=without_arguments):
            yield _Taken(record.unit, "slope", record, record.figure("complete"))

    # A stack whose base case is a node of a graph had it above.
    node = first_with(records, pattern="replay", unit="node")
    if node is not None and base.pattern != "replay":
        yield _Taken("node", "slope", node, node.figure("complete"))
    # ``marginal``: what one more submission adds, from cases with one and with many.
    # A named comparison of the run; None if it was not made.
    marginal = view.comparison("marginal", base.key)
    if marginal is not None:
        yield _Taken("submit", "slope", base, marginal.figure("per_submit"))

    if base.api != "CPU":
        yield _Taken("wait", "single", base, base.figure("empty_wait"))
        yield _Taken(base.unit, "single", base, base.figure("naive"))


def _published(point: PublishedPoint) -> _Point:
    """The point (a cost on one device) of a figure that others published, with a link to its
    source.
    """
    # The source by its name; the link goes to the first of its places.
    source = publications().source[point.source]
    link = Cell(published_source(source), url=source.where[0], hover=source.title)
    label = facts_of(point.stack).label
    # A source that does not tell (None) is taken for one with arguments.
    with_arguments = point.arguments != 0
    named = (point.quantity, point.api, label, point.caller)
    row = row_name(*named, with_arguments=with_arguments)
    return _Point(
        what=point.quantity,
        contract=point.contract,
        row=row,
        short_row=short_row_name(*named, with_arguments=with_arguments),
        api=point.api,
        device=point.adapter,
        vendor=point.vendor,
        cost=Value(point.value, origin=Origin(operation="published", words=point.id)),
        text=f"{point.value:,.10g}",
        source=link,
        remark=published_remark(point),
        is_published=True,
    )


def _drawn(points: Sequence[_Point]) -> list[_Point]:
    """The points of pictures and of the answer: software adapters and CPUs are only in the
    tables.
    """
    drawn = []
    for point in points:
        # ``resolved``: the cost lies above zero with its interval, if it has one.
        if point.vendor != "software" and point.api != "CPU" and point.cost.resolved:
            drawn.append(point)
    return drawn


def _answer(points: Sequence[_Point]) -> str:
    """What the section opens with: the range of the costs of one more unit, measured and published,
    and by how much the measured devices differ through one stack; '' without points. Noisy costs do
    not count.
    """
    compared = []
    for point in _drawn(points):
        is_clear = point.is_published or by_interval(point.cost).status == "ok"
        if is_clear and _is_in(_PANELS[0], point):
            compared.append(point)
    measured = [point for point in compared if not point.is_published]
    published = [point for point in compared if point.is_published]
    if not measured or not published:
        return ""
    # By row, which is one stack with one caller, the costs on all devices. Published ones were
    # measured in other ways, so no ratio is formed of them.
    by_row: dict[str, list[_Point]] = {}
    for point in measured:
        by_row.setdefault(point.row, []).append(point)
    on_several = [points for points in by_row.values() if len(points) > 1]
    largest = max(map(_factor, on_several), key=_value, default=None)
    return vendors_answer(
        (_cheapest(measured).cost, _dearest(measured).cost),
        (_cheapest(published).cost, _dearest(published).cost),
        largest,
    )


def _cheapest(points: Sequence[_Point]) -> _Point:
    return min(points, key=_cost)


def _dearest(points: Sequence[_Point]) -> _Point:
    return max(points, key=_cost)


def _cost(point: _Point) -> float:
    return point.cost.value


def _factor(points: Sequence[_Point]) -> Value:
    """By how many times the costs of these points differ."""
    dearest, cheapest = _dearest(points), _cheapest(points)
    # The two may be of different boards, which is what is compared.
    points_alone = [formed("point", point.cost.origin) for point in (dearest, cheapest)]
    return Value(dearest.cost.value / cheapest.cost.value, origin=formed("/", *points_alone))


def _value(factor: Value) -> float:
    return factor.value


def _figure(points: Sequence[_Point], panels_of: Sequence[_Panel]) -> Picture:
    """The picture of these panels, each with rows of dots on a scale of its own."""
    panels = {title: _rows(shown) for title, shown in _shown(points, panels_of).items()}
    shapes = _shapes(points, panels_of)
    return dot_figure(panels, MICRO, shapes, share_axis=False, width=WIDE_INCHES)


def _narrow_figure(points: Sequence[_Point], panels_of: Sequence[_Panel]) -> Picture:
    """The same for a phone, where a row has no room for the names of its devices."""
    panels = {}
    for title, shown in _shown(points, panels_of).items():
        panels[title] = _rows(shown, are_narrow=True)
    # The values get a line of their own, so that the label has the whole width.
    look = DotLook([Head(f"{MICRO}:", "", INK)])
    return narrow_dot_figure(panels, MICRO, _shapes(points, panels_of), look=look)


def _shown(points: Sequence[_Point], panels_of: Sequence[_Panel]) -> dict[str, list[_Point]]:
    """The points of each panel that has some, by its title."""
    found = {}
    for panel in panels_of:
        shown = [point for point in _drawn(points) if _is_in(panel, point)]
        if shown:
            found[panel.title] = shown
    return found


def _shapes(points: Sequence[_Point], panels_of: Sequence[_Panel]) -> dict[str, tuple[str, str]]:
    """The legend of these panels: marker and colour of each vendor that has a mark."""
    of_panels = itertools.chain.from_iterable(_shown(points, panels_of).values())
    drawn_vendors = {point.vendor for point in of_panels}
    shapes = {}
    for name, known in _VENDORS.items():
        if name in drawn_vendors:
            shapes[name] = (known.marker, known.colour)
    return shapes


def _is_in(panel: _Panel, point: _Point) -> bool:
    """Whether the panel shows the point."""
    if point.what not in panel.works or point.contract not in panel.contracts:
        return False
    return point.is_published or panel in _PANELS


def _rows(points: Iterable[_Point], *, are_narrow: bool = False) -> list[DotRow]:
    """A row of dots for each stack, API and caller, sorted by API and then by the cheapest
    point. Narrow ones have the range of their values, and name no devices.
    """
    by_row: dict[str, list[_Point]] = {}
    for point in sorted(points, key=lambda point: (point.row, point.cost.value)):
        # ``row``: API, stack and caller in words; sorted by cost, so the cheapest of a row comes
        # first.
        by_row.setdefault(point.row, []).append(point)
    # The first point of each row is its cheapest.
    groups = sorted(by_row.values(), key=lambda group: (group[0].api, group[0].cost.value))
    rows = []
    for group in groups:
        row = _dots(group)
        if are_narrow:
            values = values_at_end(group[0].cost, group[-1].cost)
            row = dataclasses.replace(row, columns=(values,))
        rows.append(row)
    return rows


def _dots(points: Sequence[_Point]) -> DotRow:
    """The row of one stack, API and caller: a mark for each device, hollow where the interval is
    wide, and the devices with their values at the end.
    """
    marks = []
    devices = []
    for point in points:
        known = _VENDORS.get(point.vendor, _VENDORS[_OTHER])
        # A published value has no interval to judge.
        cost = point.cost if point.is_published else by_interval(point.cost)
        # A small mark is published.
        marks.append(Mark(cost, known.colour, known.marker, small=point.is_published))
        devices.append(device_value(point.device, point.cost))
    return DotRow(points[0].short_row, marks, end=devices_at_end(devices))
