"""Give each published claim a verdict, from the newest run of each machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from overhead.claims import rules
from overhead.claims.measured import (
    NO_COMMAND,
    ClaimValue,
    MeasuringCommand,
    how_to_measure,
    measure,
)
from overhead.claims.registry import Claim, claims, sources
from overhead.claims.rules import VERDICTS, AttributionVerdict, ClaimVerdict, Size
from overhead.devices import Processor
from overhead.loading.folders import load_paths
from overhead.loading.show import report_skipped
from overhead.reading.published import Source
from overhead.reading.view import MeasuredSteps, View, measured_steps, run_to_show
from overhead.results import Fingerprint


@dataclass(frozen=True)
class Judged:
    """A claim, the verdicts on it, and the measured values, each with its own verdict.

    ``verdict``: of the number, measured like for like. ``size``: where a ratio is refuted by ratios
    on its side of 1, whether these are smaller or larger effects. ``flawed``: the values that the
    published method gives, if the registry holds its flaw; ``as_published``: their verdict.
    ``shares``: the share that the named part has of the number; ``attribution``: whether the number
    is the cost of that part. ``measuring``: how to measure what the test needs; without a command
    if no measurement can test the claim.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    measured: tuple[tuple[ClaimValue, ClaimVerdict], ...] = ()
    flawed: tuple[ClaimValue, ...] = ()
    as_published: ClaimVerdict | Literal[""] = ""
    shares: tuple[ClaimValue, ...] = ()
    attribution: AttributionVerdict = ""
    measuring: MeasuringCommand = NO_COMMAND
    size: Size = ""

    @property
    def is_implied(self) -> bool:
        """Whether the published figures alone decide, without a measurement."""
        return self.claim.test is not None and self.claim.test.kind == "implied"

    @property
    def is_of_other_hardware(self) -> bool:
        """Whether the verdict rests on another kind of hardware than the claim."""
        claimed: Processor = "cpu" if "CPU" in self.claim.hardware else "gpu"
        kinds = {value.on for value, _ in self.measured}
        return self.verdict != "inconclusive" and not kinds <= {claimed}


def judge(paths: Sequence[Path]) -> list[Judged]:
    """The verdict on every claim, from these fingerprints, journals and folders.

    Raises ``BadFile`` if the only file is bad. Among several, a bad file is skipped and listed on
    standard error.
    """
    loaded, skipped = load_paths(paths)
    report_skipped(skipped)
    return judge_runs([one.fingerprint for one in loaded])


def judge_runs(runs: Iterable[Fingerprint]) -> list[Judged]:
    """The verdict on every claim from runs in memory. Each run is read once; only the needed values
    are kept.
    """
    return judge_evidence([gather_evidence(View(run)) for run in runs])


@dataclass(frozen=True)
class ClaimEvidence:
    """The values that one run has for a claim: of the test, of the flawed published method, and of
    the attribution.
    """

    own: list[ClaimValue]
    flawed: list[ClaimValue]
    shares: list[ClaimValue]


@dataclass(frozen=True)
class RunEvidence:
    """What one run measured of the workload ``step`` (``cases``), and its values by claim id
    (``found``).
    """

    machine: str
    created: str
    cases: MeasuredSteps
    found: dict[str, ClaimEvidence]


def gather_evidence(view: View) -> RunEvidence:
    """The values that one run has for each claim; claims without one are left out."""
    run = view.fingerprint
    evidence = RunEvidence(run.machine.id, run.created, measured_steps(run), {})
    for claim in claims():
        if (
            claim.test is None
            or claim.test.kind == "implied"
            or not (own := measure(claim.test, view))
        ):
            continue
        flawed = measure(claim.flawed, view) if claim.flawed else []
        shares = measure(claim.attribution.test, view) if claim.attribution else []
        evidence.found[claim.id] = ClaimEvidence(own, flawed, shares)
    return evidence


def judge_evidence(runs: Sequence[RunEvidence]) -> list[Judged]:
    """The verdict on every claim, in the order of the registry, from the values of the runs.

    For each machine the run that its page shows in full counts if it has a value; else the newest
    run with a value, those that set no environment variables first; else, or if the claim is that a
    case fails, the first with records.
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
        held.sort(key=_lacks_value)
    measured = _of_first((machine, one.own) for machine, one in held)
    flawed = _of_first((machine, one.flawed) for machine, one in held if _valued(one.flawed))
    shares = _of_first((machine, one.shares) for machine, one in held if _valued(one.shares))
    verdicts = [rules.verdict_on_value(claim, test, one) for one in measured]
    verdict = rules.overall_verdict(verdicts)
    by_flaw = [rules.verdict_on_value(claim, claim.flawed, one) for one in flawed if claim.flawed]
    return Judged(
        claim,
        source,
        verdict,
        measured=tuple(zip(measured, verdicts, strict=True)),
        flawed=flawed,
        as_published=rules.overall_verdict(by_flaw) if by_flaw else "",
        shares=shares,
        attribution=rules.attribution_verdict(shares),
        measuring=how_to_measure(test, claim.flawed),
        size=rules.size_beside_published(claim, test, measured) if verdict == "refuted" else "",
    )


def _of_first(found: Iterable[tuple[str, Sequence[ClaimValue]]]) -> tuple[ClaimValue, ...]:
    """The values of the first run of each machine. ``found``: the machine and the values of each
    run.
    """
    first: dict[str, Sequence[ClaimValue]] = {}
    for machine, own in found:
        first.setdefault(machine, own)
    return tuple(one for own in first.values() for one in own)


def _lacks_value(held: tuple[str, ClaimEvidence]) -> bool:
    return not _valued(held[1].own)


def _valued(found: Sequence[ClaimValue]) -> bool:
    return any(one.measured for one in found)


def by_verdict(found: Sequence[Judged]) -> list[Judged]:
    """The claims sorted by verdict, in the order of ``VERDICTS``."""
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))
