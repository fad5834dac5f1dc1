"""Write the sentences that explain a verdict. All numbers come from the files and the registry."""

from __future__ import annotations

import re
from collections.abc import Sequence

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest, Source, Unit, cited
from overhead.claims.rules import ClaimVerdict, implied, published
from overhead.claims.select import making
from overhead.devices import Processor
from overhead.reading.format import MICRO, TIMES, count, listed, positive_spread, spread
from overhead.results import Value

_MOST_MACHINES = 8
"""The most machines that a sentence names; it counts the others."""
_PROCESSORS: dict[Processor, str] = {"gpu": "a GPU", "software": "a software adapter", "cpu": "a CPU"}
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
    else:
        said = [f"{_capital(test.quantity)}: {_values(test, [one for one, _ in found])}."]
        said += [*_with_flaw(claim, flawed), *_attributed(claim, shares)]
    if other := other_hardware(claim, verdict, [one for one, _ in found]):
        said.append(f"{_capital(other)}.")
    if claim.cross:
        said.append("The published figure compares two machines; here both sides ran on one machine.")
    if verdict == "inconclusive" and any(one.software for one, _ in found) and test.software != "counts":
        said.append("A software adapter runs on the CPU, so it cannot judge this claim.")
    if claim.withdrawn:
        said.append(claim.withdrawn)
    return " ".join(said)


def quantity(of: Value, unit: Unit) -> str:
    """The number with its unit, rounded to the digits that its interval allows."""
    if unit == "dispatches":
        return f"{of.value:,.0f} dispatches"
    share = unit == "share"
    mark = " %" if share else TIMES if unit == "ratio" else f" {_UNITS[unit]}"
    return (spread(of * 100) if share else positive_spread(of)) + mark


def exact(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    share = claim.unit == "share"
    texts = [f"{100 * v:.10g} %" if share else f"{v:,.10g}" for v in dict.fromkeys(published(claim))]
    mark = "" if share else TIMES if claim.unit == "ratio" else f" {_UNITS[claim.unit]}"
    return " to ".join(texts) + mark


def publication(claim: Claim, source: Source) -> str:
    """The published figure, the hardware it was measured on, and where it was published."""
    figure = "" if claim.test is not None and claim.test.kind == "fails" else f"{exact(claim)}, "
    return f"{figure}{claim.hardware}: {cited(source)}"


def other_hardware(claim: Claim, verdict: ClaimVerdict, found: Sequence[ClaimValue]) -> str:
    """``we measured on a GPU, the source on: Apple M4``; '' if both are of one kind or nothing is decided."""
    kinds = {_PROCESSORS[one.on] for one in found}
    if verdict == "inconclusive" or kinds <= {_PROCESSORS["cpu" if "CPU" in claim.hardware else "gpu"]}:
        return ""
    return f"we measured on {listed(sorted(kinds))}, the source on: {claim.hardware}"


def by_machine(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The values of each machine with their intervals and stacks; '' without a value."""
    groups: dict[str, list[str]] = {}
    for one in found:
        if one.measured is not None:
            stacks = re.sub(r" \([^()]*\)", "", _case(one))
            groups.setdefault(one.machine, []).append(f"{stacks} {quantity(one.measured, test.unit)}")
    return "; ".join(f"{machine}: {', '.join(values)}" for machine, values in groups.items())


def measured_range(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The lowest to the highest value in a few characters: ``25.6 to 44.7 µs``; '' without a value."""
    values = sorted(one.measured.value for one in found if one.measured)
    if not values:
        return ""
    low, high = (quantity(Value(values[end]), test.unit) for end in (0, -1))
    return low if low == high else f"{low.rsplit(' ', 1)[0].removesuffix(TIMES)} to {high}"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _values(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The values, or the reasons, of each machine and run: ``NVIDIA H200, quick run of 2026-11-21T18:59: ...``."""
    groups: dict[str, list[str]] = {}
    for one in found:
        where = f"{one.machine}, {one.run}" if one.run else one.machine
        groups.setdefault(where, []).append(_one(test, one))
    said = [f"{where}: {listed(values)}" for where, values in list(groups.items())[:_MOST_MACHINES]]
    if len(groups) > _MOST_MACHINES:
        said.append(f"and {count(len(groups) - _MOST_MACHINES, 'more machine')}")
    return "; ".join(said)


def _one(test: ClaimTest, one: ClaimValue) -> str:
    if test.kind == "fails":
        return f"{_case(one)}: {one.reason or one.status}"
    if one.measured is None:
        return f"no value for {_case(one)} ({one.reason})"
    note = f" ({one.note})" if one.note else ""
    return f"{quantity(one.measured, test.unit)}{note} for {_case(one)}"


def _case(one: ClaimValue) -> str:
    """The target and the case without the machine, which stands before them."""
    return one.label.replace(f" on {one.machine} ", " ")


def _with_flaw(claim: Claim, flawed: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in flawed if one.measured]
    if claim.flawed is None or not values:
        return []
    return [f"With the published mistake put back ({claim.flawed.quantity}): {_values(claim.flawed, values)}."]


def _attributed(claim: Claim, shares: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in shares if one.measured]
    if claim.attribution is None or not values:
        return []
    test = claim.attribution.test
    return [f"Attributed to {claim.attribution.said}. Measured, {test.quantity}: {_values(test, values)}."]


def _implied(claim: Claim, test: ClaimTest) -> str:
    value, limit = (quantity(Value(number), test.unit) for number in (implied(claim, test), test.limit))
    return f"{_capital(test.quantity)}: the published figures imply {value}, the hardware has at most {limit}."
