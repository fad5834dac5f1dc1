"""Write the sentences that explain a verdict. All numbers come from the files and the registry."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest, Unit
from overhead.claims.rules import ClaimVerdict, implied, published
from overhead.claims.select import making
from overhead.reading.format import MICRO, TIMES, count, listed, positive_spread, spread

_MOST_TARGETS = 3
"""The most targets that a sentence names; it counts the others."""
_UNITS = {"us": MICRO, "ms": "ms", "ns": "ns", "s": "s", "GB/s": "GB/s", "1/s": "a second", "dispatches": "dispatches"}


def explain(
    claim: Claim,
    verdict: ClaimVerdict,
    found: Sequence[tuple[ClaimValue, ClaimVerdict]],
    flawed: Sequence[ClaimValue],
    shares: Sequence[ClaimValue] = (),
) -> str:
    """The sentences that explain the verdict, as one text."""
    test = claim.test
    if test is None:
        return claim.untested
    if test.kind == "implied":
        said = [_implied(claim, test)]
    elif not found:
        return f"Not measured in these files. To measure it: {making(test, claim.flawed)}."
    elif test.kind == "fails":
        said = [_fails(test, [one for one, _ in found])]
    else:
        said = [_sized(claim, test, found), *_with_flaw(claim, flawed), *_attributed(claim, shares)]
    if claim.cross:
        said.append("The published figure compares two machines; here both sides ran on one machine.")
    if verdict == "inconclusive" and any(one.software for one, _ in found) and test.software != "counts":
        said.append("A software adapter runs on the CPU, so it cannot judge this claim.")
    if claim.withdrawn:
        said.append(claim.withdrawn)
    return " ".join(said)


def quantity(value: float, unit: Unit, low: float | None = None, high: float | None = None) -> str:
    """The number with its unit, rounded to the digits that its interval allows."""
    if unit == "dispatches":
        return f"{value:,.0f} dispatches"
    share = unit == "share"
    mark = " %" if share else TIMES if unit == "ratio" else f" {_UNITS[unit]}"
    shown, below, above = (None if v is None else 100 * v if share else v for v in (value, low, high))
    return (spread if share else positive_spread)(shown or 0.0, below, above) + mark


def exact(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    share = claim.unit == "share"
    texts = [f"{100 * v:.10g} %" if share else f"{v:,.10g}" for v in dict.fromkeys(published(claim))]
    mark = "" if share else TIMES if claim.unit == "ratio" else f" {_UNITS[claim.unit]}"
    return " to ".join(texts) + mark


def _sized(claim: Claim, test: ClaimTest, found: Sequence[tuple[ClaimValue, ClaimVerdict]]) -> str:
    parts = [_one(test, one) for one, _ in found[:_MOST_TARGETS]]
    if len(found) > _MOST_TARGETS:
        parts.append(f"and {count(len(found) - _MOST_TARGETS, 'more target')}")
    return f"{_capital(test.quantity)}: {'; '.join(parts)}. Published: {exact(claim)} ({claim.hardware})."


def measured_range(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The lowest to the highest value in a few characters: ``25.6 to 44.7 µs``; '' without a value."""
    values = sorted(one.value for one in found if one.value is not None)
    if not values:
        return ""
    low, high = quantity(values[0], test.unit), quantity(values[-1], test.unit)
    return low if low == high else f"{low.rsplit(' ', 1)[0].removesuffix(TIMES)} to {high}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _one(test: ClaimTest, one: ClaimValue) -> str:
    if one.value is None:
        return f"no value for {one.label} ({one.reason})"
    note = f" ({one.note})" if one.note else ""
    return f"{quantity(one.value, test.unit, one.low, one.high)}{note} for {place(one)}"


def place(one: ClaimValue) -> str:
    """The label, followed by the machine unless the label already names it, and the run."""
    where = one.label if f" on {one.machine} " in one.label else f"{one.label} on {one.machine}"
    return f"{where}, {one.run}" if one.run else where


def _with_flaw(claim: Claim, flawed: Sequence[ClaimValue]) -> list[str]:
    test = claim.flawed
    values = [one for one in flawed if one.value is not None]
    if test is None or not values:
        return []
    parts = listed([_one(test, one) for one in values[:_MOST_TARGETS]])
    return [f"With the published mistake put back ({test.quantity}): {parts}."]


def _attributed(claim: Claim, shares: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in shares if one.value is not None]
    if claim.attribution is None or not values:
        return []
    parts = listed([_one(claim.attribution.test, one) for one in values[:_MOST_TARGETS]])
    return [f"Attributed to {claim.attribution.said}. Measured, {claim.attribution.test.quantity}: {parts}."]


def _fails(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    parts = [f"{place(one)}: {one.reason or one.status}" for one in found[:_MOST_TARGETS]]
    return f"{_capital(test.quantity)}: {'; '.join(parts)}."


def _implied(claim: Claim, test: ClaimTest) -> str:
    value, limit = quantity(implied(claim, test), test.unit), quantity(test.limit, test.unit)
    return f"{_capital(test.quantity)}: the published figures imply {value}, the hardware has at most {limit}."
