"""What one more piece of work and a wait cost, by vendor, API and implementation."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import MICRO, count, micro_or_why, number, plain, resolved, spread
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.machines import Machines
from overhead.report.core.registry import register_across
from overhead.results import Figure, Record, Value

_QUANTITIES = {
    "dispatch": "a dispatch",
    "launch": "a launch or an operation",
    "node": "a node of a recording",
    "submit": "a submission, fitted",
}
"""The cost of one more unit, by the unit."""
_WAITS = {
    "empty_wait": "a wait, nothing issued",
    "naive": "one unit and its wait, warm",
    "naive_idle": "one unit and its wait, after 50 ms idle",
}
_VENDOR_PATTERNS = {
    "NVIDIA": "nvidia|geforce|quadro|tesla|rtx",
    "AMD": "amd|radeon|radv|gfx[0-9]",
    "Apple": "apple",
    "Arm": "mali|arm",
    "Intel": "intel|iris|arc",
    "Qualcomm": "qualcomm|adreno",
}
_Place = tuple[bool, str, str, str, str, str]
"""Whether it is a software adapter; what costs so much, vendor, stack, API and caller."""


@register_across("across-costs", "Cost by vendor, API and implementation", 20)
def costs(machines: Machines) -> Iterator[Part]:
    """A table with the cost of the base cases and of a wait: on the machine shown in full, and over all machines."""
    found: dict[_Place, list[tuple[View, Figure]]] = {}
    for view in machines.views:
        for place, figure in _figures(view):
            found.setdefault(place, []).append((view, figure))
    if not found:
        yield Text(["No machine has a stack that runs its work."])
        return
    order = [*_QUANTITIES.values(), *_WAITS.values()]
    rows = [
        _row(machines, place, found[place])
        for place in sorted(found, key=lambda at: (order.index(at[1]), at[0], at[2], _middle(found[at]), at))
    ]
    yield Text([f"The base case of each stack, on {count(len(machines.views), 'machine')}."], quiet=True)
    columns = ["implementation", "vendor", "API", "called", "what", "machines", f"this machine, {MICRO}",
               f"all: median and range, {MICRO}"]  # fmt: skip
    yield Table("What one more unit and a wait cost", columns, rows, numeric=(5, 6, 7))


def vendor(record: Record, cpu: str) -> str:
    """The vendor of the record's device: ``NVIDIA``, ``AMD CPU``, "software" or "another vendor". ``cpu``: its name."""
    if record.software:
        return "software"
    name = cpu if record.api == "CPU" else record.adapter
    found = (v for v, pattern in _VENDOR_PATTERNS.items() if re.search(rf"(?<![a-z])({pattern})", name, re.I))
    return next(found, "another vendor") + (" CPU" if record.api == "CPU" else "")


def _figures(view: View) -> Iterator[tuple[_Place, Figure]]:
    """Every figure of the base cases with its place in the table."""
    for target in view.without_floor:
        if not target.has_step:  # workloads alone: no plain unit to set beside others
            continue
        for quantity, record, figure in _own(view, target):
            who = vendor(record, view.fingerprint.machine.cpu)
            if figure is not None and figure.measured:
                called = CALLER_WORDS[record.caller]
                yield (record.software, quantity, who, record.stack, record.api, called), figure


def _own(view: View, target: TargetView) -> Iterator[tuple[str, Record, Figure | None]]:
    base = target.base
    nodes = [r for r in target.records if (r.pattern, r.workload, r.unit) == ("replay", "step", "node")]
    for record in (base, *(nodes[:1] if base.pattern != "replay" else ())):
        if record.unit in _QUANTITIES:
            yield _QUANTITIES[record.unit], record, record.figure("complete")
    comparison = view.comparison("marginal", base.key)
    if comparison:
        yield _QUANTITIES["submit"], base, comparison.figure("per_submit")
    if base.api != "CPU":
        yield from ((title, base, base.figure(name)) for name, title in _WAITS.items())


def _middle(found: Sequence[tuple[View, Figure]]) -> float:
    """The median in microseconds."""
    return statistics.median((figure.value or 0.0) / 1e3 for _, figure in found)


def _row(machines: Machines, place: _Place, found: Sequence[tuple[View, Figure]]) -> list[str | Cell]:
    _, what, who, stack, api, called = place
    values = [(figure.value or 0.0) / 1e3 for _, figure in found if resolved(figure)]
    of_all = Value(statistics.median(values), min(values), max(values)) if len(values) > 1 else None
    over = spread(of_all) if of_all else "".join(map(number, values))
    own = next((micro_or_why(figure) for view, figure in found if view is machines.own), "")
    return [Cell(plain(stack, 40), stack), who, api, called, what, str(len(found)), own, over]
