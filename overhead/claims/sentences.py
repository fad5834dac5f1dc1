"""Write the sentences that explain a verdict. All numbers come from the files and the registry."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import get_args

from overhead.claims.measured import ClaimValue
from overhead.claims.registry import Claim, ClaimTest, Source, Unit, cited
from overhead.claims.rules import ClaimVerdict, implied, published
from overhead.claims.select import making
from overhead.devices import Processor
from overhead.reading.format import MICRO, TIMES, listed, positive_spread, spread
from overhead.results import Value

_PROCESSORS: dict[Processor, str] = {"gpu": "a GPU", "software": "a software adapter", "cpu": "a CPU"}
_MARKS: dict[Unit, str] = {unit: f" {unit}" for unit in get_args(Unit)} | {
    "us": f" {MICRO}",
    "1/s": " a second",
    "ratio": TIMES,
    "share": " %",
}


def explain(
    claim: Claim,
    verdict: ClaimVerdict,
    found: Sequence[tuple[ClaimValue, ClaimVerdict]],
    flawed: Sequence[ClaimValue],
    shares: Sequence[ClaimValue] = (),
) -> str:
    """The sentences that explain the verdict, as one text."""
    test, flaw, blamed, values = claim.test, claim.flawed, claim.attribution, [one for one, _ in found]
    if test is None:
        return claim.untested
    if test.kind == "implied":
        value, limit = (quantity(Value(number), test.unit) for number in (implied(claim, test), test.limit))
        said = [f"{_capital(test.quantity)}: the published figures imply {value}, the hardware has at most {limit}."]
    elif not values:
        return f"Not measured in these files. To measure it: {making(test, flaw)}."
    else:
        said = [f"{_capital(test.quantity)}: {_values(test, values)}."]
    if flaw:
        said += _measured_too(f"With the published mistake put back ({flaw.quantity})", flaw, flawed)
    if blamed:
        about = f"Attributed to {blamed.said}. Measured, {blamed.test.quantity}"
        said += _measured_too(about, blamed.test, shares)
    return " ".join([*said, *_limits(claim, test, verdict, values)])


def _limits(claim: Claim, test: ClaimTest, verdict: ClaimVerdict, found: Sequence[ClaimValue]) -> Iterator[str]:
    """What restricts the verdict."""
    if other := other_hardware(claim, verdict, found):
        yield f"{_capital(other)}."
    if claim.cross:
        yield "The published figure compares two machines; here both sides ran on one machine."
    if verdict == "inconclusive" and any(one.software for one in found) and test.software != "counts":
        yield "A software adapter runs on the CPU, so it cannot judge this claim."
    if claim.withdrawn:
        yield claim.withdrawn


def quantity(of: Value, unit: Unit) -> str:
    """The number with its unit, rounded to the digits that its interval allows."""
    if unit == "dispatches":
        return f"{of.value:,.0f} dispatches"
    return (spread(of * 100) if unit == "share" else positive_spread(of)) + _MARKS[unit]


def exact(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    share = claim.unit == "share"
    texts = [f"{100 * v:.10g} %" if share else f"{v:,.10g}" for v in dict.fromkeys(published(claim))]
    return " to ".join(texts) + ("" if share else _MARKS[claim.unit])


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
        where = f"{one.machine}, {one.run}"
        groups.setdefault(where, []).append(_one(test, one))
    return "; ".join(f"{where}: {listed(values)}" for where, values in groups.items())


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


def _measured_too(said: str, test: ClaimTest, found: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in found if one.measured]
    return [f"{said}: {_values(test, values)}."] if values else []
