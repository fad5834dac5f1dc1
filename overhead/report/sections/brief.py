"""What every machine's own page draws: its stacks and its ladders, as sketches."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading import ladder, sentences
from overhead.reading.format import MICRO, in_micro, micro, valued
from overhead.reading.view import Target, View, why
from overhead.report import sketch
from overhead.report.draw import MUTED
from overhead.report.palette import SHARES, colour
from overhead.report.parts import Cell, Part, Sketch, Table, Text
from overhead.report.registry import register

FIGURES = {"complete": "one more", "host": "host", "fixed": "fixed", "naive": "T(1)"}


@register("brief-ladder", "Who takes the time", 15, brief=True, full=False)
def ladders(view: View) -> Iterator[Part]:
    found = [f for f in ladder.ladders(view) if f.split]
    if not found:
        return
    for unit in dict.fromkeys(f.top.unit for f in found):
        rows = []
        for each in (f for f in found if f.top.unit == unit):
            clear = [(s.title, value / 1e3, SHARES.get(s.name, MUTED)) for s in each.shares
                     if s.separable and (value := valued(s.figure)) is not None]  # fmt: skip
            host = each.host
            note = f"{micro(host)} {MICRO}" if host is not None and valued(host) is not None else ""
            rows.append(sketch.BarRow(f"{_short(each.target)}, {each.top.pattern}", clear, note))
        yield Sketch(
            f"ladder-{unit}", f"Host time by rung, a {unit}",
            f"Stacked bars of the host's time per {unit} by binding, interpreter, API and driver.",
            "Each rung is a paired difference of the same calls with and without that layer; the last is measured "
            "itself. Beside the bar: the host's time as measured whole. Rungs not separable from zero are not drawn.",
            sketch.bars(rows, f"{MICRO} of host time per {unit}"),
        )  # fmt: skip
    yield Text(sentences.ladder_sentences(found), folded="In sentences")


@register("brief-costs", "Cost by stack", 20, brief=True, full=False)
def costs(view: View) -> Iterator[Part]:
    for unit in dict.fromkeys(t.base.unit for t in view.stacked):
        targets = [t for t in view.stacked if t.base.unit == unit]
        yield Sketch(
            f"costs-{unit}", f"One more {unit}",
            f"Dots on a log axis: microseconds per {unit} for each stack; the numbers are in the table below.",
            "The slope of the base case of each stack, with its 95 % interval; hollow where it is noisy or bimodal.",
            sketch.dots([_row(t) for t in targets], f"{MICRO} per {unit}"),
        )  # fmt: skip
    rows: list[list[str | Cell]] = []
    for t in view.stacked:
        figures = [t.base.figure(name) for name in FIGURES]
        numbers = [micro(f) if f is not None else "" for f in figures]
        rows.append([Cell(t.label, t.stack), t.base.unit, t.base.caller, *numbers])
    if rows:
        yield Table(f"Base cases, {MICRO}", ["target", "unit", "caller", *FIGURES.values()], rows, numeric=range(3, 7))


def _row(target: Target) -> sketch.DotRow:
    figure = target.base.figure("complete")
    if figure is None or valued(figure) is None:
        return sketch.DotRow(_short(target), None, why(target.base, "complete"))
    value, low, high = in_micro(figure)
    if value <= 0:
        return sketch.DotRow(_short(target), None, "not above zero")
    ends = (value, value) if low is None or high is None else (low, high)
    return sketch.DotRow(_short(target), sketch.Dot(value, *ends, colour(target.stack), figure.status != "ok"))


def _short(target: Target) -> str:
    """The stack and its API; the device is in the table."""
    where = "" if target.first.api in ("CPU", "CUDA") else f", {target.first.api}"
    return f"{target.stack}{where}" + (" (software)" if target.software else "")
