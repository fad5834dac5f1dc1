"""What waiting costs: a wait after each unit, ways to wait, and a synchronisation after every step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import (
    MICRO,
    between,
    cost_text,
    factor_spread,
    listed,
    micro,
    micro_spread,
    number,
    plain,
    spread,
)
from overhead.reading.host_shares import BELOW_ZERO
from overhead.reading.missing_values import why
from overhead.reading.synchronising import (
    Synchronised,
    all_waits,
    in_capture,
    step_words,
    synchronised,
    varied_for_label,
    wait_of,
    waited_each,
    waiting_targets,
)
from overhead.reading.view import CALLER_WORDS, TargetView, View, stack_name, words
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record, Value
from overhead.words.reasons import one_line

_ACT_TITLES = {
    "item": ".item()",
    "cpu": ".cpu()",
    "cpu-pinned": "copy to pinned memory",
    "branch": "a branch on a value",
    "nonzero": "nonzero",
    "stream": "stream synchronize",
    "device": "device synchronize",
    "event": "spinning event synchronize",
    "event-blocking": "blocking event synchronize",
    "h2d": "copy to the device",
    "h2d-pinned": "pinned copy to the device",
}
_RHYTHM_MARKERS = {1: "o", 4: "v", 10: "s", 100: "D"}
_OTHER_MARKER = "^"
_NO_EFFECT = "adds nothing measurable"
_FIGURES = {
    "empty_wait": f"a wait with nothing to wait for, {MICRO}",
    "naive": f"one unit and its wait, T(1), {MICRO}",
    "naive_idle": f"the same after 50 ms idle, {MICRO}",
}
_PERCENTILES = ("p50", "p95", "p99")
_TOLD = ("torch", "dawn", "wgpu-native")
"""Stacks whose waits are told in sentences, if they were measured."""
_Groups = dict[tuple[str, str], list[Synchronised]]
"""By target and step."""


@dataclass(frozen=True)
class _Row:
    """What follows each unit of the target's base case (``then``), and that case; None where it was not measured."""

    target: TargetView
    then: str
    waited: Record | None

    @property
    def alone(self) -> str:
        """The cost of a unit without a wait; its interval alone if it is noisy, its status if it has no value."""
        base = self.target.base
        return _cell(base) if base.status == "noisy" else cost_text(base)

    @property
    def single(self) -> str:
        """The interval of T(1), one unit and its wait; '' of another act than the wait of the base case."""
        single = self.target.base.measured("naive") if self.then == _base_wait(self.target) else None
        return "" if single is None or not single.bounded else _positive_range(single)

    @property
    def sentence(self) -> str:
        """The row in words, with the strings of the table."""
        base, waited = self.target.base, _cell(self.waited)
        unit, who = plain(base.unit, 20), f"{stack_name(self.target)} {CALLER_WORDS[base.caller]}"
        costs = f"{who.replace('the ', 'The ', 1)}: a {unit} costs {self.alone} {MICRO}."
        if waited:
            return f"{costs} With {self.then} after each it takes {waited}."
        return f"{costs} One {unit} and its wait take {self.single}."


def _short(record: Record | None) -> str | Cell:
    """The cost as ``_cell`` has it, but without the interval of an ``ok`` figure, which a pointer shows."""
    figure, cost = record.figure("complete") if record is not None else None, _cell(record)
    return Cell(micro(figure), hover=cost) if cost and figure is not None and figure.status == "ok" else cost


