"""Decide the verdict on a measured quantity. All claims use the same rules; the registry holds the bounds."""

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
"""Text in the reason of a case that the suite stopped because it took too long."""
_REPRODUCED_WITHIN = 1.5
"""A figure within this factor of the published one reproduces it, if the registry gives no bounds."""
_PARTIAL_WITHIN = 5.0
"""A time within this factor of the published one partly reproduces it: hardware and versions change it as much."""


def reproduced_bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """Lowest and highest value that count as reproducing the claim, in the unit of the claim."""
    if test.reproduced is not None:
        return test.reproduced[0], test.reproduced[1]
    low, high = published(claim)
    return low / _REPRODUCED_WITHIN, high * _REPRODUCED_WITHIN


def partial_bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """Lowest and highest value that count as partly reproducing the claim, in the unit of the claim."""
    if test.partial is not None:
        return test.partial[0], test.partial[1]
    if test.kind == "value" and test.reproduced is None:
        low, high = published(claim)
        return low / _PARTIAL_WITHIN, high * _PARTIAL_WITHIN
    return reproduced_bounds(claim, test)


def published(claim: Claim) -> tuple[float, float]:
    """Lowest and highest published figure; a single figure is both."""
    if isinstance(claim.value, list):
        return float(claim.value[0]), float(claim.value[1])
    return float(claim.value), float(claim.value)


def of_one(claim: Claim, test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """The verdict on one value. It is inconclusive unless the whole interval lies inside or outside the bounds."""
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
    """The verdict on a claim that a case fails.

    A failure for another reason gives ``partial``. A case that the suite itself stopped is inconclusive."""
    if found.status in VALUED:
        return "refuted"
    if found.status != "failed" or (_OUR_LIMIT in found.reason and test.reason != _OUR_LIMIT):
        return "inconclusive"
    return "reproduced" if test.reason in found.reason else "partial"


def implied(claim: Claim, test: ClaimTest) -> float:
    """The value of the formula of the test, computed from the published parts."""
    return evaluate(test.formula, claim.parts)


def overall(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on all targets: ``partial`` if they differ. Inconclusive targets count only if all are."""
    decided = set(verdicts) - {"inconclusive"}
    if not verdicts:
        return "not testable here"
    return decided.pop() if len(decided) == 1 else "partial" if decided else "inconclusive"


def _inside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and bound[0] <= found.low and found.high <= bound[1]


def _outside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and (found.high < bound[0] or found.low > bound[1])
