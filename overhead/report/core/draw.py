"""Draw figures with matplotlib: the common style, panels below each other, axes, legends, and SVG
output.

Mathematics and TeX in text are off, because names come from files.
"""

from __future__ import annotations

import contextlib
import io
import textwrap
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_WIDTH_INCHES = 5.6
"""Inches of a figure. A page draws it 672 px wide on any screen, so a point is 1.67 px."""
WIDE_INCHES = 9.8
"""Inches of a figure that is as wide as the text of a page: 1,176 px."""
NARROW_INCHES = 3.0
"""Inches of a figure that a phone of 390 px shows as it is drawn, without scrolling: 360 px."""
SMALL = 7.5
"""Points of the smallest text: 12.5 px as drawn."""
INK = "#1b1d1f"
MUTED = "#63686d"
GRID_COLOUR = "#dadde1"
PAPER = "#fefefe"
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])
"""Characters that XML forbids: names come from files."""
_LEGEND_LETTERS_AN_INCH = 14.3
_MARKER_LETTERS = 5
"""Letters of a row of the legend, and the room that a marker takes. Chosen by eye."""
_LEAST_TICKS = 3
"""Ticks that an axis has at least: two do not tell whether it is logarithmic."""


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Context manager that sets matplotlib to the style of the report, and restores the user's
    settings at the end.
    """
    import matplotlib
    import seaborn

    with matplotlib.rc_context(), warnings.catch_warnings():
        # A name from a file may have letters that the font lacks: a box is drawn for each.
        warnings.filterwarnings("ignore", message="Glyph")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        # So that no setting of the user changes a picture.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(seaborn.axes_style("whitegrid"))
        matplotlib.rcParams.update(
            {
                "text.hinting": "none",
                # A name may have a ``$``, which would begin a formula.
                "text.parse_math": False,
                "text.usetex": False,
                # Texts stay texts, and ids are the same each time.
                "svg.fonttype": "none",
                "svg.hashsalt": "overhead",
                "font.family": "sans-serif",
                "font.sans-serif": ["DejaVu Sans"],
                "font.size": 8.5,
                "axes.titlesize": 8.5,
                "axes.titlelocation": "left",
                "axes.titleweight": "bold",
                "axes.labelsize": SMALL,
                "axes.linewidth": 0.8,
                "axes.axisbelow": True,
                "axes.formatter.use_mathtext": False,
                "axes.spines.top": False,
                "axes.spines.right": False,
                "xtick.labelsize": 8,
                "ytick.labelsize": SMALL,
                "legend.fontsize": 8,
                "legend.frameon": False,
                "text.color": INK,
                "axes.labelcolor": INK,
                "axes.titlecolor": INK,
                "xtick.color": INK,
                "ytick.color": INK,
                "xtick.labelcolor": INK,
                "ytick.labelcolor": INK,
                "axes.edgecolor": MUTED,
                "grid.color": GRID_COLOUR,
                "grid.linewidth": 0.7,
                "figure.facecolor": PAPER,
                "axes.facecolor": PAPER,
                "savefig.facecolor": PAPER,
                "savefig.dpi": 150,
                "lines.solid_capstyle": "butt",
            }
        )
        yield


def new_figure(
    heights: Sequence[float],
    columns: int = 1,
    *,
    around: float = 0.6,
    width: float = FIGURE_WIDTH_INCHES,
    shares: Sequence[float] | None = None,
    **axes: Any,
) -> tuple[Figure, list[Axes]]:
    """A new figure of matplotlib with a grid of axes, and these axes in reading order.

    ``heights``: inches of each row of the grid, and ``around`` for the title and labels of a row;
    ``shares``: widths of the columns as parts of their sum, else all are alike; ``axes``: options
    of ``subplots``.
    """
    from matplotlib.figure import Figure

    rows = len(heights)
    # All in inches.
    height = sum(heights) + around * rows + 0.3
    figure = Figure(figsize=(width, height), layout="constrained")
    ratios = {"height_ratios": list(heights), "width_ratios": shares}
    # ``squeeze=False``: an array also of one row or column.
    grid = figure.subplots(rows, columns, squeeze=False, gridspec_kw=ratios, **axes)
    return figure, list(grid.flat)


def wrapped_label(label: str | TargetLabel, letters: int = 40) -> str:
    """The label broken into lines of at most so many letters. The label of a target (a stack on a
    device) breaks before the device.
    """
    if isinstance(label, str):
        return textwrap.fill(plain(label, 120), letters)
    text = plain(label.text, 120)
    # A short label needs no break before its device.
    if not label.device or len(text) <= letters / 2:
        return textwrap.fill(text, letters)
    stack = textwrap.fill(plain(label.stack, 120), letters)
    device = textwrap.fill(plain(label.device, 120), letters)
    return f"{stack}\n{device}"


def plain_log_ticks(axis: Any, close: float = 100.0) -> None:
    """Label the ticks of a logarithmic axis 0.1, 1, 10, 1,000, 10k, 1M instead of powers of ten.
    The axis shows at least three ticks, however short it is.

    An axis whose ends are less than the factor ``close`` apart has ticks at 2 and 5 too; on a
    longer one their labels would overlap.
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    axis.set_major_locator(FixedLocator(_log_ticks(low, high, close)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_tick))


