"""The key figures of this machine beside those of a reference run and of an earlier run."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.reading.beside import Beside, Spreads, beside, full_runs, spreads_of
from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.view import View, without_device
from overhead.report.core.dots import (
    DotLook,
    DotRow,
    Head,
    Mark,
    dot_figure,
    narrow_dot_figure,
)
from overhead.report.core.draw import INK, MUTED, WIDE_INCHES
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.words.beside import (
    WHY_APART,
    beside_sentence,
    outside_sentence,
)
from overhead.words.format import factor_spread
from overhead.words.key_figures import (
    figure_remark,
    label,
    reason_text,
    value_text,
    value_with_interval,
)
from overhead.words.next_run import range_text
from overhead.words.report.beside import (
    BAND,
    NEXT_RUN,
    NO_OTHER_RUN,
    NOISY,
    PANELS,
    RED,
    THIS_RUN,
    UNIT,
    VERSIONS,
    caption,
    differences,
    head,
    other_run,
    picture_title,
    table_title,
)

_OUTSIDE_COLOUR = "#b5432a"
"""The colour of a ratio outside the run-to-run range."""


@dataclasses.dataclass(frozen=True)
class _Look:
    """How the marks of a run are drawn."""

    colour: str
    marker: str


_LOOKS = (_Look("#0b5394", "o"), _Look(MUTED, "s"))
"""Of the first run beside this one, and of the second."""


@register_across("fingerprint", "This machine compared with others", 7, page="front")
def fingerprint(machines: Machines) -> Iterator[Part]:
    """A section of the front page: this machine's key figures as ratios to those of another machine
    and of its own last run, as a picture with a table. Without such a run, a sentence and the
    table.
    """
    view = machines.own
    # A run without a GPU and one with a GPU have almost no figure in common. So such a run is only
    # compared with one that the user names.
    if not view.has_gpu and machines.reference is None:
        return
    # How far two runs of this machine differ anyway: a ratio inside of that says nothing.
    spreads = spreads_of(view, machines.others)
    comparisons = []
    for run in _runs_beside(machines):
        # ``pairs``: the key figures that both runs have.
        comparison = beside(view, run, spreads)
        # Two runs without a common figure, such as those of different stacks, have no ratio.
        if comparison.pairs:
            comparisons.append(comparison)
    if not comparisons:
        yield Text([NO_OTHER_RUN])
        yield dataclasses.replace(key_figure_table(view), folded=True)
        return

    # The answer is the comparison with the first run; then what else is to say of each.
    answer, *others = [beside_sentence(found, other_run(found)) for found in comparisons]
    outside = [outside_sentence(found, other_run(found)) for found in comparisons]
    details = [*others, *filter(None, outside)]
    yield Text([answer], lead=True)
    if details:
        yield Text(details)

    yield _drawing(comparisons, spreads, [answer, *details])
    differing = differences(comparisons)
    if differing:
        yield Text(differing, folded=VERSIONS)


def _drawing(comparisons: Sequence[Beside], spreads: Spreads, finding: Sequence[str]) -> Drawing:
    """The picture of the ratios to each run, with the table of the figures. ``spreads``: how far
    two runs of this machine differ; ``finding``: sentences for screen readers.
    """
    view = comparisons[0].view
    panels = _panels(comparisons)
    marks: list[Mark] = []
    for rows in panels.values():
        for row in rows:
            marks += row.marks
    shapes = {}
    if any(mark.colour == _OUTSIDE_COLOUR for mark in marks):
        shapes[RED] = ("o", _OUTSIDE_COLOUR)
    heads = [Head(THIS_RUN, "", INK)]
    # There are two runs at most, and a look for each of two.
    for comparison, look in zip(comparisons, _LOOKS, strict=False):
        heads.append(Head(head(comparison), look.marker, look.colour))
    dots_look = DotLook(
        heads,
        hollow=NOISY if any(mark.at.status != "ok" for mark in marks) else "",
        band=BAND if spreads else "",
    )
    shared: dict[str, Any] = {"line_at_one": True, "look": dots_look}
    return Drawing(
        name="fingerprint",
        title=picture_title(view.fingerprint.machine, comparisons[0]),
        alt=" ".join(finding),
        caption=caption(comparisons, spreads, view),
        draw=partial(dot_figure, panels, UNIT, shapes, width=WIDE_INCHES, **shared),
        draw_narrow=partial(narrow_dot_figure, panels, UNIT, shapes, **shared),
        table=key_figure_table(view, comparisons),
    )


def _runs_beside(machines: Machines) -> list[View]:
    """The runs that this one is compared with: that of another machine (the reference), and the
    last full run of this machine before it, one with at least half of the key figures.
    """
    own = machines.own
    # ``full_runs`` gives them by age.
    earlier = []
    for run in full_runs([own, *machines.others]):
        if run.fingerprint.created < own.fingerprint.created:
            earlier.append(run)
    reference = [machines.reference] if machines.reference is not None else []
    last_before = earlier[-1:]  # the oldest run is the first
    return [*reference, *last_before]


def key_figure_table(
    view: View, comparisons: Sequence[Beside] = (), *, next_run_meaning: str = ""
) -> Table:
    """A table of this run's key figures with their intervals. For each run that it is compared with
    there are two columns: the value there, and the ratio or why there is none.

    ``next_run_meaning``: the sentence below the table that explains the column of the range in
    which another run would lie.
    """
    # ``next_run``: the range in which another run of this machine would lie.
    measured = [figure for figure in view.once(key_figures) if figure.measured is not None]
    targets = [figure.of for figure in measured if figure.of is not None]
    # The device stands in the title if all figures are of one, else in the remark of each row.
    _, common_device = without_device(targets)

    # A column: its title, and the function that makes its cell from a figure.
    columns: list[Column[KeyFigure]] = [
        Column("", label, only_if_filled=True),
        Column("this run", value_with_interval, is_number=True, only_if_filled=True),
        Column(
            NEXT_RUN,
            _next_run,
            is_number=True,
            only_if_filled=True,
            is_important=True,
            meaning=next_run_meaning,
        ),
    ]
    for comparison in comparisons:
        # The two functions that make the cells of these columns.
        value, ratio = partial(_other_value, comparison), partial(_ratio, comparison)
        columns += [
            Column(other_run(comparison), value, is_number=True, only_if_filled=True),
            Column("this over it", ratio, is_number=True, only_if_filled=True),
        ]
    columns.append(Column("", partial(_remark, common_device), only_if_filled=True))
    # ``folded``: closed until a reader opens it, as the picture shows the same.
    return table_of(table_title(common_device), columns, measured, folded=bool(comparisons))


def _next_run(figure: KeyFigure) -> str:
    """The range in which another run would put the figure."""
    return range_text(figure.next_run)


def _other_value(comparison: Beside, figure: KeyFigure) -> str:
    """The figure in the other run."""
    pair = comparison.pairs.get(figure.key)
    return value_with_interval(pair.other) if pair is not None else ""


def _ratio(comparison: Beside, figure: KeyFigure) -> str:
    """The figure of this run over that of the other run, or why the two cannot be compared."""
    pair = comparison.pairs.get(figure.key)
    if pair is None:
        return WHY_APART[comparison.left_out[figure.key]]
    return factor_spread(pair.ratio)


def _remark(common_device: str, figure: KeyFigure) -> str | Cell:
    """The last cell of a figure's row: its device, where not all figures are of one, and its
    status. The reason of the status shows when the pointer is over the cell.
    """
    remarks = []
    if figure.of is not None and not common_device:
        remarks.append(figure.of.text)
    remarks.append(figure_remark(figure))
    text = "; ".join(filter(None, remarks))
    return Cell(text, hover=reason_text(figure)) if text else ""


def _panels(comparisons: Sequence[Beside]) -> dict[str, list[DotRow]]:
    """The panels of the picture by title: one for the figures that the CPU limits, one for those
    that the device limits, and so on. A row is a key figure, with a mark for its ratio to each
    other run; at the end stand the values of this run and of the others.
    """
    rows_by_limit: dict[str, list[DotRow]] = {}
    for figure in comparisons[0].view.once(key_figures):
        pairs = []
        marks = []
        # ``pairs``: by key, the figure in both runs with their ratio; ``outside``: the ratio lies
        # outside of how far two runs differ anyway.
        values = [value_text(figure)]
        for comparison, look in zip(comparisons, _LOOKS, strict=False):
            pair = comparison.pairs.get(figure.key)
            values.append(value_text(pair.other) if pair is not None else "")
            if pair is not None:
                pairs.append(pair)
                colour = _OUTSIDE_COLOUR if pair.outside else look.colour
                marks.append(Mark(pair.ratio, colour, look.marker))
        if not pairs:
            continue
        # The band is how far two runs of this machine differ, so it is the same in all pairs.
        known_bands = [pair.band for pair in pairs if pair.band]
        band = known_bands[0] if known_bands else None
        # ``limit``: what limits the figure, such as the CPU.
        row = DotRow(label(figure), marks, band=band, columns=values)
        rows_by_limit.setdefault(pairs[0].limit, []).append(row)
    return {PANELS[limit]: rows_by_limit[limit] for limit in PANELS if limit in rows_by_limit}
