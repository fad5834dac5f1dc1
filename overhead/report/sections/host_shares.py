"""Who takes the CPU time: a table with the shares of Python, library and driver, for pages and the
terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from overhead.blocks.parts import Column, Part, table_of
from overhead.reading.findings.stages import stages_of
from overhead.reading.host_shares import HostShares, host_shares
from overhead.reading.plain_text import plain
from overhead.reading.view import TargetView, View, without_device
from overhead.report.core.registry import register
from overhead.words.format import MICRO, micro_spread, percent, positive_spread
from overhead.words.names import LAYERS
from overhead.words.report.host_shares import (
    ALL_OF_IT,
    CALLS_TITLE,
    DOUBTS,
    MINIMAL_PROGRAM,
    NO_LAYER,
    NOT_RESOLVED,
    PART_OF_ANOTHER,
    called_through,
    case,
    title,
)


@register("ladder", "CPU time by layer", 15, page="cases")
def layers(view: View) -> Iterator[Part]:
    """A section that divides the CPU time of a launch into layers (Python, library, driver): a
    table with a row for each layer of each case, and one of the calls of a dispatch, where they
    were timed one by one. Nothing where no case could be split and no call was timed.
    """
    yield from _by_layer(view)
    yield from _calls_table(view)


def _by_layer(view: View) -> Iterator[Part]:
    """The table of layers; nothing where no case could be split."""
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
class _Call:
    """A call of a dispatch, such as ``submit``. ``times``: as text, by the key of the target."""

    name: str
    times: Mapping[str, str]


def _calls_table(view: View) -> Iterator[Part]:
    """A table of the calls of a dispatch through each library of WebGPU, on its usual case: a
    column for each library. Nothing where no call was timed.
    """
    timed: list[TargetView] = []
    times: dict[str, dict[str, str]] = {}
    for target in view.without_floor:
        stages = stages_of(target.base) if "webgpu" in target.facts.roles else []
        if stages:
            timed.append(target)
        for stage in stages:
            by_target = times.setdefault(plain(stage.name, 30), {})
            by_target[target.key] = positive_spread(stage.time / 1e3)
    if not timed:
        return
    columns = [Column("call", _call_name)]
    for target in timed:
        heading = called_through(target.short, target.base.caller)
        columns.append(Column(heading, partial(_call_time, target.key), is_number=True))
    calls = [_Call(name, by_target) for name, by_target in times.items()]
    yield table_of(CALLS_TITLE, columns, calls)


def _call_name(call: _Call) -> str:
    return call.name


def _call_time(target: str, call: _Call) -> str:
    return call.times.get(target, "")


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
