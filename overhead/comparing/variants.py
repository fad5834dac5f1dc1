"""Find the variants to compare inside one run: pairs of cases that differ on one axis alone."""

from __future__ import annotations

import dataclasses

from overhead.comparing.pairing import ABSENT
from overhead.comparing.sides import Side, SideCase
from overhead.errors import UsageError, unknown_name
from overhead.results import Record, scalar_text


@dataclasses.dataclass(frozen=True)
class Variants:
    """An axis, the names of its variants such as ``wait=event``, the base first, and the pairs of cases to compare.

    Both cases of a pair are of one target and equal on all other axes.
    """

    axis: str
    names: list[str]
    pairs: list[tuple[SideCase, SideCase]]


def read_variants(asked: str, run: Side) -> Variants:
    """The variants in ``wait=stream,event``, or with ``wait`` all its values in the order of the run, ``absent`` last.

    The value ``absent`` stands for cases without the parameter. Raises ``UsageError``.
    """
    axis, _, listed = asked.partition("=")
    cases = [(case, _coordinates(case.record)) for case in run.cases.values()]
    every = {name: [at.get(name, ABSENT) for _, at in cases] for _, here in cases for name in here}
    known = {name: list(dict.fromkeys(values)) for name, values in every.items() if len(set(values)) > 1}
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
        groups.setdefault((case.record.target_key, *sorted(at.items())), {})[name] = dataclasses.replace(
            case, name=name
        )
    base, *others = names = [f"{axis}={value}" for value in values]
    pairs = [(g[base], g[other]) for g in groups.values() for other in others if {base, other} <= {*g}]
    if not pairs:
        raise UsageError(f"no case with {base} is equal to one with {' or '.join(others)} on all other axes")
    return Variants(axis, names, pairs)


def window_changes(axis: str, base: Record, new: Record) -> str:
    """The fields of the window that differ besides the axis: ``submits 1 → 0``; '' if none does."""
    return ", ".join(
        f"{name} {base.window.get(name, ABSENT)} \u2192 {new.window.get(name, ABSENT)}"
        for name in sorted({*base.window, *new.window} - {axis})
        if base.window and new.window and base.window.get(name) != new.window.get(name)
    )


def _coordinates(record: Record) -> dict[str, str]:
    return {name: scalar_text(value) for name, value in record.case.coordinates.items()}
