"""Several runs of one machine shown as one.

A workload at one size is taken from one run, as its arms are compared; of the step, whose cases are figures of their
own, other runs add the cases that the one lacks. Where no run has two devices of a name, all of that name count as one:
a rented machine's next run may be on another board.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap, Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from overhead.devices import is_board_id
from overhead.reading.chains import variant_of
from overhead.reading.format import listed
from overhead.reading.host_shares import RUNGS
from overhead.results import VALUED, Comparison, Fingerprint, Record

WHOLE = 0.5
"""A run measured a group whole if it has this share of the stacks, and among such runs of the records, that one has."""
STEP = "step"
Stack = tuple[str, str, str]
"""Name, API, adapter."""
Place = tuple[str, str, str, str, str, str, str]
"""Group (the step, or a workload in one variant and size), stack, API, adapter, device, and of the step the case and
its caller: a run's records of a place stay together."""
ANY = "*"
"""The device of a place where no run has two of a name: all count as one."""


@dataclasses.dataclass(frozen=True)
class MeasuredCases:
    """Of a run the records with a value, counted by group and place, and all devices."""

    method_version: int
    groups: Mapping[str, Mapping[Place, int]]
    devices: Mapping[Stack, set[str]]

    @property
    def boards(self) -> set[str]:
        """The GPUs that the run tells by an id, not by a number."""
        return {name for names in self.devices.values() for name in names if is_board_id(name)}


def measured(run: Fingerprint) -> MeasuredCases:
    """How many records with a value the run has of each place."""
    groups: dict[str, Counter[Place]] = defaultdict(Counter)
    for record in run.records:
        if record.status in VALUED:
            place = _place(record)
            groups[place[0]][place] += 1
    return MeasuredCases(run.method_version, dict(groups), _devices(run))


def first(runs: Sequence[MeasuredCases]) -> int:
    """Of runs, newest first, the one to show in full: the newest that measured the step whole."""
    return _preferred(runs, range(len(runs)), STEP)[0]


def sources(runs: Sequence[MeasuredCases]) -> dict[Place, int]:
    """By place the run that it is taken from, of runs newest first.

    A workload at a size is taken from the newest run that measured it whole, and what that lacks from the others. Of
    the step all that the first has is its own; other cases come from runs on its board before others, and from the one
    of most callers, so that a ladder is one run's. Runs by another version of the method than its add nothing.
    """
    head = first(runs)
    alike = [i for i, run in enumerate(runs) if run.method_version == runs[head].method_version]
    apart = {stack for i in alike for stack, own in runs[i].devices.items() if len(own) > 1}
    found: dict[Place, int] = {}

    def take(place: Place, i: int) -> None:
        found.setdefault(place if place[1:4] in apart else (*place[:4], ANY, *place[5:]), i)

    for group in dict.fromkeys(group for i in alike for group in runs[i].groups if group != STEP):
        for i in _preferred(runs, alike, group):
            for place in runs[i].groups.get(group, ()):
                take(place, i)
    steps = [(i, place) for i in alike for place in runs[i].groups.get(STEP, ())]
    callers = Counter((i, *place[1:6]) for i, place in steps)
    near = {i for i in alike if runs[i].boards & runs[head].boards}

    def turn(one: tuple[int, Place]) -> tuple[bool, bool, int, int]:
        i, place = one
        return i != head, i not in near, -callers[i, *place[1:6]], i

    for i, place in sorted(steps, key=turn):
        take(place, i)
    return found


def _preferred(runs: Sequence[MeasuredCases], among: Iterable[int], group: str) -> list[int]:
    """Runs ``among`` these in the order in which the group is taken from them: those that measured it whole first."""
    records = {i: sum(runs[i].groups.get(group, {}).values()) for i in among}
    stacks = {i: len({place[1:4] for place in runs[i].groups.get(group, ())}) for i in records}
    broad = {i for i in records if stacks[i] >= WHOLE * max(stacks.values())}
    least = WHOLE * max(records[i] for i in broad)
    return sorted(records, key=lambda i: i not in broad or records[i] < least)


