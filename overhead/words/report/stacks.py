"""The table of stacks on the front page: its title, its columns and its remarks."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchRow, Kind, unpinned_below
from overhead.results import Record
from overhead.words.dispatch_costs import kind_remark, other_unit
from overhead.words.names import CALLER_WORDS

TABLE_TITLE = (
    "Cost of one dispatch or launch through each stack, with intervals; a row for each caller"
)
_BELOW_COST = "the unpinned cost is below the undisturbed cost"


def called(kind: Kind, record: Record) -> str:
    """Who makes the calls of the row's case of this kind."""
    caller = CALLER_WORDS[record.caller]
    return f"batched, {caller}" if kind == "batched" else caller


def full_remark(row: DispatchRow, kind: Kind, record: Record) -> str:
    """The remarks on a stack's cost from one kind of caller: what makes it doubtful, that processes
    without a fixed CPU core paid less (``unpinned_below``), and what a call does if it is neither a
    dispatch nor a launch.
    """
    remarks = [kind_remark(row, kind)]
    if unpinned_below(record):
        remarks.append(_BELOW_COST)
    # ``other_unit`` says what a single call does, which is no unit of a batch.
    if kind != "batched":
        remarks.append(other_unit(row))
    return "; ".join(filter(None, remarks))
