"""Who takes the CPU time: a table with the shares of Python, library and driver, for pages and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table
from overhead.reading.format import MICRO, micro_spread, percent
from overhead.reading.host_shares import HostShares, host_shares
from overhead.reading.view import View, without_device
from overhead.report.core.registry import register
from overhead.words.report.host_shares import doubt, title


@register("ladder", "CPU time by layer", 15, page="cases")
def layers(view: View) -> Iterator[Part]:
    """A table of the host's time with a row for each layer of each case; nothing without a split case."""
    found = [each for each in view.once(host_shares) if each.is_split]
    labels, device = without_device([each.target.label for each in found])
    rows = [row for label, each in zip(labels, found, strict=True) for row in _layers(label, each)]
    ends = [n - 1 for n, row in enumerate(rows) if row[0]]
    if rows:
        yield Table(title(device), ["stack", "case", "layer", "share", MICRO, ""], rows, numeric=(3, 4), ends=ends)


def _layers(label: str, each: HostShares) -> list[list[str]]:
    rows = [[label, each.case, "all of the host's time", "", micro_spread(each.host) if each.host else "missing", ""]]
    rows += [["", "", s.title, percent(s.of_host), micro_spread(s.figure), doubt(s)] for s in each.shares]
    if each.validation is not None:
        rows.append(["", "", "validation", "", micro_spread(each.validation), "part of a layer above"])
    if each.minimal is not None:
        rows.append(["", "", "a minimal Vulkan program", "", micro_spread(each.minimal), "for comparison, no layer"])
    return rows
