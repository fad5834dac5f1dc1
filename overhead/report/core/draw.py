"""Draw figures with matplotlib: the common style, rows of dots with intervals, and SVG output.

Mathematics and TeX in text are off, because names come from files.
"""

from __future__ import annotations

import contextlib
import functools
import io
import itertools
import warnings
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from overhead.reading.format import plain
from overhead.reading.view import CALLER_WORDS
from overhead.report.core.palette import every_colour, theme_css, themed
from overhead.results import Caller

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_WIDTH_INCHES = 5.6
"""Inches of every figure. A page draws it 672 px wide on any screen, so a point is 1.67 px."""
_POINTS_A_REM = 9.6
"""Points of a figure that are as wide as a rem of the page."""
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
"""Colours that the page's light or dark theme replaces in its figures."""
_TIP = "tip: "
"""Start of the id of a mark with a text on hover, which follows."""
_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_CONTROL = dict.fromkeys([*range(9), 11, 12, *range(14, 32)])
"""Characters that XML forbids: names come from files."""
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
    at = max(text.find(" on "), text.find(" over "))
    return f"{text[:at]}\n{text[at + 1 :].partition(' ')[2]}" if len(text) > 22 and at > 0 else text


def plain_log_ticks(axis: Any) -> None:
    """Label the ticks 0.1, 1, 10, 1,000, 10k, 1M instead of powers. A short axis has ticks at 2 and 5 too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    low, high = axis.get_view_interval()
    short = low > 0 and high / low < 100
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=9))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(_tick))


def _tick(value: float, _position: int | None = None) -> str:
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


def caller_shapes(callers: Collection[Caller]) -> dict[str, str]:
    """These callers' markers by their words, in the usual order."""
    return {words: CALLER_MARKERS[caller] for caller, words in CALLER_WORDS.items() if caller in callers}


def tip(artist: Any, text: str) -> None:
    """Show ``text`` where the pointer rests on the artist, in SVG."""
    artist.set_gid(_TIP + plain(text, 160))


@style()
def svg(figure: Figure) -> str:
    """The figure as SVG text. Fixes the layout, so that other formats have the same."""
    engine = figure.get_layout_engine()
    if engine is not None:
        for _ in range(2):  # the first pass moves the text that the second has to leave room for
            engine.execute(figure)
        figure.set_layout_engine(None)
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    root = ElementTree.fromstring(file.getvalue().translate(_CONTROL))
    for group in root.iter(f"{_SVG}g"):
        name = group.attrib.pop("id", "")
        if name.startswith(_TIP):
            title = ElementTree.Element(f"{_SVG}title")
            title.text = name.removeprefix(_TIP)
            group.insert(0, title)
    for marker in root.iterfind(f".//{_SVG}defs/{_SVG}path"):
        marker.attrib.pop("style", None)  # each use of a marker has the whole style, which the page's theme can reach
    for element in root.iter():
        element.text, element.tail = _without_blank(element.text), _without_blank(element.tail)
    return _text(root)


def inline(text: str, name: str, label: str) -> str:
    """The SVG text for use inside a page: ids prefixed by ``name``, with the label ``label``."""
    root = ElementTree.fromstring(text)
    points = float(root.attrib.pop("width").removesuffix("pt"))
    del root.attrib["height"]
    root.attrib.update({"role": "img", "aria-label": label, "style": f"--width: {points / _POINTS_A_REM:.1f}rem"})
    for element in root.iter():
        for key, before in (("id", ""), (f"{_XLINK}href", "#"), ("clip-path", "url(#")):
            if key in element.attrib:
                element.set(key, f"{before}{name}-{element.attrib[key].removeprefix(before)}")
    return _text(root)


def _text(root: ElementTree.Element) -> str:
    ElementTree.register_namespace("", _SVG.strip("{}"))
    ElementTree.register_namespace("xlink", _XLINK.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")


def _without_blank(text: str | None) -> str | None:
    return text if text and text.strip() else None


@functools.cache
def figures_css() -> str:
    """Style rules of the colours of stacks and layers, and of the figures, which follow the page's theme."""
    rules = (
        f'[style*="{kind}: {colour}"] {{ {kind}: {own} !important; }}\n'
        for colour, own in _THEME.items()
        for kind in ("fill", "stroke")
    )
    return theme_css() + "".join(rules)
