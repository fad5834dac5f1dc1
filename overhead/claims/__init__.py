"""Test published claims with measured runs. See docs/claims.md for the registry and how to add a claim."""

from __future__ import annotations

from overhead.claims.judging import Judged, judge, judge_runs
from overhead.claims.registry import Claim, PublishedPoint, Source, claims, published_points, sources
from overhead.claims.rules import VERDICTS, ClaimVerdict

__all__ = [
    "VERDICTS",
    "Claim",
    "ClaimVerdict",
    "Judged",
    "PublishedPoint",
    "Source",
    "claims",
    "judge",
    "judge_runs",
    "published_points",
    "sources",
]
