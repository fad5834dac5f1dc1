"""The one-shot figures beside the slope, as ratios: by how much T(1), T(1) after idling and T(100)/100 overstate."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, micro_cell
from overhead.reading.format import MICRO, factor, resolved
from overhead.reading.key_figures import overstatement
from overhead.reading.view import TargetView, View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Record, Value

_FIGURE_TITLES = {"naive": "T(1), warm", "naive_idle": "T(1) after 50 ms idle", "legacy": "T(100)/100"}
_FIGURE_MARKERS = dict(zip(_FIGURE_TITLES, ("o", "s", "^"), strict=True))


@register("naive", "What timing a single unit would report", 50, page="cases")
def naive(view: View) -> Iterator[Part]:
    shown = [t for t in view.stacked if any(t.base.figure(name) for name in _FIGURE_TITLES)]
    shown.sort(key=lambda t: (t.software, t.first.api == "CPU", -_most(t)))
    if not shown:
        yield Text(["No base case has a one-shot figure."])
        return
    shapes = {title: _FIGURE_MARKERS[name] for name, title in _FIGURE_TITLES.items()}
    figure = dot_figure([_row(t) for t in shown], "times the slope (1 is right)", shapes, one=1)
    yield Drawing(
        "naive",
        "What one-shot figures make of it",
        f"Timing one unit and its wait overstates what one more costs by up to {factor(_most(shown[0]))}, through "
        f"{shown[0].short}.",
        "Base case of each target. T(1) is what most benchmarks print; T(100)/100 is the published “sequential” "
        "figure. Both hold the fixed cost of the wait. Lines: all ratios that both intervals allow; "
        "no mark where the slope's interval reaches zero. Hollow: the figure or the slope is noisy or has two speeds.",
        figure,
    )
    yield Table(
        "One-shot figures and the slope",
        ["target", "unit", f"slope, {MICRO}", *(f"{title}, {MICRO}" for title in _FIGURE_TITLES.values()),
         *(f"{title}, ratio" for title in _FIGURE_TITLES.values())],
        [[Cell(t.short, t.stack), t.base.unit, micro_cell(t.base, "complete"),
          *(micro_cell(t.base, n) for n in _FIGURE_TITLES),
          *(_ratio(t.base, n) for n in _FIGURE_TITLES)] for t in shown],
        numeric=range(2, 9),
    )  # fmt: skip


def _most(target: TargetView) -> float:
    """By how much timing one unit overstates the cost of the base case; 0 where that is not known."""
    found = _overstated(target.base, "naive")
    return found.value if found is not None else 0.0


def _row(target: TargetView) -> DotRow:
    marks = [
        Mark(times, colour(target.stack), shape, of=_FIGURE_TITLES[name])
        for name, shape in _FIGURE_MARKERS.items()
        if (times := _overstated(target.base, name))
    ]
    return DotRow(target.short, marks, "" if marks else "no slope or no one-shot figure")


def _ratio(record: Record, name: str) -> str:
    times = _overstated(record, name)
    return factor(times) if times else ""


def _overstated(record: Record, name: str) -> Value | None:
    return overstatement(record, name) if resolved(record.figure("complete")) else None
