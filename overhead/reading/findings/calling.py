"""Rules on how a stack is called: from compiled code, and by a shorter way into the library."""

from __future__ import annotations

import dataclasses

from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import (
    Change,
    change_above,
    changes,
    changes_finding,
    of_webgpu_or_all,
    variant,
)
from overhead.reading.headline import PythonShare, python_shares
from overhead.reading.host_shares import HostShares, host_shares
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetView, View
from overhead.results import Record

_LEAST_TIMES = 1.3
"""Another way to call must be surely this many times as cheap. Chosen, not measured."""


@dataclasses.dataclass(frozen=True)
class CompiledCodePays:
    """The same calls cost less from compiled code than from Python: the largest saving first.
    ``shares``: of these stacks, how much of the CPU time of a call Python takes.

    Of the first change: ``layers``, how the CPU time from Python splits, None where that was not
    measured; ``without_wrappers``, the case of the same calls from Python without wrapper objects.
    """

    changes: tuple[Change, ...]
    shares: tuple[PythonShare, ...]
    layers: HostShares | None
    without_wrappers: Record | None


@dataclasses.dataclass(frozen=True)
class ShortWayPays:
    """A library's own shorter way to the same launch costs less: the largest saving first.
    ``advice``: what to do.
    """

    changes: tuple[Change, ...]
    advice: str


@rule("compiled", "webgpu", place=2, page="cases#ladder")
def from_compiled_code(view: View) -> Finding | None:
    """Advise calls from compiled code where they surely cost less than the same calls from Python;
    else None.
    """

    def compiled(target: TargetView) -> Change | None:
        # The comparison is there only where both make the same calls of the library.
        # "python-share": the comparison that tells how much of the CPU time Python takes.
        makes_same_calls = view.comparison("python-share", target.base.key) is not None
        if not makes_same_calls or target.first.api == "CPU":
            return None
        native = variant(target, caller="native")
        # Surely means 1.3 times as cheap (``_LEAST_TIMES``), with the whole interval.
        return change_above(_LEAST_TIMES, target, target.base, native)

    found = of_webgpu_or_all(changes(view, compiled))
    stacks = {change.target.stack for change in found}
    costs = view.once(dispatch_costs)
    shares = []
    if costs is not None:
        shares = [share for share in python_shares(costs) if share.row.stack in stacks]
    if not found:
        return None
    first = found[0]
    facts = CompiledCodePays(
        tuple(found),
        tuple(shares),
        _layers(view, first.before),
        variant(first.target, caller="ffi"),
    )
    return changes_finding(facts, found)


def _layers(view: View, record: Record) -> HostShares | None:
    """How the CPU time of the case splits; None where it does not."""
    for shares in view.once(host_shares):
        if shares.top.key == record.key and shares.is_split:
            return shares
    return None


@rule("short-way", page="cases")
def short_way(view: View) -> Finding | None:
    """Advise a library's own shorter way to the same launch where it surely costs less; else
    None.
    """

    def shorter(target: TargetView) -> Change | None:
        # ``short_way``: the parameters of the case, and the advice; None for most stacks.
        way = target.facts.short_way
        if way is None or target.first.api == "CPU":
            return None
        # Surely means 1.3 times as cheap (``_LEAST_TIMES``), with the whole interval.
        return change_above(_LEAST_TIMES, target, target.base, variant(target, way.params))

    found = changes(view, shorter)
    # The advice is that of the stack where the shorter way saves most.
    way = found[0].target.facts.short_way if found else None
    if way is None:
        return None
    facts = ShortWayPays(tuple(found), plain(way.advice, 120))
    return changes_finding(facts, found)
