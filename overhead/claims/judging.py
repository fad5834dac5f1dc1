"""Give each published claim a verdict, from the newest run of each machine, and the sentences that explain it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from overhead.claims import rules
from overhead.claims.measured import ClaimValue, measure, measuring_command
from overhead.claims.registry import Claim, ClaimTest, Unit, claims, sources
from overhead.claims.rules import VERDICTS, AttributionVerdict, ClaimVerdict, Size, published
from overhead.devices import Processor
from overhead.loading.folders import load_paths, report_skipped
from overhead.reading.format import MICRO, TIMES, count, listed, number, positive_spread, spread
from overhead.reading.published import Source
from overhead.reading.view import MeasuredSteps, View, measured_steps, run_to_show
from overhead.results import Fingerprint, Value

_PROCESSORS: dict[Processor, str] = {"gpu": "a GPU", "software": "a software adapter", "cpu": "a CPU"}
_MARKS: dict[Unit, str] = {unit: f" {unit}" for unit in get_args(Unit)} | {
    "us": f" {MICRO}",
    "1/s": " a second",
    "ratio": TIMES,
    "share": " %",
}


@dataclass(frozen=True)
class Judged:
    """A claim, the verdicts on it, and the measured values, each with its own verdict.

    ``verdict``: of the number, measured like for like. ``size``: where a ratio is refuted by ratios on its side of 1,
    whether these are smaller or larger effects. ``flawed``: the values that the published method gives, if the
    registry holds its flaw; ``as_published``: their verdict. ``shares``: the share that the named part has of the
    number; ``attribution``: whether the number is the cost of that part. ``making``: the command that measures what the
    test needs; '' if no measurement can test the claim.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    measured: tuple[tuple[ClaimValue, ClaimVerdict], ...] = ()
    flawed: tuple[ClaimValue, ...] = ()
    as_published: ClaimVerdict | Literal[""] = ""
    shares: tuple[ClaimValue, ...] = ()
    attribution: AttributionVerdict = ""
    making: str = ""
    size: Size = ""

    @property
    def verdict_text(self) -> str:
        """The verdict in words, what was found instead, and what it rests on if that is another kind of hardware."""
        if self.claim.test is not None and self.claim.test.kind == "implied":
            return f"{self.verdict} by its own published figures"
        found_instead = f"the same direction, but a {self.size} effect" if self.size else ""
        return "; ".join(filter(None, [self.verdict, found_instead, self._other_hardware()]))

    @property
    def sentence(self) -> str:
        """The sentences that explain the verdict, as one text."""
        claim, test, flaw, blamed = self.claim, self.claim.test, self.claim.flawed, self.claim.attribution
        if test is None:
            return claim.untested
        if test.kind == "implied":
            numbers = (rules.evaluate(test.formula, claim.parts), test.limit)
            value, limit = (quantity_text(Value(one), test.unit) for one in numbers)
            said = [
                f"{_capital(test.quantity)}: the published figures imply {value}, the hardware has at most {limit}."
            ]
        elif not self.measured:
            return f"Not measured in these files. To measure it: {self.making}."
        else:
            said = [f"{_capital(test.quantity)}: {_values(test, [one for one, _ in self.measured])}."]
        if flaw:
            said += _measured_too(f"With the published mistake put back ({flaw.quantity})", flaw, self.flawed)
        if blamed:
            about = f"Attributed to {blamed.said}. Measured, {blamed.test.quantity}"
            said += _measured_too(about, blamed.test, self.shares)
        return " ".join([*said, *self._limits(test)])

    def _limits(self, test: ClaimTest) -> Iterator[str]:
        """What restricts the verdict."""
        if other := self._other_hardware():
            yield f"{_capital(other)}."
        if self.claim.cross:
            yield "The published figure compares two machines; here both sides ran on one machine."
        on_software = any(one.software for one, _ in self.measured)
        if self.verdict == "inconclusive" and on_software and test.software != "counts":
            yield "A software adapter runs on the CPU, so it cannot judge this claim."
        if self.claim.withdrawn:
            yield self.claim.withdrawn

    def _other_hardware(self) -> str:
        """``we measured on a GPU, the source on: Apple M4``; '' if both are of one kind or nothing is decided."""
        kinds = {_PROCESSORS[one.on] for one, _ in self.measured}
        if self.verdict == "inconclusive" or kinds <= {_PROCESSORS["cpu" if "CPU" in self.claim.hardware else "gpu"]}:
            return ""
        return f"we measured on {listed(sorted(kinds))}, the source on: {self.claim.hardware}"

    def to_dict(self) -> dict[str, Any]:
        """The same data as dicts and lists that ``json`` can write."""
        return {
            **dict.fromkeys(("claim", "source", "verdict")),
            "sentence": self.sentence,
            **vars(self),
            "id": self.claim.id,
            "claim": msgspec.to_builtins(self.claim),
            "source": msgspec.to_builtins(self.source),
            "measured": [{**one.to_dict(), "verdict": verdict} for one, verdict in self.measured],
            "flawed": [one.to_dict() for one in self.flawed],
            "shares": [one.to_dict() for one in self.shares],
        }


