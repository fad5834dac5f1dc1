"""What waiting costs: by primitive, with nothing to wait for, with one unit, after idling; and latency percentiles."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.format import MICRO, plain
from overhead.reading.synchronising import varied_for_label, wait_of
from overhead.reading.view import CALLER_WORDS, TargetView, View, words
from overhead.report.core.draw import ROW_INCHES, DotRow, Mark, canvas, dot_rows, mark, marker_legend
from overhead.report.core.palette import colour
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.report.core.registry import register
from overhead.results import Record

_WAIT_TITLES = {"empty_wait": "nothing issued", "naive": "one unit, warm", "naive_idle": "one unit after 50 ms idle"}
_WAIT_MARKERS = dict(zip(_WAIT_TITLES, ("v", "o", "s"), strict=True))
_PERCENTILE_MARKERS = {"p50": "o", "p95": "s", "p99": "^"}
_LATENCY_PATTERNS = ("wait-each", "read-each")


@register("waits", "What waiting costs", 60, page="synchronisation")
def waits(view: View) -> Iterator[Part]:
    devices = [t for t in view.executing if t.first.api != "CPU"]
    rows = [(t, r) for t in devices for r in t.records if _is_wait(t, r)]
    if rows:
        yield _primitives(rows)
    latencies = [
        (t, r) for t in view.executing for r in t.records if r.pattern in _LATENCY_PATTERNS and "p50" in _names(r)
    ]
    if latencies:
        yield _latency(latencies)
    if not rows and not latencies:
        yield Text(["No wait was measured."])
        return
    columns = ["target", "pattern", "caller", *(f"{s}, {MICRO}" for s in _WAIT_TITLES.values()), f"fixed, {MICRO}",
               *(f"{p}, {MICRO}" for p in _PERCENTILE_MARKERS)]  # fmt: skip
    names = [*_WAIT_TITLES, "fixed", *_PERCENTILE_MARKERS]
    yield Table(
        "Waits",
        columns,
        [[Cell(_label(t, r), t.stack), r.pattern, CALLER_WORDS[r.caller], *(micro_cell(r, n) for n in names)]
         for t, r in _unique([*rows, *latencies])],
        numeric=range(3, 10), folded=True,
    )  # fmt: skip


def _names(record: Record) -> set[str]:
    return {f.name for f in record.figures}


def _is_wait(target: TargetView, record: Record) -> bool:
    """The base case, or one that differs from it by its wait alone."""
    same = record.pattern == target.base.pattern and set(target.varied(record)) <= {"wait"}
    callers = [r.caller for r in target.records if r.params.get("wait") == record.params.get("wait")]
    first = record.caller == target.base.caller or target.base.caller not in callers
    return same and first and bool(_names(record) & set(_WAIT_TITLES))


def _label(target: TargetView, record: Record) -> str:
    """The target and what tells the case from the base, its wait or its synchronisation first; words without names."""
    wait = wait_of(record)
    varied = {k: v for k, v in varied_for_label(target, record).items() if k not in ("sync", "wait") and v != ""}
    told = [
        plain(v, 24) if isinstance(v, str) else word for v, word in zip(varied.values(), words(varied), strict=True)
    ]
    caller = [] if record.caller == target.base.caller else [CALLER_WORDS[record.caller]]
    return ", ".join([target.label, *([plain(str(wait), 24)] if wait else []), *told, *caller])


def _primitives(rows: list[tuple[TargetView, Record]]) -> Drawing:
    figure, [[ax]] = canvas([ROW_INCHES * len(rows)])
    dot_rows(ax, [DotRow(_label(t, r), _marks(t, r, _WAIT_MARKERS)) for t, r in rows])
    ax.set_xlabel(f"{MICRO} per wait")
    marker_legend(figure, {title: _WAIT_MARKERS[name] for name, title in _WAIT_TITLES.items()})
    return Drawing(
        "waits", "One wait, by primitive",
        "Dot plot on a log axis: microseconds of a wait with nothing issued, after one unit, and after one unit "
        "following an idle pause, by stack and wait primitive.",
        "The same chain, ended by different means of waiting. The distance from the first mark to the others is the "
        "work and what the library deferred into the wait; the last also holds what waking up costs.",
        figure,
    )  # fmt: skip


def _latency(rows: list[tuple[TargetView, Record]]) -> Drawing:
    figure, grid = canvas([ROW_INCHES * len(g) for g in _groups(rows).values()])
    for (ax,), (title, group) in zip(grid, _groups(rows).items(), strict=True):
        dot_rows(ax, [DotRow(_label(t, r), _marks(t, r, _PERCENTILE_MARKERS)) for t, r in group])
        ax.set_title(title)
    marker_legend(figure, _PERCENTILE_MARKERS)
    return Drawing(
        "latency", "Latency when every unit is waited for",
        "Dot plot on log axes: median, 95th and 99th percentile of one unit and its wait, by stack.",
        "wait-each waits after every unit, read-each reads a value back as well: latency as an engine sees it.",
        figure,
    )  # fmt: skip


def _groups(rows: list[tuple[TargetView, Record]]) -> dict[str, list[tuple[TargetView, Record]]]:
    groups: dict[str, list[tuple[TargetView, Record]]] = {}
    for pattern in _LATENCY_PATTERNS:
        for t, r in rows:
            if r.pattern == pattern:
                groups.setdefault(f"{pattern}: {MICRO} per {r.unit}", []).append((t, r))
    return groups


def _marks(target: TargetView, record: Record, shapes: dict[str, str]) -> list[Mark]:
    return [m for name, shape in shapes.items() for m in mark(record.figure(name), colour(target.stack), shape)]


def _unique(rows: list[tuple[TargetView, Record]]) -> list[tuple[TargetView, Record]]:
    return list({r.key: (t, r) for t, r in rows}.values())
