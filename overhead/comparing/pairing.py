"""Pair the cases of two sides; refuse pairs that measure different things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from overhead.comparing.sides import Run, Sampled, Side, SideCase
from overhead.devices import processor_kind
from overhead.results import Record, Scalar

ABSENT = "absent"
_SINGULAR = re.compile(r"\b(1 node)s\b")
"""Earlier versions wrote "1 nodes" where files now say "1 node"."""


def pair_cases(base: Side, new: Side) -> list[tuple[SideCase | None, SideCase | None]]:
    """Pairs of the same case of BASE and NEW; None where one side lacks it.

    Cases with equal keys form a pair. Another machine or driver may name the adapter differently, so two other cases
    form a pair if each is the only one on its side with this stack, API, kind of adapter and coordinates.
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
    return pairs + [(None, case) for cases in lone_new.values() for case in cases if case.key not in taken]


def _lone_by_kind(side: Side, other: Side) -> dict[tuple[object, ...], list[SideCase]]:
    kinds: dict[tuple[object, ...], list[SideCase]] = {}
    for key, case in side.cases.items():
        if key not in other.cases:
            record = case.record
            kinds.setdefault((record.stack, record.api, processor_kind(record), record.case.key), []).append(case)
    return kinds


def runs_taken_together(base: Side, new: Side) -> list[tuple[Run, Run]]:
    """Pairs of runs of BASE and NEW that one command measured in turn; empty unless every run has a partner."""
    pairs = [(b, n) for b in base.runs for n in new.runs if _taken_together(b, n)]
    whole = len(pairs) == len(base.runs) == len(new.runs) == len({id(n) for _, n in pairs})
    return pairs if whole else []


def _taken_together(base: Run, new: Run) -> bool:
    mine, theirs = base.fingerprint.together, new.fingerprint.together
    return mine is not None and theirs is not None and mine.id == theirs.id and mine.side != theirs.side


def samples_in_turn(
    base: str, new: str, runs: Iterable[tuple[Run, Run]]
) -> tuple[tuple[Sampled, ...], tuple[Sampled, ...]]:
    """The samples of a case in each pair of runs, for BASE and for NEW, with paired processes at the same position.

    Processes with the same number form a pair. A worker that replaced a dead one has another number; such processes
    are paired in their order.
    """
    held = [
        _aligned(b.sampled[base], n.sampled[new])
        for b, n in runs
        if b.sampled and n.sampled and base in b.sampled and new in n.sampled
    ]
    filled = [pair for pair in held if pair[0].slopes.size]
    return tuple(b for b, _ in filled), tuple(n for _, n in filled)


def _aligned(base: Sampled, new: Sampled) -> tuple[Sampled, Sampled]:
    common, *at = np.intersect1d(base.numbers, new.numbers, return_indices=True)
    rest = [np.flatnonzero(~np.isin(side.numbers, common)) for side in (base, new)]
    most = min(map(len, rest))
    first, second = (np.concatenate([own, more[:most]]) for own, more in zip(at, rest, strict=True))
    return base.at(first), new.at(second)


def why_incomparable(*cases: SideCase) -> str:
    """Why these cases cannot be compared: the field that differs and both values. '' if they can.

    A case that failed early has no window. A fingerprint without raw samples lists the kernels of all its cases, so
    only the kernels that every run lists count.
    """
    records = [(case.name, run.records[case.key]) for case in cases for run in case.runs]
    kernels = [(case.name, run.kernels[case.key]) for case in cases for run in case.runs if case.key in run.kernels]
    listed = set.intersection(*(set(hashes) for _, hashes in kernels)) if kernels else set()
    return _first_difference(
        "window.", [(name, _declared(record)) for name, record in records if record.window]
    ) or _first_difference("kernel ", [(name, {k: hashes[k][:12] for k in listed}) for name, hashes in kernels])


def _declared(record: Record) -> dict[str, Scalar]:
    window = {
        name: _SINGULAR.sub(r"\1", value) if isinstance(value, str) else value for name, value in record.window.items()
    }
    return {**window, "unit": record.unit, "overlap": record.overlap}


def _first_difference(prefix: str, held: Sequence[tuple[str, Mapping[str, Scalar]]]) -> str:
    for name, fields in held[1:]:
        first_name, first = held[0]
        for field in sorted({*first, *fields}):
            mine, theirs = first.get(field, ABSENT), fields.get(field, ABSENT)
            if mine != theirs:
                between = f"{first_name} and {name}" if name != first_name else f"runs of {name}"
                return f"{prefix}{field} differs between {between}: {mine} and {theirs}"
    return ""
