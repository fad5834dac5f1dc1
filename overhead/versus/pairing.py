"""Which case is set against which, and which pairs are refused because what they measure differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overhead.results import Record, Scalar
from overhead.versus.sides import Side

ABSENT = "absent"


def match(base: Side, new: Side) -> list[tuple[str | None, str | None]]:
    """Keys of the cases side by side; None where one side has no such case.

    Equal keys first. Then, where an adapter goes by another name (another machine, another driver), the one case of the
    same stack, API, kind of adapter and coordinates on each side.
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
        kinds.setdefault((record.stack, record.api, record.software, record.case.key), []).append(key)
    return kinds


def refusal(base: Side, base_key: str, new: Side, new_key: str) -> str:
    """Why this pair cannot be compared, naming the field and both values; '' where it can."""
    windows = [(side, record) for side, key in ((base, base_key), (new, new_key)) for record in _opened(side, key)]
    kernels = [
        (side, run.kernels[key])
        for side, key in ((base, base_key), (new, new_key))
        for run in side.of(key)
        if key in run.kernels
    ]
    return (
        _first_difference("window.", [(side, _declared(record)) for side, record in windows])
        or _first_difference("kernel ", [(side, _common(hashes, kernels)) for side, hashes in kernels])
    )  # fmt: skip


def _opened(side: Side, key: str) -> list[Record]:
    """The case's records that got as far as to declare a window."""
    return [run.records[key] for run in side.of(key) if run.records[key].window]


def _declared(record: Record) -> dict[str, Scalar]:
    return {**record.window, "unit": record.unit, "overlap": record.overlap}


def _common(hashes: Mapping[str, str], of_all: list[tuple[Side, Mapping[str, str]]]) -> dict[str, Scalar]:
    """The kernels that every run knows: a fingerprint without raw samples lists those of all its cases."""
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