def joined(runs: Mapping[int, Fingerprint], head: int, places: Mapping[Place, int]) -> Fingerprint:
    """The run ``head`` with what others add to it, by ``places``: where each place is taken from.

    A case keeps its turn in the head's run, or in the fullest that has it: a target's first case is its base.
    ``runs``: these alone, by their numbers. Where a run has several devices of a name, what a stack did on another than
    the ones shown is left out. A comparison stays as its run made it: a share, as ladders add shares up, is shown where
    all that it compares is that run's; a pair or a fit, which stands for itself, where all that it compares is shown.
    """
    shown = runs[head]
    one = {place[1:4] for place in places if place[4] == ANY}
    devices = ChainMap(*map(_devices, (shown, *runs.values())))
    board = {stack: next(iter(devices[stack])) for stack in one & devices.keys()}
    used = {i: _moved(runs[i], board) for i in dict.fromkeys((head, *runs))}
    wanted = {i: [r for r in run.records if places.get(_place(r, one), head) == i] for i, run in used.items()}
    taken = {i: [r for r in own if r.device in devices[_stack(r)]] for i, own in wanted.items()}
    order: dict[Place, int] = {}
    for run in (used[head], *sorted(used.values(), key=lambda run: -len(run.records))):
        for record in run.records:
            order.setdefault(_place(record, one), len(order))
    records = sorted((record for own in taken.values() for record in own), key=lambda r: order[_place(r, one)])
    source = {record.key: i for i, own in taken.items() for record in own}
    stacks = {record.stack for record in records if record.status in VALUED}
    return msgspec.structs.replace(
        shown,
        records=records,
        comparisons=_comparisons(used, source, head),
        kernels=dict(ChainMap(*(run.kernels for run in used.values()))),
        versions=dict(ChainMap(*(run.versions for run in used.values()))),
        unavailable=[missing for missing in shown.unavailable if missing.stack not in stacks],
        left_out=[left for left in shown.left_out if f"{left.target} {left.case}" not in source],
        flags=[
            *shown.flags,
            *(
                _words(run, taken[i], taken[head], moved=run is not runs[i])
                for i, run in used.items()
                if i != head and taken[i]
            ),
        ],
    )


def _comparisons(runs: Mapping[int, Fingerprint], source: Mapping[str, int], head: int) -> list[Comparison]:
    """One of each name and record: of several that of most values, then of most records, then its run's own alone."""
    found: list[tuple[bool, Comparison]] = []
    for i, run in runs.items():
        for c in run.comparisons:
            own = source.get(c.of) == i and all(source.get(key, head) == i for key in c.against)
            if own or (c.name not in RUNGS.values() and source.keys() >= {c.of, *c.against}):
                found.append((own, c))
    best: dict[tuple[str, str], Comparison] = {}
    for _, c in sorted(found, key=lambda one: (_values(one[1]), len(one[1].against), one[0]), reverse=True):
        best.setdefault((c.name, c.of), c)
    return [c for _, c in found if best[c.name, c.of] is c]


def _values(comparison: Comparison) -> int:
    return sum(figure.status in VALUED for figure in comparison.figures)


def _stack(record: Record) -> Stack:
    return record.stack, record.api, record.adapter


def _place(record: Record, one: Container[Stack] = ()) -> Place:
    """Where the record belongs; on any device where those of its name are ``one``."""
    stack = _stack(record)
    where = *stack, ANY if stack in one else record.device
    if record.workload == STEP:
        case = msgspec.structs.replace(record.case, caller="binding")
        return STEP, *where, case.key, record.caller
    return f"{record.workload} {record.params.get('elements')} {variant_of(record)}", *where, "", ""


def _devices(run: Fingerprint) -> dict[Stack, set[str]]:
    """By stack the devices that the run tells apart."""
    found: dict[Stack, set[str]] = defaultdict(set)
    for record in run.records:
        found[_stack(record)].add(record.device)
    return dict(found)


def _moved(run: Fingerprint, devices: Mapping[Stack, str]) -> Fingerprint:
    """The run as if on these devices; itself where it was."""
    found = [(r, devices.get(_stack(r), r.device)) for r in run.records]
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


def _words(run: Fingerprint, own: Sequence[Record], head: Sequence[Record], *, moved: bool) -> str:
    """What comes from another run: workloads with their sizes, and of the step stacks, or some of their cases."""
    both = {record.stack for record in head if record.workload == STEP}
    names: dict[str, set[int]] = {}
    for r in (record for record in own if record.status in VALUED):
        name = r.workload if r.workload != STEP else f"cases of {r.stack}" if r.stack in both else r.stack
        sizes = names.setdefault(name, set())
        if r.workload != STEP and isinstance(elements := r.params.get("elements"), int):
            sizes.add(elements)
    said = (f"{name} of {listed([f'{n:,}' for n in sorted(sizes)])} element{'s' if sizes != {1} else ''}"
            if sizes else name for name, sizes in names.items())  # fmt: skip
    board = ", on another GPU of that name" if moved else ""
    canary = f", canary {at:.1f} us" if isinstance(at := run.volatile.get("canary_us"), float) else ""
    return f"{', '.join(said)}: from the run of {run.created}, profile {run.profile}{canary}{board}"
