"""Figures made by a template: for pages of which there may be a thousand, where matplotlib would take minutes.

Every text is escaped by the template. Colours are those of ``draw``, so the page's theme replaces them in the same way.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from overhead.reading.format import plain
from overhead.report.draw import GRID, INK, MUTED, PAPER

if TYPE_CHECKING:
    from jinja2 import Environment

WIDTH, LEFT, ROW = 640, 200, 30
"""Pixels of the drawing, of its labels, and of a row."""


@dataclasses.dataclass(frozen=True)
class Dot:
    """A value with its interval on a log axis; hollow where the status is not ``ok``."""

    value: float
    low: float
    high: float
    colour: str
    hollow: bool = False


@dataclasses.dataclass(frozen=True)
class DotRow:
    """A label, perhaps a dot, and words beside it."""

    label: str
    dot: Dot | None
    note: str = ""


@dataclasses.dataclass(frozen=True)
class BarRow:
    """A label, a bar's pieces (title, length, colour) and words behind it."""

    label: str
    pieces: Sequence[tuple[str, float, str]]
    note: str = ""


def dots(rows: Sequence[DotRow], unit: str) -> str:
    """SVG of rows of dots on one log axis whose unit is named below."""
    shown = [r.dot for r in rows if r.dot is not None and r.dot.value > 0]
    low = min((max(d.low, d.value / 10) for d in shown), default=1.0)
    high = max((min(d.high, d.value * 10) for d in shown), default=10.0)
    low, high = low / 1.4, max(high * 1.4, low / 1.4 * 10)

    def x(value: float) -> float:
        at = math.log(max(value, low) / low) / math.log(high / low)
        return round(LEFT + (WIDTH - LEFT - 20) * min(at, 1.0), 1)

    return _template("dots.svg.j2", rows=rows, unit=unit, x=x, ticks=_log_ticks(low, high))


def bars(rows: Sequence[BarRow], unit: str) -> str:
    """SVG of stacked bars on one linear axis from zero."""
    longest = max((sum(p[1] for p in r.pieces) for r in rows), default=0.0) or 1.0
    step = 10 ** math.floor(math.log10(longest))
    step = next(s for s in (step / 5, step / 2, step, step * 2) if longest / s <= 6)

    def x(value: float) -> float:
        return round(LEFT + (WIDTH - LEFT - 90) * value / longest, 1)

    ticks = [(step * i, f"{step * i:,.10g}") for i in range(int(longest / step) + 1)]
    return _template("bars.svg.j2", rows=rows, unit=unit, x=x, ticks=ticks)


def _log_ticks(low: float, high: float) -> list[tuple[float, str]]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if high / low < 60 else (1,)
    found = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
    return [(v, f"{v:,.10g}") for v in found[:: math.ceil(len(found) / 9) or 1]]


def _template(name: str, **values: object) -> str:
    return _environment().get_template(name).render(
        **values, WIDTH=WIDTH, LEFT=LEFT, ROW=ROW, INK=INK, MUTED=MUTED, GRID=GRID, PAPER=PAPER
    )  # fmt: skip


@functools.cache
def _environment() -> Environment:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    made.filters["plain"] = plain
    return made
