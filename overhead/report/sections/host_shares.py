"""Who takes the CPU time: a table with the shares of Python, library and driver, for pages and the
terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from overhead.blocks.parts import Column, Part, table_of
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


@register("ladder", "CPU time by layer", 15, page="cases")
def layers(view: View) -> Iterator[Part]:
    """A section that divides the CPU time of a launch into layers (Python, library, driver): a
    table with a row for each layer of each case. Nothing where no case could be split.
    """
    # Split: the CPU time is known, and at least one layer is surely above zero.
    split = [shares for shares in view.once(host_shares) if shares.is_split]
    if not split:
        return
    # A device that all cases have in common stands in the title alone.
    labels, device = without_device([shares.target.named for shares in split])
    rows: list[_Row] = []
    last_rows = []  # of each case: a line below separates it from the next
    for label, shares in zip(labels, split, strict=True):
        rows += _rows(label, shares)
        last_rows.append(len(rows) - 1)
    yield table_of(title(device), _COLUMNS, rows, ends=last_rows)


@dataclass(frozen=True)
class _Row:
    """A row of the table. Only the first row of a case names its stack and the case."""

    layer: str
    time: str
    stack: str = ""
    case: str = ""
    share: str = ""
    remark: str = ""


_COLUMNS: list[Column[_Row]] = [
    Column("stack", attrgetter("stack")),
    Column("case", attrgetter("case")),
    Column("layer", attrgetter("layer")),
    Column("share", attrgetter("share"), is_number=True),
    Column(MICRO, attrgetter("time"), is_number=True),
    Column("remark", attrgetter("remark"), is_important=True),
]


def _rows(label: str, shares: HostShares) -> list[_Row]:
    """The rows of a case: its whole CPU time, the layers that add up to it, and below them times
    that are no layer of it: WebGPU's validation, and the least program that makes the calls.
    """
    whole = micro_spread(shares.host) if shares.host is not None else "missing"
    # Only the first row names the stack and the case; it holds for those below.
    rows = [_Row(ALL_OF_IT, whole, stack=label, case=case(shares))]
    # ``of_host``: the layer's share of the whole CPU time; ``doubt``: why it may not be trusted.
    for share in shares.shares:
        # A layer is a difference of two measured times, so its interval may reach below zero.
        is_resolved = share.of_host.floor >= 0
        percentage = percent(share.of_host) if is_resolved else NOT_RESOLVED
        time = micro_spread(share.figure)
        doubt = DOUBTS[share.doubt]
        rows.append(_Row(LAYERS[share.name], time, share=percentage, remark=doubt))
    if shares.validation is not None:
        time = micro_spread(shares.validation)
        rows.append(_Row("validation", time, remark=PART_OF_ANOTHER))
    if shares.minimal is not None:
        rows.append(_Row(MINIMAL_PROGRAM, micro_spread(shares.minimal), remark=NO_LAYER))
    return rows
