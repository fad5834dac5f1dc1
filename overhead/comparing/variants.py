"""Find the variants to compare inside one run: pairs of cases that differ on one axis alone."""

from __future__ import annotations

import dataclasses

from overhead.comparing.pairing import ABSENT, refusal
from overhead.comparing.sides import Side
from overhead.errors import UsageError, unknown
from overhead.results import Case, Record, scalar_text


@dataclasses.dataclass(frozen=True)
class Variants:
    """An axis of the cases and some of its values, the base first: ``wait`` with ``stream`` and ``event``."""

    axis: str
    values: tuple[str, ...]

    def side(self, run: Side, value: str) -> Side:
        """The run under the name of a variant, such as ``wait=event``."""
        return dataclasses.replace(run, name=f"{self.axis}={value}")

    def pairs(self, run: Side) -> list[tuple[str, str, str]]:
        """The key of each case with the base value, the key of its variant with another value, and this value.

        Both are of one target and equal on all other axes.
        """
        groups: dict[tuple[object, ...], dict[str, str]] = {}
        for key in run.keys:
            record = run.record(key)
            here = _coordinates(record.case)
            value = here.pop(self.axis, ABSENT)
            groups.setdefault((record.target_key, *sorted(here.items())), {})[value] = key
        base, *others = self.values
        return [(g[base], g[value], value) for g in groups.values() for value in others if {base, value} <= {*g}]


def read_variants(asked: str, run: Side) -> Variants:
    """The variants in ``wait=stream,event``, or with ``wait`` all its values in the order of the run, ``absent`` last.

    The value ``absent`` stands for cases without the parameter. Raises ``UsageError``.
    """
    axis, _, listed = asked.partition("=")
    cases = [_coordinates(run.record(key).case) for key in run.keys]
    every = {name: [case.get(name, ABSENT) for case in cases] for case in cases for name in case}
    known = {name: list(dict.fromkeys(values)) for name, values in every.items() if len(set(values)) > 1}
    if axis not in known:
        raise unknown("axis", axis, known)
    values = listed.split(",") if listed else sorted(known[axis], key=lambda value: value == ABSENT)
    for value in values:
        if value not in known[axis]:
            raise unknown(f"value of {axis}", value, known[axis])
    if len(set(values)) < max(2, len(values)):
        raise UsageError(f"--across {asked}: name two or more different values")
    return Variants(axis, tuple(values))


def why_refused(base: Side, base_key: str, new: Side, new_key: str) -> str:
    """Why two variants cannot be compared; '' if they can. Their windows may differ, their units may not."""
    units = [side.record(key).unit for side, key in ((base, base_key), (new, new_key))]
    if units[0] != units[1]:
        return f"unit differs between {base.name} and {new.name}: {units[0]} and {units[1]}"
    return refusal(base, base_key, base, base_key) or refusal(new, new_key, new, new_key)


def window_changes(axis: str, base: Record, new: Record) -> str:
    """The fields of the window that differ besides the axis: ``submits 1 → 0``; '' if none does."""
    return ", ".join(
        f"{name} {base.window.get(name, ABSENT)} \u2192 {new.window.get(name, ABSENT)}"
        for name in sorted({*base.window, *new.window} - {axis})
        if base.window and new.window and base.window.get(name) != new.window.get(name)
    )


def _coordinates(case: Case) -> dict[str, str]:
    return {name: scalar_text(value) for name, value in case.coordinates.items()}
