"""Two cases of one run that differ in one thing, and by how much the second is cheaper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.findings import Finding
from overhead.reading.format import MICRO, cost_text, factor_spread, micro_spread
from overhead.reading.stack_names import stack_name
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.results import Caller, Pattern, Record, Scalar, Value, ratio


@dataclasses.dataclass(frozen=True)
class Change:
    """``before`` and ``after`` are cases of one run, both resolved; ``times`` is before over after."""

    target: TargetView
    before: Record
    after: Record
    times: Value

    @property
    def name(self) -> str:
        return stack_name(self.target)

    @property
    def called(self) -> str:
        """The caller of both cases, or that of each."""
        return " and ".join(dict.fromkeys(CALLER_WORDS[r.caller] for r in (self.before, self.after)))

    @property
    def from_to(self) -> str:
        """``41.9 to 3.74 µs a dispatch from Python``."""
        return f"{cost_text(self.before)} to {cost_text(self.after)} {MICRO} a {self.before.unit} {self.called}"

    @property
    def instead(self) -> str:
        """``11.7 instead of 25.6 µs a dispatch from Python``."""
        return f"{cost_text(self.after)} instead of {cost_text(self.before)} {MICRO} a {self.before.unit} {self.called}"

    @property
    def against(self) -> str:
        """``211 µs against 22.8 a dispatch from Python``."""
        return f"{cost_text(self.before)} {MICRO} against {cost_text(self.after)} a {self.before.unit} {self.called}"

    @property
    def intervals(self) -> str:
        """``Dawn from Python: 25.6 (25.0 to 26.3) to 3.21 µs (3.12 to 3.30), 8.0× (7.6 to 8.4)``."""
        before, after = (r.figure("complete") for r in (self.before, self.after))
        both = f"{micro_spread(before)} to {micro_spread(after)} {MICRO}" if before and after else ""
        return f"{self.name} {self.called}: {both}, {factor_spread(self.times)}"


def change(target: TargetView, before: Record | None, after: Record | None, threshold: float) -> Change | None:
    """The change where both cases are resolved and the interval of before over after lies above ``threshold``."""
    if before is None or after is None:
        return None
    times = ratio(resolved(before), resolved(after))
    if times is None or times.floor < threshold:
        return None
    return Change(target, before, after, times)


def resolved(record: Record) -> Value | None:
    """The cost of a unit that is not noisy and whose interval lies above zero; None otherwise.

    The interval of a cost with two speeds holds both.
    """
    found = record.measured("complete")
    return found if found and found.resolved and found.bounded and found.status in ("ok", "bimodal") else None


def changes(view: View, of: Callable[[TargetView], Change | None]) -> list[Change]:
    """The changes of all targets of the run that has one, the one with the largest factor first."""
    found = [one for target in targets_shown(view)[0] if (one := of(target)) is not None]
    return sorted(found, key=lambda one: -one.times.value)


def case(
    target: TargetView,
    params: Mapping[str, Scalar] | None = None,
    *,
    pattern: Pattern | None = None,
    caller: Caller | None = None,
) -> Record | None:
    """The case of the step that differs from the target's base case in these coordinates only; None without one."""
    base = target.base
    wanted = {**base.params, **(params or {})}
    return next(
        (
            r
            for r in target.records
            if r.workload == base.workload
            and r.dependency == base.dependency
            and r.params == wanted
            and r.pattern == (pattern or base.pattern)
            and r.caller == (caller or base.caller)
        ),
        None,
    )


def finding(title: str, found: list[Change], condition: str) -> Finding:
    """A finding on the first change; its detail has the intervals of all changes and the condition."""
    records = tuple(record.key for one in found for record in (one.before, one.after))
    said = "; ".join(one.intervals for one in found)
    return Finding(title, f"{said}. {condition}", found[0].times.value, records)