def judge(paths: Sequence[Path]) -> list[Judged]:
    """The verdict on every claim, from these fingerprints, journals and folders.

    Raises ``BadFile`` if the only file is bad. Among several, a bad file is skipped and listed on standard error.
    """
    loaded, skipped = load_paths(paths)
    report_skipped(skipped)
    return judge_runs([one.fingerprint for one in loaded])


def judge_runs(runs: Iterable[Fingerprint]) -> list[Judged]:
    """The verdict on every claim from runs in memory. Each run is read once; only the needed values are kept."""
    return judge_evidence([gather_evidence(View(run)) for run in runs])


@dataclass(frozen=True)
class RunEvidence:
    """What one run measured of the workload ``step`` (``cases``), and its values by claim id (``found``).

    Three lists for each claim: the values of the test, of the flawed published method, and of the attribution.
    """

    machine: str
    created: str
    cases: MeasuredSteps
    found: dict[str, tuple[list[ClaimValue], list[ClaimValue], list[ClaimValue]]]


def gather_evidence(view: View) -> RunEvidence:
    """The values that one run has for each claim; claims without one are left out."""
    run = view.fingerprint
    evidence = RunEvidence(run.machine.id, run.created, measured_steps(run), {})
    for claim in claims():
        if claim.test is None or claim.test.kind == "implied" or not (own := measure(claim.test, view)):
            continue
        flawed = measure(claim.flawed, view) if claim.flawed else []
        evidence.found[claim.id] = own, flawed, measure(claim.attribution.test, view) if claim.attribution else []
    return evidence


def judge_evidence(runs: Sequence[RunEvidence]) -> list[Judged]:
    """The verdict on every claim, in the order of the registry, from the values of the runs.

    For each machine the run that its page shows in full counts if it has a value; else the newest run with a value,
    those that set no environment variables first; else, or if the claim is that a case fails, the first with records.
    """
    by_machine: dict[str, list[RunEvidence]] = {}
    for run in sorted(runs, key=lambda run: run.created, reverse=True):
        by_machine.setdefault(run.machine, []).append(run)
    preferred = []
    for own in by_machine.values():
        shown = own.pop(run_to_show([run.cases for run in own]))
        preferred += [shown, *sorted(own, key=lambda run: bool(run.cases.environment))]
    return [_judged(claim, preferred) for claim in claims()]


