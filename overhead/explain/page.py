"""The page of one explained step, complete in one file: verdict, where a step's time goes, what would change it."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path

from overhead.errors import require_extra
from overhead.explain.record import KIND_LABELS, Alternative, CallSite, Explanation
from overhead.explain.verdict import UNRANKED, resolved_times, sentences, time_text, why_unresolved
from overhead.loading.files import save_file
from overhead.reading.format import (
    MICRO,
    factor_spread,
    micro,
    micro_of,
    micro_or_why,
    percent,
    plain,
    resolved,
    unresolved,
)
from overhead.report.core.bars import BarRow, bar_figure
from overhead.report.core.pages import Block, inline_drawing, rendered
from overhead.report.core.palette import CALL_COLOURS, LAYER_COLOURS
from overhead.report.core.parts import Drawing, Listing, Part, Table, Text
from overhead.results import Figure

_HOST, _BLOCKED = LAYER_COLOURS["python"], LAYER_COLOURS["rest"]
_DEVICE, _WALL = LAYER_COLOURS["driver"], LAYER_COLOURS["library"]
_CHANGED, _BOUND = CALL_COLOURS["batched"], LAYER_COLOURS["rest"]
_Row = tuple[str, ...]


def explained_page(found: Explanation) -> str:
    """The page as HTML text. Raises ``MissingExtra`` without the packages of the extra ``report``."""
    require_extra("report", "jinja2", "matplotlib", "seaborn")
    sections: list[tuple[str, str, Sequence[Part]]] = [
        ("verdict", "Verdict", list(_verdict(found))),
        ("alternatives", "What would change it", list(_alternatives(found))),
        ("synchronisations", "Synchronisations", list(_synchronisations(found))),
        ("operations", "Operations", list(_operations(found))),
        ("gaps", "Gaps of the device", list(_gaps(found))),
        ("method", "How this was measured", list(_method(found))),
    ]
    blocks = [Block(name, title, [_drawn(part) for part in parts]) for name, title, parts in sections if parts]
    device = found.program.device or found.machine.cpu
    return rendered(
        blocks,
        heading=f"What bounds {plain(found.program.function, 60)} in {plain(found.program.file, 80)}",
        about=f"{device}; measured {found.created[:10]} at {found.created[11:16]} UTC",
        answers="",
        root="",
        links=(),
        skipped=(),
        place=str,
        linked=str,
        drawn_from="one explained step",
    )


def save_explained_page(path: Path, found: Explanation) -> None:
    """Write the page. Raises ``CannotWrite``; then no partial file remains."""
    save_file(path, explained_page(found).encode())


def explained_in_notebook(found: Explanation) -> str:
    """The page inside a frame, for a notebook: its styles do not reach the notebook."""
    page = html.escape(explained_page(found), quote=True)
    return f'<iframe srcdoc="{page}" style="width:100%;height:40rem;border:1px solid #8888" title="overhead"></iframe>'


def _drawn(part: Part) -> object:
    return inline_drawing(part) if isinstance(part, Drawing) else part


def _verdict(found: Explanation) -> Iterator[Part]:
    first, *more = sentences(found)
    yield Text([first], lead=True)
    if more:
        yield Text(more)
    blocked = sum(row.blocked_ns for row in found.synchronisations) if found.replay.ok else 0.0
    rows = [_bar("Step, fresh processes", found.step.wall, _WALL)]
    if found.step.issue.measured:
        rows.append(_bar("Host, fresh processes", found.step.issue, _HOST, "host", blocked))
    busy = found.step.busy.measured
    if busy is not None:
        rows.append(BarRow("Device, profile", [("", busy.value / 1e3, _DEVICE)], micro_or_why(found.step.busy)))
    if any(row.pieces for row in rows):
        figure = bar_figure([(f"{MICRO} for each step", rows)])
        said = "; ".join(f"{row.label}: {row.note}" for row in rows)
        caption = (
            "Host and device work at the same time, so their bars do not add up to the step. The step and the host are "
            "measured in fresh processes; the times in the verdict are those of the quietest steps in the profiled one."
        )
        yield Drawing("step", "One step", said, caption, figure)
    counts: list[_Row] = [
        (name, f"{figure.value:,.4g}" if figure.value is not None else "", figure.reason)
        for name, figure in (
            ("launches", found.per_step.launches),
            ("copies", found.per_step.copies),
            ("allocations", found.per_step.allocations),
            ("synchronisations", found.per_step.synchronisations),
        )
    ]
    columns, shown_counts = _without_empty(("Call", "Count", "Remark"), counts)
    yield Table("Calls of one step", columns, shown_counts, numeric=(1,))


def _bar(label: str, figure: Figure, colour: str, title: str = "", blocked: float = 0.0) -> BarRow:
    times = resolved_times(figure)
    pieces = [(title, max(0.0, times[0] - blocked) / 1e3, colour)] if len(times) == 1 else []
    if pieces and blocked:
        pieces.append(("blocked", blocked / 1e3, _BLOCKED))
    return BarRow(label, pieces, time_text(figure))


def _short(figure: Figure) -> str:
    return f"{micro(figure)} {MICRO}" if resolved(figure) else unresolved(figure)


def _alternatives(found: Explanation) -> Iterator[Part]:
    timed = [(time.value, each) for each in found.alternatives if (time := each.step.measured)]
    tried = [each for _, each in sorted(timed, key=lambda pair: pair[0])]
    rows = [_bar(_name(each), each.step, _colour(each)) for each in tried]
    rows.append(_bar("as it is", found.step.wall, _WALL))
    if tried and any(row.pieces for row in rows):
        figure = bar_figure([(f"{MICRO} for each step", rows)])
        said = "; ".join(f"{row.label}: {row.note}" for row in rows)
        caption = "Each alternative alternates with the step in one process. A bound is no program that anyone can use."
        yield Drawing("alternatives", "A step in each way", said, caption, figure)
    table: list[_Row] = [
        (
            _name(each),
            "not resolved" if why_unresolved(each) else each.status,
            time_text(each.step) if each.step.measured else "",
            _gain(each),
            f"{each.making.value / 1e9:,.2g} s" if each.making.value is not None else "",
            f"{each.repaid_after.value:,.0f}" if each.repaid_after.value is not None else "",
            each.verdict(),
            "; ".join(filter(None, (each.results, each.reason, why_unresolved(each), _place(each.site)))),
        )
        for each in found.alternatives
    ]
    if table:
        columns: _Row = (
            "Alternative",
            "Status",
            f"Step, {MICRO}",
            "Gain",
            "Making it",
            "Repaid after steps",
            "Results",
            "Remark",
        )
        columns, table = _without_empty(columns, table)
        yield Table("What was tried", columns, table, prose=True)


def _name(alternative: Alternative) -> str:
    return plain(alternative.name, 60) + KIND_LABELS[alternative.kind]


def _colour(alternative: Alternative) -> str:
    return _CHANGED if alternative.kind == "measured" else _BOUND


def _gain(alternative: Alternative) -> str:
    gain = alternative.gain.measured
    return factor_spread(gain) if gain else ""


def _place(site: CallSite) -> str:
    return site.line + (f" (inside {site.inside})" if site.inside else "")


def _synchronisations(found: Explanation) -> Iterator[Part]:
    rows: list[_Row] = [
        (plain(row.what, 60), f"{row.count:,.4g}", micro_of(row.blocked_ns), _place(row.site), row.site.source)
        for row in found.synchronisations
    ]
    if rows:
        columns: _Row = ("Call", "Count", f"Blocked, {MICRO}", "Line", "Source")
        if not found.replay.ok:
            rows = [(row[0], row[1], "", *row[3:]) for row in rows]
        columns, rows = _without_empty(columns, rows)
        yield Table("Calls that wait for the device, by line", columns, rows, numeric=(1, 2))


def _operations(found: Explanation) -> Iterator[Part]:
    total = sum(row.host_ns for row in found.operations) or 1.0
    rows: list[_Row] = [
        (
            plain(row.name, 60),
            f"{row.count:,.4g}",
            micro_of(row.host_ns),
            percent(row.host_ns / total),
            micro_of(row.device_ns) if row.device_ns else "",
            _place(row.site),
            row.site.source,
        )
        for row in found.operations
    ]
    if rows and not found.replay.ok:
        yield Text([UNRANKED])
    elif rows:
        columns: _Row = ("Operation", "Count", f"Host, {MICRO}", "Share", f"Device, {MICRO}", "Line", "Source")
        columns, rows = _without_empty(columns, rows)
        yield Table("Operations by host time", columns, rows, numeric=(1, 2, 3), sortable=True)


def _gaps(found: Explanation) -> Iterator[Part]:
    rows = [
        (f"{micro_of(gap.ns)} {MICRO}", plain(gap.before, 80), plain(gap.host, 80), _place(gap.site))
        for gap in found.gaps
    ]
    if rows and found.replay.ok:
        yield Table(
            "The longest times in which the device has no work", ("Gap", "Before", "The host did", "Line"), rows
        )


def _without_empty(columns: _Row, rows: Sequence[_Row]) -> tuple[_Row, list[_Row]]:
    """The columns in which at least one row has a text."""
    kept = [i for i in range(len(columns)) if any(row[i] for row in rows)]
    return tuple(columns[i] for i in kept), [tuple(row[i] for i in kept) for row in rows]


def _method(found: Explanation) -> Iterator[Part]:
    replay = found.replay
    if replay.ratio is None:
        said = f"The profile was not replayed: {replay.reason}."
    else:
        said = (
            f"The profile, replayed as a queue, gives {_short(replay.replayed)} for each step; the step takes"
            f" {_short(replay.measured)} in the same process without the profiler: {percent(replay.ratio)}."
        )
        said += "" if replay.ok else " That is more than 15 % off, so a part of this step is not understood."
    yield Listing(
        [
            ("Times", "The slope of T(n) over n steps, in fresh processes without a profiler."),
            ("Counts and lines", f"A profile of {found.profiled_steps} steps in a process of its own."),
            ("The check", said),
            *(("Not seen", sentence) for sentence in found.not_seen),
        ]
    )
    versions = ", ".join(f"{name} {version}" for name, version in found.versions.items())
    if versions:
        yield Text([f"Versions: {versions}."], quiet=True)
