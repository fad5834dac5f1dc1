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
from overhead.claims.judging import RunEvidence, judge_evidence
from overhead.errors import UsageError
from overhead.loading.folders import Skipped, Used, each
from overhead.loading.reduce import load
from overhead.reading.joined_runs import joined_run, run_by_place, run_to_show
from overhead.report.core.digest import Digest, digest
from overhead.results import Fingerprint


@dataclasses.dataclass(frozen=True)
class Machines:
    """Each machine by its newest whole run, with what only its other runs measured: the machine that is shown in full
    first, then newest first.

    ``evidence`` is of every run. ``full`` is the first machine's fingerprint, its runs joined.
    """

    digests: Sequence[Digest]
    evidence: Sequence[RunEvidence]
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
    """Read files and folders. The machine of the newest run of the first path that holds one is shown in full, of
    workloads alone only where there is no other.

    ``mapping`` may be that of a pool of processes. Raises ``BadFile``.
    """
    with _uncollected():
        found = list(each(paths, digest, mapping))
    used = [one for one in found if isinstance(one, Used)]
    argument = min(one.argument for one in used)
    skipped = [one for one in found if isinstance(one, Skipped)]
    digests = [one.result for one in used]
    candidates = [i for i, one in enumerate(used) if one.argument == argument]
    return _machines(digests, candidates, lambda i: load(used[i].path), skipped)


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
    """The same of runs in memory. Raises ``UsageError`` where there is none."""
    runs = list(fingerprints)
    if not runs:
        raise UsageError("no fingerprint to draw")
    return _machines([digest(run) for run in runs], range(len(runs)), runs.__getitem__, skipped)


def _rank(run: Digest) -> tuple[bool, str]:
    """Runs of workloads alone come last, then the newest comes first."""
    return bool(run.ways), run.created


def _machines(
    digests: Sequence[Digest], candidates: Iterable[int], run: Callable[[int], Fingerprint], skipped: Sequence[Skipped]
) -> Machines:
    """``candidates``: runs of which the first by rank names the machine that is shown in full. ``run`` gives one."""
    shown = max(candidates, key=lambda i: _rank(digests[i]))
    of: dict[str, list[int]] = {digests[shown].machine.id: []}
    for i in sorted(range(len(digests)), key=lambda i: _rank(digests[i]), reverse=True):
        of.setdefault(digests[i].machine.id, []).append(i)

    def whole(machine: Iterable[int]) -> Fingerprint:
        """A machine's runs as one."""
        runs = sorted(machine, key=lambda i: digests[i].created, reverse=True)
        have = [digests[i].measured for i in runs]
        head, places = run_to_show(have), run_by_place(have)
        return joined_run({k: run(runs[k]) for k in sorted({head, *places.values()})}, head, places)

    own, *others = of.values()
    full = whole(own)
    each_machine = [digest(full), *(digest(whole(runs)) if runs[1:] else digests[runs[0]] for runs in others)]
    return Machines(each_machine, [one.evidence for one in digests], full, skipped)
