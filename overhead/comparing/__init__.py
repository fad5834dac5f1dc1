"""Compare two sets of runs case by case: faster, slower, same or undecided. docs/compare.md has the
method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from overhead import results
from overhead.comparing.judge import changed_versions, verdicts, verdicts_across
from overhead.comparing.sides import read_side
from overhead.comparing.verdicts import CaseVerdict, Difference, Verdict, Verdicts
from overhead.errors import BadFile, UsageError

__all__ = ["CaseVerdict", "Difference", "Verdict", "Verdicts", "changed_versions", "compare"]

Paths = str | Path | Sequence[str | Path]


def compare(
    base: Paths,
    new: Paths | None = None,
    fail_over: float | None = None,
    *,
    across: str | None = None,
) -> Verdicts:
    """The verdicts on ``new`` against ``base``: each is a fingerprint, a journal, a folder, or
    several of them.

    ``fail_over`` (per cent): a case fails if its whole corrected interval is slower by more than
    this. ``across``, in place of ``new``: compare variants inside each run of ``base``, such as
    ``wait=stream,event``, with the first. Raises ``UsageError`` if ``fail_over`` is negative or not
    finite, if both sides hold one run and ``fail_over`` is given, or if no case is as ``across``
    says, and ``BadFile`` if a file is bad or the method versions differ.
    """
    if fail_over is not None and not (math.isfinite(fail_over) and fail_over >= 0):
        raise UsageError(f"--fail-over {fail_over}: must be a percentage of 0 or more")
    if (new is None) == (across is None):
        raise UsageError("compare takes BASE and NEW, or one RUN and --across AXIS=VALUE,VALUE")
    if across is not None:
        return verdicts_across(read_side("RUN", _paths(base)), across, fail_over)
    left, right = read_side("BASE", _paths(base)), read_side("NEW", _paths(new or ()))
    mine, theirs = (side.runs[0].fingerprint.method_version for side in (left, right))
    if not results.same_figures(mine, theirs):
        raise BadFile(
            f"method_version is {theirs}, that of {left.runs[0].path} is {mine}; "
            "figures of these methods cannot be compared",
            right.runs[0].path,
        )
    if fail_over is not None and (both := left.held_too(right)):
        raise UsageError(
            f"{both.path}: this run, or a copy of it, is on both sides; --fail-over needs two runs"
        )
    return verdicts(left, right, fail_over)


def _paths(given: Paths) -> list[Path]:
    return [Path(given)] if isinstance(given, str | Path) else [Path(path) for path in given]