def _judged(claim: Claim, runs: Sequence[RunEvidence]) -> Judged:
    source, test = sources()[claim.source], claim.test
    if test is None:
        return Judged(claim, source, "not testable here")
    if test.kind == "implied":
        refuted = rules.evaluate(test.formula, claim.parts) > test.limit
        return Judged(claim, source, "refuted" if refuted else "inconclusive")
    held = [(run.machine, run.found[claim.id]) for run in runs if claim.id in run.found]
    if test.kind != "fails":
        held.sort(key=lambda one: not _valued(one[1][0]))
    measured = _of_first((machine, own) for machine, (own, _, _) in held)
    flawed = _of_first((machine, own) for machine, (_, own, _) in held if _valued(own))
    shares = _of_first((machine, own) for machine, (_, _, own) in held if _valued(own))
    verdicts = [rules.verdict_on_value(claim, test, one) for one in measured]
    verdict = rules.overall_verdict(verdicts)
    by_flaw = [rules.verdict_on_value(claim, claim.flawed, one) for one in flawed if claim.flawed]
    return Judged(
        claim,
        source,
        verdict,
        tuple(zip(measured, verdicts, strict=True)),
        flawed,
        rules.overall_verdict(by_flaw) if by_flaw else "",
        shares,
        rules.attribution_verdict(shares),
        measuring_command(test, claim.flawed),
        rules.size_beside_published(claim, test, measured) if verdict == "refuted" else "",
    )


def _of_first(found: Iterable[tuple[str, Sequence[ClaimValue]]]) -> tuple[ClaimValue, ...]:
    """The values of the first run of each machine. ``found``: the machine and the values of each run."""
    first: dict[str, Sequence[ClaimValue]] = {}
    for machine, own in found:
        first.setdefault(machine, own)
    return tuple(one for own in first.values() for one in own)


def _valued(found: Sequence[ClaimValue]) -> bool:
    return any(one.measured for one in found)


def summary(found: Sequence[Judged]) -> str:
    """A sentence that counts the claims by verdict: ``12 published claims: 5 reproduced, ...``."""
    alone = [one for one in found if one.claim.test is not None and one.claim.test.kind == "implied"]
    counts = Counter(one.verdict for one in found if one not in alone)
    told = Counter(one.verdict_text for one in alone)
    said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    said += [f"{times} {words}" for words, times in told.items()]
    wrong = sum(one.attribution == "wrong" for one in found)
    blamed = f" {count(wrong, 'number')} attributed to the wrong part." if wrong else ""
    return f"{len(found)} published claims: {', '.join(said)}.{blamed}"


def by_verdict(found: Sequence[Judged]) -> list[Judged]:
    """The claims sorted by verdict, in the order of ``VERDICTS``."""
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))


def quantity_text(of: Value, unit: Unit) -> str:
    """The number with its unit, rounded to the digits that its interval allows."""
    if unit == "dispatches":
        return f"{of.value:,.0f}{_MARKS[unit]}"
    return (spread(of * 100) if unit == "share" else positive_spread(of)) + _MARKS[unit]


def published_text(claim: Claim) -> str:
    """The published figure with its unit and its original digits."""
    share = claim.unit == "share"
    texts = [f"{100 * v:.10g} %" if share else f"{v:,.10g}" for v in dict.fromkeys(published(claim))]
    return " to ".join(texts) + ("" if share else _MARKS[claim.unit])


def publication_text(claim: Claim) -> str:
    """The published figure, and the hardware it was measured on."""
    figure = "" if claim.test is not None and claim.test.kind == "fails" else f"{published_text(claim)}, "
    return f"{figure}{claim.hardware}"


def measured_range(test: ClaimTest, found: Sequence[ClaimValue]) -> str:
    """The lowest to the highest value in a few characters: ``25.6 to 44.7 µs``; '' without a value."""
    values = sorted(one.measured.value for one in found if one.measured)
    if not values:
        return ""
    scale = 100 if test.unit == "share" else 1
    ends = [f"{end:,.0f}" if test.unit == "dispatches" else number(scale * end) for end in (values[0], values[-1])]
    return " to ".join(dict.fromkeys(ends)) + _MARKS[test.unit]


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
    return f"{quantity_text(one.measured, test.unit)}{note} for {_case(one)}"


def _case(one: ClaimValue) -> str:
    """The target and the case without the machine, which stands before them."""
    return one.label.replace(f" on {one.machine} ", " ")


def _measured_too(said: str, test: ClaimTest, found: Sequence[ClaimValue]) -> list[str]:
    values = [one for one in found if one.measured]
    return [f"{said}: {_values(test, values)}."] if values else []
