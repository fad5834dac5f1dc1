"""The range where another run on this kind of machine would put a figure.

Two runs on one kind of machine differ by more than the 95 % interval of either: board, host and
clock differ. The committed ``next_run.json`` holds how far committed runs on different boards
differ, for three classes of figures on each kind of machine. It is written by
``scripts/next_run.py`` from all runs in ``reports/data``, over every figure with a value: a reader
sees the noisy ones too, and a spread of ``ok`` figures alone is too small for them.
"""

from __future__ import annotations

import functools
import math
from importlib import resources
from typing import Literal

import msgspec
from msgspec import Struct

from overhead.numerics import student_t_quantile
from overhead.results import Machine, Record, Value, formed

FigureClass = Literal["host", "submission", "device"]
"""``host``: costs that the host bounds, and waits. ``submission``: ``complete`` where one
submission holds all units. ``device``: ``complete`` of cases that are device-bound or balanced.
"""
NEXT_RUN_SHARE = 0.90
"""The share of next runs that the range should contain."""
MOST_DEGREES_OF_FREEDOM = 4
"""All figures of a run move together, so the boards are counted and not the figures, and no more
than this.
"""
_ONE_SUBMISSION = ("fused", "replay", "one-pass", "per-pass", "hybrid")
_HOST_FIGURES = ("issue", "host", "naive", "empty_wait")
"""Other figures (``fixed``, ``naive_idle``, ``device_busy``) differ by more between boards than
their class does.
"""


class ClassSpread(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The spread of one class. ``s``: the standard deviation of ln(figure) between boards.

    ``degrees``: of freedom, from the number of boards.
    """

    s: float
    degrees: int
    boards: int
    kinds: int
    figures: int


class Coverage(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How often a second run lay inside, with both boards of each pair left out of the estimate.

    ``half_width``: the median, as a difference of logarithms. ``oracle``: the one half-width that
    would contain ``NEXT_RUN_SHARE`` of these differences.
    """

    inside: float
    pairs: int
    half_width: float
    oracle: float


class NextRunTable(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The committed table. ``spreads``, ``coverage``: by ``class, kind of machine``; only what
    ``spreads`` has has a range.

    ``by_stack``: the share inside of the costs of single stacks. ``boards``: independent boards in
    all. ``run_pairs_over_90``: the share of pairs of runs in which at least 90 % of the figures lie
    inside. ``worst_pair``: the lowest share inside of any pair. ``costs``: by kind of machine and
    case of the headline figure the cost of one more unit on each board, ns, by the board's id.
    """

    runs: int
    boards: int
    spreads: dict[str, ClassSpread]
    coverage: dict[str, Coverage]
    by_stack: dict[str, float]
    run_pairs: int
    run_pairs_over_90: float
    worst_pair: float
    costs: dict[str, dict[str, dict[str, float]]]


@functools.cache
def committed_table() -> NextRunTable:
    """The table in ``next_run.json``, read once."""
    raw = resources.files("overhead.reading").joinpath("next_run.json").read_bytes()
    return msgspec.json.decode(raw, type=NextRunTable)


def class_of(record: Record, figure: str = "complete") -> FigureClass | None:
    """The class of the record's figure of that name; None for figures that have no range."""
    if figure != "complete":
        return "host" if figure in _HOST_FIGURES else None
    if record.pattern in _ONE_SUBMISSION and record.api != "CPU":
        return "submission"
    return "device" if record.bound in ("device", "balanced") else "host"


def case_of(record: Record) -> str:
    """The case on its stack, without the device: the next run may be on another board."""
    return f"{record.stack} {record.api} {record.case.key}"


def kind_of(machine: Machine) -> str:
    """The kind of a machine: the names of its GPUs and its processor; '' without a GPU."""
    gpus = dict.fromkeys(gpu.name for gpu in machine.gpus if not gpu.software)
    return f"{', '.join(gpus)} with {machine.cpu}" if gpus else ""


def spread_of(figure_class: FigureClass | None, machine: Machine) -> ClassSpread | None:
    """The spread of the class between boards; None for no class, or a kind of machine that the
    table does not know.
    """
    return committed_table().spreads.get(f"{figure_class}, {kind_of(machine)}")


def kinds_known() -> list[str]:
    """The kinds of machine that have a range, in the order of the table."""
    return list(dict.fromkeys(key.partition(", ")[2] for key in committed_table().spreads))


def has_next_run(machine: Machine) -> bool:
    """Whether the table knows how much runs on a machine of this kind differ."""
    return kind_of(machine) in kinds_known()


def half_width(spread: ClassSpread, runs: int = 1) -> float:
    """Half the width of the range of ln(next figure) around the mean of ``runs`` runs on other
    boards: Student's t.
    """
    quantile = student_t_quantile((1 + NEXT_RUN_SHARE) / 2, spread.degrees)
    # A new run varies around the true mean, and so does the mean of these runs: 1 + 1 / runs.
    return quantile * spread.s * math.sqrt(1 + 1 / runs)


def next_run(record: Record, machine: Machine, figure: str = "complete") -> Value | None:
    """The record's figure, with the range in which a run on another machine of this kind would put
    it as its interval, in the figure's unit.

    None unless the figure has a value above zero, is not of a software adapter, and is of a class
    and a kind of machine in the table: only for such figures was measured how often another run
    lies inside.
    """
    measured = record.measured(figure)
    if measured is None or measured.value <= 0 or record.software:
        return None
    # The class of the figure, such as ``host``, and how much it varies between boards (ln).
    figure_class = class_of(record, figure)
    spread = spread_of(figure_class, machine)
    if spread is None:
        return None
    # The spread is one of logarithms, so the range is a factor up and down.
    # ``half_width``: how far another run lies from this one at most in 90 % of cases, as a
    # logarithm.
    factor = math.exp(half_width(spread))
    known = f"{figure_class}, {kind_of(machine)}"
    origin = formed("run-to-run range", measured.origin, words=known)
    low = measured.value / factor
    high = measured.value * factor
    return Value(measured.value, low, high, origin=origin)
