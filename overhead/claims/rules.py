"""Decide the verdict on a measured quantity. All claims use the same rules; the registry holds the
bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest
from overhead.results import VALUED, Value, exactly

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
    """Which values reproduce a claim, and which do so partly: those within a factor of the
    published figure or range. For a ratio also its gain, for a share also what is left of the
    whole, must be within the factor, since near 1 a factor on the value itself would allow too
    much.
    """
    least, most = published(claim)
    # The factors apply to the value itself: down from the least published one, up from the most.
    near = Range(least / REPRODUCED_WITHIN, most * REPRODUCED_WITHIN)
    far = Range(least / PARTIAL_WITHIN, most * PARTIAL_WITHIN)
    # The claim is that there is no difference: only ratios near 1 reproduce it.
    if test.no_effect:
        no_difference = Range(1 / SAME_DIRECTION, SAME_DIRECTION)
        return Bounds(no_difference, no_difference)
    # Counts are exact, so they must agree nearly: within a factor of 1.1.
    if test.kind == "count":
        same_count = Range(least / SAME_DIRECTION, most * SAME_DIRECTION)
        return Bounds(same_count, near)
    # ``_both``: the values that are in both ranges.
    if test.unit == "ratio":
        near_gain = _gain_within(REPRODUCED_WITHIN, least, most)
        far_gain = _gain_within(PARTIAL_GAIN, least, most)
        return Bounds(_both(near, near_gain), _both(far, far_gain))
    if test.unit == "share":
        near_rest = _rest_within(REPRODUCED_WITHIN, least, most)
        far_rest = _rest_within(PARTIAL_WITHIN, least, most)
        return Bounds(_both(near, near_rest), _both(far, far_rest))
    return Bounds(near, far)


def _gain_within(factor: float, least: float, most: float) -> Range:
    """The ratios whose gain, their logarithm, is within this factor of that of the published ones,
    from ``least`` to ``most``; 1 stays between both sides, so no range reaches from a gain to a
    loss.

    Near 1 a factor on the ratio itself would take 1.02 for 1.53.
    """
    # The logarithm of a ratio below 1 is negative: to widen the range downwards is to multiply it.
    # Dividing a positive one never makes it negative, so the range stays on its side of 1.
    low = math.log(least) / factor if least > 1 else math.log(least) * factor
    high = math.log(most) * factor if most > 1 else math.log(most) / factor
    return Range(math.exp(low), math.exp(high))


def _rest_within(factor: float, least: float, most: float) -> Range:
    """The range of shares that are near the published range from ``least`` to ``most``. The rest
    of a share is 1 minus the share; a share is near if its rest is within ``factor`` of the
    published rest.

    A factor on the share itself would be too loose near 1: it would accept a half for three
    quarters.
    """
    most_left = (1 - least) * factor
    least_left = (1 - most) / factor
    return Range(1 - most_left, 1 - least_left)


def _both(one: Range, other: Range) -> Range:
    """The values that lie in both ranges."""
    return Range(max(one.low, other.low), min(one.high, other.high))


def size_beside_published(claim: Claim, test: ClaimTest, found: Sequence[ClaimValue]) -> Size:
    """Whether a refuted ratio is a smaller or a larger effect than published, rather than none: all
    measured ratios lie on the published side of 1, and all below or all above the published gain;
    else ''.
    """
    values = [value.measured for value in found if value.measured]
    has_published_gain = test.kind not in ("fails", "implied") and not test.no_effect
    if test.unit != "ratio" or not has_published_gain or not values:
        return ""
    least, most = published(claim)
    # Which side of 1 the published ratio is on.
    side = 1.0 if least > 1 else -1.0
    # Gains are logarithms towards the published side: the gain of no difference is 0.
    published_gains = [side * math.log(least), side * math.log(most)]
    # Both ends of the interval of each value.
    gains: list[float] = []
    for value in values:
        gains += [side * _log(value.floor), side * _log(value.ceiling)]
    # A ratio shows no difference (``SAME_DIRECTION``: nearer to 1 than 1.1), or the opposite one.
    if min(gains) < math.log(SAME_DIRECTION):
        return ""
    if max(gains) < min(published_gains):
        return "smaller"
    if min(gains) > max(published_gains):
        return "larger"
    return ""


def _log(of: float) -> float:
    """The natural logarithm; minus infinity from 0 down."""
    return math.log(of) if of > 0 else -math.inf


class PublishedFigures(NamedTuple):
    """The lowest and the highest published figure, in the unit of the claim."""

    least: float
    most: float


def published(claim: Claim) -> PublishedFigures:
    """The published figures of a claim; a single figure is both."""
    if isinstance(claim.value, list):
        return PublishedFigures(float(claim.value[0]), float(claim.value[-1]))
    return PublishedFigures(float(claim.value), float(claim.value))


def beside_published(claim: Claim, value: Value) -> Value:
    """The measured value as a multiple of the published one; of a published range, of the end that
    is nearer, and 1 inside of the range.
    """
    least, most = published(claim)
    if value.value < least:
        return value / least
    if value.value > most:
        return value / most
    if least == most:
        return value / least
    return exactly(1.0)


def verdict_on_value(claim: Claim, test: ClaimTest, value: ClaimValue) -> ClaimVerdict:
    """The verdict on a claim from one measured value. It is inconclusive unless the whole interval
    lies inside or outside the bounds. A value of a software adapter (a GPU driver that computes on
    the CPU) decides only tests that say that it counts.
    """
    if value.software and test.software != "counts":
        return "inconclusive"
    if test.kind == "fails":
        return _verdict_on_failure(test, value)
    measured = value.measured
    # ``bounded``: both ends of its interval are known.
    if measured is None or not measured.bounded:
        return "inconclusive"
    # The whole interval must lie inside, or outside of both ranges on one side; else it is open.
    limits = bounds(claim, test)
    if limits.reproduced.holds(measured):
        return "reproduced"
    if limits.partial.holds(measured):
        return "partial"
    if limits.reproduced.excludes(measured) and limits.partial.excludes(measured):
        return "refuted"
    return "inconclusive"


def attribution_verdict(values: Sequence[ClaimValue]) -> AttributionVerdict:
    """Whether a published number is the cost of the part that the source names: ``right`` or
    ``wrong`` if that part's share of the number is large or small in all values, with their
    intervals; '' without a value.
    """
    if not values:
        return ""
    measured = [value.measured for value in values]
    shares = [share for share in measured if share and share.bounded]
    if not shares:
        return "undecided"
    # ``floor``, ``ceiling``: the ends of the interval. ``LEAST_SHARE``: half of the number. A value
    # without an interval does not decide.
    if all(share.floor >= LEAST_SHARE for share in shares):
        return "right"
    if all(share.ceiling <= LEAST_SHARE for share in shares):
        return "wrong"
    return "undecided"


def _verdict_on_failure(test: ClaimTest, value: ClaimValue) -> ClaimVerdict:
    """The verdict on the claim that a case fails: ``refuted`` if it has a value, ``reproduced`` if
    it failed by what the claim says, ``partial`` if by something else. A case that the suite itself
    stopped, after too long, is inconclusive.
    """
    # ``failure``: by what it failed, as ``test.reason`` names it. ``VALUED``: the statuses with
    # which a case has figures.
    if value.status in VALUED:
        return "refuted"
    if value.status != "failed" or value.failure == "time":
        return "inconclusive"
    return "reproduced" if value.failure == test.reason else "partial"


def evaluate(formula: str, parts: Mapping[str, float]) -> float:
    """The value of a formula of the registry; the names in it are those of ``parts``."""
    return float(eval(formula, {"__builtins__": {}}, dict(parts)))


def overall_verdict(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on a claim from those on all its values: ``partial`` if they differ. Inconclusive
    ones count only if all are.
    """
    if not verdicts:
        return "not testable here"
    # Different verdicts that are not "inconclusive".
    decided = set(verdicts) - {"inconclusive"}
    if not decided:
        return "inconclusive"
    if len(decided) > 1:
        return "partial"
    return decided.pop()
