"""From paths to what the pages show: of every run its digest alone, but for the machine that is shown in full."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from overhead.claims import Judged
from overhead.claims.judging import Evidence, judge_evidence
from overhead.collection import Skipped, Used, each
from overhead.errors import UsageError
from overhead.reduce import load
from overhead.report.digest import Digest, completed, digest
from overhead.results import Fingerprint


@dataclasses.dataclass(frozen=True)
class Machines:
    """Each machine by its newest run that measured a plain unit, with what only its other runs measured: the machine
    that is shown in full first, then newest first.

    ``evidence`` is of every run. ``full`` is the first machine's fingerprint.
    """

    digests: Sequence[Digest]
    evidence: Sequence[Evidence]
    full: Fingerprint
    skipped: Sequence[Skipped] = ()

    @property
    def own(self) -> Digest:
        return self.digests[0]

    @cached_property
    def judged(self) -> list[Judged]:
        """Every published claim, judged by all the runs."""
        return judge_evidence(self.evidence)


def from_paths(paths: Sequence[Path], mapping: Callable[..., Iterable[Any]] = map) -> Machines:
    """Read files and folders. The newest run of the first path that holds one is shown in full, one of workloads alone
    only where there is no other.

    ``mapping`` may be that of a pool of processes. Raises ``BadFile``.
    """
    with _uncollected():
        found = list(each(paths, digest, mapping))
    used = [one for one in found if isinstance(one, Used)]
    first = max(used, key=lambda one: (-one.argument, *_rank(one.result)))
    skipped = [one for one in found if isinstance(one, Skipped)]
    return _machines([one.result for one in used], first.result, load(first.path), skipped)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles: what is kept of a run has none, and looking through it again and again takes a
    quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def from_fingerprints(fingerprints: Iterable[Fingerprint], skipped: Sequence[Skipped] = ()) -> Machines:
    """The same of runs in memory, the one shown in full chosen alike. Raises ``UsageError`` where there is none."""
    runs = list(fingerprints)
    if not runs:
        raise UsageError("no fingerprint to draw")
    digests = [digest(run) for run in runs]
    shown = max(range(len(runs)), key=lambda i: _rank(digests[i]))
    return _machines(digests, digests[shown], runs[shown], skipped)


def _rank(run: Digest) -> tuple[bool, str]:
    """Runs of workloads alone come last, then the newest comes first."""
    return bool(run.ways), run.created


def _machines(digests: Sequence[Digest], first: Digest, full: Fingerprint, skipped: Sequence[Skipped]) -> Machines:
    runs: dict[str, list[Digest]] = {first.machine.id: [first]}
    for one in sorted(digests, key=_rank, reverse=True):
        if one is not first:
            runs.setdefault(one.machine.id, []).append(one)
    shown = [completed(newest, others) for newest, *others in runs.values()]
    return Machines(shown, [one.evidence for one in digests], full, skipped)
