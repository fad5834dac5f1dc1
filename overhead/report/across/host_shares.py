"""Who takes the host's time, machine by machine: the layers of the first ladder of each stack."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text
from overhead.reading.format import MICRO, micro_spread, plain
from overhead.reading.host_shares import TITLES, HostShares, host_ns, ladders, layer_text
from overhead.reading.view import CALLER_WORDS, View
from overhead.report.across.machines import machine_cell
from overhead.report.core.across_registry import register_across
from overhead.report.core.machines import Machines


@register_across("across-ladders", "Who takes the host's time, by machine", 30)
def across_ladders(machines: Machines) -> Iterator[Part]:
    found = [(view, each) for view in machines.views for each in _first_of_each(view)]
    if not found:
        yield Text(["No machine ran the same calls by several callers in one worker."])
        return
    found.sort(key=lambda one: (one[1].target.stack, one[1].top.api, host_ns(one[1])))
    names = [name for name in TITLES if any(s.name == name for _, each in found for s in each.shares)]
    rows: list[list[str | Cell]] = []
    for view, each in found:
        shares = {share.name: layer_text(each, share) for share in each.shares}
        host = micro_spread(each.host) if each.host else ""
        stack = Cell(plain(each.target.stack, 40) + (" (software)" if each.target.software else ""), each.target.stack)
        called = CALLER_WORDS[each.top.caller]
        cells = (shares.get(name, "") for name in names)
        rows.append([machine_cell(machines, view), stack, each.top.api, each.top.unit, called, host, *cells])
    columns = ["machine", "stack", "API", "unit", "called", f"host, {MICRO}", *(TITLES[name] for name in names)]
    caption = f"The host's time, layer by layer: per cent of it, and {MICRO}"
    yield Table(caption, columns, rows, numeric=range(5, 6 + len(names)))


def _first_of_each(view: View) -> list[HostShares]:
    """For each stack and API the first ladder whose host time is split."""
    found = {(each.target.stack, each.top.api): each for each in reversed(view.once(ladders)) if each.split}
    return list(found.values())
