"""What waiting costs: a wait after each unit, ways to wait, and a synchronisation after every
step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from overhead.blocks.parts import (
    Cell,
    Column,
    Drawing,
    Part,
    Table,
    Text,
    micro_cell,
    table_of,
)
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.plain_text import plain
from overhead.reading.synchronising import (
    StepKind,
    Synchronised,
    WaitCosts,
    all_waits,
    empty_waits,
    in_capture,
    item_after_each,
    step_kind,
    synchronised,
    wait_costs,
    wait_of,
    waited_each,
    waiting_targets,
)
from overhead.reading.view import TargetLabel, TargetView, View
from overhead.report.core.dots import DotLook, DotRow, Head, Mark, dot_figure, narrow_dot_figure
from overhead.report.core.draw import WIDE_INCHES
from overhead.report.core.headline_figure import rows_drawn
from overhead.report.core.registry import register
from overhead.results import Record, Value
from overhead.words.format import MICRO, factor_spread, micro, spread
from overhead.words.glossary import figure_column
from overhead.words.report.waiting import (
    ALL_WAITS,
    NO_WAIT,
    ONE_BY_ONE_TITLE,
    STACK_AND_WAIT,
    SYNCHRONISATIONS_CAPTION,
    WAIT_FIGURES,
    WAIT_KINDS,
    WAITS_CAPTION,
    WAITS_PICTURE,
    WAITS_READ_AS,
    WAITS_TITLE,
    act_name,
    after_every,
    caller_name,
    cost_or_range,
    empty_waits_cost,
    how_to_read,
    item_adds,
    micro_interval,
    positive_range,
    stack_and_act,
    step_text,
    synchronised_remark,
    time_or_range,
    wait_label,
    waiting_sentence,
    without_wait,
)

_MARKERS_BY_EVERY = {1: "o", 4: "v", 10: "s", 100: "P"}
_OTHER_MARKER = "^"
"""The marker of a synchronisation, by after how many steps it comes."""
_PERCENTILES = ("p50", "p95", "p99")
_WAIT_LOOKS = (("o", "#1b1d1f"), ("v", "#0b63a5"), ("s", "#7a5c00"), ("P", "#8a2f6b"))
"""Marker and colour of each of ``WAIT_KINDS``."""
_WAITS_ROW_INCHES = 0.3
"""A row has room for four marks below each other."""
_MOST_SENTENCES = 2
_MOST_ROWS = 8
"""Rows on the front page; the page of synchronisation has all. Chosen, not measured."""


@dataclass(frozen=True)
class _Row:
    """A row of the table of waits: a target (a stack on a device), the wait or read that follows
    each unit, such as ``item`` (``act``), and the case that was measured so; None where it was not.
    """

    target: TargetView
    act: str
    waited: Record | None

    @property
    def alone(self) -> Value | None:
        """T(1), the time of one unit and its wait, with an interval. None where ``act`` is not the
        wait of the base case, because T(1) ends with that wait.
        """
        if self.act != _base_act(self.target):
            return None
        # ``naive``: the figure T(1). ``bounded``: both ends of its interval are known.
        single = self.target.base.measured("naive")
        return single if single is not None and single.bounded else None

    @property
    def is_measured(self) -> bool:
        """Whether one of the two says what a wait does to the unit."""
        if self.alone is not None:
            return True
        return self.waited is not None and self.waited.measured("complete") is not None

    @property
    def waited_cost(self) -> float:
        """ns of a unit with the act after it; 0 where that is not known."""
        cost = self.waited.value("complete") if self.waited is not None else None
        return cost or 0.0


@register("waiting", "What synchronisation costs", 20, gpu=True)
def waiting(view: View) -> Iterator[Part]:
    """A section of the front page on what a wait or a read of a value after each launch costs,
    through the stacks of the first picture: up to two sentences, and a table.
    """
    # First the targets whose T(1), one unit with its wait, is shortest.
    targets = sorted(_drawn(view), key=_single_shot)
    rows = []
    for target in targets:
        rows += [row for row in _rows(view, target) if row.is_measured]
    if not rows:
        yield Text([NO_WAIT])
        return
    measured = len(rows)
    rows = _most_asked_for(view, rows)
    # First sentences on some rows, then the table of all.
    sentences = []
    for row in _rows_in_sentences(view, rows):
        sentences.append(waiting_sentence(row.target, row.act, row.waited, row.alone))
    yield Text(sentences)
    yield table_of(WAITS_TITLE, _WAITING_COLUMNS, rows)
    # Where the device limits the cost, alone or as much as the CPU (``balanced``), T(1) must not be
    # divided by it: the text names these. A software adapter is no such device: it computes on the
    # CPU.
    in_table = {row.target.key for row in rows}
    device_bound = []
    for target in targets:
        is_limit = target.base.bound in ("device", "balanced") and not target.software
        if is_limit and target.key in in_table:
            device_bound.append(target)
    remarks = [how_to_read(device_bound)]
    if len(rows) < measured:
        remarks.append(ALL_WAITS)
    yield Text(remarks, quiet=True)


def _drawn(view: View) -> list[TargetView]:
    """The targets that wait for a device and that the first picture draws; all that wait where it
    draws none of them.
    """
    targets = waiting_targets(view)
    costs = view.once(dispatch_costs)
    drawn = {row.stack for row in rows_drawn(costs)} if costs is not None else set()
    return [target for target in targets if target.stack in drawn] or targets


def _most_asked_for(view: View, rows: Sequence[_Row]) -> list[_Row]:
    """At most ``_MOST_ROWS`` of the rows, in their order: first those of stacks that sentences
    tell, then of WebGPU, then those that a wait after each unit was measured of.
    """
    told = view.in_role("waits-told")

    def place(row: _Row) -> int:
        if row.target.stack in told:
            return 0
        if "webgpu" in row.target.facts.roles:
            return 1
        return 2 if row.waited_cost else 3

    kept = sorted(rows, key=place)[:_MOST_ROWS]
    return [row for row in rows if row in kept]


def _single_shot(target: TargetView) -> float:
    """ns of one unit with its wait. Targets where that is not known come behind all others."""
    return target.base.value("naive") or float("inf")


def _rows(view: View, target: TargetView) -> list[_Row]:
    """The rows of a target: one for each wait or read (act) that was measured after each unit of
    its base case, those first that cost most. Behind them the wait of the base case itself, if that
    is none of these acts.
    """
    # ``found.act``: the wait or read; ``every``: after how many units it comes.
    acts = []
    for found in synchronised(view):
        # ``alone`` is the case without the act: it must be the base case.
        is_of_base = found.alone is not None and found.alone.key == target.base.key
        if is_of_base and found.every == 1:
            acts.append(_Row(target, found.act, found.record))
    acts.sort(key=lambda row: row.waited_cost, reverse=True)
    # The wait of the base case itself, with the case that waits after each unit, if there is one.
    wait = _Row(target, _base_act(target), waited_each(target))
    if any(row.act == wait.act for row in acts):
        return acts
    return [*acts, wait]


def _base_act(target: TargetView) -> str:
    """How the base case waits, as the file names it."""
    return str(wait_of(target.base) or "")


def _rows_in_sentences(view: View, rows: Sequence[_Row]) -> list[_Row]:
    """The rows that sentences above the table tell: the first one of each of two stacks.

    Stacks with the role ``waits-told`` in the list of stacks come first, and then those of the last
    rows, which wait longest.
    """
    # Read from the end: a stack's first row replaces its others, and the last stacks come first.
    first_rows = {}
    for row in reversed(rows):
        # A sentence compares with the cost without a wait.
        if row.target.base.measured("complete"):
            first_rows[row.target.stack] = row
    preferred = [stack for stack in view.in_role("waits-told") if stack in first_rows]
    stacks = list(dict.fromkeys([*preferred, *first_rows]))
    return [first_rows[stack] for stack in stacks[:_MOST_SENTENCES]]


def _stack_cell(row: _Row) -> Cell:
    """The stack and the act, in one cell, so that the table fits a phone."""
    return Cell(stack_and_act(row.target, row.act), row.target.stack)


def _without_cell(row: _Row) -> str:
    return without_wait(row.target)


def _with_cell(row: _Row) -> str | Cell:
    """The cell with the cost of a unit that the row's wait or read follows; the status where there
    is no cost. The interval of an ``ok`` cost shows only when the pointer is over the cell.
    """
    if row.waited is None:
        return "not measured"
    # The cost as text with its interval; of a noisy one the interval alone.
    cost = cost_or_range(row.waited)
    if not cost:
        return row.waited.status
    figure = row.waited.figure("complete")
    if figure is None or figure.status != "ok":
        return cost
    return Cell(micro(figure), hover=cost)


def _single_shot_cell(row: _Row) -> str | Cell:
    """T(1), the interval of a noisy one alone; else a pointer over the cell shows the interval."""
    if row.alone is None:
        return ""
    figure = row.target.base.figure("naive")
    if figure is None or figure.status != "ok":
        return positive_range(row.alone)
    return Cell(micro(figure), hover=micro_interval(row.alone))


_WAITING_COLUMNS: list[Column[_Row]] = [
    Column(STACK_AND_WAIT, _stack_cell),
    Column("without", _without_cell, is_number=True),
    Column("with", _with_cell, is_number=True),
    Column("single-shot", _single_shot_cell, is_number=True),
]


@dataclass(frozen=True)
class _Wait:
    """A case that waits, with its target."""

    target: TargetView
    record: Record

    @property
    def has_percentiles(self) -> bool:
        """Whether its waits were timed one by one."""
        return self.record.figure(_PERCENTILES[0]) is not None


@register("waits", "What waiting costs", 60, page="synchronisation", any_run=True, gpu=True)
def waits(view: View) -> Iterator[Part]:
    """A section on what waiting for the device costs: the answer, a figure with a row for each
    stack, and tables of the ways to wait, each with its times; cases that wait after each unit have
    percentiles too.
    """
    by_key = {}  # each case once
    for target, record in all_waits(view):
        by_key[record.key] = _Wait(target, record)
    if not by_key:
        yield Text([NO_WAIT])
        return

    answers = []
    item = item_after_each(view)
    if item is not None:
        answers.append(item_adds(item))
    answers.append(empty_waits_cost(empty_waits(view)))
    answers = [answer for answer in answers if answer]
    if answers:
        yield Text(answers, lead=True)
    table = table_of("Ways to wait", _wait_columns(), by_key.values(), folded=True)
    costs = wait_costs(view)
    yield _waits_drawing(costs, " ".join(answers), table) if costs else table
    one_by_one = [wait for wait in by_key.values() if wait.has_percentiles]
    if one_by_one:
        yield table_of(ONE_BY_ONE_TITLE, _percentile_columns(), one_by_one, folded=True)
    yield Text([WAITS_READ_AS], quiet=True)


def _waits_drawing(costs: Sequence[WaitCosts], finding: str, table: Table) -> Drawing:
    """The picture of what waiting costs: a row for each stack, a mark for each kind of wait.
    ``finding``: for screen readers; ``table``: these numbers and more.
    """
    rows = [_waits_row(found) for found in costs]
    heads = []
    for name, (marker, colour) in zip(WAIT_KINDS, _WAIT_LOOKS, strict=True):
        heads.append(Head(name, marker, colour))
    look = DotLook(heads, row_inches=_WAITS_ROW_INCHES)
    return Drawing(
        "waiting",
        WAITS_PICTURE,
        finding,
        WAITS_CAPTION,
        partial(dot_figure, {"": rows}, MICRO, width=WIDE_INCHES, look=look),
        draw_narrow=partial(narrow_dot_figure, {"": rows}, MICRO, look=look),
        table=table,
    )


def _waits_row(costs: WaitCosts) -> DotRow:
    """The row of a stack: a mark for each kind of wait with a time above zero, and their times as
    text.
    """
    marks = []
    for figure, (marker, colour) in zip(costs.figures, _WAIT_LOOKS, strict=True):
        time_ns = figure.measured if figure is not None else None
        if time_ns is not None:
            marks.append(Mark(time_ns / 1e3, colour, marker))
    times = [time_or_range(figure) for figure in costs.figures]
    return DotRow(caller_name(costs.target).removeprefix("the "), marks, columns=times)


def _wait_columns() -> list[Column[_Wait]]:
    """The columns of the table of ways to wait: the case, and its times in microseconds."""
    # By names of figures, in this order: those of a wait, and the one-off cost.
    headings = dict(WAIT_FIGURES)
    headings["fixed"] = f"{figure_column('fixed')}, {MICRO}"
    return [*_CASE_COLUMNS, *_time_columns(headings)]


def _percentile_columns() -> list[Column[_Wait]]:
    """The columns of the table of waits that were timed one by one."""
    return [*_CASE_COLUMNS, *_time_columns({name: name for name in _PERCENTILES})]


def _time_columns(headings: Mapping[str, str]) -> list[Column[_Wait]]:
    """A column for each figure; ``headings``: by its name the heading of its column."""
    columns = []
    for name, heading in headings.items():
        columns.append(Column(heading, partial(_time_cell, name), is_number=True))
    return columns


def _wait_label_cell(wait: _Wait) -> Cell:
    return Cell(wait_label(wait.target, wait.record), wait.target.stack)


def _pattern_cell(wait: _Wait) -> str:
    return wait.record.pattern


def _time_cell(name: str, wait: _Wait) -> str:
    return micro_cell(wait.record, name)


_CASE_COLUMNS: list[Column[_Wait]] = [
    Column("stack and wait", _wait_label_cell),
    Column("pattern", _pattern_cell),
]


@dataclass(frozen=True)
class _Group:
    """The synchronisations of one step on one target."""

    target: TargetLabel
    step: StepKind
    found: Sequence[Synchronised]

    @property
    def acts(self) -> list[str]:
        """The synchronisations, each once."""
        return list(dict.fromkeys(case.act for case in self.found))


@register(
    "synchronisation",
    "What a synchronisation costs",
    65,
    page="synchronisation",
    any_run=True,
    gpu=True,
)
def synchronisation(view: View) -> Iterator[Part]:
    """A section on what each synchronisation, a call such as ``.item()`` by which the host waits
    for the device, adds to a step of PyTorch: a figure and a table. A second table says what each
    does while a CUDA graph is captured, where many are not allowed.
    """
    groups = _groups(synchronised(view))
    if groups:
        drawn = _with_something_to_compare(groups)
        table = _table(groups, folded=bool(drawn))
        yield _drawing(drawn, table) if drawn else table
    verdicts = in_capture(view)
    if verdicts:
        rows = [[act_name(name), plain(text)] for name, text in verdicts.items()]
        columns = ["synchronisation", "in a CUDA graph"]
        yield Table("Synchronisations in a captured step", columns, rows, folded=True)


def _groups(found: Iterable[Synchronised]) -> list[_Group]:
    """The synchronisations by target and step, in the order in which these first come."""
    members: dict[tuple[TargetLabel, StepKind], list[Synchronised]] = {}
    for case in found:
        key = (case.target.shortened, step_kind(case.record))
        members.setdefault(key, []).append(case)
    return [_Group(target, step, group) for (target, step), group in members.items()]


def _with_something_to_compare(groups: Iterable[_Group]) -> list[_Group]:
    """The groups (all synchronisations of one step on one target) that get a panel in the picture,
    each with only the synchronisations that have a cost above zero. With fewer than two different
    ones a panel compares nothing, and the group is left out.
    """
    drawn = []
    for group in groups:
        # ``is_costly``: its cost lies above zero with its whole interval.
        costly = [case for case in group.found if case.is_costly]
        shown = replace(group, found=costly)
        if len(shown.acts) > 1:
            drawn.append(shown)
    return drawn


def _drawing(groups: Iterable[_Group], table: Table) -> Drawing:
    """The picture of what synchronisations add: a panel for each step on a target (group), a row
    for each synchronising call (act), and in it a mark for each number of steps after which the
    call comes. ``table``: the same numbers.
    """
    panels = {}
    after_steps = set()
    for group in groups:
        # By call, its marks; a call has one for each number of steps.
        marks: dict[str, list[Mark]] = {act: [] for act in group.acts}
        for case in group.found:
            after_steps.add(case.every)
            if case.cost is not None:
                marks[case.act].append(_mark(case, case.cost))
        title = group.target.followed_by(f": {step_text(group.step)}")
        panels[title] = [DotRow(act_name(act), marks[act]) for act in group.acts]

    # For the legend: the marker of each number of steps.
    shapes = {after_every(steps): _marker(steps) for steps in sorted(after_steps)}
    unit = f"{MICRO} for each synchronisation"
    return Drawing(
        "synchronisation",
        "What one synchronisation adds to a step",
        "What each synchronisation adds to a step, by how often it is done; the numbers are in the"
        " table below.",
        SYNCHRONISATIONS_CAPTION,
        partial(dot_figure, panels, unit, shapes, width=WIDE_INCHES),
        draw_narrow=partial(narrow_dot_figure, panels, unit, shapes),
        table=table,
    )


def _marker(every: int) -> str:
    """The marker of a synchronisation that comes after so many steps."""
    return _MARKERS_BY_EVERY.get(every, _OTHER_MARKER)


def _mark(found: Synchronised, cost_ns: Value) -> Mark:
    """The mark of what a synchronisation adds. That is a difference of two cases, the steps with it
    and the steps ``alone``, so the mark is hollow (``noisy``) if the cost of either is not ``ok``.
    """
    # Both costs that the difference is made of.
    both_ok = True
    for record in (found.record, found.alone):
        if record is not None:
            figure = record.figure("complete")
            both_ok = both_ok and figure is not None and figure.status == "ok"
    at = replace(cost_ns / 1e3, status="ok" if both_ok else "noisy")
    return Mark(at, found.target.facts.colour, _marker(found.every))


@dataclass(frozen=True)
class _SynchronisedRow:
    """A row of the table: a synchronisation in its group."""

    group: _Group
    found: Synchronised


def _table(groups: Iterable[_Group], *, folded: bool) -> Table:
    """The table of all synchronisations. ``folded``: it stands below the picture."""
    rows = []
    for group in groups:
        rows += [_SynchronisedRow(group, case) for case in group.found]
    return table_of("Synchronisations", _SYNCHRONISED_COLUMNS, rows, folded=folded)


def _group_target_cell(row: _SynchronisedRow) -> Cell:
    return Cell(row.group.target.text, row.found.target.stack)


def _step_cell(row: _SynchronisedRow) -> str:
    return step_text(row.group.step)


def _synchronisation_cell(row: _SynchronisedRow) -> str:
    return act_name(row.found.act)


def _when_cell(row: _SynchronisedRow) -> str:
    return after_every(row.found.every)


def _alone_cell(row: _SynchronisedRow) -> str:
    alone = row.found.alone
    cost_ns = alone.measured("complete") if alone is not None else None
    return spread(cost_ns / 1e3) if cost_ns is not None else ""


def _added_cell(row: _SynchronisedRow) -> str:
    cost_ns = row.found.cost
    return spread(cost_ns / 1e3) if cost_ns is not None else ""


def _slowdown_cell(row: _SynchronisedRow) -> str:
    return factor_spread(row.found.slowdown)


def _remark_cell(row: _SynchronisedRow) -> str:
    return synchronised_remark(row.found)


_SYNCHRONISED_COLUMNS: list[Column[_SynchronisedRow]] = [
    Column("target", _group_target_cell),
    Column("step", _step_cell),
    Column("synchronisation", _synchronisation_cell),
    Column("when", _when_cell),
    Column(f"without it, {MICRO}", _alone_cell, is_number=True),
    Column(f"it adds, {MICRO}", _added_cell, is_number=True),
    Column("the step takes", _slowdown_cell, is_number=True),
    Column("remark", _remark_cell),
]
