"""The verdicts on published claims in words, and what they rest on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from overhead.claims import rules
from overhead.claims.judging import Judged
from overhead.claims.measured import ClaimValue, MeasuredCase, MeasuringCommand
from overhead.claims.registry import Claim, ClaimTest, Unit
from overhead.claims.rules import VERDICTS, published
from overhead.devices import Processor
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetLabel
from overhead.results import Value
from overhead.words.format import MICRO, TIMES, count, listed, number, positive_spread, spread
from overhead.words.names import CALLER_WORDS
from overhead.words.reasons import sentence

_LONGEST_LABEL = 300

CLAIMS_PAGE = "Claims"
ABOUT_CLAIMS = "What others published, and what these measurements say of it."
CLAIMS_JUDGED = "Published claims, judged"
WITH_A_VERDICT = "Claims with a verdict"
WITHOUT_A_VERDICT = "Claims that these files cannot judge"
ATTRIBUTION = "Attribution: whether the source names the part that really takes this time."
REASONS = "Reasons: overhead claims --verbose"
_PROCESSORS: dict[Processor, str] = {"gpu": "a GPU", "software": "a software adapter", "cpu": "a CPU"}
_MARKS: dict[Unit, str] = {unit: f" {unit}" for unit in get_args(Unit)} | {
    "us": f" {MICRO}",
    "1/s": " a second",
    "ratio": TIMES,
    "share": " %",
}
TOLERANCE = (
    f"We measure the quantity of the claim, without the known mistake of the published method, on other hardware, with "
    f"another driver and other versions. A time counts as reproduced if it is within a factor of "
    f"{rules.REPRODUCED_WITHIN:g} of the published one (of a range: of its nearer end), and as partial within a factor "
    f"of {rules.PARTIAL_WITHIN:g}. A share must fulfil this too, and so must the rest of the whole. A ratio must "
    f"fulfil it, and its logarithm must be within a factor of {rules.REPRODUCED_WITHIN:g} (reproduced) or "
    f"{rules.PARTIAL_GAIN:g} (partial). So partial means at least half and at most twice the gain. A claim of no "
    f"difference, and a count, are reproduced within {100 * (rules.SAME_DIRECTION - 1):.0f} %; a count is partial "
    f"within a factor of {rules.REPRODUCED_WITHIN:g}. An attribution is right if the named part takes at least "
    f"{100 * rules.LEAST_SHARE:.0f} % of the number. In all cases the whole interval must lie inside."
)
"""The rules, the same for all claims."""


def summary(found: Sequence[Judged]) -> str:
    """How many claims have each verdict: ``12 published claims: 5 reproduced, ...``."""
    alone = [one for one in found if one.is_implied]
    counts = Counter(one.verdict for one in found if one not in alone)
    told = Counter(verdict(one) for one in alone)
    said = [f"{counts[name]} {name}" for name in VERDICTS if counts[name]]
    said += [f"{times} {words}" for words, times in told.items()]
    wrong = sum(one.attribution == "wrong" for one in found)
    blamed = f" In {count(wrong, 'source')} another part than the named one takes the time." if wrong else ""
    return f"{len(found)} published claims: {', '.join(said)}.{blamed}"


def verdict(one: Judged) -> str:
    """The verdict, what was found instead, and what it rests on if that is another kind of hardware."""
    if one.is_implied:
        return f"{one.verdict} by its own published figures"
    found_instead = f"same direction, but a {one.size} effect" if one.size else ""
    return "; ".join(filter(None, [one.verdict, found_instead, _other_hardware(one)]))


def verdict_of(one: Judged) -> str:
    """The claim's name with its verdict."""
    return f"{one.claim.id}: {verdict(one)}."


def verdicts(one: Judged) -> str:
    """The verdict on the number, on the number by the published method, and on its attribution."""
    by_their_method = f"; with the published method: {one.as_published}" if one.as_published else ""
    return verdict(one) + by_their_method + (f"; attribution: {one.attribution}" if one.attribution else "")


def explanation_with_flaw(one: Judged) -> str:
    """What explains the verdict, and what is wrong with the published method."""
    flaw = f" What is wrong with the published method: {one.claim.flaw}" if one.claim.flaw else ""
    return explanation(one) + flaw


def explanation(one: Judged) -> str:
    """The sentences that explain the verdict, as one text."""
    claim, test, flaw, blamed = one.claim, one.claim.test, one.claim.flawed, one.claim.attribution
    if test is None:
        return claim.untested
    if test.kind == "implied":
        implied = Value(rules.evaluate(test.formula, claim.parts))
        value, limit = quantity(implied, test.unit), quantity(Value(test.limit), test.unit)
        said = [
            f"{_capital(test.quantity)}: the published figures mean {value}, but the hardware reaches at most {limit}."
        ]
    elif not one.measured:
        return f"Not measured in these files. To measure it: {measuring_command(one.measuring)}."
    else:
        said = [f"{_capital(test.quantity)}: {_values(test, [value for value, _ in one.measured])}."]
    if flaw:
        said += _measured_too(f"Measured with the mistake of the source ({flaw.quantity})", flaw, one.flawed)
    if blamed:
        about = f"The source attributes it to {blamed.said}. Measured: {blamed.test.quantity}"
        said += _measured_too(about, blamed.test, one.shares)
    return " ".join([*said, *_limits(one, test)])


