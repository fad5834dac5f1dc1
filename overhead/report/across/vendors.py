"""What one dispatch, node, submission and wait cost on devices of every vendor: measured, and
published elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.devices import without_brackets
from overhead.reading.plain_text import plain
from overhead.reading.precision import by_interval
from overhead.reading.published import Contract, publications
from overhead.reading.view import TargetView, View, first_with, with_fields
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.draw import WIDE_INCHES
from overhead.report.core.machines import DOWNLOADS_FOLDER, Machines
from overhead.report.core.registry import register_across
from overhead.results import Figure, Record, Value, facts_of
from overhead.words.format import MICRO, spread
from overhead.words.report.machines import listed_name, shown_runs
from overhead.words.report.vendors import (
    POINT_COLUMNS,
    VENDORS_CAPTION,
    device_value,
    devices_at_end,
    measured_source,
    published_remark,
    published_source,
    row_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture
    from pandas import DataFrame

_UNITS = ("dispatch", "launch", "operation", "step")
_WORK = (*_UNITS, "node", "submit", "wait")
_ONE_MORE: tuple[Contract, ...] = ("slope", "back to back")
_PANELS: dict[str, tuple[Sequence[str], Sequence[Contract]]] = {
    "Cost of one more dispatch, launch or operation": (_UNITS, _ONE_MORE),
    "Cost of one more node of a CUDA graph or recording": (("node",), _ONE_MORE),
    "Only published: 100 dispatches and one wait, divided by 100": (_UNITS, ("sequential",)),
    "Only published: single-shot latency, and empty waits": ((*_UNITS, "wait"), ("single",)),
    "Only published: launch latency, from a submission until the device starts": (
        _UNITS,
        ("until start",),
    ),
    "Only published: the CPU time of the call alone": (_WORK, ("host call",)),
}
"""What each panel shows, and how it was taken."""
_OTHER = "another vendor"
_VENDORS = {
    "NVIDIA": ("nvidia|geforce|quadro|tesla|rtx", "o", "#3d7a0b"),
    "AMD": ("amd|radeon|radv|gfx[0-9]", "s", "#b5432a"),
    "Intel": ("intel|iris|arc", "p", "#0067a5"),
    "Apple": ("apple", "^", "#4d5b68"),
    "Qualcomm": ("qualcomm|adreno", "v", "#7d1f7d"),
    "Arm": ("mali|arm", "P", "#94600a"),
    _OTHER: ("(?!)", "X", "#6b6b6b"),
}
"""What the names of their devices hold, their marker and their colour."""


@register_across("vendors", "What a launch costs, by vendor", 10)
def vendors(machines: Machines) -> Iterator[Part]:
    """A figure with a panel for each quantity and way to take it; tables of all points, with their
    sources.
    """
    points = _points(machines)
    yield Drawing(
        "vendors",
        "The cost of one more launch, by vendor",
        "; ".join(_PANELS),
        VENDORS_CAPTION,
        lambda: _figure(points),
    )
    yield Table(
        "How a figure was measured",
        ["how measured", "meaning"],
        list(publications().contract.items()),
    )
    for caption, published in (
        ("Published, with sources", True),
        ("Measured by us: the base cases of each stack", False),
    ):
        rows = points[points["published"] == published][[*POINT_COLUMNS]].values.tolist()
        yield Table(
            caption,
            [*POINT_COLUMNS.values()],
            rows,
            numeric=(5,),
            folded=not published,
            sortable=True,
        )


@register_across("machines", "The machines", 20)
def machines_table(machines: Machines) -> Iterator[Part]:
    """A row for each machine: the run that is shown of it, and what it measured."""
    yield Text([shown_runs(len(machines.views))], quiet=True)
    rows: list[list[str | Cell]] = [
        [listed_name(run.machine, is_own=run is machines.own.fingerprint),
         plain(run.machine.cpu, 60), run.created[:10], run.profile, ", ".join(view.stacks),
         Cell("JSON", path=f"{DOWNLOADS_FOLDER}/{run.machine.id}.json")]
        for view in machines.views if (run := view.fingerprint)
    ]  # fmt: skip
    yield Table(
        "The machines", ["machine", "processor", "measured", "profile", "stacks", "file"], rows
    )


def vendor(record: Record, cpu: str) -> str:
    """The vendor of the record's device: ``NVIDIA``, ``AMD CPU``, "software" or "another vendor".
    ``cpu``: its name.
    """
    if record.software:
        return "software"
    name = cpu if record.api == "CPU" else record.adapter
    found = (
        v
        for v, (pattern, *_) in _VENDORS.items()
        if re.search(rf"(?<![a-z])({pattern})", name, re.I)
    )
    return next(found, _OTHER) + (" CPU" if record.api == "CPU" else "")


def _points(machines: Machines) -> DataFrame:
    """All points, sorted. ``at``: a ``Value`` in microseconds; ``value``, ``text``: of it."""
    import pandas

    hows = [*publications().contract]
    points = [{**p, "value": p["at"].value} for p in (*_measured(machines), *_published())]
    points.sort(
        key=lambda p: (_WORK.index(p["what"]), hows.index(p["how"]), p["api"], p["row"], p["value"])
    )
    return pandas.DataFrame(points)


def _measured(machines: Machines) -> Iterator[dict[str, Any]]:
    """The points of every machine: each from the run that is shown of it, or from the newest other
    run that has it.
    """
    newest_first = sorted(machines.runs, key=lambda run: run.fingerprint.created, reverse=True)
    found: dict[object, dict[str, Any]] = {}
    for view in (
        *machines.views,
        *(run for run in newest_first if not run.fingerprint.environment),
    ):
        run = view.fingerprint
        source = measured_source(run)
        for target in (one for one in view.without_floor if one.has_step):
            device = plain(
                (
                    run.machine.cpu
                    if target.base.api == "CPU"
                    else without_brackets(target.base.adapter)
                ),
                40,
            )
            for what, how, record, figure in _figures(view, target):
                if figure is None or not (ns := figure.measured) or what not in _WORK:
                    continue
                with_arguments = (
                    record.params.get("arguments") != 0
                )  # a published figure may be of such a kernel
                row = row_name(
                    what,
                    record.api,
                    target.facts.label,
                    record.caller,
                    with_arguments=with_arguments,
                )
                status = by_interval(ns).status
                made = {
                    "what": what,
                    "how": how,
                    "row": row,
                    "api": record.api,
                    "device": device,
                    "at": ns / 1e3,
                    "vendor": vendor(record, run.machine.cpu),
                    "text": spread(ns / 1e3),
                    "source": source,
                    "remark": "" if status == "ok" else status,
                    "published": False,
                }
                found.setdefault((run.machine.id, what, how, row, device), made)
    yield from found.values()


def _figures(
    view: View, target: TargetView
) -> Iterator[tuple[str, Contract, Record, Figure | None]]:
    """What is measured, how it is taken, the record and its figure."""
    base, records = target.base, with_fields(target.records, workload="step")
    for record in with_fields(
        records, pattern=base.pattern, dependency=base.dependency, params=base.params
    ):
        if record.caller != "ffi":
            yield record.unit, "slope", record, record.figure("complete")
    if "arguments" in base.params:
        without = {**base.params, "arguments": 0}
        for record in with_fields(
            records, pattern=base.pattern, dependency=base.dependency, params=without
        ):
            yield record.unit, "slope", record, record.figure("complete")
    node = first_with(records, pattern="replay", unit="node")
    if node is not None and base.pattern != "replay":
        yield "node", "slope", node, node.figure("complete")
    marginal = view.comparison("marginal", base.key)
    if marginal is not None:
        yield "submit", "slope", base, marginal.figure("per_submit")
    if base.api != "CPU":
        yield "wait", "single", base, base.figure("empty_wait")
        yield base.unit, "single", base, base.figure("naive")


def _published() -> Iterator[dict[str, Any]]:
    for p in publications().point:
        source = publications().source[p.source]
        cell = Cell(published_source(source), url=source.where[0], hover=source.title)
        row = row_name(
            p.quantity, p.api, facts_of(p.stack).label, p.caller, with_arguments=p.arguments != 0
        )
        yield {
            "what": p.quantity,
            "how": p.contract,
            "row": row,
            "api": p.api,
            "device": p.adapter,
            "at": Value(p.value),
            "vendor": p.vendor,
            "text": f"{p.value:,.10g}",
            "source": cell,
            "remark": published_remark(p),
            "published": True,
        }


def _figure(points: DataFrame) -> Picture:
    drawn = points[
        (points["vendor"] != "software")
        & (points["api"] != "CPU")
        & points["at"].map(lambda at: at.resolved)
    ]
    panels = {}
    for title, (works, hows) in _PANELS.items():
        own = drawn[
            drawn["what"].isin(works)
            & drawn["how"].isin(hows)
            & (drawn["published"] | (hows is _ONE_MORE))
        ]
        if len(own):
            by_row = [group for _, group in own.sort_values("value").groupby("row")]
            panels[title] = [
                _dots(group)
                for group in sorted(by_row, key=lambda g: (g["api"].iloc[0], g["value"].min()))
            ]
    shapes = {
        name: (marker, colour)
        for name, (_, marker, colour) in _VENDORS.items()
        if name in {*drawn["vendor"]}
    }
    return dot_figure(panels, MICRO, shapes, share_axis=False, width=WIDE_INCHES)


def _dots(group: DataFrame) -> DotRow:
    """The marks of one stack, API and caller, and their devices; that of a wide interval is
    hollow.
    """
    marks, named = [], []
    for p in group.to_dict("records"):
        _, marker, colour = _VENDORS.get(p["vendor"], _VENDORS[_OTHER])
        at = (
            p["at"] if p["published"] else by_interval(p["at"])
        )  # a published value has no interval to judge
        marks.append(Mark(at, colour, marker, small=p["published"]))
        named.append(device_value(p["device"], p["at"]))
    return DotRow(group["row"].iloc[0], marks, end=devices_at_end(named))