@register("waiting", "What waiting costs", 20)
def waiting(view: View) -> Iterator[Part]:
    """What a wait or a read after each unit does to it, through each stack: up to two sentences, and a table."""
    targets = sorted(waiting_targets(view), key=lambda t: t.base.value("naive") or float("inf"))
    rows = [row for t in targets for row in _rows(view, t) if row.single or _cell(row.waited)]
    if not rows:
        yield Text(["No wait was measured."])
        return
    known = [row for row in rows if row.target.base.measured("complete")]
    told = {row.target.stack: row for row in reversed(known)}
    yield Text([told[stack].sentence for stack in dict.fromkeys([*_TOLD, *told]) if stack in told][:2])
    yield Table(
        f"A unit without a wait, with one after each, and one alone with its wait, T(1): {MICRO}",
        ["stack", "after each", "without", "with", "T(1)"],
        [
            [
                Cell(_caller_name(row.target), row.target.stack),
                Cell(row.then),
                row.alone,
                _short(row.waited) or (row.waited.status if row.waited else "not measured"),
                row.single,
            ]
            for row in rows
        ],
        numeric=range(2, 5),
    )
    said = "Called from Python, unless the row says more. A range alone is a noisy figure. T(1): always its interval."
    bound: list[str] = []
    for target in targets:
        if target.base.bound in ("device", "balanced") and not target.software:
            bound.append(stack_name(target))
    if bound:
        said += f" The device bounds the cost without a wait of {listed(bound)}: T(1) is no multiple of it."
    yield Text([said], quiet=True)


def _caller_name(target: TargetView) -> str:
    """The stack, and who calls it if that is not Python."""
    caller = target.base.caller
    return stack_name(target) + ("" if caller == "binding" else f", {CALLER_WORDS[caller]}")


def _rows(view: View, target: TargetView) -> list[_Row]:
    """The acts of the base case, those first that cost most; else its wait."""
    own = [s for s in synchronised(view) if s.every == 1 and s.alone is not None and s.alone.key == target.base.key]
    acts = [_Row(target, act_name(s.act), s.record) for s in own]
    wait = _Row(target, _base_wait(target), waited_each(target))
    acts.sort(key=lambda row: -((row.waited and row.waited.value("complete")) or 0.0))
    return acts if any(row.then == wait.then for row in acts) else [*acts, wait]


def _base_wait(target: TargetView) -> str:
    return act_name(str(wait_of(target.base) or ""))


def _cell(record: Record | None) -> str:
    """The cost of a unit with its interval, that alone if it is noisy; '' without a value."""
    figure = record.figure("complete") if record is not None else None
    if figure is None or not figure.measured:
        return ""
    if figure.status == "ok" or figure.low is None or figure.high is None:
        return micro_spread(figure) + (f" ({figure.status})" if figure.status != "ok" else "")
    return _positive_range(Value(figure.value or 0.0, figure.low, figure.high))


def _positive_range(ns: Value) -> str:
    """The interval of a time in microseconds; its upper end alone where it reaches zero, since no time lies below."""
    if ns.floor <= 0:
        return f"at most {number(ns.ceiling / 1e3)}"
    return between(ns.floor / 1e3, ns.ceiling / 1e3)


@register("waits", "Ways to wait", 60, page="synchronisation", any_run=True)
def waits(view: View) -> Iterator[Part]:
    """A table of the ways to wait, with the percentiles of cases that wait after each unit."""
    rows = list({r.key: (t, r) for t, r in all_waits(view)}.values())
    if not rows:
        yield Text(["No wait was measured."])
        return
    yield Text(["wait-each waits after every unit, read-each reads a value back as well: p50 to p99 are the latency of "
                "one unit and its wait, as an engine sees it."])  # fmt: skip
    names = [*_FIGURES, "fixed", *_PERCENTILES]
    titles = [*_FIGURES.values(), *(f"{name}, {MICRO}" for name in ("fixed", *_PERCENTILES))]
    yield Table(
        "Waits by primitive",
        ["target", "pattern", "called", *titles],
        [
            [Cell(_label(t, r), t.stack), r.pattern, CALLER_WORDS[r.caller], *(micro_cell(r, n) for n in names)]
            for t, r in rows
        ],
        numeric=range(3, 10),
    )


def _label(target: TargetView, record: Record) -> str:
    """The target, the wait of the case, and what else tells it from the base case."""
    varied = {k: v for k, v in varied_for_label(target, record).items() if k not in ("sync", "wait") and v != ""}
    wait = wait_of(record)
    return ", ".join([target.short, *([plain(str(wait), 24)] if wait else []), *words(varied)])


