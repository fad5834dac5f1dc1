"""Figures as data frames, and the names of their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from overhead.results import Contention, Figure, Fingerprint, Params, Record, Status, Why

Cells = tuple[Any, ...]
"""The cells of a row, or of a part of it, in the order of its columns."""
_RUN_COLUMNS = ("machine", "created", "profile", "method")
_TARGET_COLUMNS = ("stack", "api", "adapter", "device", "software", "executes")
_COORDINATE_COLUMNS = ("pattern", "caller", "dependency", "unit", "workload")
_CASE_COLUMNS = (
    *_TARGET_COLUMNS, *_COORDINATE_COLUMNS,
    "params", "overlap", "bound", "flags", "case_status", "case_reason",
)  # fmt: skip
_FIGURE_COLUMNS = (
    "figure", "figure_unit", "value", "low", "high", "status", "reason", "rule", "processes",
    "modes",
)  # fmt: skip
_KIND_COLUMNS = (
    "holds_to", "kind", "comparison", "against", "way", "peers", "placement", "limit", "peer_costs",
)  # fmt: skip
COLUMNS = _RUN_COLUMNS + _CASE_COLUMNS + _FIGURE_COLUMNS + _KIND_COLUMNS
"""``to_pandas``: times (``figure_unit`` "ns") are nanoseconds; ``params`` is ``k=16 wait=poll``.

``kind``: ``case``; ``comparison`` of a case with the cases ``against``; or ``contention``, a case
while ``peers`` run it at once in this ``way``, of which ``peer_costs`` has the cost of each, ns.
"""


@dataclass(frozen=True)
class _Kind:
    """The columns of a row that only some kinds of rows have, in the order of ``_KIND_COLUMNS``
    after ``holds_to``.
    """

    kind: str
    comparison: str = ""
    against: str = ""
    way: str = ""
    peers: int | None = None
    placement: str = ""
    limit: str = ""
    peer_costs: str = ""

    @property
    def cells(self) -> Cells:
        return dataclasses.astuple(self)


_CASE = _Kind("case")


def rows(fingerprint: Fingerprint) -> Iterator[Cells]:
    """The run as a table for data frames: one row for each figure, with cells in the order of
    ``COLUMNS``; what has no figures has one row that says why.

    Nothing is dropped. The reasons are still codes; the caller puts them in words.
    """
    # Each row begins with the cells of its run, then those of its case, then the figure.
    run = (
        fingerprint.machine.id,
        fingerprint.created,
        fingerprint.profile,
        fingerprint.method_version,
    )
    # By the key of a record, the cells of its case.
    cases = {record.key: _case_of(record) for record in fingerprint.records}
    for record in fingerprint.records:
        case = run + cases[record.key]
        yield from _figure_rows(case, record.figures, record.status, record.reason, _CASE)
    # Empty cells, so that the columns stay the same.
    no_case = ("",) * len(_CASE_COLUMNS)
    for comparison in fingerprint.comparisons:
        # An edited file may compare a case that it does not hold.
        case = run + cases.get(comparison.of, no_case)
        against = "; ".join(comparison.against)
        kind = _Kind("comparison", comparison=comparison.name, against=against)
        yield from _figure_rows(case, comparison.figures, "failed", "no figure", kind)
    for peers in fingerprint.contention:
        case = run + _case_of_peers(peers)
        yield from _figure_rows(case, peers.figures, peers.status, peers.reason, _kind_of(peers))


def _kind_of(peers: Contention) -> _Kind:
    """The columns that only a case has that several peers ran at once."""
    return _Kind(
        "contention",
        way=peers.way,
        peers=peers.peers,
        placement=peers.placement,
        limit=peers.limit,
        peer_costs=" ".join(f"{cost:.6g}" for cost in peers.costs),
    )


def _case_of(record: Record) -> Cells:
    """The cells of ``_CASE_COLUMNS`` of a measured case."""
    named = [getattr(record, column) for column in _TARGET_COLUMNS + _COORDINATE_COLUMNS]
    flags = " ".join(record.flags)
    params = _params(record.params)
    return (*named, params, record.overlap, record.bound, flags, record.status, record.reason)


def _case_of_peers(peers: Contention) -> Cells:
    """The cells of ``_CASE_COLUMNS`` of a case that several peers run at once; those for overlap,
    bound and flags stay empty.
    """
    target = {column: getattr(peers.target, column) for column in _TARGET_COLUMNS}
    if peers.devices:
        target["device"] = " ".join(peers.devices)
    coordinates = [getattr(peers.case, column) for column in _COORDINATE_COLUMNS]
    params = _params(peers.case.params)
    return (*target.values(), *coordinates, params, "", "", "", peers.status, peers.reason)


def _params(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(params.items()))


def _figure_rows(
    case: Cells, figures: Sequence[Figure], status: Status, reason: Why, kind: _Kind
) -> Iterator[Cells]:
    """A row of the table for each figure, with the same cells of its case before it and those of
    its kind behind it.

    Without figures, one row with the status and the reason of the whole, so that it is not lost.
    """
    for figure in figures or [Figure(name="none", unit="", status=status, reason=reason)]:
        # The cells of the figure, in the order of the columns.
        interval = (figure.value, figure.low, figure.high)
        how_sure = (figure.status, figure.reason, figure.rule, figure.processes)
        # ``modes``: the two values of a figure that has no single one.
        modes = " ".join(map(str, figure.modes))
        cells = (figure.name, figure.unit, *interval, *how_sure, modes)
        yield *case, *cells, figure.holds_to, *kind.cells
