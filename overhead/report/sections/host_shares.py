"""Who takes the CPU time: a table with the shares of Python, library and driver, for pages and the
terminal.
"""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table
from overhead.reading.host_shares import HostShares, host_shares
from overhead.reading.view import View, without_device
from overhead.report.core.registry import register
from overhead.words.format import MICRO, micro_spread, percent
from overhead.words.report.host_shares import (
    ALL_OF_IT,
    DOUBTS,
    LAYERS,
    MINIMAL_PROGRAM,
    NO_LAYER,
    NOT_RESOLVED,
    PART_OF_ANOTHER,
    case,
    title,
)

_COLUMNS = ("stack", "case", "layer", "share", MICRO, "remark")
_STACK, _CASE, _LAYER, _SHARE, _TIME, _REMARK = range(6)


@register("ladder", "CPU time by layer", 15, page="cases")
def layers(view: View) -> Iterator[Part]:
    """A table of the host's time with a row for each layer of each case; nothing without a split
    case.
    """
    found = [each for each in view.once(host_shares) if each.is_split]
    labels, device = without_device([each.target.named for each in found])
    rows = [row for label, each in zip(labels, found, strict=True) for row in _layers(label, each)]
    ends = [n - 1 for n, row in enumerate(rows) if row[0]]
    if rows:
        yield Table(
            title(device), _COLUMNS, rows, numeric=(_SHARE, _TIME), important=(_REMARK,), ends=ends
        )


def _layers(label: str, each: HostShares) -> list[list[str]]:
    rows = [
        [label, case(each), ALL_OF_IT, "", micro_spread(each.host) if each.host else "missing", ""]
    ]
    for share in each.shares:
        doubt = DOUBTS[share.doubt]
        shown = NOT_RESOLVED if share.of_host.floor < 0 else percent(share.of_host)
        rows.append(["", "", LAYERS[share.name], shown, micro_spread(share.figure), doubt])
    if each.validation is not None:
        rows.append(["", "", "validation", "", micro_spread(each.validation), PART_OF_ANOTHER])
    if each.minimal is not None:
        rows.append(["", "", MINIMAL_PROGRAM, "", micro_spread(each.minimal), NO_LAYER])
    return rows
