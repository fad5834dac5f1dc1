"""Compare two sets of runs case by case: faster, slower, same or undecided. docs/compare.md has the method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from overhead import results
from overhead.comparing.judge import verdicts
from overhead.comparing.sides import read_side
from overhead.comparing.verdicts import CaseVerdict, Difference, Verdict, Verdicts
from overhead.errors import BadFile, UsageError

__all__ = ["CaseVerdict", "Difference", "Verdict", "Verdicts", "compare"]

Paths = str | Path | Sequence[str | Path]


def compare(base: Paths, new: Paths, fail_over: float | None = None) -> Verdicts:
    """The verdicts on ``new`` against ``base``: each is a fingerprint, a journal, a folder, or several of them.

    ``fail_over`` (per cent): a case fails if its whole corrected interval is slower by more than this.
    Raises ``UsageError`` if ``fail_over`` is negative or not finite, or if both sides hold one run and ``fail_over`` is
    given, and ``BadFile`` if a file is bad or the method versions differ.
    """
    if fail_over is not None and not (math.isfinite(fail_over) and fail_over >= 0):
        raise UsageError(f"--fail-over {fail_over}: must be a percentage of 0 or more")
    left, right = read_side("BASE", _paths(base)), read_side("NEW", _paths(new))
    mine, theirs = (side.runs[0].fingerprint.method_version for side in (left, right))
    if not results.same_figures(mine, theirs):
        raise BadFile(
            f"{right.runs[0].path}: method_version is {theirs}, that of {left.runs[0].path} is {mine}; "
            "figures of these methods cannot be compared"
        )
    if fail_over is not None and (both := set(left.identities) & set(right.identities)):
        path = left.identities[both.pop()].path
        raise UsageError(f"{path}: this run is on both sides; --fail-over needs two runs")
    return verdicts(left, right, fail_over)


def _paths(given: Paths) -> list[Path]:
    return [Path(given)] if isinstance(given, str | Path) else [Path(path) for path in given]
