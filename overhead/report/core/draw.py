"""Draw figures with matplotlib: the common style, rows of dots with intervals, and SVG output.

Mathematics and TeX in text are off, because names come from files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.format import in_micro, plain, valued
from overhead.reading.view import CALLER_WORDS, TargetView
from overhead.report.core.palette import CALL_COLOURS
from overhead.report.core.palette import colour as stack_colour
from overhead.results import Caller, Record
from overhead.results import Figure as Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FIGURE_WIDTH_INCHES = 5.6
"""Inches of every figure: legible when scaled to a phone."""
ROW_INCHES = 0.28
"""Inches of a row whose label has two lines."""
ONE_LINE_INCHES = 0.2
"""Inches of a row whose label has one line."""
INK = "#1b1d1f"
MUTED = "#63686d"
GRID_COLOUR = "#dadde1"
PAPER = "#fefefe"
_THEME = {
    INK: "var(--ink)", MUTED: "var(--muted)", GRID_COLOUR: "var(--grid)", PAPER: "var(--paper)",
    **{colour: f"var(--{name})" for name, colour in CALL_COLOURS.items()},
}  # fmt: skip
"""Colours that the page's light or dark theme replaces in inline SVG."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
"""Characters that XML forbids or that reverse text: names come from files."""
CALLER_MARKERS = {"binding": "o", "browser": "^", "ffi": "s", "native": "D"}
_LETTER_INCHES = 0.062
"""Width of a letter in a legend."""
_LEGEND_MARKER_INCHES = 0.45
"""Width of a marker in a legend, with its space."""
MARKER_SIZE = {"o": 5.5, "^": 6.0, "s": 5.0, "D": 4.6, "P": 6.0, "X": 6.0, "v": 6.0, "*": 8.0, "|": 10.0}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Context manager that sets matplotlib to the style of the report, and restores the user's settings at the end."""
    import matplotlib
    import seaborn

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(seaborn.axes_style("whitegrid"))
        matplotlib.rcParams.update({
            "text.hinting": "none",
            "text.parse_math": False, "text.usetex": False, "svg.fonttype": "none", "svg.hashsalt": "overhead",
            "font.family": "sans-serif", "font.sans-serif": ["DejaVu Sans"], "font.size": 8.5,
            "axes.titlesize": 9, "axes.titlelocation": "left", "axes.titleweight": "bold", "axes.labelsize": 8.5,
            "axes.linewidth": 0.8, "axes.axisbelow": True, "axes.formatter.use_mathtext": False,
            "xtick.labelsize": 8, "ytick.labelsize": 8, "legend.fontsize": 8, "legend.frameon": False,
            "text.color": INK, "axes.labelcolor": INK, "axes.titlecolor": INK, "xtick.color": INK, "ytick.color": INK,
            "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.edgecolor": MUTED, "grid.color": GRID_COLOUR,
            "grid.linewidth": 0.7, "figure.facecolor": PAPER, "axes.facecolor": PAPER, "savefig.facecolor": PAPER,
            "savefig.dpi": 150, "lines.solid_capstyle": "butt",
        })  # fmt: skip
        yield


def canvas(heights: Sequence[float], columns: int = 1, *, around: float = 0.5) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of axes. ``heights``: inches of each row; ``around``: inches for its title and labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_FIGURE_WIDTH_INCHES, sum(heights) + around * len(heights) + 0.3), layout="constrained")
    grid = figure.subplots(len(heights), columns, squeeze=False, gridspec_kw={"height_ratios": list(heights)})
    for ax in grid.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, [list(row) for row in grid]


@dataclasses.dataclass(frozen=True)
class Mark:
    """A dot with its interval, in the unit of the axis. ``hollow``: the status is not ``ok``; ``ring``: highlighted."""

    value: float
    low: float | None
    high: float | None
    colour: str
    marker: str = "o"
    hollow: bool = False
    ring: bool = False


@dataclasses.dataclass(frozen=True)
class DotRow:
    """A row of dots. ``note``: text beside the dots, or in place of missing ones."""

    label: str
    marks: Sequence[Mark]
    note: str = ""


def mark(figure: Number | None, colour: str, marker: str = "o") -> list[Mark]:
    """The figure as a list of one dot in microseconds; an empty list if it has no value."""
    if figure is None or valued(figure) is None:
        return []
    return [Mark(*in_micro(figure), colour, marker, figure.status != "ok")]


def caller_row(label: str, records: Sequence[tuple[TargetView, Record]], name: str = "complete") -> DotRow:
    """A row with the figure ``name`` of each record, one marker per caller. The note names callers without a value."""
    marks = [m for t, r in records for m in mark(r.figure(name), stack_colour(t.stack), CALLER_MARKERS[r.caller])]
    absent = [f"{r.caller} {(r.figure(name) or r).status}" for _, r in records if r.value(name) is None]
    return DotRow(label, marks, ", ".join(absent))


def small_titles(ax: Axes, title: str, unit: str) -> None:
    """Set a small title, split in two lines if it is long, and the unit close below the axis."""
    ax.set_title(two_lines(title), fontsize=8)
    unit_below(ax, unit)


