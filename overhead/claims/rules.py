"""Decide the verdict on a measured quantity. All claims use the same rules; the registry holds the bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest
from overhead.results import VALUED, Value

ClaimVerdict = Literal["reproduced", "partial", "refuted", "inconclusive", "not testable here"]
VERDICTS: tuple[ClaimVerdict, ...] = ("reproduced", "partial", "refuted", "inconclusive", "not testable here")
_OUR_LIMIT = "time limit"
"""Text in the reason of a case that the suite stopped because it took too long."""
_REPRODUCED_WITHIN = 1.5
"""A value within this factor of the published one, or of the nearer end of a published range, reproduces it."""
_PARTIAL_WITHIN = 5.0
"""A time or a share within this factor partly reproduces it: hardware and versions change it as much."""
_SAME_DIRECTION = 1.1
"""A ratio partly reproduces a published one if it lies on the same side of 1 by at least this factor."""
_LEAST_SHARE = 0.5
"""An attribution is right if the named part takes at least this share of the number."""
AttributionVerdict = Literal["", "right", "wrong", "undecided"]
TOLERANCE = (
    f"A time or a share is reproduced within a factor of {_REPRODUCED_WITHIN:g} of the published one (of a range: of "
    f"its nearer end), and partial within {_PARTIAL_WITHIN:g}. A ratio is reproduced within {_REPRODUCED_WITHIN:g} and "
    f"partial if it points the same way by at least {100 * (_SAME_DIRECTION - 1):.0f} %; a claim of no difference is "
    f"reproduced within {100 * (_SAME_DIRECTION - 1):.0f} %, and so is a count, which is partial within "
    f"{_REPRODUCED_WITHIN:g}. An attribution is right if the named part takes at least "
    f"{100 * _LEAST_SHARE:.0f} % of the number. The whole interval must lie inside. Alike is the quantity, measured "
    "without the known mistake of the published method. The hardware, the driver and the versions are not alike: those "
    "of the source stand beside the claim, the machine beside each value."
)
"""The rules in words, the same for all claims."""


def bounds(claim: Claim, test: ClaimTest) -> tuple[tuple[float, float], tuple[float, float]]:
    """Lowest and highest value that reproduce the claim, and those that partly do, in the unit of the claim."""
    least, most = published(claim)
    factors = (_SAME_DIRECTION, _REPRODUCED_WITHIN, _PARTIAL_WITHIN)
    alike, near, far = ((least / factor, most * factor) for factor in factors)
    if test.no_effect:
        same = 1 / _SAME_DIRECTION, _SAME_DIRECTION
        return same, same
    if test.kind == "count":
        return alike, near
    if test.unit == "ratio":
        side = (_SAME_DIRECTION, math.inf) if least > 1 else (0.0, 1 / _SAME_DIRECTION)
        return (max(near[0], side[0]), min(near[1], side[1])), side
    whole = 1.0 if test.unit == "share" else math.inf
    return (near[0], min(near[1], whole)), (far[0], min(far[1], whole))


def published(claim: Claim) -> tuple[float, float]:
    """Lowest and highest published figure, in the unit of the claim; a single figure is both."""
    ends = claim.value if isinstance(claim.value, list) else [claim.value]
    return float(ends[0]), float(ends[-1])


def verdict_on_value(claim: Claim, test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """The verdict on one value. It is inconclusive unless the whole interval lies inside or outside the bounds."""
    if found.software and test.software != "counts":
        return "inconclusive"
    if test.kind == "fails":
        return _failing(test, found)
    of = found.measured
    if of is None or not of.bounded:
        return "inconclusive"
    inner, outer = bounds(claim, test)
    if _inside(of, inner):
        return "reproduced"
    if _inside(of, outer):
        return "partial"
    outside = all(of.ceiling < low or of.floor > high for low, high in (inner, outer))
    return "refuted" if outside else "inconclusive"


def attribution_verdict(found: Sequence[ClaimValue]) -> AttributionVerdict:
    """The verdict on an attribution, from the share of the named part on each target; '' without a value."""
    shares = [one.measured for one in found if one.measured and one.measured.bounded]
    if not shares:
        return "undecided" if found else ""
    if all(_inside(one, (_LEAST_SHARE, math.inf)) for one in shares):
        return "right"
    return "wrong" if all(_inside(one, (-math.inf, _LEAST_SHARE)) for one in shares) else "undecided"


def _failing(test: ClaimTest, found: ClaimValue) -> ClaimVerdict:
    """A failure for another reason gives ``partial``. A case that the suite itself stopped is inconclusive."""
    if found.status in VALUED:
        return "refuted"
    if found.status != "failed" or (_OUR_LIMIT in found.reason and test.reason != _OUR_LIMIT):
        return "inconclusive"
    return "reproduced" if test.reason in found.reason else "partial"


def evaluate(formula: str, parts: Mapping[str, float]) -> float:
    """The value of a formula of the registry; the names in it are those of ``parts``."""
    return float(eval(formula, {"__builtins__": {}}, dict(parts)))


def overall_verdict(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    """The verdict on all targets: ``partial`` if they differ. Inconclusive targets count only if all are."""
    decided = set(verdicts) - {"inconclusive"}
    if not verdicts:
        return "not testable here"
    return decided.pop() if len(decided) == 1 else "partial" if decided else "inconclusive"


def _inside(of: Value, bound: tuple[float, float]) -> bool:
    return bound[0] <= of.floor and of.ceiling <= bound[1]
