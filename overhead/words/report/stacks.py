"""The table of stacks on the front page: its title, its columns and its remarks."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchRow, Kind, met_below
from overhead.results import Record
from overhead.words.dispatch_costs import other_unit, remark as row_remark
from overhead.words.format import MICRO
from overhead.words.names import CALLER_WORDS

TABLE_TITLE = (
    "Cost of one dispatch or launch through each stack, with intervals; a row for each caller"
)
TIME_COLUMNS = [f"{what}, {MICRO}" for what in ("cost", "CPU time", "run-to-run", "unpinned")]
COLUMNS_OF_STACKS = ["stack", "called", *TIME_COLUMNS, "limit", "remark"]


def called(kind: Kind, record: Record) -> str:
    """Who makes the calls of the row's case of this kind."""
    return ("batched, " if kind == "batched" else "") + CALLER_WORDS[record.caller]


def remark(row: DispatchRow, kind: Kind, record: Record) -> str:
    """Remarks on the row's case of this kind: its own remark, an unpinned cost below the cost,
    another unit.
    """
    below = "the unpinned cost is below the undisturbed cost" if met_below(record) else ""
    unit = "" if kind == "batched" else other_unit(row)
    return "; ".join(filter(None, [row_remark(row, kind), below, unit]))
