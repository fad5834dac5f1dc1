"""The range where another run on this kind of machine would put a figure.

Two runs on one kind of machine differ by more than the 95 % interval of either: board, host and clock differ. The
committed ``next_run.json`` holds the measured spread between boards for three classes of figures. It is written by
``scripts/next_run.py`` from all runs in ``reports/data``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from overhead.reading.format import number
from overhead.results import Record

FigureClass = Literal["host", "submission", "device"]
"""``host``: costs that the host bounds, and waits. ``submission``: ``complete`` where one submission holds all units.
``device``: ``complete`` of cases that are device-bound or balanced."""
NEXT_RUN_SHARE = 0.90
"""The share of next runs that the range should contain."""
MOST_DEGREES_OF_FREEDOM = 4
"""All figures of a run move together, so the boards are counted and not the figures, and no more than this."""
NEXT_RUN_SENTENCE = (
    "Next run: the range that should contain the figure of another run on this kind of machine in 90 % of cases. The "
    "host's figures of a run move together: if one lies outside, expect most to."
)
_ONE_SUBMISSION = ("fused", "replay", "one-pass", "per-pass", "hybrid")
_HOST_FIGURES = ("issue", "host", "naive", "empty_wait")
"""Other figures (``fixed``, ``naive_idle``, ``device_busy``) differ by more between boards than their class does."""


class ClassSpread(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The spread of one class. ``s``: the standard deviation of ln(figure) between boards.

    ``degrees``: of freedom; boards minus kinds of machines, at most ``MOST_DEGREES_OF_FREEDOM``.
    """

    s: float
    degrees: int
    boards: int
    kinds: int
    figures: int


class Coverage(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often a second run lay inside, with both boards of each pair left out of the estimate.

    ``half_width``: the median, as a difference of logarithms. ``oracle``: the one half-width that would contain
    ``NEXT_RUN_SHARE`` of these differences.
    """

    inside: float
    pairs: int
    half_width: float
    oracle: float


class NextRunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The committed table. ``by_kind``: the share inside, by class and kind of machine.

    ``boards``: independent boards in all. ``run_pairs_over_90``: the share of pairs of runs in which at least 90 % of
    the figures lie inside. ``worst_pair``: the lowest share inside of any pair.
    """

    runs: int
    boards: int
    classes: dict[FigureClass, ClassSpread]
    coverage: dict[FigureClass, Coverage]
    by_kind: dict[str, float]
    run_pairs: int
    run_pairs_over_90: float
    worst_pair: float


@functools.cache
def committed_table() -> NextRunTable:
    """The table in ``next_run.json``."""
    raw = resources.files("overhead.reading").joinpath("next_run.json").read_bytes()
    return msgspec.json.decode(raw, type=NextRunTable)


def class_of(record: Record, figure: str = "complete") -> FigureClass | None:
    """The class of a record's figure; None for figures without one."""
    if figure != "complete":
        return "host" if figure in _HOST_FIGURES else None
    if record.pattern in _ONE_SUBMISSION and record.api != "CPU":
        return "submission"
    return "device" if record.bound in ("device", "balanced") else "host"


def half_width(spread: ClassSpread, runs: int = 1) -> float:
    """The half-width of ln(next figure) around the mean of ``runs`` runs on different boards, by Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(spread.degrees, (1 + NEXT_RUN_SHARE) / 2)) * spread.s * math.sqrt(1 + 1 / runs)


def next_run(record: Record, figure: str = "complete") -> tuple[float, float] | None:
    """The low and high end of the range, in the figure's unit.

    None unless the figure is ``ok``, above zero, not of a software adapter and of a class in the table: coverage was
    measured for such figures alone.
    """
    found, figure_class = record.figure(figure), class_of(record, figure)
    if found is None or found.status != "ok" or record.software or not found.value or found.value < 0:
        return None
    spread = committed_table().classes.get(figure_class) if figure_class else None
    if spread is None:
        return None
    factor = math.exp(half_width(spread))
    return found.value / factor, found.value * factor


def next_run_text(record: Record, figure: str = "complete") -> str:
    """The range in microseconds without unit, ``22 to 30``; empty where there is none."""
    return range_text(next_run(record, figure))


def range_text(found: Sequence[float] | None) -> str:
    """A range in ns as text in microseconds without unit; empty for None."""
    if found is None:
        return ""
    low, high = (end / 1e3 for end in found)
    return f"{number(low, low, high)} to {number(high, low, high)}"
