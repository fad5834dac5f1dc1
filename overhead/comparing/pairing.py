"""Pair the cases of two sides, and refuse pairs that measure different things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from overhead.comparing.sides import Run, Sampled, Side
from overhead.devices import processor
from overhead.results import Record, Scalar

ABSENT = "absent"
_SINGULAR = re.compile(r"\b(1 node)s\b")
"""Earlier versions wrote "1 nodes" where files now say "1 node"."""


def match(base: Side, new: Side) -> list[tuple[str | None, str | None]]:
    """Pairs of case keys; None if one side lacks the case.

    Cases with equal keys form a pair. Another machine or driver may name the adapter differently, so two other cases
    form a pair if each is the only one on its side with this stack, API, kind of adapter and coordinates.
    """
    theirs = set(new.keys)
    lone_base = _by_kind(base, (key for key in base.keys if key not in theirs))
    lone_new = _by_kind(new, (key for key in new.keys if key not in set(base.keys)))
    partner = {
        keys[0]: lone_new[kind][0]
        for kind, keys in lone_base.items()
        if len(keys) == 1 and len(lone_new.get(kind, ())) == 1
    }
    taken = set(partner.values())
    pairs: list[tuple[str | None, str | None]] = [
        (key, key if key in theirs else partner.get(key)) for key in base.keys
    ]
    return pairs + [(None, key) for keys in lone_new.values() for key in keys if key not in taken]


def _by_kind(side: Side, keys: Iterable[str]) -> dict[tuple[object, ...], list[str]]:
    kinds: dict[tuple[object, ...], list[str]] = {}
    for key in keys:
        record = side.record(key)
        kinds.setdefault((record.stack, record.api, processor(record), record.case.key), []).append(key)
    return kinds


def together(base: Side, new: Side) -> list[tuple[Run, Run]]:
    """Pairs of runs of BASE and NEW that were taken together; empty unless every run has a partner."""
    pairs = [(b, n) for b in base.runs for n in new.runs if _taken_together(b, n)]
    whole = len(pairs) == len(base.runs) == len(new.runs) == len({id(n) for _, n in pairs})
    return pairs if whole else []


def _taken_together(base: Run, new: Run) -> bool:
    mine, theirs = base.fingerprint.together, new.fingerprint.together
    return mine is not None and theirs is not None and mine.id == theirs.id and mine.side != theirs.side


def in_turn(base: Sampled, new: Sampled) -> tuple[Sampled, Sampled]:
    """The samples of two runs taken together, reordered so that paired processes have the same position.

    Processes with the same number form a pair. A worker that replaced a dead one has another number; such processes
    are paired in their order.
    """
    common = [n for n in base.numbers if n in new.numbers]
    rest = [[n for n in side.numbers if n not in common] for side in (base, new)]
    more = list(zip(*rest, strict=False))
    return _of(base, common + [b for b, _ in more]), _of(new, common + [n for _, n in more])


def _of(sampled: Sampled, numbers: list[int]) -> Sampled:
    at = [sampled.numbers.index(n) for n in numbers]
    return Sampled(sampled.slopes[at], sampled.canary[at] if sampled.canary.size else sampled.canary, tuple(numbers))


def refusal(base: Side, base_key: str, new: Side, new_key: str) -> str:
    """Why this pair cannot be compared: the field that differs and both values. '' if it can."""
    windows = [(side, record) for side, key in ((base, base_key), (new, new_key)) for record in _opened(side, key)]
    kernels = [
        (side, run.kernels[key])
        for side, key in ((base, base_key), (new, new_key))
        for run in side.of(key)
        if key in run.kernels
    ]
    return _first_difference("window.", [(side, _declared(record)) for side, record in windows]) or _first_difference(
        "kernel ", [(side, _common(hashes, kernels)) for side, hashes in kernels]
    )


def _opened(side: Side, key: str) -> list[Record]:
    """The records of the case that have a window. A case that failed early has none."""
    return [run.records[key] for run in side.of(key) if run.records[key].window]


def _declared(record: Record) -> dict[str, Scalar]:
    window = {
        name: _SINGULAR.sub(r"\1", value) if isinstance(value, str) else value for name, value in record.window.items()
    }
    return {**window, "unit": record.unit, "overlap": record.overlap}


def _common(hashes: Mapping[str, str], of_all: list[tuple[Side, Mapping[str, str]]]) -> dict[str, Scalar]:
    """The hashes of kernels that every run lists, shortened to 12 digits.

    A fingerprint without raw samples lists the kernels of all its cases."""
    return {name: value[:12] for name, value in hashes.items() if all(name in known for _, known in of_all)}


def _first_difference(prefix: str, held: list[tuple[Side, dict[str, Scalar]]]) -> str:
    if not held:
        return ""
    first_side, first = held[0]
    for side, fields in held[1:]:
        for field in sorted({*first, *fields}):
            mine, theirs = first.get(field, ABSENT), fields.get(field, ABSENT)
            if mine != theirs:
                between = f"{first_side.name} and {side.name}" if side is not first_side else f"runs of {side.name}"
                return f"{prefix}{field} differs between {between}: {mine} and {theirs}"
    return ""