def unit_below(ax: Axes, unit: str) -> None:
    """Write the unit in a small font, close below the axis."""
    ax.set_xlabel(unit, fontsize=7.5, labelpad=1)


def dot_rows(ax: Axes, rows: Sequence[DotRow], *, log: bool = True) -> None:
    """Draw the rows from top to bottom with their labels. The marks of a row are slightly offset."""
    if log:
        ax.set_xscale("log", nonpositive="clip")
    for y, row in enumerate(rows):
        shown = [m for m in row.marks if not log or m.value > 0]
        step = 0.5 / max(len(shown), 2)
        for index, m in enumerate(shown):
            _dot(ax, y + (index - (len(shown) - 1) / 2) * step, m, log)
        hidden = len(row.marks) - len(shown)
        note = "; ".join(n for n in (row.note, "not above zero" if hidden else "") if n)
        if note:
            _note(ax, y, note, beside=bool(shown))
    ax.set_yticks(range(len(rows)), [two_lines(row.label) for row in rows], fontsize=7.5, linespacing=1.15)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    if log:
        log_axis(ax, rows)


def two_lines(label: str) -> str:
    """The label, split into two lines if it is long."""
    text = plain(label, 80)
    return re.sub(r" (?:on|over) ", "\n", text, count=1) if len(text) > 22 else text


def log_axis(ax: Axes, rows: Sequence[DotRow]) -> None:
    """Set the limits of the axis around the marks, at least one decade, with plain numbers at the ticks."""
    import math

    ends = [v for row in rows for m in row.marks for v in (m.low, m.value, m.high) if v is not None and v > 0]
    values = [m.value for row in rows for m in row.marks if m.value > 0]
    if values:
        low, high = max(min(ends), min(values) / 10), min(max(ends), max(values) * 10)
        middle, half = math.sqrt(low * high), max(math.sqrt(high / low) * 1.35, 3.3)
        ax.set_xlim(middle / half, middle * half)
    plain_log_ticks(ax.xaxis)


def plain_log_ticks(axis: Any) -> None:
    """Label the ticks 0.1, 1, 10, 1,000, 10k, 1M instead of powers. A short axis has ticks at 2 and 5 too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    short = low > 0 and high / low < 100
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _tick(value: float) -> str:
    size, suffix = (1e6, "M") if value >= 1e6 else (1e3, "k") if value >= 1e4 else (1.0, "")
    return f"{value / size:,.10g}{suffix}"


def marker_legend(figure: Figure, shapes: dict[str, str]) -> None:
    """Add a legend of markers above the drawing, in up to four columns."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D(
            [], [], linestyle="", marker=shape, markersize=MARKER_SIZE.get(shape, 5), color=MUTED, label=plain(name, 40)
        )
        for name, shape in shapes.items()
    ]
    widths = sorted(
        (_LETTER_INCHES * len(str(handle.get_label())) + _LEGEND_MARKER_INCHES for handle in handles), reverse=True
    )
    columns = sum(width <= _FIGURE_WIDTH_INCHES for width in itertools.accumulate(widths[:4]))
    figure.legend(handles=handles, loc="outside upper left", ncols=max(1, columns), handletextpad=0.2)


def caller_legend(figure: Figure, callers: Collection[Caller]) -> None:
    """A legend of these callers' markers, in the usual order."""
    marker_legend(
        figure, {words: CALLER_MARKERS[caller] for caller, words in CALLER_WORDS.items() if caller in callers}
    )


def svg(figure: Figure) -> str:
    """The figure as SVG text. Fixes the layout, so that other formats have the same."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
        figure.set_layout_engine(None)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _CONTROL.sub("", file.getvalue())


def inline(text: str, name: str, label: str) -> str:
    """SVG text for use inside a page: themed, without prologue, ids prefixed by ``name``, with the label ``alt``."""
    from html import escape

    body = text[text.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    for ours, theirs in _THEME.items():
        body = body.replace(ours, theirs)
    return body.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)


def _dot(ax: Axes, y: float, m: Mark, log: bool) -> None:
    if m.low is not None and m.high is not None:
        low = max(m.low, m.value / 1e3) if log else m.low
        ax.plot([low, m.high], [y, y], color=m.colour, linewidth=1.6, zorder=2)
    ax.plot(
        [m.value], [y], linestyle="", marker=m.marker, markersize=MARKER_SIZE.get(m.marker, 5),
        markeredgecolor=INK if m.ring else m.colour, markerfacecolor=PAPER if m.hollow else m.colour,
        markeredgewidth=1.2, zorder=4 if m.ring else 3,
    )  # fmt: skip


def _note(ax: Axes, y: float, note: str, *, beside: bool) -> None:
    x, side = (0.995, "right") if beside else (0.01, "left")
    ax.text(x, y - (0.3 if beside else 0.0), plain(note, 60), transform=ax.get_yaxis_transform(), va="center", ha=side,
            fontsize=7, color=MUTED, zorder=1)  # fmt: skip
