"""The result of ``compare``. Times are in ns. Ratios are NEW over BASE, so a ratio above 1 means
slower.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from overhead.public import Shown
from overhead.reading.view import TargetLabel
from overhead.results import Machine, Value, Why
from overhead.results.vocabulary import Caller

Verdict = Literal[
    "faster", "slower", "same", "undecided", "not tested", "refused", "only in BASE", "only in NEW"
]
"""``undecided``: both sides were tested, and the test could not tell. ``not tested``: both sides
have the case, and the reason says why there is no test. ``refused``: the two measure different
things.
"""


YardstickKind = Literal[
    "nothing-tested", "two-machines", "one-run", "several-runs", "in-turn", "same-processes"
]
"""``nothing-tested``: no case of one machine could be tested. ``one-run``: the spread between runs
is assumed. ``in-turn``: pairs of processes, whose difference shows the spread. ``same-processes``:
variants inside each process.
"""


@dataclass(frozen=True)
class Yardstick:
    """The spread that the verdicts assume. ``spread``: a relative standard deviation, of the median
    case.

    ``runs``: of BASE and of NEW, for ``several-runs``. ``same_speed``: for ``one-run``, whether the
    sides are compared at the same speed of the processor.
    """

    kind: YardstickKind
    spread: float = 0.0
    runs: tuple[int, int] = (0, 0)
    same_speed: bool = False


@dataclass(frozen=True)
class Difference:
    """A field of the machine, its state, its versions or a timed window that differs between the
    sides.
    """

    field: str
    base: str
    new: str


@dataclass(frozen=True)
class RefusedRun:
    """A run in which a case has no value. ``file``: its name."""

    file: str
    why: Why


@dataclass(frozen=True)
class RunsLeftOut:
    """The runs of a side that do not count for a case, while others do. ``runs``: how many of the
    side have the case.

    ``side``: BASE, NEW or a variant, as ``SideCase.name``.
    """

    side: str
    runs: int
    refused: tuple[RefusedRun, ...]


@dataclass(frozen=True)
class SkippedRun:
    """A file of a side, or a variant, that is not compared."""

    name: str
    why: Why


_UNNAMED = TargetLabel("")


@dataclass(frozen=True, repr=False)
class CaseVerdict(Shown):
    """The verdict on one case. ``ratio``: with its interval, at the level from Holm's procedure.

    ``smallest``: the smallest shift (0.05 is 5 %) that the test detects with near certainty; None
    without a test. ``target``: its name; ``target_new``: of NEW, where that is on another device.
    ``pattern``: the case on this target; ``caller``: None where it is not known. ``variant``: of
    NEW, such as ``wait=event``, where variants of one run are compared, and ``against``: the key of
    the other one. ``p``: uncorrected p value of no shift. ``processes`` and ``runs``: counts of
    BASE and NEW. ``measured``: at least one side has a value; ``missing``: only one has, and the
    other did not fail. ``reason``: why there is no test, or what hides a change. ``also``: what
    else differs in their windows. ``left_out``: the runs in which the case has no value.
    ``all_rounds``: the verdict over all rounds, also those that figures leave out, where it tells
    another story; else None.
    """

    case: str
    verdict: Verdict
    target: TargetLabel = _UNNAMED
    target_new: TargetLabel | None = None
    pattern: str = ""
    caller: Caller | None = None
    variant: str = ""
    against: str = ""
    reason: Why = ""
    base_ns: float | None = None
    new_ns: float | None = None
    ratio: Value | None = None
    smallest: float | None = None
    p: float | None = None
    processes: tuple[int, int] = (0, 0)
    runs: tuple[int, int] = (0, 0)
    failed: bool = False
    measured: bool = True
    missing: bool = False
    also: tuple[Difference, ...] = ()
    left_out: tuple[RunsLeftOut, ...] = ()
    all_rounds: CaseVerdict | None = None


@dataclass(frozen=True, repr=False)
class Verdicts(Shown):
    """The result of a comparison, with one verdict per case.

    ``failed``: the cases whose whole corrected interval is above ``fail_over`` per cent. ``base``
    and ``new`` name files, ``machines`` holds those of BASE and of NEW. If variants inside runs are
    compared, ``base`` and ``new`` name these (``wait=event``), ``inside`` names the files, and
    ``machines`` is empty.
    """

    base: tuple[str, ...]
    new: tuple[str, ...]
    same_machine: bool
    differences: tuple[Difference, ...]
    yardstick: Yardstick
    fail_over: float | None
    cases: tuple[CaseVerdict, ...]
    skipped: tuple[SkippedRun, ...] = ()
    inside: tuple[str, ...] = ()
    machines: tuple[Machine, ...] = ()

    @property
    def failed(self) -> list[CaseVerdict]:
        """The cases that are slower by more than ``fail_over`` per cent."""
        return [case for case in self.cases if case.failed]

    @property
    def measured(self) -> int:
        """How many cases have a value on at least one side."""
        return sum(case.measured for case in self.cases)

    @property
    def any_test(self) -> bool:
        """Whether a case has a test, even one that could detect large changes only."""
        return any(case.smallest is not None for case in self.cases)

    @property
    def untested(self) -> list[CaseVerdict]:
        """The cases with a value that a gate cannot rely on: without a test, or with one that could
        not detect a change of ``fail_over`` per cent.
        """
        # ``smallest``: the smallest change that the test of the case can detect, as a share; None
        # without a test. ``measured``: whether a side has a value.
        largest = math.inf if self.fail_over is None else self.fail_over / 100
        untested = []
        for case in self.cases:
            could_detect = case.smallest is not None and case.smallest <= largest
            if case.measured and not could_detect:
                untested.append(case)
        return untested

    def tested_enough(self, *, allow_missing: bool = False) -> bool:
        """Whether the comparison may pass a gate: some case was tested, and every measured one was,
        with a test that could detect a change of ``fail_over`` per cent. ``allow_missing`` forgives
        cases that have a value on one side only.
        """
        # ``untested``: cases with a value, but without a test that could detect such a change.
        # ``missing``: only one side has a value.
        untested = self.untested
        forgiven = [case for case in untested if allow_missing and case.missing]
        # The second condition: some case was tested, as more cases have a value (``measured``) than
        # are untested.
        all_forgiven = len(forgiven) == len(untested)
        return all_forgiven and self.measured > len(untested)

    def count(self, verdict: Verdict) -> int:
        """How many cases have this verdict."""
        return sum(case.verdict == verdict for case in self.cases)
