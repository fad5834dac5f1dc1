"""Give each published claim a verdict, from the newest run of each machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from overhead.claims.measured import ClaimValue, measure
from overhead.claims.registry import Claim, Source, claims, sources
from overhead.claims.rules import VERDICTS, AttributionVerdict, ClaimVerdict, attributed, implied, of_one, overall
from overhead.claims.select import making
from overhead.claims.sentences import explain, other_hardware
from overhead.loading.folders import load_paths, report_skipped
from overhead.reading.format import count
from overhead.reading.shown_run import MeasuredSteps, measured_steps, run_to_show
from overhead.reading.view import View
from overhead.results import Fingerprint


@dataclass(frozen=True)
class Judged:
    """A claim, the verdicts on it, the sentence that explains them, and the measured values.

    ``verdict``: of the number, measured like for like. ``as_published``: of the number that the published method gives,
    where the registry holds a flaw of it. ``attribution``: whether the number is the cost of what the source says.
    ``measured``: each value with its own verdict. ``flawed``: the values that the published method gives; ``shares``:
    the share that the named part has of the number.
    ``making``: the command that measures what the test needs; '' if no measurement can test the claim.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    sentence: str
    measured: tuple[tuple[ClaimValue, ClaimVerdict], ...] = ()
    flawed: tuple[ClaimValue, ...] = ()
    as_published: ClaimVerdict | Literal[""] = ""
    shares: tuple[ClaimValue, ...] = ()
    attribution: AttributionVerdict = ""
    making: str = ""

    @property
    def told(self) -> str:
        """The verdict in words, with what it rests on where that is not a measurement on the same kind of hardware."""
        if self.claim.test is not None and self.claim.test.kind == "implied":
            return f"{self.verdict} by its own published figures"
        other = other_hardware(self.claim, self.verdict, [one for one, _ in self.measured])
        return self.verdict + (f"; {other}" if other else "")

    def to_dict(self) -> dict[str, Any]:
        """The same data as dicts and lists that ``json`` can write."""
        return {
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
    """The verdict on every claim, from runs in memory. Keeps only the needed values of each run."""
    return judge_evidence([gather(View(run)) for run in runs])


@dataclass(frozen=True)
class RunEvidence:
    """What one run measured of the step (``cases``), and its values by claim id.

    ``found``: the values of the test, those that the flawed published method gives, and those of the attribution.
    """

    machine: str
    created: str
    cases: MeasuredSteps
    found: dict[str, tuple[list[ClaimValue], list[ClaimValue], list[ClaimValue]]]


def gather(view: View) -> RunEvidence:
    """The values that one run has for each claim."""
    run = view.fingerprint
    evidence = RunEvidence(run.machine.id, run.created, measured_steps(run), {})
    for claim in claims():
        if claim.test is None or claim.test.kind == "implied" or not (own := measure(claim.test, view)):
            continue
        flawed = measure(claim.flawed, view) if claim.flawed else []
        evidence.found[claim.id] = own, flawed, measure(claim.attribution.test, view) if claim.attribution else []
    return evidence


def judge_evidence(runs: Sequence[RunEvidence]) -> list[Judged]:
    """The verdict on every claim, from the values of the runs.

    For each machine the run that its page shows in full is used if it has a value, so that a claim and a key figure
    agree; else the newest run with a value, those that set no environment variables first. If no run has a value, or
    the claim says that a case fails, the first of them with the records is used.
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
        return Judged(claim, source, "not testable here", claim.untested)
    if test.kind == "implied":
        verdict: ClaimVerdict = "refuted" if implied(claim, test) > test.limit else "inconclusive"
        return Judged(claim, source, verdict, explain(claim, verdict, (), ()))
    held = [(run.machine, run.found[claim.id]) for run in runs if claim.id in run.found]
    if test.kind != "fails":
        held.sort(key=lambda one: not _valued(one[1][0]))
    measured = tuple((one, of_one(claim, test, one)) for one in _of_first((m, own) for m, (own, _, _) in held))
    flawed = _of_first((machine, own) for machine, (_, own, _) in held if _valued(own))
    shares = _of_first((machine, own) for machine, (_, _, own) in held if _valued(own))
    verdict = overall([each for _, each in measured])
    return Judged(
        claim,
        source,
        verdict,
        explain(claim, verdict, measured, flawed, shares),
        measured,
        flawed,
        overall([of_one(claim, claim.flawed, one) for one in flawed]) if claim.flawed and flawed else "",
        shares,
        attributed(shares),
        making(test, claim.flawed),
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
    """A sentence that counts the claims by verdict."""
    alone = [one for one in found if one.claim.test is not None and one.claim.test.kind == "implied"]
    counts = Counter(one.verdict for one in found if one not in alone)
    told = Counter(one.told for one in alone)
    said = [f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]]
    said += [f"{times} {words}" for words, times in told.items()]
    wrong = sum(one.attribution == "wrong" for one in found)
    blamed = f" {count(wrong, 'number')} attributed to the wrong part." if wrong else ""
    return f"{len(found)} published claims: {', '.join(said)}.{blamed}"


def ordered(found: Sequence[Judged]) -> list[Judged]:
    """The claims sorted by verdict, in the order of ``VERDICTS``."""
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))
