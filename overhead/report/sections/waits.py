"""What waiting costs: by primitive, with nothing to wait for, with one unit, after idling; and latency percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, micro, plain, resolved, time
from overhead.reading.synchronising import representative_act, varied_for_label, wait_of
from overhead.reading.view import CALLER_WORDS, TargetView, View, words
from overhead.report.core.dots import DotRow, Mark, dot_figure, dot_panels, mark
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record

_WAIT_TITLES = {"empty_wait": "nothing issued", "naive": "one unit, warm", "naive_idle": "one unit after 50 ms idle"}
_WAIT_MARKERS = dict(zip(_WAIT_TITLES, ("v", "o", "s"), strict=True))
_PERCENTILE_MARKERS = {"p50": "o", "p95": "s", "p99": "^"}
_LATENCY_PATTERNS = ("wait-each", "read-each")


@register("waits", "One wait", 60, page="synchronisation", any_run=True)
def waits(view: View) -> Iterator[Part]:
    rows = [(t, r) for t, r in _waits(view) if r is t.base]
    native = [(t, r) for t, r in rows if r.caller != "browser"]
    shown = [(t, r) for t, r in native if not t.software] or native
    if shown:
        yield _primitives(shown)
    if said := [_browser_wait(t, r) for t, r in rows if r.caller == "browser" and resolved(r.figure("naive"))]:
        yield Text(said)
    latencies = [
        (t, r) for t in view.executing for r in t.records if r.pattern in _LATENCY_PATTERNS and "p50" in _names(r)
    ]
    if drawn := [(t, r) for t, r in latencies if _stands_for_its_stack(t, r)]:
        yield _latency(drawn)
    columns = [
        "target",
        "pattern",
        "called",
        *(f"{s}, {MICRO}" for s in _WAIT_TITLES.values()),
        f"fixed, {MICRO}",
        *(f"{p}, {MICRO}" for p in _PERCENTILE_MARKERS),
    ]
    names = [*_WAIT_TITLES, "fixed", *_PERCENTILE_MARKERS]
    if every := _unique([*_waits(view), *latencies]):
        yield Table(
            "Waits by primitive",
            columns,
            [
                [Cell(_label(t, r), t.stack), r.pattern, CALLER_WORDS[r.caller], *(micro_cell(r, n) for n in names)]
                for t, r in every
            ],
            numeric=range(3, 10),
            folded=True,
        )
    else:
        yield Text(["No wait was measured."])


def _stands_for_its_stack(target: TargetView, record: Record) -> bool:
    """Whether the case adds nothing but its wait to the base case; of acts that wait, one stands for all."""
    if target.first.api == "CPU" or record.caller != target.base.caller:
        return False
    act = representative_act(target, record.pattern)
    return not target.varied(record) if act is None else record is act


def _waits(view: View) -> list[tuple[TargetView, Record]]:
    """The base case of each target that has a device, and the cases that differ from it by their wait alone."""
    devices = [t for t in view.stacked if t.first.api != "CPU"]
    return [(t, r) for t in devices for r in t.records if _is_wait(t, r)]


def _browser_wait(target: TargetView, record: Record) -> str:
    one, slope = record.figure("naive"), record.figure("complete")
    more = f"; one more {record.unit} costs {time(slope)}" if slope is not None and resolved(slope) else ""
    return f"In {target.short} one {record.unit} and its wait take {time(one) if one else ''}{more}."


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
    return ", ".join([target.short, *([plain(str(wait), 24)] if wait else []), *told, *caller])


def _primitives(rows: list[tuple[TargetView, Record]]) -> Drawing:
    rows = sorted(rows, key=lambda one: one[1].value("naive") or math.inf)
    shapes = {title: _WAIT_MARKERS[name] for name, title in _WAIT_TITLES.items()}
    drawn = [DotRow(_label(t, r), _marks(t, r, _WAIT_MARKERS)) for t, r in rows]
    figure = dot_figure(drawn, MICRO, shapes)
    return Drawing(
        "waits",
        "One wait, by stack",
        _finding(rows),
        "The base case of each stack, ended by its usual wait. The distance from the first mark to the second is the "
        "work, and what the library deferred into the wait; the third also holds what waking up costs. The values "
        "stand at the right in this order.",
        figure,
    )


def _finding(rows: list[tuple[TargetView, Record]]) -> str:
    """What the drawing shows, in words."""
    said = [f"{t.short} {micro(one)}" for t, r in rows if (one := r.figure("naive")) is not None and resolved(one)]
    return f"Microseconds of one unit and its wait, warm: {', '.join(said)}."


def _latency(rows: list[tuple[TargetView, Record]]) -> Drawing:
    panels = [
        (title, "", [DotRow(_label(t, r), _marks(t, r, _PERCENTILE_MARKERS)) for t, r in group])
        for title, group in _groups(rows).items()
    ]
    figure = dot_panels(panels, _PERCENTILE_MARKERS, shared=False)
    return Drawing(
        "latency",
        "Latency when every unit is waited for",
        "Dot plot on log axes: median, 95th and 99th percentile of one unit and its wait, by stack.",
        "wait-each waits after every unit, read-each reads a value back as well: latency as an engine sees it.",
        figure,
    )


def _groups(rows: list[tuple[TargetView, Record]]) -> dict[str, list[tuple[TargetView, Record]]]:
    groups: dict[str, list[tuple[TargetView, Record]]] = {}
    for pattern in _LATENCY_PATTERNS:
        for t, r in rows:
            if r.pattern == pattern:
                groups.setdefault(f"{pattern}: {MICRO} per {r.unit}", []).append((t, r))
    return groups


def _marks(target: TargetView, record: Record, shapes: dict[str, str]) -> list[Mark]:
    return [
        m
        for name, shape in shapes.items()
        for m in mark(record.figure(name), colour(target.stack), shape, _WAIT_TITLES.get(name, name))
    ]


def _unique(rows: list[tuple[TargetView, Record]]) -> list[tuple[TargetView, Record]]:
    return list({r.key: (t, r) for t, r in rows}.values())