@register("synchronisation", "What a synchronisation costs", 65, page="synchronisation", any_run=True)
def synchronisation(view: View) -> Iterator[Part]:
    """What each synchronising act adds to a step of PyTorch: a figure, a table; and acts in a CUDA graph."""
    found = synchronised(view)
    groups: _Groups = {}
    for s in found:
        groups.setdefault((s.target.short, step_words(s.record)), []).append(s)
    clear = {key: [s for s in group if s.is_costly] for key, group in groups.items()}
    drawn = {key: group for key, group in clear.items() if len({s.act for s in group}) > 1}
    if found:
        yield _drawing(drawn, _table(groups)) if drawn else _table(groups)
    if verdicts := in_capture(view):
        rows = [[act_name(name), plain(text)] for name, text in verdicts.items()]
        yield Table("Synchronisations in a captured step", ["act", "in a CUDA graph"], rows)


def _when(every: int) -> str:
    return "after every step" if every == 1 else f"after every {every} steps"


def _drawing(groups: _Groups, table: Table) -> Drawing:
    panels = {}
    for (target, step), group in groups.items():
        acts = list(dict.fromkeys(s.act for s in group))
        marks = {act: [_mark(s, s.cost) for s in group if s.act == act and s.cost is not None] for act in acts}
        panels[f"{target}: {step}"] = [DotRow(act_name(act), marks[act]) for act in acts]
    rhythms = sorted({s.every for group in groups.values() for s in group})
    shapes = {_when(k): _RHYTHM_MARKERS.get(k, _OTHER_MARKER) for k in rhythms}
    return Drawing(
        "synchronisation",
        "What one synchronisation adds to the steps",
        "What each act adds to a step, by how often it is done; the numbers are in the table below.",
        "The time of the steps and one act, less that of the steps alone, formed round by round in one process, where "
        "the file has such pairs. All panels share one axis. Hollow: a figure behind it is noisy. Acts without a "
        "measurable cost are in the table.",
        partial(dot_figure, panels, f"{MICRO} an act", shapes),
        table=table,
    )


def _mark(s: Synchronised, cost: Value) -> Mark:
    figures = [r.figure("complete") for r in (s.record, s.alone) if r is not None]
    unclear = any(f is None or f.status != "ok" for f in figures)
    at = replace(cost / 1e3, status="noisy" if unclear else "ok")
    return Mark(at, colour(s.target.stack), _RHYTHM_MARKERS.get(s.every, _OTHER_MARKER))


def _table(groups: _Groups) -> Table:
    rows: list[list[str | Cell]] = []
    for (target, step), group in groups.items():
        for s in group:
            alone, cost, slow = s.alone.measured("complete") if s.alone else None, s.cost, s.slowdown
            numbers = [*(spread(one / 1e3) if one else "" for one in (alone, cost)), factor_spread(slow)]
            rows.append([Cell(target, s.target.stack), step, act_name(s.act), _when(s.every), *numbers, _remark(s)])
    columns = ["target", "step", "act", "when", f"the step alone, {MICRO}", f"the act adds, {MICRO}",
               "the step takes", "remark"]  # fmt: skip
    return Table("Synchronisations", columns, rows, numeric=(4, 5, 6))


def _remark(s: Synchronised) -> str:
    if s.alone is None:
        return "the step alone was not measured"
    parts = {"with the act": s.record, "alone": s.alone}
    lacking = [f"{name}: {one_line(why(r, 'complete'))}" for name, r in parts.items() if r.value("complete") is None]
    unclear = [f"{name} {f.status}" for name, r in parts.items() if (f := r.figure("complete")) and f.status != "ok"]
    doubt = [word] if s.cost is not None and (word := _doubt(s.cost)) else []
    return "; ".join(lacking or [*doubt, *unclear])


def act_name(name: str) -> str:
    """The act as readers know it: ``.item()``, ``stream synchronize``."""
    return _ACT_TITLES.get(name, plain(name, 40))


def _doubt(cost: Value) -> str:
    """``_NO_EFFECT`` if the interval holds zero, ``BELOW_ZERO`` if it ends below zero, otherwise an empty string."""
    if cost.ceiling < 0:
        return BELOW_ZERO
    return _NO_EFFECT if cost.bounded and cost.floor <= 0 else ""
