"""Pair the cases of two sides, or of variants inside one run; refuse pairs that measure different
things.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.comparing.sides import Run, Sampled, Side, SideCase
from overhead.comparing.verdicts import Difference
from overhead.devices import processor_kind
from overhead.errors import UsageError, unknown_name
from overhead.results import Record, Scalar, Why, because, scalar_text

ABSENT = "absent"
_SHOWN_OF_HASH = 12
"""Characters of the hash of a kernel file: enough to tell two versions apart."""
_SINGULAR = re.compile(r"\b(1 node)s\b")
"""Earlier versions wrote "1 nodes" where files now say "1 node"."""


def pair_cases(base: Side, new: Side) -> list[tuple[SideCase | None, SideCase | None]]:
    """Pairs of the same case of BASE and NEW; None where one side lacks it.

    Cases with equal keys form a pair. Another machine or driver may name the adapter differently,
    so two other cases form a pair if each is the only one on its side with this stack, API, kind of
    adapter and coordinates.
    """
    lone_base, lone_new = _lone_by_kind(base, new), _lone_by_kind(new, base)
    partner = {
        cases[0].key: lone_new[kind][0]
        for kind, cases in lone_base.items()
        if len(cases) == len(lone_new.get(kind, ())) == 1
    }
    pairs: list[tuple[SideCase | None, SideCase | None]] = [
        (case, new.cases.get(key) or partner.get(key)) for key, case in base.cases.items()
    ]
    taken = {case.key for case in partner.values()}
    return pairs + [
        (None, case) for cases in lone_new.values() for case in cases if case.key not in taken
    ]


def _lone_by_kind(side: Side, other: Side) -> dict[tuple[object, ...], list[SideCase]]:
    kinds: dict[tuple[object, ...], list[SideCase]] = {}
    for key, case in side.cases.items():
        if key not in other.cases:
            record = case.record
            kinds.setdefault(
                (record.stack, record.api, processor_kind(record), record.case.key), []
            ).append(case)
    return kinds


def runs_taken_together(base: Side, new: Side) -> list[tuple[Run, Run]]:
    """Pairs of runs of BASE and NEW that one command measured in turn; empty unless every run has a
    partner.
    """
    pairs = [(b, n) for b in base.runs for n in new.runs if _taken_together(b, n)]
    whole = len(pairs) == len(base.runs) == len(new.runs) == len({id(n) for _, n in pairs})
    return pairs if whole else []


def _taken_together(base: Run, new: Run) -> bool:
    mine, theirs = base.fingerprint.together, new.fingerprint.together
    return (
        mine is not None
        and theirs is not None
        and mine.id == theirs.id
        and mine.side != theirs.side
    )


def samples_in_turn(
    base: str, new: str, runs: Iterable[tuple[Run, Run]]
) -> tuple[tuple[Sampled, ...], tuple[Sampled, ...]]:
    """The samples of a case in each pair of runs, for BASE and for NEW, with paired processes at
    the same position.

    Processes with the same number form a pair. A worker that replaced a dead one has another
    number; such processes are paired in their order.
    """
    held = []
    for b, n in runs:
        if b.sampled and n.sampled and base in b.sampled and new in n.sampled:
            held.append(_aligned(b.sampled[base], n.sampled[new]))
    filled = [pair for pair in held if pair[0].slopes.size]
    return tuple(b for b, _ in filled), tuple(n for _, n in filled)


def _aligned(base: Sampled, new: Sampled) -> tuple[Sampled, Sampled]:
    common, *at = np.intersect1d(base.numbers, new.numbers, return_indices=True)
    rest = [np.flatnonzero(~np.isin(side.numbers, common)) for side in (base, new)]
    most = min(map(len, rest))
    first, second = (np.concatenate([own, more[:most]]) for own, more in zip(at, rest, strict=True))
    return base.at(first), new.at(second)


def why_incomparable(*cases: SideCase) -> Why:
    """Why these cases cannot be compared: the field that differs and both values. '' if they can.

    A case that failed early has no window. A fingerprint without raw samples lists the kernels of
    all its cases, so only the kernels that every run lists count.
    """
    records = [(case.name, run.records[case.key]) for case in cases for run in case.runs]
    declared = [(name, _declared(record)) for name, record in records if record.window]
    if found := _first_difference(declared):
        field, one, other, mine, theirs = (
            found.field,
            found.one,
            found.other,
            found.mine,
            found.theirs,
        )
        if one == other:
            return because(
                "window-differs-on-a-side", field=field, side=one, mine=mine, theirs=theirs
            )
        return because(
            "window-differs", field=field, one=one, other=other, mine=mine, theirs=theirs
        )
    kernels = [
        (case.name, run.kernels[case.key])
        for case in cases
        for run in case.runs
        if case.key in run.kernels
    ]
    listed = set.intersection(*(set(hashes) for _, hashes in kernels)) if kernels else set()
    common = [
        (name, {file: hashes[file][:_SHOWN_OF_HASH] for file in listed}) for name, hashes in kernels
    ]
    if found := _first_difference(common):
        file, one, other, mine, theirs = (
            found.field,
            found.one,
            found.other,
            found.mine,
            found.theirs,
        )
        if one == other:
            return because(
                "kernel-differs-on-a-side", file=file, side=one, mine=mine, theirs=theirs
            )
        return because("kernel-differs", file=file, one=one, other=other, mine=mine, theirs=theirs)
    return ""


def _declared(record: Record) -> dict[str, Scalar]:
    window = {
        name: _SINGULAR.sub(r"\1", value) if isinstance(value, str) else value
        for name, value in record.window.items()
    }
    return {**window, "unit": record.unit, "overlap": record.overlap}


@dataclass(frozen=True)
class _DifferentField:
    """A field in which two runs differ. ``one`` and ``other``: their sides; the same one for two
    runs of it.
    """

    field: str
    one: str
    other: str
    mine: Scalar
    theirs: Scalar


def _first_difference(held: Sequence[tuple[str, Mapping[str, Scalar]]]) -> _DifferentField | None:
    """The first field in which a run differs from the first one. ``held``: the side and the fields
    of each run.
    """
    for name, fields in held[1:]:
        first_name, first = held[0]
        for field in sorted({*first, *fields}):
            mine, theirs = first.get(field, ABSENT), fields.get(field, ABSENT)
            if mine != theirs:
                return _DifferentField(field, first_name, name, mine, theirs)
    return None


@dataclass(frozen=True)
class Variants:
    """An axis (a parameter of cases), its variants such as ``wait=event``, the base first, and the
    pairs of cases.

    Both cases of a pair are of one target and equal on all other axes.
    """

    axis: str
    names: list[str]
    pairs: list[tuple[SideCase, SideCase]]


def read_variants(asked: str, run: Side) -> Variants:
    """The variants in ``wait=stream,event``, or with ``wait`` all its values in the order of the
    run, ``absent`` last.

    The value ``absent`` stands for cases without the parameter. Raises ``UsageError``.
    """
    axis, _, listed = asked.partition("=")
    own = run.cases.values()
    cases = [
        (case, {name: scalar_text(at) for name, at in case.record.case.coordinates.items()})
        for case in own
    ]
    every = {name: [at.get(name, ABSENT) for _, at in cases] for _, here in cases for name in here}
    known = {
        name: list(dict.fromkeys(values)) for name, values in every.items() if len(set(values)) > 1
    }
    if axis not in known:
        raise unknown_name("axis", axis, known)
    values = listed.split(",") if listed else sorted(known[axis], key=lambda value: value == ABSENT)
    for value in values:
        if value not in known[axis]:
            raise unknown_name(f"value of {axis}", value, known[axis])
    if len(set(values)) < max(2, len(values)):
        raise UsageError(f"--across {asked}: name two or more different values")
    groups: dict[tuple[object, ...], dict[str, SideCase]] = {}
    for case, at in cases:
        name = f"{axis}={at.pop(axis, ABSENT)}"
        groups.setdefault((case.record.target_key, *sorted(at.items())), {})[name] = replace(
            case, name=name
        )
    base, *others = names = [f"{axis}={value}" for value in values]
    pairs = [
        (g[base], g[other]) for g in groups.values() for other in others if {base, other} <= {*g}
    ]
    if not pairs:
        raise UsageError(
            f"no case with {base} is equal to one with {' or '.join(others)} on all other axes"
        )
    return Variants(axis, names, pairs)


def window_changes(axis: str, base: Record, new: Record) -> tuple[Difference, ...]:
    """What was timed differently besides the axis, such as ``submits``, 1 and 0."""
    if not (base.window and new.window):
        return ()
    names = sorted({*base.window, *new.window} - {axis})
    differing = [name for name in names if base.window.get(name) != new.window.get(name)]
    return tuple(
        Difference(name, str(base.window.get(name, ABSENT)), str(new.window.get(name, ABSENT)))
        for name in differing
    )
