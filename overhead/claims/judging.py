"""Give each published claim a verdict, from the newest run of each machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from overhead.claims.measured import ClaimValue, measure
from overhead.claims.registry import Claim, Source, claims, sources
from overhead.claims.rules import VERDICTS, ClaimVerdict, implied, of_one, overall
from overhead.claims.select import making
from overhead.claims.sentences import explain
from overhead.loading.folders import collect, report_skipped
from overhead.reading.view import View
from overhead.results import Fingerprint


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, the sentence that explains the verdict, and the measured values.

    ``measured``: each value with its own verdict. ``flawed``: the values that the flawed published method gives.
    ``making``: the command that measures what the test needs; '' if no measurement can test the claim.
    """

    claim: Claim
    source: Source
    verdict: ClaimVerdict
    sentence: str
    measured: tuple[tuple[ClaimValue, ClaimVerdict], ...] = ()
    flawed: tuple[ClaimValue, ...] = ()
    making: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The same data as dicts and lists that ``json`` can write."""
        return {
            "id": self.claim.id,
            "verdict": self.verdict,
            "sentence": self.sentence,
            "claim": _finite(msgspec.to_builtins(self.claim)),
            "source": msgspec.to_builtins(self.source),
            "measured": [{**asdict(one), "verdict": verdict} for one, verdict in self.measured],
            "flawed": [asdict(one) for one in self.flawed],
            "making": self.making,
        }


def judge(paths: Sequence[Path]) -> list[Judged]:
    """The verdict on every claim, from these fingerprints, journals and folders.

    Raises ``BadFile`` if the only file is bad. Among several, a bad file is skipped and listed on standard error.
    """
    loaded, skipped = collect(paths)
    report_skipped(skipped)
    return judge_runs([one.fingerprint for one in loaded])


def judge_runs(runs: Iterable[Fingerprint]) -> list[Judged]:
    """The verdict on every claim, from runs in memory. Keeps only the needed values of each run."""
    return judge_evidence([gather(View(run)) for run in runs])


@dataclass(frozen=True)
class RunEvidence:
    """The values of one run by claim id. ``flawed``: the values that the flawed published methods give."""

    machine: str
    created: str
    found: dict[str, list[ClaimValue]]
    flawed: dict[str, list[ClaimValue]]


def gather(view: View) -> RunEvidence:
    """The values that one run has for each claim."""
    found: dict[str, list[ClaimValue]] = {}
    flawed: dict[str, list[ClaimValue]] = {}
    for claim in claims():
        if claim.test is None or claim.test.kind == "implied" or not (own := measure(claim.test, view)):
            continue
        found[claim.id] = own
        flawed[claim.id] = measure(claim.flawed, view) if claim.flawed else []
    run = view.fingerprint
    return RunEvidence(run.machine.id, run.created, found, flawed)


def judge_evidence(runs: Sequence[RunEvidence]) -> list[Judged]:
    """The verdict on every claim, from the values of the runs.

    For each machine the newest run with a value is used. If no run has a value, or the claim says that a case fails,
    the newest run with the records is used.
    """
    ordered = sorted(runs, key=lambda run: run.created, reverse=True)
    return [_judged(claim, ordered) for claim in claims()]


def _judged(claim: Claim, runs: Sequence[RunEvidence]) -> Judged:
    source, test = sources()[claim.source], claim.test
    if test is None:
        return Judged(claim, source, "not testable here", claim.untested)
    if test.kind == "implied":
        verdict: ClaimVerdict = "refuted" if implied(claim, test) > test.limit else "inconclusive"
        return Judged(claim, source, verdict, explain(claim, verdict, (), ()))
    with_records = [run for run in runs if claim.id in run.found]
    if test.kind != "fails":
        with_records.sort(key=lambda run: not _valued(run.found[claim.id]))
    newest: dict[str, RunEvidence] = {}
    for run in with_records:
        newest.setdefault(run.machine, run)
    measured = tuple((one, of_one(claim, test, one)) for run in newest.values() for one in run.found[claim.id])
    flawed = tuple(one for run in newest.values() for one in run.flawed[claim.id])
    verdict = overall([each for _, each in measured])
    sentence = explain(claim, verdict, measured, flawed)
    return Judged(claim, source, verdict, sentence, measured, flawed, making(test, claim.flawed))


def _valued(found: Sequence[ClaimValue]) -> bool:
    return any(one.value is not None for one in found)


def _finite(value: Any) -> Any:
    """The value with None for infinite numbers, because JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value


def summary(found: Sequence[Judged]) -> str:
    """A sentence that counts the claims by verdict."""
    counts = Counter(one.verdict for one in found)
    said = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
    return f"{len(found)} published claims: {said}."


def ordered(found: Sequence[Judged]) -> list[Judged]:
    """The claims sorted by verdict, in the order of ``VERDICTS``."""
    return sorted(found, key=lambda one: VERDICTS.index(one.verdict))
