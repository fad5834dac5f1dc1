"""What waiting costs: a wait after each unit, ways to wait, and a synchronisation after every
step.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.plain_text import plain
from overhead.reading.synchronising import (
    StepKind,
    Synchronised,
    all_waits,
    in_capture,
    step_kind,
    synchronised,
    wait_of,
    waited_each,
    waiting_targets,
)
from overhead.reading.view import TargetLabel, TargetView, View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.registry import register
from overhead.results import Record, Value
from overhead.words.format import MICRO, factor_spread, micro, spread
from overhead.words.glossary import figure_column
from overhead.words.names import CALLER_WORDS
from overhead.words.report.waiting import (
    NO_WAIT,
    SYNCHRONISATIONS_CAPTION,
    WAIT_FIGURES,
    WAITS_READ_AS,
    WAITS_TITLE,
    act_name,
    after_every,
    caller_name,
    cost_or_range,
    how_to_read,
    positive_range,
    remark,
    step_text,
    wait_label,
    waiting_sentence,
    without_wait,
)

_RHYTHM_MARKERS = {1: "o", 4: "v", 10: "s", 100: "P"}
_OTHER_MARKER = "^"
_PERCENTILES = ("p50", "p95", "p99")
_Groups = dict[tuple[TargetLabel, StepKind], list[Synchronised]]
"""By target and step."""


@dataclass(frozen=True)
class _Row:
    """What follows each unit of the target's base case (``act``), and that case; None where it was
    not measured.
    """

    target: TargetView
    act: str
    waited: Record | None

    @property
    def alone(self) -> Value | None:
        """T(1), one unit and its wait, with an interval; None of another act than the wait of the
        base case.
        """
        single = self.target.base.measured("naive") if self.act == _base_act(self.target) else None
        return single if single is not None and single.bounded else None

    @property
    def is_measured(self) -> bool:
        """Whether one of the two says what a wait does to the unit."""
        waited = self.waited.measured("complete") if self.waited is not None else None
        return self.alone is not None or waited is not None

    @property
    def sentence(self) -> str:
        """The row in words."""
        return waiting_sentence(self.target, self.act, self.waited, self.alone)

    @property
    def cells(self) -> list[str | Cell]:
        """The row of the table."""
        waited = _short(self.waited) or (self.waited.status if self.waited else "not measured")
        single = positive_range(self.alone) if self.alone is not None else ""
        stack = Cell(caller_name(self.target), self.target.stack)
        return [stack, Cell(act_name(self.act)), without_wait(self.target), waited, single]


def _short(record: Record | None) -> str | Cell:
    """The cost as ``cost_or_range`` has it, but without the interval of an ``ok`` figure, which a
    pointer shows.
    """
    figure, cost = record.figure("complete") if record is not None else None, cost_or_range(record)
    return (
        Cell(micro(figure), hover=cost)
        if cost and figure is not None and figure.status == "ok"
        else cost
    )


@register("waiting", "What synchronisation costs", 20)
def waiting(view: View) -> Iterator[Part]:
    """What a wait or a read after each unit does to it, through each stack: up to two sentences,
    and a table.
    """
    targets = sorted(waiting_targets(view), key=lambda t: t.base.value("naive") or float("inf"))
    rows = [row for t in targets for row in _rows(view, t) if row.is_measured]
    if not rows:
        yield Text([NO_WAIT])
        return
    known = [row for row in rows if row.target.base.measured("complete")]
    told = {row.target.stack: row for row in reversed(known)}
    first = [stack for stack in view.in_role("waits-told") if stack in told]
    yield Text([told[stack].sentence for stack in dict.fromkeys([*first, *told])][:2])
    columns = ["stack", "after each", "without", "with", "single-shot"]
    yield Table(WAITS_TITLE, columns, [row.cells for row in rows], numeric=range(2, 5))
    bound = [t for t in targets if t.base.bound in ("device", "balanced") and not t.software]
    yield Text([how_to_read(bound)], quiet=True)


def _rows(view: View, target: TargetView) -> list[_Row]:
    """The acts of the base case, those first that cost most; else its wait."""
    own = [
        s
        for s in synchronised(view)
        if s.every == 1 and s.alone is not None and s.alone.key == target.base.key
    ]
    acts = [_Row(target, s.act, s.record) for s in own]
    wait = _Row(target, _base_act(target), waited_each(target))
    acts.sort(key=lambda row: -((row.waited and row.waited.value("complete")) or 0.0))
    return acts if any(row.act == wait.act for row in acts) else [*acts, wait]


def _base_act(target: TargetView) -> str:
    return str(wait_of(target.base) or "")


@register("waits", "Ways to wait", 60, page="synchronisation", any_run=True)
def waits(view: View) -> Iterator[Part]:
    """A table of the ways to wait, with the percentiles of cases that wait after each unit."""
    rows = list({r.key: (t, r) for t, r in all_waits(view)}.values())
    if not rows:
        yield Text([NO_WAIT])
        return
    yield Text([WAITS_READ_AS])
    names = [*WAIT_FIGURES, "fixed", *_PERCENTILES]
    titles = [
        *WAIT_FIGURES.values(),
        *(f"{name}, {MICRO}" for name in (figure_column("fixed"), *_PERCENTILES)),
    ]
    yield Table(
        "Ways to wait, by function",
        ["target", "pattern", "called", *titles],
        [
            [
                Cell(wait_label(t, r), t.stack),
                r.pattern,
                CALLER_WORDS[r.caller],
                *(micro_cell(r, n) for n in names),
            ]
            for t, r in rows
        ],
        numeric=range(3, 10),
    )


@register(
    "synchronisation", "What a synchronisation costs", 65, page="synchronisation", any_run=True
)
def synchronisation(view: View) -> Iterator[Part]:
    """What each synchronising act adds to a step of PyTorch: a figure, a table; and acts in a CUDA
    graph.
    """
    found = synchronised(view)
    groups: _Groups = {}
    for s in found:
        groups.setdefault((s.target.shortened, step_kind(s.record)), []).append(s)
    clear = {key: [s for s in group if s.is_costly] for key, group in groups.items()}
    drawn = {key: group for key, group in clear.items() if len({s.act for s in group}) > 1}
    if found:
        yield _drawing(drawn, _table(groups)) if drawn else _table(groups)
    if verdicts := in_capture(view):
        rows = [[act_name(name), plain(text)] for name, text in verdicts.items()]
        yield Table(
            "Synchronisations in a captured step", ["synchronisation", "in a CUDA graph"], rows
        )


def _drawing(groups: _Groups, table: Table) -> Drawing:
    panels = {}
    for (target, step), group in groups.items():
        acts = list(dict.fromkeys(s.act for s in group))
        marks = {
            act: [_mark(s, s.cost) for s in group if s.act == act and s.cost is not None]
            for act in acts
        }
        panels[target.followed_by(f": {step_text(step)}")] = [
            DotRow(act_name(act), marks[act]) for act in acts
        ]
    rhythms = sorted({s.every for group in groups.values() for s in group})
    shapes = {after_every(k): _RHYTHM_MARKERS.get(k, _OTHER_MARKER) for k in rhythms}
    return Drawing(
        "synchronisation",
        "What one synchronisation adds to a step",
        "What each synchronisation adds to a step, by how often it is done; the numbers are in the"
        " table below.",
        SYNCHRONISATIONS_CAPTION,
        partial(dot_figure, panels, f"{MICRO} for each synchronisation", shapes),
        table=table,
    )


def _mark(s: Synchronised, cost: Value) -> Mark:
    figures = [r.figure("complete") for r in (s.record, s.alone) if r is not None]
    unclear = any(f is None or f.status != "ok" for f in figures)
    at = replace(cost / 1e3, status="noisy" if unclear else "ok")
    return Mark(at, s.target.facts.colour, _RHYTHM_MARKERS.get(s.every, _OTHER_MARKER))


def _table(groups: _Groups) -> Table:
    rows: list[list[str | Cell]] = []
    for (target, step), group in groups.items():
        for s in group:
            alone, cost, slow = (
                s.alone.measured("complete") if s.alone else None,
                s.cost,
                s.slowdown,
            )
            numbers = [
                *(spread(one / 1e3) if one else "" for one in (alone, cost)),
                factor_spread(slow),
            ]
            target_cell = Cell(target.text, s.target.stack)
            rows.append(
                [
                    target_cell,
                    step_text(step),
                    act_name(s.act),
                    after_every(s.every),
                    *numbers,
                    remark(s),
                ]
            )
    columns = [
        "target",
        "step",
        "synchronisation",
        "when",
        f"without it, {MICRO}",
        f"it adds, {MICRO}",
        "the step takes",
        "remark",
    ]
    return Table("Synchronisations", columns, rows, numeric=(4, 5, 6))
