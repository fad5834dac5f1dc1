"""Give each published claim a verdict, from the newest run of each machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

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


class JudgedValue(NamedTuple):
    """A measured value, and the verdict on it alone."""

    value: ClaimValue
    verdict: ClaimVerdict


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
    measured: tuple[JudgedValue, ...] = ()
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
        kinds = {judged.value.on for judged in self.measured}
        return self.verdict != "inconclusive" and not kinds <= {claimed}


def judge(paths: Sequence[Path]) -> list[Judged]:
    """The verdict on every published claim, from these fingerprints (the files of figures of a
    run), journals (those of its samples) and folders.

    Raises ``BadFile`` if the only file is bad. Among several, a bad file is skipped and listed on
    standard error.
    """
    loaded, skipped = load_paths(paths)
    report_skipped(skipped)
    return judge_runs([file.fingerprint for file in loaded])


def judge_runs(runs: Iterable[Fingerprint]) -> list[Judged]:
    """The verdict on every claim from runs in memory. Each run is read once; only the needed values
    are kept.
    """
    return judge_evidence([gather_evidence(View(run)) for run in runs])


@dataclass(frozen=True)
class ClaimEvidence:
    """The values that one run on a machine has for a claim: of the test (``by_test``), of the
    flawed published method, and of the attribution (``shares``).
    """

    machine: str
    by_test: list[ClaimValue]
    flawed: list[ClaimValue]
    shares: list[ClaimValue]


@dataclass(frozen=True)
class RunEvidence:
    """What one run measured of the workload ``step`` (``cases``), and its values by claim id
    (``by_claim``).
    """

    machine: str
    created: str
    cases: MeasuredSteps
    by_claim: dict[str, ClaimEvidence]


def gather_evidence(view: View) -> RunEvidence:
    """The values that one run has for each claim, so that the run itself need not be kept; claims
    without a value are left out, and so are those that the published figures alone decide.
    """
    run = view.fingerprint
    by_claim: dict[str, ClaimEvidence] = {}
    for claim in claims():
        # ``implied``: a formula over published figures decides, so no run is needed.
        if claim.test is None or claim.test.kind == "implied":
            continue
        by_test = measure(claim.test, view)
        if not by_test:
            continue
        # The same by the published method, if it is ``flawed``; and, if the source says what the
        # number is the cost of (``attribution``), the share of that part.
        flawed = measure(claim.flawed, view) if claim.flawed else []
        shares = measure(claim.attribution.test, view) if claim.attribution else []
        by_claim[claim.id] = ClaimEvidence(run.machine.id, by_test, flawed, shares)
    return RunEvidence(run.machine.id, run.created, measured_steps(run), by_claim)


def judge_evidence(runs: Sequence[RunEvidence]) -> list[Judged]:
    """The verdict on every claim, in the order of the registry, from the values of the runs.

    One run of each machine counts for a claim: the run that the page of the machine shows in full,
    if it has a value; else the newest run with a value, those that set no environment variables
    first; else, or if the claim is that a case fails, the first with records.
    """
    newest_first = sorted(runs, key=lambda run: run.created, reverse=True)
    by_machine: dict[str, list[RunEvidence]] = {}
    for run in newest_first:
        by_machine.setdefault(run.machine, []).append(run)

    preferred: list[RunEvidence] = []
    for others in by_machine.values():
        # What a reader finds on the page of the machine comes first (``run_to_show`` gives its
        # place in the list); of the others those without environment variables of their own, the
        # newest first, since the sort keeps the order of equals.
        shown = others.pop(run_to_show([run.cases for run in others]))
        others.sort(key=lambda run: bool(run.cases.environment))
        preferred += [shown, *others]
    return [_judged(claim, preferred) for claim in claims()]


def _judged(claim: Claim, runs: Sequence[RunEvidence]) -> Judged:
    """The verdict on one claim. ``runs``: the values of all runs, for each machine the preferred
    run first. A claim without a test is not testable here; the published figures alone decide one
    that is ``implied``; all others rest on measured values.
    """
    # First claims that no measured value decides.
    source = sources()[claim.source]
    test = claim.test
    if test is None:
        return Judged(claim, source, "not testable here")
    if test.kind == "implied":
        # ``parts``: published numbers by name, which the formula computes with.
        refuted = rules.evaluate(test.formula, claim.parts) > test.limit
        return Judged(claim, source, "refuted" if refuted else "inconclusive")

    # Then the values, each with its verdict; of every machine those of one run.
    evidence = [run.by_claim[claim.id] for run in runs if claim.id in run.by_claim]
    if test.kind != "fails":
        # A run with a value comes before a run without one; otherwise the order stays. The claim
        # that a case fails needs no value.
        evidence.sort(key=lambda of_run: not _has_value(of_run.by_test))
    measured: list[JudgedValue] = []
    for value in _of_first_runs([_Values(of_run.machine, of_run.by_test) for of_run in evidence]):
        measured.append(JudgedValue(value, rules.verdict_on_value(claim, test, value)))
    # The same for the values by the published method, and for the shares of the named part.
    flawed = _of_first_runs(
        [_Values(of_run.machine, of_run.flawed) for of_run in evidence if _has_value(of_run.flawed)]
    )
    shares = _of_first_runs(
        [_Values(of_run.machine, of_run.shares) for of_run in evidence if _has_value(of_run.shares)]
    )

    # The verdict on the claim, and for a refuted one whether the effect has another size.
    verdict = rules.overall_verdict([judged.verdict for judged in measured])
    size: Size = ""
    if verdict == "refuted":
        size = rules.size_beside_published(claim, test, [judged.value for judged in measured])
    return Judged(
        claim,
        source,
        verdict,
        measured=tuple(measured),
        flawed=flawed,
        as_published=_verdict_on_flawed(claim, flawed),
        shares=shares,
        attribution=rules.attribution_verdict(shares),
        measuring=how_to_measure(test, claim.flawed),
        size=size,
    )


def _verdict_on_flawed(claim: Claim, flawed: Sequence[ClaimValue]) -> ClaimVerdict | Literal[""]:
    """The verdict on the values that the flawed published method gives; '' without one."""
    if claim.flawed is None or not flawed:
        return ""
    verdicts = [rules.verdict_on_value(claim, claim.flawed, value) for value in flawed]
    return rules.overall_verdict(verdicts)


class _Values(NamedTuple):
    """The values of one run on a machine."""

    machine: str
    values: Sequence[ClaimValue]


def _of_first_runs(runs: Iterable[_Values]) -> tuple[ClaimValue, ...]:
    """The values of one run of each machine, its first in ``runs``: several runs of a machine would
    count it several times.
    """
    # Earlier runs in the list win.
    first: dict[str, Sequence[ClaimValue]] = {}
    for run in runs:
        first.setdefault(run.machine, run.values)
    values: list[ClaimValue] = []
    for of_machine in first.values():
        values += of_machine
    return tuple(values)


def _has_value(values: Sequence[ClaimValue]) -> bool:
    """Whether one of these was measured: the others only say why they were not."""
    return any(value.measured for value in values)


def by_verdict(judged_claims: Sequence[Judged]) -> list[Judged]:
    """The claims sorted by verdict, in the order of ``VERDICTS``."""
    return sorted(judged_claims, key=lambda judged: VERDICTS.index(judged.verdict))
