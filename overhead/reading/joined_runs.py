"""Several runs of one machine combined into one fingerprint.

All arms of a workload at one size come from one run, because they are compared with each other. Cases of the step are
independent, so other runs add those that the first run lacks. If no run has two devices of one name, all devices of
that name count as one: the next run on a rented machine may get another board.
"""

from __future__ import annotations

import dataclasses
from collections import ChainMap, Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec

from overhead.devices import is_board_id
from overhead.reading.chains import variant_of
from overhead.reading.format import listed
from overhead.reading.host_shares import PAIRED_IN_ONE_RUN
from overhead.reading.sources import at_device, source_of, with_origins
from overhead.results import VALUED, Comparison, Fingerprint, Record, case_key, same_figures

_COMPLETE_SHARE = 0.5
"""A run measured a group completely if it has this share of the stacks, and then of the records, of the largest run."""
_STEP = "step"
_MOST_NAMED = 3
"""A flag names the variables of at most this many runs."""
Stack = tuple[str, str, str]
"""Name, API, adapter."""
Place = tuple[str, str, str, str, str, str, str]
"""Group (the step, or a workload in one variant and size), stack, API, adapter, device, case and caller. Case and
caller are '' outside the step. All records of one place come from the same run."""
_ANY_DEVICE = "*"
"""The device of a place where no run has two devices of that name."""


@dataclasses.dataclass(frozen=True)
class MeasuredCases:
    """How many records with a value a run has, by group and place, and its devices by stack.

    ``environment``: the variables that the run set for its workers.
    """

    method_version: int
    groups: Mapping[str, Mapping[Place, int]]
    devices: Mapping[Stack, set[str]]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def boards(self) -> set[str]:
        """Ids of the physical boards; devices that only have a number are left out."""
        return {name for names in self.devices.values() for name in names if is_board_id(name)}


def measured_cases(run: Fingerprint) -> MeasuredCases:
    """How many records with a value the run has of each place."""
    groups: dict[str, Counter[Place]] = defaultdict(Counter)
    for record in run.records:
        if record.status in VALUED:
            place = _place(record)
            groups[place[0]][place] += 1
    return MeasuredCases(run.method_version, dict(groups), _devices(run), run.environment)


def run_to_show(runs: Sequence[MeasuredCases]) -> int:
    """Index of the run to show in full: the newest that measured the step completely. ``runs``: newest first.

    Runs that set no environment variables come first.
    """
    return _preferred(runs, range(len(runs)), _STEP)[0]


def run_by_place(runs: Sequence[MeasuredCases]) -> dict[Place, int]:
    """By place, the index of the run to take it from. ``runs``: newest first.

    A workload at one size comes from the newest run that measured it completely; the other runs add what that one
    lacks. Of the step, the run of ``run_to_show`` keeps all its cases. Further cases come from runs on the same board
    first, then from the run with most callers, so that a ladder stays in one run. Runs whose method version forms
    figures in another way, or that set other environment variables, add nothing.
    """
    head = run_to_show(runs)
    alike = [
        i
        for i, run in enumerate(runs)
        if same_figures(run.method_version, runs[head].method_version) and run.environment == runs[head].environment
    ]
    apart = {stack for i in alike for stack, own in runs[i].devices.items() if len(own) > 1}
    found: dict[Place, int] = {}

    def take(place: Place, i: int) -> None:
        found.setdefault(place if place[1:4] in apart else (*place[:4], _ANY_DEVICE, *place[5:]), i)

    for group in dict.fromkeys(group for i in alike for group in runs[i].groups if group != _STEP):
        for i in _preferred(runs, alike, group):
            for place in runs[i].groups.get(group, ()):
                take(place, i)
    steps = [(i, place) for i in alike for place in runs[i].groups.get(_STEP, ())]
    callers = Counter((i, *place[1:6]) for i, place in steps)
    near = {i for i in alike if runs[i].boards & runs[head].boards}

    def turn(one: tuple[int, Place]) -> tuple[bool, bool, int, int]:
        i, place = one
        return i != head, i not in near, -callers[i, *place[1:6]], i

    for i, place in sorted(steps, key=turn):
        take(place, i)
    return found


def _preferred(runs: Sequence[MeasuredCases], among: Iterable[int], group: str) -> list[int]:
    """Indices ``among`` the runs in the order of preference for the group: those that measured it completely first."""
    records = {i: sum(runs[i].groups.get(group, {}).values()) for i in among}
    stacks = {i: len({place[1:4] for place in runs[i].groups.get(group, ())}) for i in records}
    broad = {i for i in records if stacks[i] >= _COMPLETE_SHARE * max(stacks.values())}
    least = _COMPLETE_SHARE * max(records[i] for i in broad)
    return sorted(records, key=lambda i: (i not in broad or records[i] < least, bool(runs[i].environment)))


def not_joined(runs: Sequence[MeasuredCases], head: int) -> str:
    """A flag with the environment variables of the runs that are not joined with the run ``head``; '' for none."""
    apart = [run.environment for run in runs if run.environment != runs[head].environment]
    if not apart:
        return ""
    said = dict.fromkeys(" ".join(f"{name}={value}" for name, value in own.items()) or "none" for own in apart)
    some = [*list(said)[:_MOST_NAMED], *(["others"] if len(said) > _MOST_NAMED else [])]
    runs_are = "run is" if len(apart) == 1 else "runs are"
    return f"{len(apart)} {runs_are} not shown here, because of other environment variables: {'; '.join(some)}"[:4000]


