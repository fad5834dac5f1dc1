"""Which of a machine's runs its pages show: the newest that measured the step completely."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from overhead.results import VALUED, Fingerprint

_COMPLETE_SHARE = 0.5
"""A run is complete if it has this share of the stacks, and then of the records, of the largest run."""


@dataclasses.dataclass(frozen=True)
class MeasuredSteps:
    """Stacks and number of the records of the step that have a value, and the variables set for the workers."""

    stacks: frozenset[tuple[str, str, str]]
    records: int
    environment: Mapping[str, str]


def measured_steps(run: Fingerprint) -> MeasuredSteps:
    """What the run has of the step."""
    own = [r for r in run.records if r.status in VALUED and r.workload == "step"]
    return MeasuredSteps(frozenset((r.stack, r.api, r.adapter) for r in own), len(own), run.environment)


def run_to_show(runs: Sequence[MeasuredSteps]) -> int:
    """Index of the run to show. ``runs``: newest first. Runs that set no environment variables come first."""
    stacks = [len(run.stacks) for run in runs]
    broad = [i for i in range(len(runs)) if stacks[i] >= _COMPLETE_SHARE * max(stacks)]
    least = _COMPLETE_SHARE * max(runs[i].records for i in broad)
    return min(
        range(len(runs)),
        key=lambda i: (i not in broad or runs[i].records < least, bool(runs[i].environment), i),
    )
