"""A rule on published figures: how many of them these runs reproduce and refute."""

from __future__ import annotations

import dataclasses
import itertools

from overhead.claims.judging import Judged, gather_evidence, judge_evidence
from overhead.claims.rules import ClaimVerdict
from overhead.reading.findings import Finding, RunsAtHand, rule_of_runs

TOLD: tuple[ClaimVerdict, ...] = ("reproduced", "partial", "refuted")
"""Verdicts that a measurement gave, in this order; the others say that it gave none."""


@dataclasses.dataclass(frozen=True)
class ClaimsJudged:
    """The published claims by the verdict on them, of ``TOLD`` alone, and ``every`` claim."""

    by_verdict: dict[ClaimVerdict, list[Judged]]
    every: list[Judged]


@rule_of_runs("claims", "figures", place=1, page="claims")
def published_claims(runs: RunsAtHand) -> Finding | None:
    """How many published figures the runs reproduce; None where none of them has a measured
    verdict.
    """
    judged_by = runs.every or (runs.shown,)
    judged_claims = judge_evidence([view.once(gather_evidence) for view in judged_by])
    by_verdict: dict[ClaimVerdict, list[Judged]] = {}
    for verdict in TOLD:
        of_verdict = [claim for claim in judged_claims if claim.verdict == verdict]
        if of_verdict:
            by_verdict[verdict] = of_verdict
    # Claims that their own published figures decide need no run.
    told = itertools.chain.from_iterable(by_verdict.values())
    if all(claim.is_implied for claim in told):
        return None
    return Finding(ClaimsJudged(by_verdict, judged_claims), 1.0, ())
