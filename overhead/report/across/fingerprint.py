"""This machine beside others: key figures as ratios to a reference run and to an earlier run of this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.reading.beside import (
    Beside,
    Pair,
    Spreads,
    beside,
    beside_sentence,
    earlier_run,
    left_out_sentence,
    spreads_of,
    version_changes,
)
from overhead.reading.format import MICRO, factor_spread, plain
from overhead.reading.key_figures import key_figures
from overhead.reading.view import View, boards_of, without_device
from overhead.report.core.dots import Mark, draw_mark
from overhead.report.core.draw import INK, MUTED, SMALL, WIDE_INCHES, add_legend, new_figure, style
from overhead.report.core.machines import Machines, machine_name
from overhead.report.core.registry import register_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLES = {"host": "Bound by the host", "device": "Bound by the device", "": "Waits and shares"}
_ROW_INCHES = 0.27
_BAND_COLOUR, _OUTSIDE_COLOUR = "#d5e3f0", "#b5432a"
_LOOKS = (("#0b5394", "o", -0.12), (MUTED, "D", 0.22))
"""Colour, marker and place in its row of the first run beside this one, and of the second."""
_TICKS = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 2 / 3, 0.8, 1, 1.25, 1.5, 2, 4, 8, 16)
_LONG_AXIS = 8
"""An axis with this ratio of its ends has ticks at powers of two alone."""


@register_across("fingerprint", "This machine beside others", 7, page="front")
def fingerprint(machines: Machines) -> Iterator[Part]:
    """The picture and its table; a sentence where there is no run to set beside this one."""
    view, reference = machines.own, machines.reference
    spreads = spreads_of(view, machines.others)
    both = beside(view, reference, spreads) if reference else None, earlier_run(view, machines.others, spreads)
    found = [one for one in both if one is not None and one.pairs]
    if not found:
        yield Text(["No other run has a figure in common with this one. overhead report --reference names one."])
        return
    sentences = [beside_sentence(one, _name(one)) for one in found]
    yield Text(sentences)
    title = f"{machine_name(view.fingerprint.machine)} beside {_name(found[0])}"
    said = ["A pair has one stack, one caller and the same parameters.", _band_words(spreads)]
    for one in found:
        changes = plain(version_changes(one.other.fingerprint, view.fingerprint), 300)
        said += [f"Since {_name(one)}: {changes}." if changes else "", left_out_sentence(one)]
    draw, caption = partial(fingerprint_figure, found), " ".join(filter(None, said))
    yield Drawing("fingerprint", title, " ".join(sentences), caption, draw, table=key_figure_table(view, found))


def _name(found: Beside) -> str:
    """The other run in words, with its board where that is known to be another."""
    own, run = found.view.fingerprint, found.other.fingerprint
    boards = boards_of(own.records)[:1], boards_of(run.records)[:1]
    board = " on another board" if all(boards) and boards[0] != boards[1] else ""
    name = f"this machine{board}" if own.machine.id == run.machine.id else machine_name(run.machine)
    return f"{name} ({run.created[:10]}, {run.profile} run, method {run.method_version})"


def _band_words(spreads: Spreads) -> str:
    if not spreads:
        return "No band shows how far another run here may lie: measure again to get one: make report."
    runs = max(spread.boards for spread in spreads.values())
    return f"In 90 % of cases another run here lies in the band, told from {runs} runs. A noisy figure has no band."


def key_figure_table(view: View, found: Sequence[Beside] = ()) -> Table:
    """The key figures that have a value, with their intervals, and what stands beside them, or why nothing does."""
    known = [k for k in view.once(key_figures) if k.measured is not None]
    _, device = without_device([k.of for k in known])
    rows: list[list[str | Cell]] = []
    for k in known:
        row: list[str | Cell] = [k.label, k.with_interval, k.next_run]
        for one in found:
            pair = one.pairs.get(k.label)
            row += [pair.other.with_interval, factor_spread(pair.ratio)] if pair else ["", one.left_out[k.label]]
        rows.append([*row, "; ".join(filter(None, ("" if device else k.of, k.reason.partition(":")[0])))])
    columns = ["", "this run", f"next run, {MICRO}", *(c for one in found for c in (_name(one), "this over it")), ""]
    title, numeric = "Key figures" + (f", {device}" if device else ""), range(1, len(columns) - 1)
    return Table(title, columns, rows, numeric, folded=bool(found), optional={2: 1}).without_empty()


@style()
def fingerprint_figure(found: Sequence[Beside]) -> Figure:
    """A row for each key figure: the ratios on a log axis, the band around 1, and the values of all runs behind it."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    first = {label: pair for one in reversed(found) for label, pair in one.pairs.items()}
    labels = [k.label for k in found[0].view.once(key_figures) if k.label in first]
    groups = {title: [label for label in labels if first[label].limit == limit] for limit, title in _TITLES.items()}
    rows = [row for title, own in groups.items() if own for row in (title, *own)]
    figure, (ax,) = new_figure([_ROW_INCHES * (len(rows) + 1)], around=0.7, width=WIDE_INCHES)
    headings = [
        plain(machine_name(one.other.fingerprint.machine), 22)
        if one.view.fingerprint.machine.id != one.other.fingerprint.machine.id
        else "before"
        for one in found
    ]
    _values(ax, -1, ["this run", *headings], fontweight="bold")
    for y, label in enumerate(rows):
        if label in first:
            _row(ax, y, first[label], [one.pairs.get(label) for one in found])
    _axes(ax, rows, [pair for one in found for pair in one.pairs.values()])
    handles: list[Any] = [
        Line2D([], [], linestyle="", marker=marker, color=colour, markersize=5, label=f"over {_name(one)}")
        for one, (colour, marker, _) in zip(found, _LOOKS, strict=False)
    ]
    if any(pair.band for pair in first.values()):
        handles.append(Patch(facecolor=_BAND_COLOUR, label="where another run here would lie; a red mark is outside"))
    add_legend(figure, handles)
    return figure


