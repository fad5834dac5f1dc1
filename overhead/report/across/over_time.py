"""The runs of one machine over time: each key figure as a ratio to its first run, and where a version changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

from overhead.blocks.parts import Drawing, Part, Table
from overhead.reading.beside import beside, version_changes
from overhead.reading.format import count, plain
from overhead.reading.view import View
from overhead.report.core.dots import ratio_ticks
from overhead.report.core.draw import INK, MUTED, PAPER, SMALL, WIDE_INCHES, new_figure, style
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS, _PANEL_INCHES, _WORD_LETTERS = 3, 1.15, 24
_CAPTION = (
    "Each figure over that of the first run that has it with the same parameters; hollow where one of the two is noisy. "
    "A vertical line: a version differs from the run before. Rented machines of one kind can be on several boards."
)
_Point = tuple[datetime, Value]


@register_across("over-time", "The runs of this machine over time", 30)
def over_time(machines: Machines) -> Iterator[Part]:
    """A panel for each key figure of two or more runs, and a table of the versions that changed; else nothing."""
    runs = sorted((machines.own, *machines.others), key=lambda run: run.fingerprint.created)
    panels: dict[str, list[_Point]] = {}
    for i, first in enumerate(runs):
        later = {run: beside(run, first, {}).pairs for run in runs[i:]}
        for label in later[first]:
            points = [(_when(run), pairs[label].ratio) for run, pairs in later.items() if label in pairs]
            if len(points) > 1:
                panels.setdefault(label, points)
    if not panels:
        return
    both = ((after, version_changes(before.fingerprint, after.fingerprint)) for before, after in pairwise(runs))
    changes = [(_when(run), plain(words, 300)) for run, words in both if words]
    table = Table(
        "Versions that changed", ["run", "from the run before"], [(f"{w:%Y-%m-%d %H:%M}", c) for w, c in changes]
    )
    alternative = f"{count(len(panels), 'figure')} of {count(len(runs), 'run')}."
    draw = partial(_figure, panels, changes)
    yield Drawing("over-time", "Key figures over time", alternative, _CAPTION, draw, table=table if changes else None)


def _when(run: View) -> datetime:
    return datetime.fromisoformat(run.fingerprint.created)


@style()
def _figure(panels: Mapping[str, Sequence[_Point]], changes: Sequence[tuple[datetime, str]]) -> Figure:
    """Panels that share both axes, with a vertical line and its words where a version changed."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    rows = -(-len(panels) // _COLUMNS)
    figure, axes = new_figure([_PANEL_INCHES] * rows, _COLUMNS, around=0.4, width=WIDE_INCHES, sharex=True, sharey=True)
    for ax in axes[len(panels) :]:
        ax.set_visible(False)
    for ax, (label, points) in zip(axes, panels.items(), strict=False):
        for i, (when, at) in enumerate(points):
            inside = INK if at.status == "ok" else PAPER
            if i and at.low and at.high:
                ax.plot([when, when], [at.low, at.high], color=INK, linewidth=1)
            ax.plot([when], [at.value], "o", color=INK, markerfacecolor=inside, markersize=4)
        for when, words in changes:
            ax.axvline(when, color=MUTED, linestyle=":")
            ax.annotate(
                plain(words, _WORD_LETTERS),
                (when, 0.02),
                (2, 0),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                rotation=90,
                va="bottom",
                fontsize=6,
                color=MUTED,
            )
        ax.set_title(label, fontsize=SMALL)
        ax.tick_params(labelbottom=True, labelsize=SMALL)
    axes[0].set_yscale("log")
    ratio_ticks(axes[0].yaxis)
    locator = AutoDateLocator(minticks=2, maxticks=4)
    axes[0].xaxis.set_major_locator(locator)
    axes[0].xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
    return figure
