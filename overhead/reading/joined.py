"""Several runs of one machine shown as one.

A workload at one size is taken from one run, as its arms are compared; of the step, whose cases are figures of their
own, other runs add the cases that the one lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from overhead.reading.chains import variant_of
from overhead.results import VALUED, Fingerprint, Record

WHOLE = 0.5
"""A run measured a group whole if it has this share of the records of the run that has most of it."""
STEP = "step"
Place = tuple[str, str, str, str, str]
"""Group (the step, or a workload in one variant and size), stack, API, adapter, and of the step the case: a run's
records of a place stay together."""
Measured = Mapping[Place, int]
"""Records with a value by place."""


def measured(run: Fingerprint) -> Measured:
    """How many records with a value the run has of each place."""
    return Counter(_place(record) for record in run.records if record.status in VALUED)


def of_group(measured: Measured, group: str) -> int:
    """Records with a value of a group."""
    return sum(count for place, count in measured.items() if place[0] == group)


def first(runs: Sequence[Measured]) -> int:
    """Of runs, newest first, the one to show in full: the newest that measured the step whole, else the newest."""
    return _preferred(runs, STEP)[0]


def sources(runs: Sequence[Measured]) -> dict[Place, int]:
    """By place the run that it is taken from, of runs newest first.

    A group is taken from the newest run that measured it whole, and what that run lacks from the others.
    """
    found: dict[Place, int] = {}
    for group in dict.fromkeys(place[0] for run in runs for place in run):
        for i in _preferred(runs, group):
            for place in runs[i]:
                if place[0] == group:
                    found.setdefault(place, i)
    return found


def _preferred(runs: Sequence[Measured], group: str) -> list[int]:
    counts = [of_group(run, group) for run in runs]
    return sorted(range(len(runs)), key=lambda i: counts[i] < WHOLE * max(counts))


def joined(runs: Mapping[int, Fingerprint], head: int, places: Mapping[Place, int]) -> Fingerprint:
    """The run ``head`` with what others add to it, by ``places``: where each place is taken from.

    Runs by another version of the method are left out, and what a stack did on another device of the same name than the
    one shown. Comparisons stay those of the run that made them.
    """
    shown = runs[head]
    used = {head: shown, **{i: run for i, run in runs.items() if run.method_version == shown.method_version}}
    devices = {_place(record)[1:4]: record.device for record in shown.records}
    wanted = {i: [r for r in run.records if places.get(_place(r), head) == i] for i, run in used.items()}
    taken = {i: [r for r in own if devices.get(_place(r)[1:4], r.device) == r.device] for i, own in wanted.items()}
    keys = {i: {record.key for record in records} for i, records in taken.items()}
    records = [record for own in taken.values() for record in own]
    known, stacks = set().union(*keys.values()), {record.stack for record in records if record.status in VALUED}
    return msgspec.structs.replace(
        shown,
        records=records,
        comparisons=[c for i, run in used.items() for c in run.comparisons if c.of in keys[i]],
        kernels=_first_of(run.kernels for run in used.values()),
        versions=_first_of(run.versions for run in used.values()),
        unavailable=[missing for missing in shown.unavailable if missing.stack not in stacks],
        left_out=[left for left in shown.left_out if f"{left.target} {left.case}" not in known],
        flags=[
            *shown.flags,
            *(_words(run, taken[i], taken[head]) for i, run in used.items() if i != head and taken[i]),
        ],
    )


def _place(record: Record) -> Place:
    stack = record.stack, record.api, record.adapter
    if record.workload == STEP:
        return STEP, *stack, record.case.key
    return f"{record.workload} {record.params.get('elements')} {variant_of(record)}", *stack, ""


def _first_of(tables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in tables:
        for name, value in table.items():
            found.setdefault(name, value)
    return found


def _words(run: Fingerprint, own: Sequence[Record], head: Sequence[Record]) -> str:
    """What comes from another run: workloads, and of the step stacks, or some of their cases."""
    both = {record.stack for record in head}
    names = dict.fromkeys(
        r.workload if r.workload != STEP else f"cases of {r.stack}" if r.stack in both else r.stack
        for r in own
        if r.status in VALUED
    )
    return f"{', '.join(names)}: from the run of {run.created}, profile {run.profile}"
