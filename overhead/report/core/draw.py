"""Draw figures with matplotlib: the common style, rows of dots with intervals, and SVG output.

Mathematics and TeX in text are off, because names come from files.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import re
import warnings
import weakref
from collections.abc import Collection, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from overhead.reading.format import plain
from overhead.reading.view import CALLER_WORDS
from overhead.report.core.palette import every_colour, themed
from overhead.results import Caller

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_WIDTH_INCHES = 5.6
"""Inches of every figure. A page draws it 672 px wide on any screen, so a point is 1.67 px."""
_POINTS_A_REM = 9.6
"""Points of a figure that are as wide as a rem of the page."""
NARROW_WIDTH_INCHES = 3.0
"""Inches of a figure for a phone, which draws it about 358 px wide: a point is 1.66 px there too."""
SMALL = 7.5
"""Points of the smallest text: 12.5 px as drawn."""
ROW_INCHES = 0.28
"""Inches of a row whose label has two lines."""
ONE_LINE_INCHES = 0.2
"""Inches of a row whose label has one line."""
INK = "#1b1d1f"
MUTED = "#63686d"
GRID_COLOUR = "#dadde1"
PAPER = "#fefefe"
_THEME = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID_COLOUR: "var(--grid)",
    PAPER: "var(--paper)",
    **{c: themed(c) for c in every_colour()},
}
"""Colours that the page's light or dark theme replaces in inline SVG."""
_FONT_STYLE = "font-family: 'DejaVu Sans', sans-serif; "
"""In every text of a figure; the page's style has the same."""
_TIP = "tip-"
"""Start of the id of a mark with a text on hover."""
_tips: weakref.WeakKeyDictionary[Figure, list[str]] = weakref.WeakKeyDictionary()
"""Texts on hover of each figure."""
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


def canvas(
    heights: Sequence[float], columns: int = 1, *, around: float = 0.5, width: float = FIGURE_WIDTH_INCHES
) -> tuple[Figure, list[list[Axes]]]:
    """A figure with a grid of axes. ``heights``: inches of each row; ``around``: inches for its title and labels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, sum(heights) + around * len(heights) + 0.3), layout="constrained")
    grid = figure.subplots(len(heights), columns, squeeze=False, gridspec_kw={"height_ratios": list(heights)})
    for ax in grid.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, [list(row) for row in grid]


def small_titles(ax: Axes, title: str, unit: str) -> None:
    """Set a small title, split in two lines if it is long, and the unit close below the axis."""
    ax.set_title(two_lines(title), fontsize=8.5)
    unit_below(ax, unit)


def unit_below(ax: Axes, unit: str) -> None:
    """Write the unit in a small font, close below the axis."""
    ax.set_xlabel(unit, fontsize=SMALL, labelpad=1)


def two_lines(label: str) -> str:
    """The label, split into two lines if it is long."""
    text = plain(label, 80)
    return re.sub(r" (?:on|over) ", "\n", text, count=1) if len(text) > 22 else text


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
    columns = sum(width <= figure.get_figwidth() for width in itertools.accumulate(widths[:4]))
    figure.legend(handles=handles, loc="outside upper left", ncols=max(1, columns), handletextpad=0.2)


def caller_legend(figure: Figure, callers: Collection[Caller]) -> None:
    """A legend of these callers' markers, in the usual order."""
    marker_legend(figure, caller_shapes(callers))


def caller_shapes(callers: Collection[Caller]) -> dict[str, str]:
    """These callers' markers by their words, in the usual order."""
    return {words: CALLER_MARKERS[caller] for caller, words in CALLER_WORDS.items() if caller in callers}


def tip(figure: Figure, artist: Any, text: str) -> None:
    """Show ``text`` where the pointer rests on the artist, in SVG."""
    texts = _tips.setdefault(figure, [])
    artist.set_gid(f"{_TIP}{len(texts)}")
    texts.append(plain(text, 160))


def svg(figure: Figure) -> str:
    """The figure as SVG text. Fixes the layout, so that other formats have the same."""
    engine = figure.get_layout_engine()
    if engine is not None:
        for _ in range(2):  # the first pass moves the text that the second has to leave room for
            engine.execute(figure)
        figure.set_layout_engine(None)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    texts = _tips.get(figure, [])
    text = re.sub(
        rf'<g id="{_TIP}(\d+)">', lambda found: f"<g><title>{escape(texts[int(found[1])])}</title>", file.getvalue()
    )
    return _CONTROL.sub("", text)


def inline(text: str, name: str, label: str) -> str:
    """SVG text for use inside a page: themed, without prologue, ids prefixed by ``name``, with the label ``alt``."""
    body = text[text.index("<svg") :]
    points = re.search(r'<svg[^>]*? width="([\d.]+)pt"', body)
    width = f' style="--width: {float(points[1]) / _POINTS_A_REM:.1f}rem"' if points else ""
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf"\g<1>{name}-", body)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = _compact(re.sub("#[0-9a-f]{6}", lambda found: _THEME.get(found[0], found[0]), body))
    return body.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"{width}', 1)


def _compact(body: str) -> str:
    """The SVG text without comments, ids that nothing refers to and the page's own font, to 0.01 points."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', body))
    body = re.sub(r' id="([^"]*)"', lambda found: found[0] if found[1] in used else "", body)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL).replace(_FONT_STYLE, "")
    body = re.sub(r' transform="rotate\(-0 [^"]*"', "", body)
    body = re.sub(r' (?:d|x|y|width|height|transform)="[^"]*"', _rounded, body)
    return re.sub(r">\s+<", "><", body)


def _rounded(attribute: re.Match[str]) -> str:
    numbers = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", attribute[0])
    return re.sub(r"\s*\n\s*|(?<=[A-Z]) | (?=\")", "", numbers)
