"""Drawings of chains: the cheapest way by steps and elements, pairs of ways compared, and the cost of each arm."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from overhead.reading.chains import COMPARED_LENGTHS, ArmFit, Group, steps_of
from overhead.reading.format import MICRO, factor, number
from overhead.report.core.dots import DotRow, Mark, dot_rows
from overhead.report.core.draw import INK, ONE_LINE_INCHES, canvas
from overhead.report.core.palette import colour
from overhead.report.core.parts import Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_KIND_COLOURS = {
    "graph": "#b8b84d", "fused-wgsl": "#56a0d3", "wgsl": "#9cc9e8", "fused-cuda": "#7fbf7b", "fused-triton": "#b3a2d0",
    "scan": "#e0b050", "jit": "#f0d9a0", "compiled": "#d99fc9", "launches": "#c7c7a0",
    "eager": "#c8c8c8", "hybrid": "#b0a090", "vulkan-replay": "#e0a8a0", "fused-spirv": "#c97f78",
    "wgsl-separate": "#c5dff0", "wgsl-submits": "#b0cfe3",
    "launches-separate": "#dcdcc4", "library": "#e3b5b5",
}  # fmt: skip
_KIND_LABELS = {
    "graph": "CUDA\ngraph", "fused-wgsl": "fused\nWGSL", "wgsl": "WGSL\nper step", "fused-cuda": "fused\nCUDA",
    "fused-triton": "fused\nTriton", "scan": "jitted\nloop", "jit": "jitted\nstep", "compiled": "compiled\nstep",
    "launches": "launch\na step", "eager": "eager", "hybrid": "hybrid", "wgsl-separate": "WGSL\nper op",
    "wgsl-submits": "WGSL\nsubmits", "launches-separate": "launch\nan op", "library": "library\ncall",
    "vulkan-replay": "Vulkan\nreplay", "fused-spirv": "fused\nSPIR-V",
}  # fmt: skip
_MAPPED_PAIRS = {
    ("eager", "graph"): "A CUDA graph against eager",
    ("graph", "fused-wgsl"): "Fused WGSL against a CUDA graph",
    ("wgsl", "fused-wgsl"): "Fusing the steps in WGSL",
    ("jit", "scan"): "A jitted loop against a jitted step",
    ("hybrid", "eager"): "Staying on one side against alternating",
    ("eager", "library"): "The library's own call against separate operations",
    ("wgsl-separate", "wgsl"): "One kernel a step against separate ones in WGSL",
    ("launches-separate", "launches"): "One kernel a step against separate ones in CUDA",
}
"""Pairs of arms with a map: first the one with the lower fixed cost, then the one with the lower cost a step."""
_MAP_ROW_INCHES = 0.5
"""Inches of a row in a map."""
_FIELD_TEXT_COLOUR = "#1a1c1e"
"""Text on a field. Not ``INK``, which the page's theme replaces: fields are light in both themes."""
_Field = Callable[[Group, int], tuple[ArmFit, str, bool] | None]
"""Maps a group and a number of steps to the cheapest arm, the text below it, and whether the next is clearly slower."""


def maps(found: Sequence[Group]) -> Drawing:
    """Maps of steps by elements for one workload: the cheapest way, and each compared pair that was measured."""
    steps = steps_of(found[0].workload)
    panels: list[tuple[str, Sequence[Group], _Field]] = [("The cheapest way", found, _cheapest)]
    for pair, title in _MAPPED_PAIRS.items():
        held = [group for group in found if group.rivals(*pair, steps)]
        if held:
            panels.append((title, held, _duel(*pair)))
    figure, grid = canvas([_MAP_ROW_INCHES * len(rows) for _, rows, _ in panels], around=0.55)
    for (ax,), (title, rows, field) in zip(grid, panels, strict=True):
        _map(ax, rows, sorted({*COMPARED_LENGTHS, steps}), field)
        ax.set_title(title)
        ax.set_ylabel("elements")
    grid[-1][0].set_xlabel("dependent steps")
    name = found[0].name
    return Drawing(
        f"chains-{_slug(name)}", f"Which way to run {name}, by steps and elements",
        f"Maps of steps by elements: each field names the cheapest way to run {name} there and its time, or which of "
        "two ways is the faster and how many times.",
        "From the fits. Pale: the intervals do not tell it from the next. Asterisk: longer than any chain measured.",
        figure,
    )  # fmt: skip


