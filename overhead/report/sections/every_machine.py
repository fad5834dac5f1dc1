"""Figures on every machine's own page: cost by stack, and who takes the host's time."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading import host_shares
from overhead.reading.format import MICRO, in_micro, micro, valued
from overhead.reading.missing_values import why
from overhead.reading.view import CALLER_WORDS, TargetView, View
from overhead.report.core.bars import BarRow, bar_figure
from overhead.report.core.dots import DotRow, Mark, dot_panels
from overhead.report.core.draw import MUTED
from overhead.report.core.palette import LAYER_COLOURS, colour
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import BRIEF_ONLY, register

_BASE_FIGURES = {"complete": "one more", "host": "host", "fixed": "fixed", "naive": "T(1)"}


@register("brief-ladder", "Who takes the time", 15, brief=True, page=BRIEF_ONLY)
def ladders(view: View) -> Iterator[Part]:
    found = [f for f in view.once(host_shares.ladders) if f.split]
    drawn = {(f.target.key, f.top.pattern, f.top.unit): f for f in reversed(found)}
    if not found:
        return
    panels = []
    for unit in dict.fromkeys(f.top.unit for f in found):
        rows = []
        for each in (f for f in reversed(drawn.values()) if f.top.unit == unit):
            clear = [
                (host_shares.TITLES[name], value / 1e3, LAYER_COLOURS.get(name, MUTED))
                for name, value in host_shares.drawn(each.shares)
            ]
            host = each.host
            note = f"{micro(host)} {MICRO}" if host is not None and valued(host) is not None else ""
            rows.append(BarRow(f"{_short(each.target)}, {each.top.pattern}", clear, note))
        panels.append((f"{MICRO} of host time per {unit}", rows))
    yield Drawing(
        "ladder",
        "Host time by layer",
        "Stacked bars of the host's time per unit by library and driver, interpreter and wrapper objects.",
        "From left to right: the host's time of the same calls from compiled code, from Python without wrapper "
        "objects, and from Python as usual, which the bar ends at. Where wrapper objects or interpreter come out below "
        "zero, Python is one piece. The plainest case of each pattern; all are in the sentences.",
        bar_figure(panels),
    )
    yield Text(host_shares.ladder_sentences(found), folded="In sentences")


@register("brief-costs", "Cost by stack", 20, brief=True, page=BRIEF_ONLY)
def costs(view: View) -> Iterator[Part]:
    if not view.stacked:
        return
    units = dict.fromkeys(t.base.unit for t in view.stacked)
    panels = [("", f"{MICRO} per {unit}", [_row(t) for t in view.stacked if t.base.unit == unit]) for unit in units]
    yield Drawing(
        "costs",
        "One more unit of work",
        "Dots on log axes: microseconds per unit for each stack; the numbers are in the table below.",
        "The slope of the base case of each stack, with its 95 % interval; hollow where it is noisy or has two speeds.",
        dot_panels(panels, shared=False),
    )
    rows: list[list[str | Cell]] = []
    for t in view.stacked:
        figures = [t.base.figure(name) for name in _BASE_FIGURES]
        numbers = [micro(f) if f is not None else "" for f in figures]
        rows.append([Cell(t.label, t.stack), t.base.unit, CALLER_WORDS[t.base.caller], *numbers])
    yield Table(
        f"Base cases, {MICRO}", ["target", "unit", "called", *_BASE_FIGURES.values()], rows, numeric=range(3, 7)
    )


def _row(target: TargetView) -> DotRow:
    figure = target.base.figure("complete")
    if figure is None or valued(figure) is None:
        return DotRow(_short(target), [], why(target.base, "complete"))
    return DotRow(_short(target), [Mark(*in_micro(figure), colour(target.stack), hollow=figure.status != "ok")])


def _short(target: TargetView) -> str:
    """The stack and its API; the device is in the table."""
    return f"{target.stack}, {target.first.api}" + (" (software)" if target.software else "")
