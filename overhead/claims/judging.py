"""Every claim of the registry against the newest run of each machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec

from overhead.claims.measured import Measured, measure
from overhead.claims.registry import Claim, Source, claims, sources
from overhead.claims.rules import Verdict, implied, of_one, overall
from overhead.claims.select import making
from overhead.claims.sentences import explain
from overhead.collection import collect, tell
from overhead.results import Fingerprint


@dataclass(frozen=True)
class Judged:
    """A claim, its verdict, the sentence that explains it, and what it rests on.

    ``measured`` with the verdict of each target; ``flawed`` the quantity with the published flaw put back; ``making``
    the command that would measure what the test needs, '' where no record can tell.
    """

    claim: Claim
    source: Source
    verdict: Verdict
    sentence: str
    measured: tuple[tuple[Measured, Verdict], ...] = ()
    flawed: tuple[Measured, ...] = ()
    making: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As dicts and lists that ``json`` can write."""
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
    """Judge every claim from these fingerprints, journals and folders.

    A bad file named alone raises ``BadFile``; among several it is skipped and listed on standard error.
    """
    loaded, skipped = collect(paths)
    tell(skipped)
    return judge_runs([one.fingerprint for one in loaded])


def judge_runs(runs: Sequence[Fingerprint]) -> list[Judged]:
    """Judge every claim; of each machine its newest run that has the records."""
    ordered = sorted(runs, key=lambda run: run.created, reverse=True)
    return [_judged(claim, ordered) for claim in claims()]


def _judged(claim: Claim, runs: Sequence[Fingerprint]) -> Judged:
    source, test = sources()[claim.source], claim.test
    if test is None:
        return Judged(claim, source, "not testable here", claim.untested)
    if test.kind == "implied":
        verdict: Verdict = "refuted" if implied(claim, test) > test.limit else "inconclusive"
        return Judged(claim, source, verdict, explain(claim, verdict, (), ()))
    machines: dict[str, list[Measured]] = {}
    flawed: dict[str, list[Measured]] = {}
    for run in runs:
        if run.machine.id not in machines and (found := measure(test, run)):
            machines[run.machine.id] = found
            flawed[run.machine.id] = measure(claim.flawed, run) if claim.flawed else []
    measured = tuple((one, of_one(claim, test, one)) for found in machines.values() for one in found)
    back = tuple(one for found in flawed.values() for one in found)
    verdict = overall([each for _, each in measured])
    sentence = explain(claim, verdict, measured, back)
    return Judged(claim, source, verdict, sentence, measured, back, making(test, claim.flawed))


def _finite(value: Any) -> Any:
    """Infinite bounds as null: JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and value in (float("inf"), float("-inf")) else value
