"""The key figures of this machine from run to run: one picture, and a table of the values."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from overhead.blocks.parts import Drawing, Part, Table, Text
from overhead.reading.beside import Pair, Spreads, beside, full_runs, spreads_of, version_changes
from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.plain_text import plain
from overhead.reading.view import View
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
from overhead.words.beside import version_changes_text
from overhead.words.format import factor_spread, run_time
from overhead.words.key_figures import label, value_with_interval
from overhead.words.report import over_time as words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_RUNS = 6
"""Runs of a picture, the newest. Chosen by eye: with more marks a row cannot be read."""
_LOOKS = ("v", "^", "D", "s", "P", "o")
"""The marks of the runs; the newest run has the last."""
_EARLIER, _NEWEST, _OUTSIDE = "#8a9099", "#0b5394", "#b5432a"
"""The colours of earlier runs, of the newest, and of ratios outside the run-to-run range."""


@dataclasses.dataclass(frozen=True)
class _Course:
    """A key figure over the runs. ``first``: the oldest run that has it; ``pairs``: by later run,
    the figure beside that of the first.
    """

    figure: KeyFigure
    first: View
    pairs: Mapping[View, Pair]

    @property
    def newest(self) -> Pair:
        """The figure of the newest run beside that of the first."""
        return list(self.pairs.values())[-1]


@register_across("over-time", "The runs of this machine over time", 30)
def over_time(machines: Machines) -> Iterator[Part]:
    """A section on how the key figures of this machine changed from run to run: the answer, a
    picture with a row for each figure that two or more runs have, its table, and the software
    versions that changed between runs. Nothing where no figure was measured twice.
    """
    runs = full_runs([machines.own, *machines.others])  # the oldest first
    shown = runs[-_MOST_RUNS:]
    courses = _courses(shown, spreads_of(machines.own, machines.others))
    if not courses:
        return

    answer = words.answer(len(shown), len(runs), [course.newest for course in courses])
    yield Text([answer], lead=True)
    yield Drawing(
        name="over-time",
        title=words.OVER_TIME_TITLE,
        alt=answer,
        caption=words.OVER_TIME_CAPTION,
        draw=partial(_figure, courses, shown),
        draw_narrow=partial(_figure, courses, shown, narrow=True),
        table=_values(courses, shown),
    )
    changes = []
    # Between each run and the one before it, what changed in the versions of software.
    for before, after in pairwise(shown):
        changed = version_changes(before.fingerprint, after.fingerprint)
        if changed:
            text = plain(version_changes_text(changed), 300)
            changes.append((run_time(after.fingerprint.created), text))
    if changes:
        yield Table(words.VERSIONS_TITLE, words.VERSIONS_COLUMNS, changes)


def _courses(runs: Sequence[View], spreads: Spreads) -> list[_Course]:
    """The key figures that two or more runs have, each relative to the first run that has it.
    ``runs``: the oldest first.
    """
    courses: dict[str, _Course] = {}
    for i, first in enumerate(runs):
        comparisons = [beside(run, first, spreads) for run in runs[i + 1 :]]
        for figure in first.once(key_figures):
            pairs = {}
            for comparison in comparisons:
                if figure.key in comparison.pairs:
                    pairs[comparison.view] = comparison.pairs[figure.key]
            # A figure that an earlier run has stays relative to that run.
            if pairs:
                courses.setdefault(figure.key, _Course(figure, first, pairs))
    # In the order of the key figures.
    ordered = [courses.get(figure.key) for figure in runs[-1].once(key_figures)] if runs else []
    return [course for course in ordered if course is not None]


def _figure(courses: Sequence[_Course], runs: Sequence[View], *, narrow: bool = False) -> Figure:
    """The picture: a row for each key figure, with a mark for each later run. ``narrow``: for a
    phone.
    """
    # The last marks are those of the newest runs.
    markers = dict(zip(runs, _LOOKS[-len(runs) :], strict=True))
    newest = runs[-1]
    rows = []
    for course in courses:
        marks = []
        bands = []
        for run, pair in course.pairs.items():
            colour = _NEWEST if run is newest else _EARLIER
            marks.append(Mark(pair.ratio, _OUTSIDE if pair.outside else colour, markers[run]))
            bands.append(pair.band)
        known = [band for band in bands if band is not None]
        end = words.from_first_to_newest(course.newest)
        band = known[0] if known else None
        rows.append(DotRow(label(course.figure), marks, end=end, band=band))
    shapes = {}
    for run in runs[1:]:
        colour = _NEWEST if run is newest else _EARLIER
        shapes[run_time(run.fingerprint.created)] = (markers[run], colour)
    title = words.panel_title(run_time(runs[0].fingerprint.created))
    if narrow:
        # The values get a line of their own, so that the label has the whole width.
        rows = [dataclasses.replace(row, columns=(row.end,)) for row in rows]
        look = DotLook([Head(words.FIRST_TO_NEWEST, "", INK)])
        return narrow_dot_figure(
            {title: rows}, words.OVER_TIME_UNIT, shapes, line_at_one=True, look=look
        )
    return dot_figure(
        {title: rows}, words.OVER_TIME_UNIT, shapes, line_at_one=True, width=WIDE_INCHES
    )


def _values(courses: Sequence[_Course], runs: Sequence[View]) -> Table:
    """The table: the figure in each run, the ratio of the newest to the first, and whether this is
    more than runs differ anyway.
    """
    rows = []
    for course in courses:
        cells = [label(course.figure)]
        by_run = {course.first: course.figure}
        by_run |= {run: pair.this for run, pair in course.pairs.items()}
        for run in runs:
            cells.append(value_with_interval(by_run[run]) if run in by_run else "")
        newest = course.newest
        rows.append([*cells, factor_spread(newest.ratio), words.verdict(newest)])
    times = [run_time(run.fingerprint.created) for run in runs]
    columns = [words.FIGURE_COLUMN, *times, words.RATIO_COLUMN, words.VERDICT_COLUMN]
    numeric = range(1, len(columns) - 1)
    return Table(words.RUNS_TABLE_TITLE, columns, rows, numeric, folded=True).without_empty(1)