def _row(ax: Axes, y: int, first: Pair, pairs: Sequence[Pair | None]) -> None:
    if first.band is not None:
        ax.fill_betweenx([y - 0.42, y + 0.42], 1 / first.band, first.band, color=_BAND_COLOUR, linewidth=0)
    for pair, (colour, marker, place) in zip(pairs, _LOOKS, strict=False):
        if pair is not None:
            draw_mark(ax, y + place, Mark(pair.ratio, _OUTSIDE_COLOUR if pair.outside else colour, marker))
    _values(ax, y, [first.this.text, *(pair.other.text if pair else "" for pair in pairs)])


def _values(ax: Axes, y: int, texts: Sequence[str], **look: Any) -> None:
    for i, text in enumerate(texts):
        at = {"transform": ax.get_yaxis_transform(), "va": "center", "ha": "right", "fontsize": SMALL}
        ax.text(1.15 + 0.2 * i, y, text, **at, **look)


def _axes(ax: Axes, rows: Sequence[str], pairs: Sequence[Pair]) -> None:
    from matplotlib.ticker import FuncFormatter

    bands = [pair.band for pair in pairs if pair.band]
    low = min(1 / 1.5, *(p.ratio.value for p in pairs), *(1 / band for band in bands)) / 1.05
    high = max(1.5, *(p.ratio.value for p in pairs), *bands) * 1.05
    ax.set_xscale("log", base=2)
    ax.set_xticks([t for t in _TICKS if high / low < _LONG_AXIS or t in (1, *_TICKS[:4], *_TICKS[-4:])])
    ax.set_xticks([], minor=True)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda times, _: f"{times:.3g}×"))
    ax.set_xlim(low, high)
    ax.set_xlabel(
        "← faster here, or a smaller share          this run over the other          slower, or a larger share →"
    )
    ax.axvline(1, color=INK, linewidth=0.9, zorder=1)
    ax.set_yticks(range(len(rows)), rows)
    for tick in ax.get_yticklabels():
        tick.set_fontweight("bold" if tick.get_text() in _TITLES.values() else "normal")
    ax.set_ylim(len(rows) - 0.4, -1.6)
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
