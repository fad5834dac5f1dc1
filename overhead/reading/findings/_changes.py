"""Two cases of one run that differ in one thing, and by how much the second is cheaper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.findings import Finding
from overhead.reading.format import MICRO, cost_text, factor_spread, micro_spread
from overhead.reading.view import CALLER_WORDS, TargetView, View, first_with, stack_name
from overhead.results import Record, Scalar, Value, ratio


@dataclasses.dataclass(frozen=True)
class Change:
    """``before`` and ``after``: cases of one run, both resolved; ``times``: the cost of before over that of after."""

    target: TargetView
    before: Record
    after: Record
    times: Value

    @property
    def name(self) -> str:
        """The stack inside a sentence: ``Dawn``."""
        return stack_name(self.target)

    @property
    def called(self) -> str:
        """The caller in words, ``from Python``; both with "and" between where they differ."""
        return " and ".join(dict.fromkeys(CALLER_WORDS[r.caller] for r in (self.before, self.after)))

    @property
    def instead(self) -> str:
        """Both costs, the second first: ``11.7 instead of 25.6 µs a dispatch from Python``."""
        return f"{cost_text(self.after)} instead of {cost_text(self.before)} {MICRO} a {self.before.unit} {self.called}"

    @property
    def against(self) -> str:
        """Both costs, the first first: ``211 µs against 22.8 a dispatch from Python``."""
        return f"{cost_text(self.before)} {MICRO} against {cost_text(self.after)} a {self.before.unit} {self.called}"

    @property
    def intervals(self) -> str:
        """With intervals: ``Dawn from Python: 25.6 (25.0 to 26.3) to 3.21 (3.12 to 3.30) µs, 8.0× (7.6 to 8.4)``."""
        before, after = (r.figure("complete") for r in (self.before, self.after))
        both = f"{micro_spread(before)} → {micro_spread(after)} {MICRO}" if before and after else ""
        return f"{self.name} {self.called}: {both}, {factor_spread(self.times)}"


def change_above(least: float, target: TargetView, before: Record | None, after: Record | None) -> Change | None:
    """The change between two cases; None unless both are resolved and the ratio's interval lies above ``least``."""
    if before is None or after is None:
        return None
    times = ratio(_resolved(before), _resolved(after))
    return None if times is None or times.floor < least else Change(target, before, after, times)


def _resolved(record: Record) -> Value | None:
    """The cost of a unit (``complete``); None if it is noisy or missing, or if its interval reaches zero."""
    found = record.measured("complete")
    return found if found and found.resolved and found.bounded and found.status in ("ok", "bimodal") else None


def changes(view: View, find_change: Callable[[TargetView], Change | None]) -> list[Change]:
    """What ``find_change`` finds for the targets of the headline figure, the change with the largest factor first."""
    found = [one for target in targets_shown(view)[0] if (one := find_change(target)) is not None]
    return sorted(found, key=lambda one: -one.times.value)


def variant(target: TargetView, params: Mapping[str, Scalar] | None = None, **fields: str) -> Record | None:
    """The case that differs from the target's base case only in these parameters and fields; None if not measured.

    ``fields``: ``pattern`` or ``caller``.
    """
    base = target.base
    same = {name: getattr(base, name) for name in ("workload", "dependency", "pattern", "caller")}
    return first_with(target.records, **{**same, **fields, "params": {**base.params, **(params or {})}})


def finding(found: list[Change], title: Callable[[Change], str], condition: str) -> Finding | None:
    """The finding on these changes: a title made of the first, all intervals, the condition; None without a change."""
    if not found:
        return None
    records = tuple(record.key for one in found for record in (one.before, one.after))
    said = "; ".join(one.intervals for one in found)
    return Finding(title(found[0]), f"{said}. {condition}", found[0].times.value, records)