def _pale(shade: str) -> str:
    """The colour mixed with 60 % white."""
    parts = [int(shade[at : at + 2], 16) for at in (1, 3, 5)]
    return "#" + "".join(f"{round(255 - 0.4 * (255 - part)):02x}" for part in parts)


def _slug(name: str) -> str:
    """The name with only characters that are safe in a file name."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _map(ax: Axes, found: Sequence[Group], lengths: Sequence[int], field: _Field) -> None:
    from matplotlib.patches import Rectangle

    ax.grid(False)
    for row, group in enumerate(found):
        for column, steps in enumerate(lengths):
            shown = field(group, steps)
            if shown is None:
                continue
            winner, below, told = shown
            shade = _KIND_COLOURS.get(winner.kind.name, "#c8c8c8")
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade if told else _pale(shade),
                                   edgecolor="white", linewidth=1.2))  # fmt: skip
            ax.text(
                column,
                row,
                f"{_name(winner)}\n{below}",
                ha="center",
                va="center",
                fontsize=7,
                linespacing=1.1,
                color=_FIELD_TEXT_COLOUR,
            )
    ax.set_xticks(range(len(lengths)), [f"{n:,}" for n in lengths])
    ax.set_yticks(range(len(found)), [f"{g.elements:,}" for g in found])
    ax.set_xlim(-0.5, len(lengths) - 0.5)
    ax.set_ylim(-0.5, len(found) - 0.5)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def _name(arm: ArmFit) -> str:
    """The arm's name in at most two lines, marked if it runs on the CPU."""
    name = _KIND_LABELS.get(arm.kind.name, arm.kind.name)
    return name.replace("\n", " ") + "\n(CPU)" if arm.processor == "cpu" else name


def _cheapest(group: Group, steps: int) -> tuple[ArmFit, str, bool] | None:
    order = group.by_kind(steps)
    if not order:
        return None
    best = order[0].cost(steps)
    told = len(order) < 2 or order[1].cost(steps).floor > best.ceiling
    star = "*" if order[0].extrapolated(steps) else ""
    return order[0], f"{number(best.value / 1e3)} {MICRO}{star}", told


def _duel(before: str, after: str) -> _Field:
    def field(group: Group, steps: int) -> tuple[ArmFit, str, bool] | None:
        pair = group.rivals(before, after, steps)
        if pair is None:
            return None
        slow, fast = sorted(pair, key=lambda arm: -arm.cost(steps).value)
        ratio = slow.cost(steps) / fast.cost(steps)
        star = "*" if any(arm.extrapolated(steps) for arm in pair) else ""
        return fast, f"{factor(*ratio.over(1))}{star}", ratio.floor > 1

    return field


def costs(group: Group) -> Drawing:
    """A row for each arm, the cheapest first: the time of the chain at the full length of the workload."""
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    figure, [[ax]] = canvas([ONE_LINE_INCHES * 1.4 * len(arms)], around=0.75)
    dot_rows(ax, [DotRow(arm.label, [_mark(arm, steps)]) for arm in arms])
    ax.set_xlabel(f"{MICRO} for {steps:,} steps")
    ax.axvline(arms[0].cost(steps).value / 1e3, color=INK, linewidth=0.6, zorder=1)
    return Drawing(
        f"chains-{_slug(group.name)}-arms", f"{steps:,} steps by each way: {group.title}",
        f"A dot plot on a log axis: microseconds of a chain of {steps:,} steps for {len(arms)} ways to run it; the "
        "numbers are in the table below.",
        "One chain and one wait, from the fits; recording and compiling not counted. Hollow: noisy or bimodal.",
        figure,
    )  # fmt: skip


def _mark(arm: ArmFit, steps: int) -> Mark:
    return Mark(*arm.cost(steps).over(1e3), colour(arm.record.stack), hollow=arm.record.status != "ok")
