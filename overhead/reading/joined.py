"""Several runs of one machine shown as one.

A workload at one size is taken from one run, as its arms are compared; of the step, whose cases are figures of their
own, other runs add the cases that the one lacks. Where no run has two devices of a name, all of that name count as one:
a rented machine's next run may be on another board.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from overhead.reading.chains import variant_of
from overhead.results import VALUED, Fingerprint, Record

WHOLE = 0.5
"""A run measured a group whole if it has this share of the records of the run that has most of it."""
STEP = "step"
Place = tuple[str, str, str, str, str, str]
"""Group (the step, or a workload in one variant and size), stack, API, adapter, device, and of the step the case: a
run's records of a place stay together."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """Of a run the records with a value, counted by group and place."""

    method_version: int
    groups: Mapping[str, Mapping[Place, int]]


def measured(run: Fingerprint) -> Measured:
    """How many records with a value the run has of each place."""
    groups: dict[str, Counter[Place]] = defaultdict(Counter)
    for record in run.records:
        if record.status in VALUED:
            place = _place(record)
            groups[place[0]][place] += 1
    return Measured(run.method_version, dict(groups))


def first(runs: Sequence[Measured]) -> int:
    """Of runs, newest first, the one to show in full: the newest that measured the step whole, else the newest."""
    return _preferred(runs, range(len(runs)), STEP)[0]


def sources(runs: Sequence[Measured]) -> dict[Place, int]:
    """By place the run that it is taken from, of runs newest first.

    A group is taken from the newest run that measured it whole, and what that run lacks from the others. Runs by
    another version of the method than the first's add nothing. A place is without device where all of a name count as
    one.
    """
    method = runs[first(runs)].method_version
    alike = [i for i, run in enumerate(runs) if run.method_version == method]
    apart = {name for i in alike for name in _several(runs[i])}
    found: dict[Place, int] = {}
    for group in dict.fromkeys(group for i in alike for group in runs[i].groups):
        for i in _preferred(runs, alike, group):
            for place in runs[i].groups.get(group, ()):
                found.setdefault(place if place[1:4] in apart else _anywhere(place), i)
    return found


def _several(run: Measured) -> Iterator[tuple[str, ...]]:
    """Stack, API and adapter where the run has records of several devices."""
    devices: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for places in run.groups.values():
        for place in places:
            devices[place[1:4]].add(place[4])
    return (name for name, own in devices.items() if len(own) > 1)


def _anywhere(place: Place) -> Place:
    return (*place[:4], "", place[5])


def _preferred(runs: Sequence[Measured], among: Iterable[int], group: str) -> list[int]:
    """Runs ``among`` these in the order in which the group is taken from them."""
    counts = {i: sum(runs[i].groups.get(group, {}).values()) for i in among}
    whole = WHOLE * max(counts.values())
    return sorted(counts, key=lambda i: counts[i] < whole)


def joined(runs: Mapping[int, Fingerprint], head: int, places: Mapping[Place, int]) -> Fingerprint:
    """The run ``head`` with what others add to it, by ``places``: where each place is taken from.

    ``runs``: these alone, by their numbers. Where a run has several devices of a name, what a stack did on another than
    the ones shown is left out. A comparison stays with the run that made it, and is shown where all that it compares
    is taken from there.
    """
    shown = runs[head]
    each = [_devices(run) for run in (shown, *runs.values())]
    devices = ChainMap(*each)
    several = {name for own in each for name, found in own.items() if len(found) > 1}
    one = {place[1:4] for place in places if not place[4]} - several
    used = {i: _moved(run, {name: min(devices[name]) for name in one & devices.keys()}) for i, run in runs.items()}
    used = {head: used[head], **used}
    moved = {i for i, run in used.items() if i != head and run is not runs[i]}
    wanted = {
        i: [r for r in run.records if places.get(_anywhere(p) if (p := _place(r))[1:4] in one else p, head) == i]
        for i, run in used.items()
    }
    taken = {i: [r for r in own if r.device in devices[_place(r)[1:4]]] for i, own in wanted.items()}
    records = [record for own in taken.values() for record in own]
    source = {record.key: i for i, own in taken.items() for record in own}
    stacks = {record.stack for record in records if record.status in VALUED}
    return msgspec.structs.replace(
        shown,
        records=records,
        comparisons=[
            c
            for i, run in used.items()
            for c in run.comparisons
            if source.get(c.of) == i and all(source.get(key, head) == i for key in c.against)
        ],
        kernels=dict(ChainMap(*(run.kernels for run in used.values()))),
        versions=dict(ChainMap(*(run.versions for run in used.values()))),
        unavailable=[missing for missing in shown.unavailable if missing.stack not in stacks],
        left_out=[left for left in shown.left_out if f"{left.target} {left.case}" not in source],
        flags=[
            *shown.flags,
            *(_words(run, taken[i], taken[head], i in moved) for i, run in used.items() if i != head and taken[i]),
        ],
    )


def _place(record: Record) -> Place:
    stack = record.stack, record.api, record.adapter, record.device
    if record.workload == STEP:
        return STEP, *stack, record.case.key
    return f"{record.workload} {record.params.get('elements')} {variant_of(record)}", *stack, ""


def _devices(run: Fingerprint) -> dict[tuple[str, ...], set[str]]:
    """By stack, API and adapter the devices that the run tells apart."""
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for record in run.records:
        found[_place(record)[1:4]].add(record.device)
    return dict(found)


def _moved(run: Fingerprint, devices: Mapping[tuple[str, ...], str]) -> Fingerprint:
    """The run as if on these devices, by stack, API and adapter; itself where it was."""
    found = [(r, devices.get(_place(r)[1:4], r.device)) for r in run.records]
    if all(record.device == device for record, device in found):
        return run
    records = [msgspec.structs.replace(record, device=device) for record, device in found]
    keys = {old.target_key: new.target_key for (old, _), new in zip(found, records, strict=True)}
    cases = {old.key: new.key for (old, _), new in zip(found, records, strict=True)}
    return msgspec.structs.replace(
        run,
        records=records,
        comparisons=[
            msgspec.structs.replace(
                c,
                of=cases.get(c.of, c.of),
                against=[cases.get(key, key) for key in c.against],
                worker=keys.get(c.worker, c.worker),
            )
            for c in run.comparisons
        ],
    )


def _words(run: Fingerprint, own: Sequence[Record], head: Sequence[Record], moved: bool) -> str:
    """What comes from another run: workloads, and of the step stacks, or some of their cases."""
    both = {record.stack for record in head}
    names = dict.fromkeys(
        r.workload if r.workload != STEP else f"cases of {r.stack}" if r.stack in both else r.stack
        for r in own
        if r.status in VALUED
    )
    board = ", on another GPU of that name" if moved else ""
    return f"{', '.join(names)}: from the run of {run.created}, profile {run.profile}{board}"
