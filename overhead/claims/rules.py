"""Decide the verdict on a measured quantity. All claims use the same rules; the registry holds the
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest
from overhead.results import VALUED, Value

ClaimVerdict = Literal["reproduced", "partial", "refuted", "inconclusive", "not testable here"]
VERDICTS: tuple[ClaimVerdict, ...] = (
    "reproduced",
    "partial",
    "refuted",
    "inconclusive",
    "not testable here",
)
REPRODUCED_WITHIN = 1.5
"""A value within this factor of the published one, or of the nearer end of a published range,
reproduces it. For a ratio the logarithm, for a share what is left of the whole, must be within this
factor too. The 1.5 was set before the first measurements.
"""
PARTIAL_WITHIN = 5.0
"""A value within this factor partly reproduces it: hardware and versions change it as much."""
PARTIAL_GAIN = 2.0
"""A ratio partly reproduces a published one only if its logarithm is within this factor: half of a
gain is a part of it, 270 times is no part of a claim of 2 times.
"""
SAME_DIRECTION = 1.1
"""A ratio that is this near to 1 shows no difference."""
LEAST_SHARE = 0.5
"""An attribution is right if the named part takes at least this share of the number."""
AttributionVerdict = Literal["", "right", "wrong", "undecided"]
Size = Literal["", "smaller", "larger"]


@dataclass(frozen=True)
class Range:
    """A lowest and a highest value."""

    low: float
    high: float

    def holds(self, of: Value) -> bool:
        """Whether the whole interval lies inside."""
        return self.low <= of.floor and of.ceiling <= self.high

    def excludes(self, of: Value) -> bool:
        """Whether the whole interval lies outside, on one side."""
        return of.ceiling < self.low or of.floor > self.high


@dataclass(frozen=True)
class Bounds:
    """The values that reproduce a claim, and those that partly do, in the unit of the claim."""

    reproduced: Range
    partial: Range


def bounds(claim: Claim, test: ClaimTest) -> Bounds:
    """The values that the verdicts on the claim rest on."""
    least, most = published(claim)
    near = Range(least / REPRODUCED_WITHIN, most * REPRODUCED_WITHIN)
    far = Range(least / PARTIAL_WITHIN, most * PARTIAL_WITHIN)
    if test.no_effect:
        same = Range(1 / SAME_DIRECTION, SAME_DIRECTION)
        return Bounds(same, same)
    if test.kind == "count":
        return Bounds(Range(least / SAME_DIRECTION, most * SAME_DIRECTION), near)
    if test.unit == "ratio":
        return Bounds(
            _both(near, _gain_within(REPRODUCED_WITHIN, least, most)),
            _both(far, _gain_within(PARTIAL_GAIN, least, most)),
        )
    if test.unit == "share":
        return Bounds(
            _both(near, _rest_within(REPRODUCED_WITHIN, least, most)),
            _both(far, _rest_within(PARTIAL_WITHIN, least, most)),
        )
    return Bounds(near, far)


def _gain_within(factor: float, least: float, most: float) -> Range:
    """The ratios whose logarithm is within this factor of that of the published ones; 1 stays
    between both sides.

    Near 1 a factor on the ratio itself would take 1.02 for 1.53.
    """
    low = math.log(least) / factor if least > 1 else math.log(least) * factor
    high = math.log(most) * factor if most > 1 else math.log(most) / factor
    return Range(math.exp(low), math.exp(high))


def _rest_within(factor: float, least: float, most: float) -> Range:
    """The shares that leave within this factor of what the published ones leave of the whole.

    Near 1 a factor on the share itself would take a half for three quarters.
    """
    return Range(1 - (1 - least) * factor, 1 - (1 - most) / factor)


def _both(one: Range, other: Range) -> Range:
    return Range(max(one.low, other.low), min(one.high, other.high))


def size_beside_published(claim: Claim, test: ClaimTest, found: Sequence[ClaimValue]) -> Size:
    """Whether all ratios lie on the published side of 1, and all below or all above the published
    gain; else ''.
    """
    values = [one.measured for one in found if one.measured]
    if test.unit != "ratio" or test.kind in ("fails", "implied") or test.no_effect or not values:
        return ""
    least, most = published(claim)
    side = 1.0 if least > 1 else -1.0
    claimed = sorted((side * math.log(least), side * math.log(most)))
    lowest = min(min(side * _log(of.floor), side * _log(of.ceiling)) for of in values)
    highest = max(max(side * _log(of.floor), side * _log(of.ceiling)) for of in values)
    if lowest < math.log(SAME_DIRECTION):
        return ""
    if highest < claimed[0]:
        return "smaller"
    return "larger" if lowest > claimed[1] else ""


def _log(of: float) -> float:
    return math.log(of) if of > 0 else -math.inf


def published(claim: Claim) -> tuple[float, float]:
    """Lowest and highest published figure, in the unit of the claim; a single figure is both."""
    ends = claim.value if isinstance(claim.value, list) else [claim.value]
    return float(ends[0]), float(ends[-1])


def verdict_on_value(claim: Claim, test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """The verdict on one value. It is inconclusive unless the whole interval lies inside or outside
    the bounds.
    """
    if found.software and test.software != "counts":
        return "inconclusive"
    if test.kind == "fails":
        return _failing(test, found)
    of = found.measured
    if of is None or not of.bounded:
        return "inconclusive"
    within = bounds(claim, test)
    if within.reproduced.holds(of):
        return "reproduced"
    if within.partial.holds(of):
        return "partial"
    outside = within.reproduced.excludes(of) and within.partial.excludes(of)
    return "refuted" if outside else "inconclusive"


def attribution_verdict(found: Sequence[ClaimValue]) -> AttributionVerdict:
    """The verdict on an attribution, from the share of the named part on each target; '' without a
    value.
    """
    shares = [one.measured for one in found if one.measured and one.measured.bounded]
    if not shares:
        return "undecided" if found else ""
    if all(one.floor >= LEAST_SHARE for one in shares):
        return "right"
    return "wrong" if all(one.ceiling <= LEAST_SHARE for one in shares) else "undecided"


def _failing(test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """A failure for another reason gives ``partial``. A case that the suite itself stopped is
    inconclusive.
    """
    if found.status in VALUED:
        return "refuted"
    if found.status != "failed" or found.failure == "time":
        return "inconclusive"
    return "reproduced" if found.failure == test.reason else "partial"


def evaluate(formula: str, parts: Mapping[str, float]) -> float:
    """The value of a formula of the registry; the names in it are those of ``parts``."""
    return float(eval(formula, {"__builtins__": {}}, dict(parts)))


def overall_verdict(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on all targets: ``partial`` if they differ. Inconclusive targets count only if
    all are.
    """
    decided = set(verdicts) - {"inconclusive"}
    if not verdicts:
        return "not testable here"
    return decided.pop() if len(decided) == 1 else "partial" if decided else "inconclusive"
