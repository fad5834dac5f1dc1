"""Compare two sets of runs case by case: faster, slower, same or undecided. docs/compare.md has the
method.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from overhead import results
from overhead.comparing.judge import changed_versions, verdicts, verdicts_across
from overhead.comparing.sides import LoadedRun, Side, read_side
from overhead.comparing.verdicts import CaseVerdict, Difference, Verdict, Verdicts
from overhead.errors import BadFile, UsageError

__all__ = ["CaseVerdict", "Difference", "Verdict", "Verdicts", "changed_versions", "compare"]

ToCompare = str | Path | LoadedRun
"""A file, a folder, or a run whose fingerprint is in memory, such as what ``overhead.run``
returns.
"""


def compare(
    base: ToCompare | Sequence[ToCompare],
    new: ToCompare | Sequence[ToCompare] | None = None,
    fail_over: float | None = None,
    *,
    across: str | None = None,
) -> Verdicts:
    """The verdicts on ``new`` against ``base``: each is a fingerprint, a journal, a folder, what
    ``overhead.run`` returned, or several of them.

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
        return verdicts_across(read_side("RUN", _listed(base)), across, fail_over)
    base_side = read_side("BASE", _listed(base))
    new_side = read_side("NEW", _listed(new or ()))
    _refuse_other_method(base_side, new_side)
    # A gate on one run against itself would always pass.
    if fail_over is not None:
        shared = base_side.held_too(new_side)
        if shared is not None:
            raise UsageError(
                f"{shared.path}: this run, or a copy of it, is on both sides; --fail-over needs two"
                " runs"
            )
    return verdicts(base_side, new_side, fail_over)


def _refuse_other_method(base: Side, new: Side) -> None:
    """Raise ``BadFile`` if the two sides were measured by versions of the method whose figures mean
    different things. All runs of a side have the same version, so the first of each tells.
    ``same_figures``: some versions differ and their figures mean the same.
    """
    base_run = base.runs[0]
    new_run = new.runs[0]
    base_version = base_run.fingerprint.method_version
    new_version = new_run.fingerprint.method_version
    if not results.same_figures(base_version, new_version):
        raise BadFile(
            f"method_version is {new_version}, that of {base_run.path} is {base_version}; "
            "figures of these methods cannot be compared",
            new_run.path,
        )


def _listed(given: ToCompare | Sequence[ToCompare]) -> list[Path | LoadedRun]:
    """What a caller gave for a side, one run or several, as a list: text becomes a path."""
    # Text is a sequence too, of letters. A single run becomes a list of one.
    if isinstance(given, str) or not isinstance(given, Sequence):
        return _listed([given])
    members: list[Path | LoadedRun] = []
    for member in given:
        members.append(Path(member) if isinstance(member, str) else member)
    return members
