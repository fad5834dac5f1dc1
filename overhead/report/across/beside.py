"""The key figures of this machine beside those of a reference run and of an earlier run, and over
time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.beside import Beside, beside, full_runs, spreads_of, version_changes
from overhead.reading.key_figures import key_figures
from overhead.reading.plain_text import plain
from overhead.reading.view import View, without_device
from overhead.report.core.dots import LEAST_RATIOS, DotRow, Mark, dot_figure, ratio_ticks
from overhead.report.core.draw import INK, MUTED, PAPER, SMALL, WIDE_INCHES, new_figure, style
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Value
from overhead.words.beside import WHY_APART, beside_sentence, version_changes_text
from overhead.words.format import factor_spread, run_time
from overhead.words.key_figures import label, reason_text, remark, value_text, value_with_interval
from overhead.words.next_run import range_text
from overhead.words.report.beside import (
    NEXT_RUN,
    NO_OTHER_RUN,
    OVER_TIME,
    PANELS,
    UNIT,
    caption,
    other_run,
    over_time_alternative,
    picture_title,
    row_label,
    table_title,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS, _OUTSIDE = (("#0b5394", "o"), (MUTED, "s")), "#b5432a"
"""Colour and marker of the first run beside this one and of the second; the colour of a ratio
outside the band.
"""
_PANEL_COLUMNS, _PANEL_INCHES, _WORD_LETTERS = 3, 1.4, 32
_Point = tuple[float, Value]


@register_across("fingerprint", "This machine compared with others", 7, page="front")
def fingerprint(machines: Machines) -> Iterator[Part]:
    """The picture and its table; a sentence where there is no run to set beside this one."""
    view, reference = machines.own, machines.reference
    spreads = spreads_of(view, machines.others)
    created = view.fingerprint.created
    earlier = [
        run for run in full_runs([view, *machines.others]) if run.fingerprint.created < created
    ]
    runs = [*([reference] if reference else []), *earlier[-1:]]
    found = [one for run in runs if (one := beside(view, run, spreads)).pairs]
    if not found:
        yield Text([NO_OTHER_RUN])
        yield dataclasses.replace(key_figure_table(view), folded=True)
        return
    sentences = [beside_sentence(one, other_run(one)) for one in found]
    yield Text(sentences)
    shapes = {
        other_run(one): (marker, own) for one, (own, marker) in zip(found, _LOOKS, strict=False)
    }
    title, read_as = (
        picture_title(view.fingerprint.machine, found[0]),
        caption(found, spreads, view),
    )
    draw = partial(dot_figure, _panels(found), UNIT, shapes, line_at_one=True, width=WIDE_INCHES)
    yield Drawing(
        "fingerprint",
        title,
        " ".join(sentences),
        read_as,
        draw,
        table=key_figure_table(view, found),
    )


_NEXT_RUN = 2
"""The column of the table of key figures that says where another run would put each."""


def key_figure_table(
    view: View, found: Sequence[Beside] = (), *, next_run_meaning: str = ""
) -> Table:
    """This run's key figures with intervals; for each other run its value and the ratio, or why it
    has none.

    ``next_run_meaning``: what is said below the table where it has the column of the next run.
    """
    known = [k for k in view.once(key_figures) if k.measured is not None]
    _, device = without_device([k.of for k in known if k.of is not None])
    rows: list[list[str | Cell]] = []
    for k in known:
        row: list[str | Cell] = [label(k), value_with_interval(k), range_text(k.next_run)]
        for one in found:
            pair = one.pairs.get(k.key)
            if pair is not None:
                row += [value_with_interval(pair.other), factor_spread(pair.ratio)]
            else:
                row += ["", WHY_APART[one.left_out[k.key]]]
        said = "; ".join(
            filter(None, (k.of.text if k.of is not None and not device else "", remark(k)))
        )
        rows.append([*row, Cell(said, hover=reason_text(k)) if said else ""])
    columns = [
        "",
        "this run",
        NEXT_RUN,
        *(c for one in found for c in (other_run(one), "this over it")),
        "",
    ]
    numeric = range(1, len(columns) - 1)
    meanings = {_NEXT_RUN: next_run_meaning} if next_run_meaning else {}
    return Table(
        table_title(device),
        columns,
        rows,
        numeric,
        folded=bool(found),
        important=(_NEXT_RUN,),
        meanings=meanings,
    ).without_empty()


def _panels(found: Sequence[Beside]) -> dict[str, list[DotRow]]:
    """Rows by what bounds their figures: this run's value, the ratios, and at the end the values of
    the other runs.
    """
    panels: dict[str, list[DotRow]] = {}
    for k in found[0].view.once(key_figures):
        pairs = [
            (one.pairs[k.key], look)
            for one, look in zip(found, _LOOKS, strict=False)
            if k.key in one.pairs
        ]
        if pairs:
            marks = [
                Mark(p.ratio, _OUTSIDE if p.outside else own, marker) for p, (own, marker) in pairs
            ]
            values, band = (
                " · ".join(value_text(p.other) for p, _ in pairs),
                next((p.band for p, _ in pairs if p.band), None),
            )
            row = DotRow(row_label(k), marks, end=values, band=band)
            panels.setdefault(pairs[0][0].limit, []).append(row)
    return {title: panels[limit] for limit, title in PANELS.items() if limit in panels}


@register_across("over-time", "The runs of this machine over time", 30)
def over_time(machines: Machines) -> Iterator[Part]:
    """A panel for each key figure of two or more runs, and a table of the versions that changed;
    else nothing.
    """
    runs = full_runs([machines.own, *machines.others])
    panels: dict[str, list[_Point]] = {}
    for i, first in enumerate(runs):
        later = {run: beside(run, first, {}).pairs for run in runs[i:]}
        for key in later[first]:
            points = [
                (_when(run), pairs[key].ratio) for run, pairs in later.items() if key in pairs
            ]
            if len(points) > 1:
                panels.setdefault(key, points)
    panels = {label(k): panels[k.key] for k in machines.own.once(key_figures) if k.key in panels}
    if not panels:
        return
    both = (
        (after, version_changes(before.fingerprint, after.fingerprint))
        for before, after in pairwise(runs)
    )
    changes = [(run, plain(version_changes_text(changed), 300)) for run, changed in both if changed]
    rows = [(run_time(run.fingerprint.created), words) for run, words in changes]
    table = (
        Table("Versions that changed", ["run", "changes since the run before"], rows)
        if rows
        else None
    )
    said = over_time_alternative(len(panels), len(runs))
    draw = partial(_over_time_figure, panels, {_when(run): words for run, words in changes})
    yield Drawing("over-time", "Key figures over time", said, OVER_TIME, draw, table=table)


def _when(run: View) -> float:
    """The time of the run as matplotlib counts it."""
    from matplotlib.dates import datestr2num

    return float(datestr2num(run.fingerprint.created))


@style()
def _over_time_figure(
    panels: Mapping[str, Sequence[_Point]], changes: Mapping[float, str]
) -> Figure:
    """Panels that share both axes, with a vertical line and its words where a version changed."""
    from matplotlib.dates import DateFormatter
    from matplotlib.ticker import MaxNLocator

    rows = -(-len(panels) // _PANEL_COLUMNS)
    figure, axes = new_figure(
        [_PANEL_INCHES] * rows,
        _PANEL_COLUMNS,
        around=0.4,
        width=WIDE_INCHES,
        sharex=True,
        sharey=True,
    )
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax, (title, points) in zip(axes, panels.items(), strict=False):
        for i, (when, at) in enumerate(points):
            inside = INK if at.status == "ok" else PAPER
            if i and at.low and at.high:
                ax.plot([when, when], [at.low, at.high], color=INK, linewidth=1)
            ax.plot([when], [at.value], "o", color=INK, markerfacecolor=inside, markersize=4)
        for when, words in changes.items():
            ax.axvline(when, color=MUTED, linewidth=0.9)
            place: dict[str, Any] = {
                "transform": ax.get_xaxis_transform(),
                "rotation": 90,
                "ha": "right",
                "va": "top",
                "fontsize": 5.5,
            }
            ax.text(when, 0.98, plain(words, _WORD_LETTERS), **place)
        ax.axhspan(*LEAST_RATIOS, alpha=0)
        ax.set_title(title, fontsize=SMALL)
        ax.tick_params(labelbottom=True, labelsize=SMALL)
    axes[0].set_yscale("log")
    ratio_ticks(axes[0].yaxis)
    axes[0].xaxis.set_major_locator(MaxNLocator(2))
    axes[0].xaxis.set_major_formatter(DateFormatter("%d %b %H:%M"))
    return figure
