"""Rules on how a stack is called: from compiled code, and by a shorter way into the library."""

from __future__ import annotations

import dataclasses

from overhead.reading.findings import Finding, rule
from overhead.reading.findings._changes import Change, change_above, changes, changes_finding, variant
from overhead.reading.view import TargetView, View
from overhead.results import Scalar

_LEAST_TIMES = 1.3
"""Another way to call must be surely this many times as cheap."""
_SHORT_WAYS: dict[str, dict[str, Scalar]] = {
    "triton": {"entry": "compiled"},
    "cupy": {"operation": "raw-kernel"},
    "torch": {"operand": "tensor"},
}
"""By stack: the parameters of a case with less work on the host."""


@dataclasses.dataclass(frozen=True)
class CompiledCodePays:
    """The same calls cost less from compiled code than from Python: the largest saving first."""

    changes: tuple[Change, ...]


@dataclasses.dataclass(frozen=True)
class ShortWayPays:
    """A library's own shorter way to the same launch costs less: the largest saving first."""

    changes: tuple[Change, ...]


@rule("compiled")
def from_compiled_code(view: View) -> Finding | None:
    """Advise calls from compiled code where they surely cost less than the same calls from Python; else None."""

    def compiled(target: TargetView) -> Change | None:
        usual = view.comparison("python-share", target.base.key) is not None and target.first.api != "CPU"
        return change_above(_LEAST_TIMES, target, target.base, variant(target, caller="native") if usual else None)

    found = changes(view, compiled)
    return changes_finding(CompiledCodePays(tuple(found)), found)


@rule("short-way")
def short_way(view: View) -> Finding | None:
    """Advise a library's own shorter way to the same launch where it surely costs less; else None."""

    def shorter(target: TargetView) -> Change | None:
        if target.stack not in _SHORT_WAYS or target.first.api == "CPU":
            return None
        return change_above(_LEAST_TIMES, target, target.base, variant(target, _SHORT_WAYS[target.stack]))

    found = changes(view, shorter)
    return changes_finding(ShortWayPays(tuple(found)), found)
