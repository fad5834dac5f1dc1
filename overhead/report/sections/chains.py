"""Chains of dependent steps: a table by workload and size, a map of the cheapest way, and where one passes another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from overhead.reading import chains
from overhead.reading.chains import COMPARED, LENGTHS, Arm, Group, Span, crossing, steps_of
from overhead.reading.format import MICRO, factor, number, plain, spread
from overhead.reading.sentences import chain_opening
from overhead.reading.view import View, why
from overhead.report.draw import INK, canvas
from overhead.report.parts import Cell, Drawing, Part, Table, Text
from overhead.report.registry import register
from overhead.workloads import workloads

COLOURS = {
    "graph": "#999933", "fused-wgsl": "#56a0d3", "wgsl": "#9cc9e8", "fused-cuda": "#7fbf7b", "fused-triton": "#b3a2d0",
    "scan": "#e0b050", "jit": "#f0d9a0", "compiled": "#d99fc9", "launches": "#c7c7a0",
    "eager": "#c8c8c8", "hybrid": "#b0a090",
}  # fmt: skip
NAMES = {
    "graph": "CUDA graph", "fused-wgsl": "fused WGSL", "wgsl": "WGSL per step", "fused-cuda": "fused CUDA",
    "fused-triton": "fused Triton", "scan": "scan", "jit": "jit per step", "compiled": "compiled step",
    "launches": "launches", "eager": "eager", "hybrid": "hybrid",
}  # fmt: skip


@register("chains", "Chains of dependent steps", 45)
def chains_section(view: View) -> Iterator[Part]:
    found = chains.groups(view)
    if not any(g.arms for g in found):
        reasons = [f"{r.stack} {r.workload}: {why(r, 'complete')}" for g in found for r in g.failed]
        yield Text(["No workload has a figure."] if found else ["No workload was measured."])
        if reasons:
            yield Text(reasons[:20], quiet=True)
        return
    yield Text([s for s in (chain_opening(view), *_sentences(found)) if s])
    for name in dict.fromkeys(g.workload for g in found):
        own = [g for g in found if g.workload == name]
        if len(own) > 1:
            yield _map(name, own)
        for group in own:
            yield _table(group)
    yield Text([*_about(found), _METHOD], quiet=True)


_METHOD = (
    "Every arm was compared with NumPy in float64 on fresh random inputs before it was timed, and the device "
    "counts its steps; an arm that differs has no speed. Costs are fixed + slope x steps of the arm's own fit: "
    "one chain and one wait, recording and compiling not counted. Arms of different stacks ran in different "
    "processes, so the interval of a ratio is over all that the intervals of both figures allow. An asterisk "
    "marks a length beyond the longest chain that was measured."
)


def _about(found: Sequence[Group]) -> list[str]:
    known = workloads()
    names = [n for n in dict.fromkeys(g.workload for g in found) if n in known]
    return [f"{n}: {known[n].about}." for n in names]


def _table(group: Group) -> Table:
    steps = steps_of(group.workload)
    arms = sorted(group.arms, key=lambda a: a.cost(steps).value)
    rows: list[list[str | Cell]] = []
    for arm in arms:
        cost, star = arm.cost(steps), "*" if arm.extrapolated(steps) else ""
        ratio = cost.over(arms[0].cost(steps))
        rows.append([
            Cell(plain(arm.label, 90), arm.record.stack), _micro(arm.slope), _micro(arm.fixed), _micro(cost) + star,
            number(1e9 / cost.value, 1e9 / cost.high, 1e9 / cost.low if cost.low > 0 else None) + star,
            "1" if arm is arms[0] else factor(ratio.value, ratio.low, ratio.high) + star,
        ])  # fmt: skip
    for record in group.failed:
        reason = plain(f"{record.status}: {record.reason}" if record.reason else why(record, "complete"), 120)
        rows.append([Cell(f"{record.stack}, {record.pattern}", record.stack), reason, "", "", "", ""])
    return Table(
        f"{group.workload}: {group.elements:,} elements, {steps:,} steps",
        ["arm", f"{MICRO} per step", f"fixed, {MICRO}", f"{steps:,} steps, {MICRO}", "runs a second", "to the fastest"],
        rows, numeric=range(1, 6),
    )  # fmt: skip


def _micro(span: Span) -> str:
    return spread(span.value / 1e3, span.low / 1e3, span.high / 1e3)


def _map(name: str, found: Sequence[Group]) -> Drawing:
    """Steps by elements; each field names the cheapest kind there, paler where the next one is within the intervals."""
    lengths = sorted({*LENGTHS, steps_of(name)})
    figure, [[ax]] = canvas([0.62 * len(found) + 0.4])
    ax.grid(False)
    for row, group in enumerate(found):
        for column, steps in enumerate(lengths):
            _field(ax, row, column, group, steps)
    ax.set_xticks(range(len(lengths)), [f"{n:,}" for n in lengths])
    ax.set_yticks(range(len(found)), [f"{g.elements:,}" for g in found])
    ax.set_xlim(-0.5, len(lengths) - 0.5)
    ax.set_ylim(-0.5, len(found) - 0.5)
    ax.set_xlabel("dependent steps")
    ax.set_ylabel("elements")
    return Drawing(
        f"chains-{plain(name, 40)}", f"The cheapest way to run {name}",
        "Map of steps by elements: each field names the cheapest way to run the chain there and its time.",
        "From the fits. Pale: the next kind is within both intervals. Asterisk: longer than any chain measured.",
        figure,
    )  # fmt: skip


def _field(ax: object, row: int, column: int, group: Group, steps: int) -> None:
    from typing import Any, cast

    from matplotlib.patches import Rectangle

    axes = cast(Any, ax)
    order = group.by_kind(steps)
    if not order:
        return
    best = order[0]
    tie = len(order) > 1 and order[1].cost(steps).low <= best.cost(steps).high
    shade = COLOURS.get(best.kind.name, "#c8c8c8")
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade, alpha=0.45 if tie else 1.0,
                             edgecolor="white", linewidth=1.2))  # fmt: skip
    star = "*" if best.extrapolated(steps) else ""
    text = f"{NAMES[best.kind.name]}{star}\n{number(best.cost(steps).value / 1e3)} {MICRO}"
    axes.text(column, row, text, ha="center", va="center", fontsize=6.2, color=INK if not tie else "#333333")


def _sentences(found: Sequence[Group]) -> list[str]:
    said = []
    for group in found:
        lines = [line for pair in COMPARED.values() if (line := _passing(group, *pair))]
        if lines:
            said.append(f"{group.workload}, {group.elements:,} elements: {'; '.join(lines)}.")
    return [*said, *_fusion(found)]


def _passing(group: Group, before: str, after: str) -> str:
    """``a CUDA graph passes eager operations from 3 steps on``: the cheapest arms on one kind of processor."""
    steps = steps_of(group.workload)
    for processor in ("gpu", "software", "cpu"):
        there = Group(group.workload, group.elements, tuple(a for a in group.arms if a.processor == processor), ())
        first, second = there.best(steps, {before}), there.best(steps, {after})
        if first is not None and second is not None:
            return _said(first, second, "" if processor == "gpu" else f" ({processor})")
    return ""


def _said(first: Arm, second: Arm, where: str) -> str:
    found = crossing(first, second)
    ours, theirs = second.kind.title, first.kind.title
    if found.always:
        return f"{ours} beats {theirs} at any length{where}"
    if found.never:
        return f"{ours} never beats {theirs}{where}"
    if found.steps is None:
        gain = first.slope.over(second.slope)
        if gain.low > 1:
            return f"{ours} costs {factor(gain.value, gain.low, gain.high)} less a step than {theirs}{where}"
        return f"the intervals do not tell {ours} from {theirs}{where}"
    at = found.steps
    if at.high < 1:
        return f"{ours} beats {theirs} from the first step{where}"
    beyond = ", longer than any chain measured" if at.value > min(first.longest, second.longest) else ""
    return f"{ours} passes {theirs} from {spread(max(at.value, 1), max(at.low, 1), at.high)} steps on{beyond}{where}"


def _fusion(found: Sequence[Group]) -> list[str]:
    """Where fusing the steps stops paying: a step's cost unfused over fused, from few elements to many."""
    said = []
    for name in dict.fromkeys(g.workload for g in found):
        for unfused, fused, title in (("wgsl", "fused-wgsl", "WGSL"), ("graph", "fused-cuda", "CUDA, against a graph")):
            gains = []
            for group in (g for g in found if g.workload == name):
                first, second = group.best(1e6, {unfused}), group.best(1e6, {fused})
                if first is not None and second is not None:
                    gain = first.slope.over(second.slope)
                    times = factor(gain.value, gain.low, gain.high)
                    gains.append(f"{times} at {group.elements:,} elements")
            if gains:
                said.append(f"Fusing the steps of {name} in {title} makes a step cheaper by {', '.join(gains)}.")
    return said
