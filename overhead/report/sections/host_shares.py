"""Who takes the host's time: a table of every case whose CPU time is split into layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Cell, Part, Table
from overhead.reading.format import MICRO, micro_spread, percent_spread
from overhead.reading.host_shares import TITLES, HostShares, host_shares, layer_text
from overhead.reading.view import View
from overhead.report.core.registry import register


@register("ladder", "CPU time by layer", 15, page="cases")
def layers(view: View) -> Iterator[Part]:
    """A table of the CPU time by layer of every split case; nothing without such a case."""
    if found := view.once(host_shares):
        yield _table("The host's time, layer by layer", found)


def _table(caption: str, found: Sequence[HostShares]) -> Table:
    names = [n for n in TITLES if any(s.name == n for f in found for s in f.shares)]
    rows: list[list[str | Cell]] = []
    for each in found:
        shares = {s.name: layer_text(s) for s in each.shares}
        host = micro_spread(each.host) if each.host is not None else "missing"
        name, head = Cell(each.target.short, each.target.stack), [each.case, each.top.unit, host]
        rest = [micro_spread(each.validation), micro_spread(each.minimal), each.reason]
        rows.append([name, *head, percent_spread(each.python), *(shares.get(n, "") for n in names), *rest])
    columns = ["target", "pattern", "unit", f"host, {MICRO}", "Python's share", *(TITLES[n] for n in names),
               "of it validation", "a minimal Vulkan program", "remark"]  # fmt: skip
    return Table(f"{caption}: per cent and {MICRO}", columns, rows, numeric=range(3, 7 + len(names)))
