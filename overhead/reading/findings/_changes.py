"""Two cases of one run that differ in one thing, and by how much the second is cheaper."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

from overhead.reading.dispatch_costs import targets_shown
from overhead.reading.findings import Finding, Reader
from overhead.reading.view import TargetView, View, first_with
from overhead.results import Record, Scalar, Value, ratio


@dataclasses.dataclass(frozen=True)
class Change:
    """Two cases of one target, of which the one after a change of the program is cheaper than the
    one ``before``. ``times``: the cost before over that after.
    """

    target: TargetView
    before: Record
    after: Record
    times: Value


def change_above(
    least: float, target: TargetView, before: Record | None, after: Record | None
) -> Change | None:
    """What changing the case ``before`` to ``after`` saves; None unless both have a usable cost and
    the ``after`` is surely ``least`` times as cheap, with the whole interval of the ratio.

    A case that was not measured is None.
    """
    if before is None or after is None:
        return None
    # ``floor``: the lower end of the interval of the ratio.
    times = ratio(_usable_cost(before), _usable_cost(after))
    if times is None or times.floor < least:
        return None
    return Change(target, before, after, times)


def _usable_cost(record: Record) -> Value | None:
    """The cost of a unit (``complete``) for a ratio that advice rests on; None if it is missing,
    has no interval, or has one that reaches zero.

    A noisy cost may still prove a saving: its interval tells. Of a case that ran at two speeds
    (``bimodal``) the value is that of most rounds.
    """
    cost = record.measured("complete")
    if cost is None or not cost.resolved or not cost.bounded:
        return None
    return cost if cost.status in ("ok", "noisy", "bimodal") else None


def changes(view: View, find_change: Callable[[TargetView], Change | None]) -> list[Change]:
    """The changes that a rule finds (``find_change``: the change of one target, or None), over the
    targets of the headline figure, which are on one GPU; the one that saves the largest factor
    first. What an adapter costs that computes on the CPU advises nobody.
    """
    found = []
    for target in targets_shown(view).targets:
        change = None if target.software else find_change(target)
        if change is not None:
            found.append(change)
    return sorted(found, key=lambda change: -change.times.value)


def variant(
    target: TargetView, params: Mapping[str, Scalar] | None = None, **fields: str
) -> Record | None:
    """The measured case that differs from the target's base case only in these parameters and
    fields (``pattern``, ``caller``), for a rule that compares the two; None if there is none.
    """
    base = target.base
    # Everything as in the base case, except what the caller names.
    wanted = {name: getattr(base, name) for name in ("workload", "dependency", "pattern", "caller")}
    wanted.update(fields)
    wanted["params"] = {**base.params, **(params or {})}
    # The first case with these fields, or None.
    return first_with(target.records, **wanted)


def reader_of(change: Change) -> Reader:
    """For whom the change is."""
    target = change.target
    if target.first.api == "Vulkan" or "webgpu" in target.facts.roles:
        return "webgpu"
    return "engines"


def of_webgpu_or_all(found: list[Change]) -> list[Change]:
    """The changes through libraries of WebGPU; without any, all of them."""
    of_webgpu = [change for change in found if "webgpu" in change.target.facts.roles]
    return of_webgpu or found


def changes_finding(facts: object, found: list[Change]) -> Finding | None:
    """The finding of a rule from the changes that it found; None without a change.

    ``facts``: what its sentences are made of. The first change, which saves most, says how many
    times as long it takes without, and for whom the finding is.
    """
    if not found:
        return None
    records: list[str] = []
    for change in found:
        records += [change.before.key, change.after.key]
    return Finding(facts, found[0].times.value, tuple(records), reader=reader_of(found[0]))
