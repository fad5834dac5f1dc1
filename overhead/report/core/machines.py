"""The machines of the report: a summary of every run, and the whole fingerprint of the machine shown in full."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from overhead.errors import UsageError
from overhead.loading.folders import Skipped, Used, each
from overhead.loading.reduce import load_file
from overhead.reading.shown_run import run_to_show
from overhead.report.core.run_summary import RunSummary, summarise
from overhead.results import Fingerprint, same_figures


@dataclasses.dataclass(frozen=True)
class Machines:
    """One summary per machine, of the run that its page shows: first the machine shown in full, then the newest first.

    ``kept``: of every run, what ``keeps`` asks for, by name. ``full``: the run of the first machine that is shown.
    ``others``: its other runs, the newest first, that form figures in the same way and set the same variables.
    """

    summaries: Sequence[RunSummary]
    kept: Sequence[Mapping[str, Any]]
    full: Fingerprint
    others: Sequence[Fingerprint] = ()
    skipped: Sequence[Skipped] = ()

    @property
    def own(self) -> RunSummary:
        return self.summaries[0]


def from_paths(paths: Sequence[Path]) -> Machines:
    """The machines in these files and folders. Raises ``BadFile``.

    The machine of the newest run in the first path that has one is shown in full. Runs with workloads alone count
    only if there is no other run.
    """
    found = list(each(paths, summarise))
    used = [one for one in found if isinstance(one, Used)]
    argument = min(one.argument for one in used)
    skipped = [one for one in found if isinstance(one, Skipped)]
    summaries = [one.result for one in used]
    candidates = [i for i, one in enumerate(used) if one.argument == argument]
    return _machines(summaries, candidates, lambda i: load_file(used[i].path), skipped)


def from_fingerprints(fingerprints: Iterable[Fingerprint], skipped: Sequence[Skipped] = ()) -> Machines:
    """The machines of these runs in memory. Raises ``UsageError`` if there are no runs."""
    runs = list(fingerprints)
    if not runs:
        raise UsageError("no fingerprint to draw")
    return _machines([summarise(run) for run in runs], range(len(runs)), runs.__getitem__, skipped)


def _rank(run: RunSummary) -> tuple[bool, str]:
    """Sort key: runs with plain cases above runs of workloads alone, then by date."""
    return bool(run.ways), run.created


def _machines(
    summaries: Sequence[RunSummary],
    candidates: Iterable[int],
    run: Callable[[int], Fingerprint],
    skipped: Sequence[Skipped],
) -> Machines:
    """The machines of all runs. The highest ranked of ``candidates`` gives the machine shown in full.

    ``candidates``: indices of runs. ``run``: loads the run of an index."""
    shown = max(candidates, key=lambda i: _rank(summaries[i]))
    by_machine: dict[str, list[int]] = {summaries[shown].machine.id: []}
    for i in sorted(range(len(summaries)), key=lambda i: _rank(summaries[i]), reverse=True):
        by_machine.setdefault(summaries[i].machine.id, []).append(i)

    shown_runs = []
    for runs in by_machine.values():
        runs.sort(key=lambda i: summaries[i].created, reverse=True)
        shown_runs.append(runs[run_to_show([summaries[i].measured for i in runs])])
    full = run(shown_runs[0])
    others = [run(i) for i in next(iter(by_machine.values())) if i != shown_runs[0]]
    alike = [
        one
        for one in others
        if same_figures(one.method_version, full.method_version) and one.environment == full.environment
    ]
    kept = [one.kept for one in summaries]
    return Machines([summaries[i] for i in shown_runs], kept, full, alike, skipped)
