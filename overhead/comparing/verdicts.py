"""The result of ``compare``. Times are in ns. Ratios are NEW over BASE, so a ratio above 1 means slower."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from overhead.results import Value, Why

Verdict = Literal["faster", "slower", "same", "undecided", "not tested", "refused", "only in BASE", "only in NEW"]
"""``undecided``: both sides were tested, and the test could not tell. ``not tested``: both sides have the case, and the
reason says why there is no test. ``refused``: the two measure different things."""


@dataclass(frozen=True)
class RunsLeftOut:
    """The runs of a side in which a case has no value, while others have one: their names, each with the reason.

    ``of``: how many runs the side has.
    """

    side: str
    of: int
    runs: tuple[tuple[str, Why], ...]


@dataclass(frozen=True)
class CaseVerdict:
    """The verdict on one case. ``ratio``: with its interval, at the level from Holm's procedure.

    ``smallest``: the smallest shift (0.05 is 5 %) that the test detects with near certainty; None without a test.
    ``label``: target, case and caller in words, ``target`` its first part; ``target_new``: of NEW, where that is on
    another device. ``p``: uncorrected p value of no shift. ``processes`` and ``runs``: counts of BASE and NEW.
    ``measured``: at least one side has a value; ``missing``: only one has, and the other did not fail. ``against``: the
    base's key where variants of one run are compared. ``also``: what else differs in their windows. ``left_out``: the
    runs in which the case has no value. ``all_rounds``: the verdict over all rounds, also those that figures leave out,
    where it tells another story; else None.
    """

    case: str
    label: str
    verdict: Verdict
    target: str = ""
    target_new: str = ""
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
    against: str = ""
    also: str = ""
    left_out: tuple[RunsLeftOut, ...] = ()
    all_rounds: CaseVerdict | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same data as plain fields, the ratio as ``ratio``, ``low`` and ``high``."""
        of, other = self.ratio, self.all_rounds and self.all_rounds.to_dict()
        beside = other and {name: other[name] for name in ("verdict", "ratio", "low", "high")}
        ratio = {"ratio": of and of.value, "low": of and of.low, "high": of and of.high}
        return {**vars(self), **ratio, "all_rounds": beside}


@dataclass(frozen=True)
class Difference:
    """A field of the machine, its state or its versions that differs between the sides."""

    field: str
    base: str
    new: str


@dataclass(frozen=True)
class Verdicts:
    """The result of a comparison, with one verdict per case.

    ``failed``: the cases whose whole corrected interval is above ``fail_over`` per cent. ``base`` and ``new`` name
    files, ``machines`` those of BASE and of NEW. If variants inside runs are compared, ``base`` and ``new`` name these
    (``wait=event``), and ``inside`` names the files.
    """

    base: tuple[str, ...]
    new: tuple[str, ...]
    same_machine: bool
    differences: tuple[Difference, ...]
    yardstick: str
    fail_over: float | None
    cases: tuple[CaseVerdict, ...]
    skipped: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    machines: tuple[str, str] = ("", "")

    @property
    def failed(self) -> list[CaseVerdict]:
        """The cases that are slower by more than ``fail_over`` per cent."""
        return [case for case in self.cases if case.failed]

    @property
    def measured(self) -> int:
        """How many cases have a value on at least one side."""
        return sum(case.measured for case in self.cases)

    @property
    def untested(self) -> list[CaseVerdict]:
        """The measured cases without a test, or with one that could not detect a change of ``fail_over`` per cent."""
        most = math.inf if self.fail_over is None else self.fail_over / 100
        return [case for case in self.cases if case.measured and (case.smallest is None or case.smallest > most)]

    def tested_enough(self, *, allow_missing: bool = False) -> bool:
        """Whether a case was tested and no measured one is untested; ``allow_missing`` forgives those ``missing``."""
        blind = [case for case in self.untested if not (allow_missing and case.missing)]
        return not blind and self.measured > len(self.untested)

    def count(self, verdict: Verdict) -> int:
        """How many cases have this verdict."""
        return sum(case.verdict == verdict for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """The same data as dicts and lists that ``json`` can write."""
        named = {"failed": self.failed, "untested": self.untested}
        keys = {name: [case.case for case in cases] for name, cases in named.items()}
        return {**asdict(self), "cases": [case.to_dict() for case in self.cases], **keys}
