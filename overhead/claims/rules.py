"""The verdict on a measured quantity. The rules are the same for all claims; the bounds are in the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from overhead.claims.formula import evaluate
from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest
from overhead.results import VALUED

ClaimVerdict = Literal["reproduced", "partial", "refuted", "inconclusive", "not testable here"]
VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "partial", "refuted", "inconclusive", "not testable here")
_OUR_LIMIT = "time limit"
"""Part of the reason of a case that the suite ended because it took too long."""
_REPRODUCED_WITHIN = 1.5
"""A published figure is reproduced within this factor, where the registry gives no bounds."""
_PARTIAL_WITHIN = 5.0
"""A published time is partly reproduced within this factor: hardware and versions change it as much."""


def reproduced_bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """Lowest and highest value that reproduces the claim, in the test's unit, which is the claim's."""
    if test.reproduced is not None:
        return test.reproduced[0], test.reproduced[1]
    low, high = published(claim)
    return low / _REPRODUCED_WITHIN, high * _REPRODUCED_WITHIN


def partial_bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """Lowest and highest value that reproduces the claim in part."""
    if test.partial is not None:
        return test.partial[0], test.partial[1]
    if test.kind == "value" and test.reproduced is None:
        low, high = published(claim)
        return low / _PARTIAL_WITHIN, high * _PARTIAL_WITHIN
    return reproduced_bounds(claim, test)


def published(claim: Claim) -> tuple[float, float]:
    """Lowest and highest published figure; both are the same for a single figure."""
    if isinstance(claim.value, list):
        return float(claim.value[0]), float(claim.value[1])
    return float(claim.value), float(claim.value)


def of_one(claim: Claim, test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """The verdict on one quantity: its whole interval must lie inside or outside the bounds."""
    if found.software and test.software != "counts":
        return "inconclusive"
    if test.kind == "fails":
        return _failing(test, found)
    if found.low is None or found.high is None:
        return "inconclusive"
    inner, outer = reproduced_bounds(claim, test), partial_bounds(claim, test)
    if _inside(found, inner):
        return "reproduced"
    if _inside(found, outer):
        return "partial"
    return "refuted" if _outside(found, inner) and _outside(found, outer) else "inconclusive"


def _failing(test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """The verdict on a claim of failure. Another failure is partial; a case that the suite ended decides nothing."""
    if found.status in VALUED:
        return "refuted"
    if found.status != "failed" or (_OUR_LIMIT in found.reason and test.reason != _OUR_LIMIT):
        return "inconclusive"
    return "reproduced" if test.reason in found.reason else "partial"


def implied(claim: Claim, test: ClaimTest) -> float:
    """The value of the test's formula for the published parts."""
    return evaluate(test.formula, claim.parts)


def overall(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on all targets: partial where they differ. Inconclusive ones count only where no target decides."""
    decided = set(verdicts) - {"inconclusive"}
    if not verdicts:
        return "not testable here"
    return decided.pop() if len(decided) == 1 else "partial" if decided else "inconclusive"


def _inside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and bound[0] <= found.low and found.high <= bound[1]


def _outside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and (found.high < bound[0] or found.low > bound[1])
