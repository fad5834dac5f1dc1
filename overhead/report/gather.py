"""From paths to what the pages show: one run held at a time, but for the machine that is shown in full."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from overhead.claims import Judged
from overhead.claims.judging import Evidence, judge_evidence
from overhead.collection import Loaded, Skipped, each
from overhead.errors import UsageError
from overhead.report.digest import Digest, digest
from overhead.results import Fingerprint


@dataclasses.dataclass(frozen=True)
class Machines:
    """The newest run of each machine: the one that is shown in full first, then newest first.

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


def from_paths(paths: Sequence[Path]) -> Machines:
    """Read files and folders. The newest run of the first path that holds one is shown in full. Raises ``BadFile``."""
    return _gather(each(paths))


def from_fingerprints(fingerprints: Iterable[Fingerprint], skipped: Sequence[Skipped] = ()) -> Machines:
    """The same of runs in memory; the newest one is shown in full. Raises ``UsageError`` where there is none."""
    return _gather([*skipped, *(Loaded(Path(), one) for one in fingerprints)])


def _gather(found: Iterable[Loaded | Skipped]) -> Machines:
    newest: dict[str, Digest] = {}
    evidence: list[Evidence] = []
    skipped: list[Skipped] = []
    full: Fingerprint | None = None
    first = (0, "")
    for one in found:
        if isinstance(one, Skipped):
            skipped.append(one)
            continue
        run, own = one.fingerprint, digest(one.fingerprint, one.argument)
        evidence.append(own.evidence)
        if run.machine.id not in newest or newest[run.machine.id].created < run.created:
            newest[run.machine.id] = own
        if full is None or (-one.argument, run.created) > first:
            full, first = run, (-one.argument, run.created)
    if full is None:
        raise UsageError("no fingerprint to draw")
    shown = newest[full.machine.id]
    others = sorted((d for d in newest.values() if d is not shown), key=lambda d: d.created, reverse=True)
    return Machines([shown, *others], evidence, full, skipped)