def _log_ticks(low: float, high: float, close: float) -> list[float]:
    """The ticks of a logarithmic axis from ``low`` to ``high``: of the sets of ticks within a power
    of ten, from few to many, the first that puts three ticks on the axis.
    """
    from matplotlib.ticker import LogLocator, MaxNLocator

    sets = [(1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)]
    if 0 < high < close * low:
        sets = sets[2:]
    for within_a_power in sets:
        ticks = LogLocator(subs=within_a_power, numticks=9).tick_values(low, high)
        shown = [float(tick) for tick in ticks if low <= tick <= high]
        if len(shown) >= _LEAST_TICKS:
            return shown
    # The ends are so close that the axis is nearly linear.
    ticks = MaxNLocator(4, steps=[1, 2, 5, 10], min_n_ticks=_LEAST_TICKS).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def _tick(value: float, _position: int | None = None) -> str:
    """The label of a tick: ``0.1``, ``1,000``, ``10k``, ``1M``. matplotlib gives its position
    too.
    """
    if value >= 1e6:
        return f"{value / 1e6:,.10g}M"
    if value >= 1e4:
        return f"{value / 1e3:,.10g}k"
    return f"{value:,.10g}"


def add_marker_legend(
    figure: Figure,
    shapes: Mapping[str, str | tuple[str, str]],
    *,
    hollow: str = "",
    area: tuple[str, str] | None = None,
) -> None:
    """Add a legend above the drawing, in as many columns as the width allows; none without entries.

    ``shapes``: by name in the legend, the marker as matplotlib names it, or the marker and its
    colour. ``hollow``: what a hollow mark means; '' where there is none. ``area``: the words and
    the colour of a coloured area.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = []
    longest_name = 0
    for name, look in shapes.items():
        marker, colour = (look, MUTED) if isinstance(look, str) else look
        label = plain(name, 60)
        longest_name = max(longest_name, len(label))
        handles.append(
            Line2D([], [], marker=marker, color=colour, label=label, linestyle="", markersize=5)
        )
    if hollow:
        inside: dict[str, Any] = {"markerfacecolor": PAPER, "markersize": 5, "linestyle": ""}
        handles.append(Line2D([], [], marker="o", color=MUTED, label=hollow, **inside))
        longest_name = max(longest_name, len(hollow))
    if area is not None:
        words, colour = area
        handles.append(Patch(facecolor=colour, label=words))
        longest_name = max(longest_name, len(words))
    if not handles:
        return
    # So many columns of the longest name fit into a row; a marker takes the room of 5 letters.
    letters = int(_LEGEND_LETTERS_AN_INCH * figure.get_figwidth())
    fitting = letters // (longest_name + _MARKER_LETTERS)
    columns = max(1, min(len(handles), fitting))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, handletextpad=0.3)


@style()
def svg(figure: Figure) -> str:
    """The figure as SVG text without a background, the same bytes each time."""
    file = io.StringIO()
    # matplotlib would write the time, which differs each time.
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(file, format="svg", metadata=nothing, transparent=True)
    return file.getvalue().translate(_CONTROL)
