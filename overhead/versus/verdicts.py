"""The result of ``compare``. Times in ns; ratios are NEW over BASE, so above 1 is slower."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["faster", "slower", "same", "undecided", "refused", "not tested"]
"""``not tested``: two machines, so there is a ratio without a test. ``refused``: the two measure different things."""


@dataclass(frozen=True)
class CaseVerdict:
    """One case. ``low`` and ``high`` bound the ratio at the level at which Holm's procedure tested it.

    ``smallest``: the smallest shift (0.05 is 5 %) that the test detects with near certainty, None without a test;
    ``p``: uncorrected, of no shift; ``processes`` and ``runs``: counts of BASE and NEW.
    """

    case: str
    label: str
    verdict: Verdict
    reason: str = ""
    base_ns: float | None = None
    new_ns: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    smallest: float | None = None
    p: float | None = None
    processes: tuple[int, int] = (0, 0)
    runs: tuple[int, int] = (0, 0)
    failed: bool = False


@dataclass(frozen=True)
class Difference:
    """A field of machine, volatile state or versions in which the sides differ."""

    field: str
    base: str
    new: str


@dataclass(frozen=True)
class Verdicts:
    """A comparison. ``failed``: cases whose whole corrected interval is beyond ``fail_over`` per cent."""

    base: tuple[str, ...]
    new: tuple[str, ...]
    same_machine: bool
    differences: tuple[Difference, ...]
    yardstick: str
    fail_over: float | None
    cases: tuple[CaseVerdict, ...]
    skipped: tuple[str, ...] = ()

    @property
    def failed(self) -> list[CaseVerdict]:
        return [case for case in self.cases if case.failed]

    def count(self, verdict: Verdict) -> int:
        return sum(case.verdict == verdict for case in self.cases)

    def to_dict(self) -> dict[str, Any]:
        """As dicts and lists that ``json`` can write."""
        return {**asdict(self), "failed": [case.case for case in self.failed]}