def joined_run(runs: Mapping[int, Fingerprint], head: int, places: Mapping[Place, int]) -> Fingerprint:
    """The run ``head`` and what other runs add to it. ``runs`` by index; ``places``: the result of ``run_by_place``.

    A case keeps its position in the head's run, or in the largest run that has it, because a target's first case is its
    base case. Where a run has several devices of one name, records on devices that are not shown are left out. A
    comparison stays as its run made it. One that a ladder reads is kept if all its records come from its run, because a
    ladder adds its layers up; any other is kept if all its records are shown.
    """
    shown = runs[head]
    one = {place[1:4] for place in places if place[4] == _ANY_DEVICE}
    devices = ChainMap(*map(_devices, (shown, *runs.values())))
    board = {stack: next(iter(devices[stack])) for stack in one & devices.keys()}
    used = {i: _moved(with_origins(runs[i], i), board) for i in dict.fromkeys((head, *runs))}
    wanted = {i: [r for r in run.records if places.get(_place(r, one), head) == i] for i, run in used.items()}
    taken = {i: [r for r in own if r.device in devices[_stack(r)]] for i, own in wanted.items()}
    order: dict[Place, int] = {}
    for run in (used[head], *sorted(used.values(), key=lambda run: -len(run.records))):
        for record in run.records:
            order.setdefault(_place(record, one), len(order))
    records = sorted((record for own in taken.values() for record in own), key=lambda r: order[_place(r, one)])
    source = {record.key: i for i, own in taken.items() for record in own}
    stacks = {record.stack for record in records if record.status in VALUED}
    runs_of = Counter(size for own in taken.values() for size in {_size(r) for r in own if r.status in VALUED})
    shared = {size for size, count in runs_of.items() if count > 1}
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
                _words(run, taken[i], taken[head], shared, moved=_has_moved(run))
                for i, run in used.items()
                if i != head and taken[i]
            ),
        ],
    )


def _comparisons(runs: Mapping[int, Fingerprint], source: Mapping[str, int], head: int) -> list[Comparison]:
    """One comparison for each name and record: the one with most values, then most records, then of its own run."""
    found: list[tuple[bool, Comparison]] = []
    for i, run in runs.items():
        for c in run.comparisons:
            own = source.get(c.of) == i and all(source.get(key, head) == i for key in c.against)
            if own or (c.name not in PAIRED_IN_ONE_RUN and source.keys() >= {c.of, *c.against}):
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
    """The record's place; on any device for stacks in ``one``."""
    stack = _stack(record)
    where = *stack, _ANY_DEVICE if stack in one else record.device
    if record.workload == _STEP:
        return _STEP, *where, case_key(record, "binding"), record.caller
    return f"{record.workload} {record.params.get('elements')} {variant_of(record)}", *where, "", ""


def _devices(run: Fingerprint) -> dict[Stack, set[str]]:
    """The devices of the run, by stack."""
    found: dict[Stack, set[str]] = defaultdict(set)
    for record in run.records:
        found[_stack(record)].add(record.device)
    return dict(found)


def _moved(run: Fingerprint, devices: Mapping[Stack, str]) -> Fingerprint:
    """The run with its records moved to these devices; the same object where nothing moves."""
    found = [(r, devices.get(_stack(r), r.device)) for r in run.records]
    if all(record.device == device for record, device in found):
        return run
    records = [at_device(record, device) for record, device in found]
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


def _has_moved(run: Fingerprint) -> bool:
    """Whether a record stands under another device than the one that measured it."""
    return any(record.device != source_of(record).device for record in run.records)


def _size(record: Record) -> tuple[str, object]:
    """Workload and number of elements."""
    return record.workload, record.params.get("elements")


def _words(
    run: Fingerprint,
    own: Sequence[Record],
    head: Sequence[Record],
    shared: Container[tuple[str, object]],
    *,
    moved: bool,
) -> str:
    """A flag that names what comes from another run: workloads with sizes, stacks, or some cases of a stack.

    ``shared``: workloads and sizes that come from several runs; their stacks are named too.
    """
    both = {record.stack for record in head if record.workload == _STEP}
    stacks: dict[tuple[str, object], dict[str, None]] = defaultdict(dict)
    for r in own:
        stacks[_size(r)].setdefault(r.stack)
    names: dict[str, set[int]] = {}
    for r in (record for record in own if record.status in VALUED):
        name = r.workload if r.workload != _STEP else f"cases of {r.stack}" if r.stack in both else r.stack
        if r.workload != _STEP and _size(r) in shared:
            name = f"{name} by {listed([*stacks[_size(r)]])}"
        sizes = names.setdefault(name, set())
        if r.workload != _STEP and isinstance(elements := r.params.get("elements"), int):
            sizes.add(elements)
    said = (
        f"{name} of {listed([f'{n:,}' for n in sorted(sizes)])} element{'s' if sizes != {1} else ''}" if sizes else name
        for name, sizes in names.items()
    )
    board = ", on another GPU of that name" if moved else ""
    canary = f", canary {at:.1f} us" if isinstance(at := run.volatile.get("canary_us"), float) else ""
    return f"{', '.join(said)}: from the run of {run.created}, profile {run.profile}{canary}{board}"
