"""Figures as data frames, and the names of their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from overhead.results import Contention, Figure, Fingerprint, Params, Record, Status, Why

if TYPE_CHECKING:
    pass

_RUN_COLUMNS = ("machine", "created", "profile", "method")
_CASE_COLUMNS = (
    "stack", "api", "adapter", "device", "software", "executes", "pattern", "caller", "dependency",
    "unit", "workload", "params", "overlap", "bound", "flags", "case_status", "case_reason",
)  # fmt: skip
_FIGURE_COLUMNS = (
    "figure",
    "figure_unit",
    "value",
    "low",
    "high",
    "status",
    "reason",
    "rule",
    "processes",
    "modes",
)
_KIND_COLUMNS = (
    "holds_to",
    "kind",
    "comparison",
    "against",
    "way",
    "peers",
    "placement",
    "limit",
    "peer_costs",
)
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
    def cells(self) -> tuple[Any, ...]:
        return dataclasses.astuple(self)


_CASE = _Kind("case")


def rows(fingerprint: Fingerprint) -> Iterator[tuple[Any, ...]]:
    """One row for each figure, in the order of ``COLUMNS``; what has no figures has one row.

    Nothing is dropped. The reasons are not in words yet.
    """
    run = (
        fingerprint.machine.id,
        fingerprint.created,
        fingerprint.profile,
        fingerprint.method_version,
    )
    cases = {record.key: _case_of(record) for record in fingerprint.records}
    for record in fingerprint.records:
        yield from _figure_rows(
            run + cases[record.key], record.figures, record.status, record.reason, _CASE
        )
    no_case = ("",) * len(_CASE_COLUMNS)
    for one in fingerprint.comparisons:
        kind = _Kind("comparison", comparison=one.name, against="; ".join(one.against))
        yield from _figure_rows(
            run + cases.get(one.of, no_case), one.figures, "failed", "no figure", kind
        )
    for peers in fingerprint.contention:
        kind = _Kind(
            "contention",
            way=peers.way,
            peers=peers.peers,
            placement=peers.placement,
            limit=peers.limit,
            peer_costs=" ".join(f"{cost:.6g}" for cost in peers.costs),
        )
        yield from _figure_rows(
            run + _case_of_peers(peers), peers.figures, peers.status, peers.reason, kind
        )


def _case_of(r: Record) -> tuple[Any, ...]:
    return (
        r.stack,
        r.api,
        r.adapter,
        r.device,
        r.software,
        r.executes,
        r.pattern,
        r.caller,
        r.dependency,
        r.unit,
        r.workload,
        _params(r.params),
        r.overlap,
        r.bound,
        " ".join(r.flags),
        r.status,
        r.reason,
    )


def _case_of_peers(one: Contention) -> tuple[Any, ...]:
    target, case = one.target, one.case
    device = " ".join(one.devices) or target.device
    return (
        target.stack,
        target.api,
        target.adapter,
        device,
        target.software,
        target.executes,
        case.pattern,
        case.caller,
        case.dependency,
        case.unit,
        case.workload,
        _params(case.params),
        "",
        "",
        "",
        one.status,
        one.reason,
    )


def _params(params: Params) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(params.items()))


def _figure_rows(
    case: tuple[Any, ...], figures: Sequence[Figure], status: Status, reason: Why, kind: _Kind
) -> Iterator[tuple[Any, ...]]:
    """A row for each figure, or one that says why there is none."""
    for f in figures or [Figure(name="none", unit="", status=status, reason=reason)]:
        modes = " ".join(map(str, f.modes))
        figure = (
            f.name,
            f.unit,
            f.value,
            f.low,
            f.high,
            f.status,
            f.reason,
            f.rule,
            f.processes,
            modes,
        )
        yield *case, *figure, f.holds_to, *kind.cells
