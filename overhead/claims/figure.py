"""The picture of the claims: each measured value over the published one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Drawing
from overhead.claims import rules
from overhead.claims.judging import Judged
from overhead.claims.rules import ClaimVerdict
from overhead.reading.plain_text import plain
from overhead.report.core.draw import (
    INK,
    MUTED,
    NARROW_INCHES,
    PAPER,
    SMALL,
    WIDE_INCHES,
    style,
    wrapped_label,
)
from overhead.results import Value
from overhead.words import claims as words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REPRODUCES, _PARTLY = "#c3d7ea", "#e9f0f7"
_COLOURS: dict[ClaimVerdict, str] = {
    "reproduced": "#1f6f3a",
    "partial": "#9a5b00",
    "refuted": "#b3261e",
}
_FURTHEST = 64.0
"""The axis reaches from 1/64 to 64, the same in all pictures; what lies beyond stands at its end as
an arrow. Chosen, not measured.
"""
_TICKS = {1 / 64: "1/64", 1 / 8: "1/8", 1.0: "1", 8.0: "8", 64.0: "64"}
_MORE_TICKS = {1 / 32: "1/32", 1 / 16: "1/16", 1 / 4: "1/4", 1 / 2: "1/2"} | {
    float(multiple): str(multiple) for multiple in (2, 4, 16, 32)
}
"""On a wide axis."""


@dataclass(frozen=True)
class _Layout:
    """Where things stand, in inches from the left; heights in inches. ``above``: the label of a row
    stands above its marks, because there is no room beside them. ``letters``: of a line of it.
    """

    width: float
    axis_left: float
    axis_right: float
    published: float
    row: float
    line: float
    letters: int
    above: bool


_WIDE = _Layout(WIDE_INCHES, 4.35, 7.7, 8.6, 0.1, 0.135, 76, above=False)
_NARROW = _Layout(NARROW_INCHES, 0.15, 2.85, 2.95, 0.2, 0.14, 47, above=True)


@dataclass(frozen=True)
class _Row:
    """A claim in the picture. ``values``: over the published one."""

    judged: Judged
    label: str
    lines: int
    values: Sequence[Value]


def claims_drawings(judged_claims: Sequence[Judged]) -> Iterator[Drawing]:
    """For each verdict the picture of its claims, as far as they have measured numbers: one picture
    of all would be longer than a printed page.
    """
    caption = words.BESIDE_CAPTION
    for verdict, title in words.VERDICT_GROUPS.items():
        of_verdict = [judged for judged in judged_claims if judged.verdict == verdict]
        shown = [judged for judged in of_verdict if _multiples(judged)]
        if not shown:
            continue
        without_numbers = len(of_verdict) - len(shown)
        yield Drawing(
            name=f"claims-{verdict}",
            title=words.figure_title(title, len(shown)),
            alt=words.beside_alt(shown),
            caption=caption + words.without_numbers(without_numbers),
            draw=partial(_figure, shown, verdict, _WIDE),
            draw_narrow=partial(_figure, shown, verdict, _NARROW),
        )
        caption = words.READ_AS_ABOVE


def _multiples(judged: Judged) -> list[Value]:
    """The measured values with their intervals, over the middle of the published range."""
    test = judged.claim.test
    if test is None or test.kind in ("fails", "implied"):
        return []
    middle = _middle(judged)
    known = [value.measured for value, _ in judged.measured]
    return [value / middle for value in known if value is not None and value.value > 0]


def _middle(judged: Judged) -> float:
    """The published value; of a range the middle on a logarithmic axis."""
    least, most = rules.published(judged.claim)
    return float((least * most) ** 0.5)


@style()
def _figure(shown: Sequence[Judged], verdict: ClaimVerdict, layout: _Layout) -> Figure:
    """The picture of the claims with one verdict, in one of two layouts. It has one axis, and the
    rows below each other, each as high as its label.
    """
    from matplotlib.figure import Figure

    rows = [_row(judged, layout) for judged in shown]
    height = sum(_height(row, layout) for row in rows) + 0.05
    # Room for the heading, the legend and the upper labels of the axis, and for the lower ones.
    top, bottom = (0.95, 0.42) if layout.above else (0.72, 0.42)
    total = height + top + bottom
    figure = Figure(figsize=(layout.width, total))
    left, right = layout.axis_left / layout.width, layout.axis_right / layout.width
    axes = figure.add_axes((left, bottom / total, right - left, height / total))
    axes.set_xscale("log")
    # A little further than the last tick.
    axes.set_xlim(0.9 / _FURTHEST, 1.1 * _FURTHEST)
    # The vertical axis is in inches, from the top down.
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    ticks = _TICKS if layout.above else _TICKS | _MORE_TICKS
    axes.set_xticks(list(ticks), list(ticks.values()), minor=False)
    axes.set_xticks([], minor=True)
    axes.tick_params(axis="x", top=True, labeltop=True, labelsize=SMALL, length=0)
    axes.set_xlabel(words.MEASURED_OVER_PUBLISHED)
    heading = f"{words.VERDICT_GROUPS[verdict]}: {len(rows)}"
    look: dict[str, Any] = {"color": _COLOURS[verdict], "fontweight": "bold", "fontsize": 9.5}
    figure.text(0.0, 1.0, heading, va="top", **look)
    y = 0.05
    for row in rows:
        _draw(axes, layout, row, y)
        y += _height(row, layout)
    _columns(axes, layout)
    _legend(figure, layout, 1 - 0.22 / total)
    return figure


def _row(judged: Judged, layout: _Layout) -> _Row:
    label = wrapped_label(judged.claim.said, layout.letters)
    return _Row(judged, label, label.count("\n") + 1, _multiples(judged))


def _height(row: _Row, layout: _Layout) -> float:
    """Inches of a row: its lines of text, and on a phone its marks and two values below them."""
    text = row.lines * layout.line
    if layout.above:
        return text + 2 * layout.line + layout.row
    return text + layout.row


def _draw(axes: Axes, layout: _Layout, row: _Row, top: float) -> None:
    """A row from ``top`` down: the ranges of the verdicts, the published value, the marks, and the
    values as text.
    """
    judged = row.judged
    test = judged.claim.test
    if test is None:
        return
    height = _height(row, layout)
    text_height = row.lines * layout.line
    middle = top + text_height + layout.row / 2 if layout.above else top + height / 2
    published = _middle(judged)
    limits = rules.bounds(judged.claim, test)
    lowest, highest = axes.get_xlim()
    for limit, colour in ((limits.partial, _PARTLY), (limits.reproduced, _REPRODUCES)):
        ends = [max(limit.low / published, lowest), min(limit.high / published, highest)]
        axes.fill_between(ends, middle - 0.08, middle + 0.08, color=colour, linewidth=0, zorder=1)
    least, most = rules.published(judged.claim)
    ends = [least / published, most / published]
    axes.plot(ends, [middle, middle], "|-", color=INK, markersize=9, linewidth=1, zorder=2)
    colour = _COLOURS[judged.verdict]
    for value in row.values:
        _mark(axes, value, middle, colour)

    figure = words.published_figure(judged.claim)
    found = words.measured_range(test, [value for value, _ in judged.measured])
    if layout.above:
        _text(axes, layout, 0.0, top + 0.02, row.label, va="top")
        values = f"{words.PUBLISHED} {figure}, {words.MEASURED} {found}"
        below = top + text_height + layout.row + 0.02
        _text(axes, layout, 0.0, below, values, va="top", color=MUTED)
        return
    _text(axes, layout, 0.0, middle, row.label, va="center")
    _text(axes, layout, layout.published, middle, figure, va="center", ha="right")
    look = {"va": "center", "ha": "right", "color": colour}
    _text(axes, layout, layout.width - 0.02, middle, found, **look)


def _mark(axes: Axes, value: Value, y: float, colour: str) -> None:
    """A measured value with its interval, hollow if it is noisy; an arrow at the end of the axis if
    it lies beyond.
    """
    lowest, highest = axes.get_xlim()
    if not lowest <= value.value <= highest:
        marker, x = ("<", lowest * 1.05) if value.value < lowest else (">", highest / 1.05)
        axes.plot([x], [y], marker, color=colour, markersize=5, zorder=4)
        return
    if value.bounded:
        ends = [max(value.floor, lowest), min(value.ceiling, highest)]
        axes.plot(ends, [y, y], color=colour, linewidth=1.5, zorder=3)
    inside = colour if value.status == "ok" else PAPER
    look: dict[str, Any] = {"color": colour, "markerfacecolor": inside}
    axes.plot([value.value], [y], "o", markersize=5, zorder=4, **look)


def _columns(axes: Axes, layout: _Layout) -> None:
    """The headings of the columns of values, on a level with the upper labels of the axis."""
    if layout.above:
        return
    look = {"color": MUTED, "ha": "right"}
    _text(axes, layout, layout.published, -0.1, words.PUBLISHED, **look)
    _text(axes, layout, layout.width - 0.02, -0.1, words.MEASURED, **look)


def _text(axes: Axes, layout: _Layout, x: float, y: float, text: str, **look: Any) -> None:
    """Write a text at ``x`` inches from the left of the picture and at ``y`` inches from the top of
    the axes. ``look``: what matplotlib's ``text`` takes.
    """
    across = (x - layout.axis_left) / (layout.axis_right - layout.axis_left)
    lines = [plain(line, 120) for line in text.splitlines()]
    usual: dict[str, Any] = {"color": INK, "fontsize": SMALL, "linespacing": 1.15}
    transform = axes.get_yaxis_transform()
    axes.text(across, y, "\n".join(lines), transform=transform, **(usual | look))


def _legend(figure: Figure, layout: _Layout, top: float) -> None:
    """What the marks and the bands are, from ``top`` down, a part of the height."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D(
            [], [], marker="|", color=INK, linestyle="", markersize=9, label=words.PUBLISHED_MARK
        ),
        Patch(color=_REPRODUCES, label=words.REPRODUCES),
        Line2D([], [], marker="o", color=MUTED, linestyle="", markersize=5, label=words.MEASURED),
        Patch(color=_PARTLY, label=words.REPRODUCES_PARTLY),
    ]
    columns = 2 if layout.above else 4
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.0, top),
        ncols=columns,
        fontsize=SMALL,
        handletextpad=0.4,
        columnspacing=1.0,
        borderpad=0.1,
    )
