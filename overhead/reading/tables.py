"""Figures as data frames, and the names of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from overhead.errors import require_extra
from overhead.results import Figure, Fingerprint

if TYPE_CHECKING:
    import pandas

_RUN_COLUMNS = ("machine", "created", "profile", "method")
_CASE_COLUMNS = (
    "stack", "api", "adapter", "device", "software", "executes", "pattern", "caller", "dependency", "unit", "workload",
    "params", "overlap", "bound", "flags", "case_status", "case_reason",
)  # fmt: skip
_FIGURE_COLUMNS = ("figure", "figure_unit", "value", "low", "high", "status", "reason", "rule", "processes", "modes")
COLUMNS = _RUN_COLUMNS + _CASE_COLUMNS + _FIGURE_COLUMNS
"""``to_pandas``: times (``figure_unit`` "ns") are nanoseconds; ``params`` is ``k=16 wait=poll``."""


def to_pandas(fingerprint: Fingerprint) -> pandas.DataFrame:
    """One row for each figure; a case without figures has one row, so that nothing is dropped."""
    require_extra("report", "pandas")
    from pandas import DataFrame

    return DataFrame(list(rows(fingerprint)), columns=list(COLUMNS))


def rows(fingerprint: Fingerprint) -> Iterator[tuple[Any, ...]]:
    """The rows of ``to_pandas`` as tuples, each in the order of ``COLUMNS``."""
    run = fingerprint.machine.id, fingerprint.created, fingerprint.profile, fingerprint.method_version
    for r in fingerprint.records:
        params = " ".join(f"{k}={v}" for k, v in sorted(r.params.items()))
        case = (
            r.stack, r.api, r.adapter, r.device, r.software, r.executes, r.pattern, r.caller, r.dependency, r.unit,
            r.workload, params, r.overlap, r.bound, " ".join(r.flags), r.status, r.reason,
        )  # fmt: skip
        for f in r.figures or [Figure(name="none", unit="", status=r.status, reason=r.reason)]:
            modes = " ".join(map(str, f.modes))
            yield *run, *case, f.name, f.unit, f.value, f.low, f.high, f.status, f.reason, f.rule, f.processes, modes
