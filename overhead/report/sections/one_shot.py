"""How much a single timing overstates: T(1), T(1) after idling and T(100)/100 as multiples of the slope."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, factor, factor_spread, resolved
from overhead.reading.key_figures import overstatement
from overhead.reading.view import TargetView, View
from overhead.report.core.registry import register
from overhead.results import Value

_TITLES = {"naive": "T(1), warm", "naive_idle": "T(1) after 50 ms idle", "legacy": "T(100)/100"}


@register("naive", "How much a single timing overstates", 50, page="cases")
def naive(view: View) -> Iterator[Part]:
    shown = [t for t in view.stacked if any(t.base.figure(name) for name in _TITLES)]
    shown.sort(key=lambda t: (t.software, t.first.api == "CPU", -_most(t)))
    if not shown:
        yield Text(["No base case has a one-shot figure."])
        return
    yield Text([f"Timing one unit and its wait overstates what one more costs by up to {factor(_most(shown[0]))}, "
                f"through {shown[0].short}. T(1) is what most benchmarks print, T(100)/100 the published “sequential” "
                "figure; both hold the fixed cost of the wait."])  # fmt: skip
    yield Table(
        "One-shot figures as multiples of the slope",
        ["target", "unit", f"slope, {MICRO}", *_TITLES.values()],
        [
            [Cell(t.short, t.stack), t.base.unit, micro_cell(t.base, "complete"), *(_ratio(t, n) for n in _TITLES)]
            for t in shown
        ],
        numeric=range(2, 6),
    )


def _most(target: TargetView) -> float:
    """By how much timing one unit overstates the cost of the base case; 0 where that is not known."""
    found = _overstated(target, "naive")
    return found.value if found is not None else 0.0


def _ratio(target: TargetView, name: str) -> str:
    found = _overstated(target, name)
    return factor_spread(found) if found is not None else ""


def _overstated(target: TargetView, name: str) -> Value | None:
    return overstatement(target.base, name) if resolved(target.base.figure("complete")) else None
