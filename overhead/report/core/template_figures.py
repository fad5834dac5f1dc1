"""SVG figures from a template, for the pages of many machines. matplotlib would take minutes for a thousand.

The template escapes every text. Colours are those of ``draw``, so that the theme of the page replaces them too.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence

from overhead.reading.format import number, spread
from overhead.report.core.draw import GRID_COLOUR, INK, MUTED, PAPER
from overhead.report.core.templates import template

_ROW_PX = 28
_VALUES_PX = 76
"""Width of the values at the right end of rows of dots."""
_NOTES_PX = 90
"""Least width of the notes behind the bars."""
_LETTER_PX = 7.0
_AXIS_PX = 52
"""Height of an axis with its unit."""
_NARROW_LETTERS = 15
"""Letters of the longest label that fits a phone."""
_Scale = tuple[Callable[[float], float], list[tuple[float, str]]]
"""A function from a value to its position in pixels, and the ticks with their labels."""


@dataclasses.dataclass(frozen=True)
class _Frame:
    """Pixels of the figure, of the labels at its left end, and of the middle of the text below an axis."""

    width: int
    labels: int
    middle: int


_WIDE, _NARROW = _Frame(640, 226, 433), _Frame(358, 118, 179)


@dataclasses.dataclass(frozen=True)
class Dot:
    """A value with its interval on a log axis. ``hollow``: the status is not ``ok``."""

    value: float
    low: float
    high: float
    colour: str
    hollow: bool = False

    @property
    def short(self) -> str:
        """The value with as many digits as its interval allows."""
        return number(self.value, *self._ends)

    @property
    def long(self) -> str:
        """The value with its interval."""
        return spread(self.value, *self._ends)

    @property
    def _ends(self) -> tuple[float | None, float | None]:
        return (self.low, self.high) if self.low < self.high else (None, None)


@dataclasses.dataclass(frozen=True)
class TemplateDotRow:
    """A row: a label, a dot or None, and a note beside it."""

    label: str
    dot: Dot | None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class BarRow:
    """A row: a label, the pieces of a bar (title, length, colour), and a note behind it."""

    label: str
    pieces: Sequence[tuple[str, float, str]]
    note: str = ""


@dataclasses.dataclass(frozen=True)
class TemplatePanel:
    """Rows with their own axis. ``unit`` stands below the axis."""

    unit: str
    rows: Sequence[TemplateDotRow] | Sequence[BarRow]


def dots(panels: Sequence[TemplatePanel]) -> str:
    """The SVG text of rows of dots. Each panel has a log axis."""
    return _template("dots.svg.j2", panels, _log_scale, _WIDE)


def bars(panels: Sequence[TemplatePanel]) -> str:
    """The SVG text of stacked bars. Each panel has a linear axis from zero."""
    return _template("bars.svg.j2", panels, _linear_scale, _WIDE)


def narrow_bars(panels: Sequence[TemplatePanel]) -> str | None:
    """``bars`` drawn for a phone; None if a label is too long for that."""
    fits = all(len(row.label) <= _NARROW_LETTERS for panel in panels for row in panel.rows)
    return _template("bars.svg.j2", panels, _linear_scale, _NARROW) if fits else None


def _log_scale(panel: TemplatePanel, frame: _Frame) -> _Scale:
    shown = [r.dot for r in panel.rows if isinstance(r, TemplateDotRow) and r.dot is not None and r.dot.value > 0]
    low = min((max(d.low, d.value / 10) for d in shown), default=1.0) / 1.4
    high = max(max((min(d.high, d.value * 10) for d in shown), default=10.0) * 1.4, low * 10)

    def x(value: float) -> float:
        at = math.log(max(value, low) / low) / math.log(high / low)
        return round(frame.labels + (frame.width - frame.labels - _VALUES_PX) * min(at, 1.0), 1)

    return x, _log_ticks(low, high)


def _linear_scale(panel: TemplatePanel, frame: _Frame) -> _Scale:
    drawn = [row for row in panel.rows if isinstance(row, BarRow) and row.pieces]
    longest = max((sum(p[1] for p in row.pieces) for row in drawn), default=0.0) or 1.0
    notes = max([_NOTES_PX, *(_LETTER_PX * len(row.note) for row in drawn)])
    most = 6 if notes == _NOTES_PX else 4
    step = 10 ** math.floor(math.log10(longest))
    step = next(s for s in (step / 5, step / 2, step, step * 2, step * 5) if longest / s <= most)

    def x(value: float) -> float:
        return round(frame.labels + (frame.width - frame.labels - notes) * value / longest, 1)

    return x, [(step * i, f"{step * i:,.10g}") for i in range(int(longest / step) + 1)]


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 60 else (1,)
    found = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    return [(v, f"{v:,.10g}") for v in found[:: math.ceil(len(found) / 9) or 1]]


def _template(
    name: str, panels: Sequence[TemplatePanel], scale: Callable[[TemplatePanel, _Frame], _Scale], frame: _Frame
) -> str:
    tops = list(itertools.accumulate((len(p.rows) * _ROW_PX + _AXIS_PX for p in panels), initial=0))
    made = [(p, top, *scale(p, frame)) for p, top in zip(panels, tops, strict=False)]
    return template(name).render(
        panels=made,
        height=tops[-1],
        WIDTH=frame.width,
        LEFT=frame.labels,
        MIDDLE=frame.middle,
        ROW=_ROW_PX,
        INK=INK,
        MUTED=MUTED,
        GRID_COLOUR=GRID_COLOUR,
        PAPER=PAPER,
    )
