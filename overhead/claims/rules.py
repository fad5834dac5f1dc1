"""From a measured quantity to a verdict. No rule knows any claim; the bounds are the registry's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from overhead.claims.formula import evaluate
from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest
from overhead.results import VALUED

Verdict = Literal["reproduced", "partial", "refuted", "inconclusive", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("reproduced", "partial", "refuted", "inconclusive", "not testable here")
OURS = "time limit"
"""In the reason of a case that was ended because it took too long for us."""
NEAR = 1.5
"""A published figure holds on other hardware within this factor, where the registry gives no bounds."""
FAR = 5.0
"""A published time that lies within this factor is partly reproduced: hardware and versions move it as much."""


def bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """From, to: the values with which the claim is reproduced, in the test's unit, which is the claim's."""
    if test.reproduced is not None:
        return test.reproduced[0], test.reproduced[1]
    low, high = published(claim)
    return low / NEAR, high * NEAR


def outer_bounds(claim: Claim, test: ClaimTest) -> tuple[float, float]:
    """From, to: the values with which it is partly reproduced."""
    if test.partial is not None:
        return test.partial[0], test.partial[1]
    if test.kind == "value" and test.reproduced is None:
        low, high = published(claim)
        return low / FAR, high * FAR
    return bounds(claim, test)


def published(claim: Claim) -> tuple[float, float]:
    """The published figure, from and to."""
    if isinstance(claim.value, list):
        return float(claim.value[0]), float(claim.value[1])
    return float(claim.value), float(claim.value)


def of_one(claim: Claim, test: ClaimTest, found: ClaimValue) -> Verdict:
    """The verdict of one quantity: its whole interval must lie on one side of a bound."""
    if found.software and test.software != "counts":
        return "inconclusive"
    if test.kind == "fails":
        return _failing(test, found)
    if found.low is None or found.high is None:
        return "inconclusive"
    inner, outer = bounds(claim, test), outer_bounds(claim, test)
    if _inside(found, inner):
        return "reproduced"
    if _inside(found, outer):
        return "partial"
    return "refuted" if _outside(found, inner) and _outside(found, outer) else "inconclusive"


def _failing(test: ClaimTest, found: ClaimValue) -> Verdict:
    """Another failure than the published one is part of it; that we ended it ourselves says nothing of the rest."""
    if found.status in VALUED:
        return "refuted"
    if found.status != "failed" or (OURS in found.reason and test.reason != OURS):
        return "inconclusive"
    return "reproduced" if test.reason in found.reason else "partial"


def implied(claim: Claim, test: ClaimTest) -> float:
    """What the published parts alone imply."""
    return evaluate(test.formula, claim.parts)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """One verdict of all targets: partial where they differ; the undecided ones do not count where others decide."""
    decided = set(verdicts) - {"inconclusive"}
    if not verdicts:
        return "not testable here"
    return decided.pop() if len(decided) == 1 else "partial" if decided else "inconclusive"


def _inside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and bound[0] <= found.low and found.high <= bound[1]


def _outside(found: ClaimValue, bound: tuple[float, float]) -> bool:
    return found.low is not None and found.high is not None and (found.high < bound[0] or found.low > bound[1])
