"""Compiling a whole loop: seconds, memory and speed-up by its length, or the class of failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from overhead.reading.format import MICRO, TIMES, spread
from overhead.reading.intervals import Span
from overhead.reading.unrolled_loops import Loops, loops_sentence, unrolled
from overhead.reading.view import View
from overhead.report.core.draw import INK, MUTED, PAPER, canvas, plain_log_ticks
from overhead.report.core.palette import colour
from overhead.report.core.parts import Cell, Drawing, Part, Table, Text
from overhead.report.core.registry import register

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BYTES_PER_MIB = 1 << 20
_STACK = "torch-compile"


@register("unrolled", "Compiling a whole loop", 46, page="chains", any_run=True)
def unrolled_section(view: View) -> Iterator[Part]:
    found = [loops for loops in unrolled(view) if loops.loops]
    if not found:
        return
    yield Text([loops_sentence(loops) for loops in found])
    for number, loops in enumerate(found):
        if any(loop.compile for loop in loops.loops):
            yield _drawing(loops, number)
        yield _table(loops)


def _drawing(found: Loops, number: int) -> Drawing:
    figure, [[seconds], [gain]] = canvas([1.6, 1.6], around=0.6)
    lengths = [loop.steps for loop in found.loops]
    _curve(seconds, [(loop.compile, 1e9) for loop in found.loops])
    _curve(gain, [(loop.speed_up, 1.0) for loop in found.loops])
    seconds.set_title("seconds to compile")
    gain.set_title("times as fast as eager")
    gain.axhline(1, color=INK, linewidth=0.8)
    gain.set_xlabel("steps in the loop")
    for ax in (seconds, gain):
        ax.set_xlim(-0.5, len(lengths) - 0.5)
        ax.set_xticks(range(len(lengths)), [f"{n:,}" for n in lengths])
        for place, loop in enumerate(found.loops):
            if loop.failure:
                _cross(ax, place)
    name = "unrolled" if not number else f"unrolled-{number + 1}"
    version = f", torch {found.torch}" if found.torch else ""
    return Drawing(
        name,
        f"A whole loop under torch.compile: {found.place}{version}",
        f"Two curves over {len(lengths)} lengths of the loop: seconds to compile it, and its speed-up over eager; "
        "the numbers, and the lengths that failed, are in the table below.",
        "Lines: 95 % intervals over the processes, each compiling anew in an empty cache. A cross: that length failed.",
        figure,
    )


def _curve(axes: Axes, points: Sequence[tuple[Span | None, float]]) -> None:
    axes.set_yscale("log")
    shown = [(place, s * (1 / unit)) for place, (s, unit) in enumerate(points) if s is not None and s.value > 0]
    own = colour(_STACK)
    for place, value in shown:
        if value.low is not None and value.high is not None:
            axes.plot([place, place], [max(value.low, value.value / 10), value.high], color=own, linewidth=1.6)
    axes.plot(
        [place for place, _ in shown],
        [s.value for _, s in shown],
        color=own,
        linewidth=0.8,
        marker="o",
        markersize=5.5,
        markerfacecolor=PAPER,
        markeredgecolor=own,
        markeredgewidth=1.2,
    )
    if shown:
        values = [s.value for _, s in shown]
        axes.set_ylim(min([*values, 1]) / 2, max([*values, 1]) * 3)
    plain_log_ticks(axes.yaxis)


def _cross(ax: Axes, place: int) -> None:
    ax.text(place, 0.93, TIMES, transform=ax.get_xaxis_transform(), ha="center", va="center", fontsize=12, color=MUTED)


def _table(found: Loops) -> Table:
    rows: list[list[str | Cell]] = []
    for loop in found.loops:
        numbers = [_shown(loop.compile, 1e9), _shown(loop.peak, _BYTES_PER_MIB), _shown(loop.call, 1e3)]
        gain = f"{_shown(loop.speed_up, 1)}{TIMES}" if loop.speed_up else ""
        rows.append([Cell(f"{loop.steps:,} steps", _STACK), *numbers, gain, loop.remark])
    return Table(
        f"A whole loop of {found.workload} under torch.compile, {found.place}",
        ["length", "compile, s", "memory, MiB", f"a call, {MICRO}", "to eager", "remark"],
        rows,
        numeric=range(1, 5),
    )


def _shown(found: Span | None, unit: float) -> str:
    return "" if found is None else spread(*found.over(unit))