def measuring_command(measuring: MeasuringCommand) -> str:
    """The command that measures what a claim needs, and on which machine."""
    machine = f" on a machine with {' and '.join(measuring.apis)}" if measuring.apis else ""
    return measuring.command + machine


def _limits(one: Judged, test: ClaimTest) -> Iterator[str]:
    """What restricts the verdict."""
    if other := _other_hardware(one):
        yield f"{_capital(other)}."
    if one.claim.cross:
        yield "The published figure compares two machines; we measured both sides on one machine."
    on_software = any(value.software for value, _ in one.measured)
    if one.verdict == "inconclusive" and on_software and test.software != "counts":
        yield "We measured a software adapter, which runs on the CPU, so it cannot judge this claim."
    if one.claim.withdrawn:
        yield one.claim.withdrawn


def _other_hardware(one: Judged) -> str:
    """``we measured on a GPU, the source on: Apple M4``; '' if both are of one kind or nothing is decided."""
    if not one.is_of_other_hardware:
        return ""
    kinds = {_PROCESSORS[value.on] for value, _ in one.measured}
    return f"we measured on {listed(sorted(kinds))}, the source on {one.claim.hardware}"


def quantity(of: Value, unit: Unit) -> str:
    """The number with its unit, rounded to the digits that its interval allows."""
    if unit == "dispatches":
        return f"{of.value:,.0f}{_MARKS[unit]}"
    return (spread(of * 100) if unit == "share" else positive_spread(of)) + _MARKS[unit]


def published_figure(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    share = claim.unit == "share"
    texts = [f"{100 * v:.10g} %" if share else f"{v:,.10g}" for v in dict.fromkeys(published(claim))]
    return " to ".join(texts) + ("" if share else _MARKS[claim.unit])


def publication(claim: Claim) -> str:
    """The published figure, and the hardware it was measured on."""
    figure = "" if claim.test is not None and claim.test.kind == "fails" else f"{published_figure(claim)}, "
    return f"{figure}{claim.hardware}"


def measured_range(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The lowest to the highest value in a few characters: ``25.6 to 44.7 µs``; '' without a value."""
    values = sorted(one.measured.value for one in found if one.measured)
    if not values:
        return ""
    scale = 100 if test.unit == "share" else 1
    ends = [f"{end:,.0f}" if test.unit == "dispatches" else number(scale * end) for end in (values[0], values[-1])]
    return " to ".join(dict.fromkeys(ends)) + _MARKS[test.unit]


def note(of: ClaimValue) -> str:
    """What to know of the value: where a line begins, and how many cases it goes through."""
    if of.line is None:
        return ""
    return f"one-off cost {spread(of.line.intercept_ms)} ms, from {of.line.cases} cases"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _values(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The values, or the reasons, of each machine and run: ``NVIDIA H200, quick run of 2026-11-21T18:59: ...``."""
    groups: dict[str, list[str]] = {}
    for one in found:
        where = f"{one.machine}, {run_name(one)}"
        groups.setdefault(where, []).append(_one(test, one))
    return "; ".join(f"{where}: {listed(values)}" for where, values in groups.items())


def _one(test: ClaimTest, one: ClaimValue) -> str:
    if test.kind == "fails":
        return f"{_case(one)}: {sentence(one.reason or one.status)}"
    if one.measured is None:
        return f"no value for {_case(one)} ({sentence(one.reason)})"
    more = f" ({note(one)})" if one.line is not None else ""
    return f"{quantity(one.measured, test.unit)}{more} for {_case(one)}"


def _case(one: ClaimValue) -> str:
    """The target and the case without the machine, which stands before them."""
    return _cases([(_without_adapter(case.target, one.machine), case) for case in one.cases])


def run_name(one: ClaimValue) -> str:
    """The run that a value is of, by its profile and time."""
    return plain(f"{one.profile} run of {one.created}") if one.created else ""


def case_label(one: ClaimValue) -> str:
    """The two targets and cases. A target that both share appears once."""
    return _cases([(case.target.text, case) for case in one.cases])


def _cases(named: Sequence[tuple[str, MeasuredCase]]) -> str:
    """The cases, each with the name of its target."""
    names = {name for name, _ in named}
    if len(names) == 1:
        said = " against ".join(_pattern(case) for _, case in named)
        return plain(f"{named[0][0]} ({said})", _LONGEST_LABEL)
    return plain(" against ".join(f"{name} ({_pattern(case)})" for name, case in named), _LONGEST_LABEL)


def _pattern(case: MeasuredCase) -> str:
    return f"{case.pattern}, {CALLER_WORDS[case.caller]}" if case.caller else case.pattern


def _without_adapter(target: TargetLabel, adapter: str) -> str:
    """The target without this adapter."""
    return target.stack + target.more if target.adapter == adapter else target.text


def _measured_too(said: str, test: ClaimTest, found: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in found if one.measured]
    return [f"{said}: {_values(test, values)}."] if values else []
