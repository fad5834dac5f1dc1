"""CUDA graph or one fused kernel, in words: which variants are faster, by how much, and why others
are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.graph_or_fused import OTHER, ChainWay, ProgramWork, WorkRow
from overhead.reading.plain_text import plain
from overhead.results import exactly
from overhead.words.chains import arm_label, elements_text, why_no_speed
from overhead.words.format import MICRO, listed, number, point, run_time
from overhead.words.printed import named_in_a_file
from overhead.words.reasons import sentence

WAY_VERDICTS = {
    "cheaper": "faster",
    "dearer": "slower",
    "tie": "equal",
    "unclear": "not told apart",
}
"""How a variant compares with its base."""
BEYOND = "\u2248 "
"""Stands before a time that was not measured, but read off the line."""


def lead(found: Sequence[WorkRow]) -> list[str]:
    """When fused WGSL is cheaper than the CUDA driver's graph, and of each other workload why not;
    may be empty.

    A way that is cheaper than all of these stands before the workloads where they tie.
    """
    chains = [row for row in found if row.is_chain and row.of_kind("fused-wgsl")]
    with_graph = [row for row in chains if row.graph]
    if not with_graph:
        said = [f"{row.name} {', '.join(_by_verdict(row))}" for row in chains]
        return (
            [
                "Fused WGSL, compared with one dispatch per step through the same stack:"
                f" {'; '.join(said)}."
            ]
            if said
            else []
        )
    won = [row for row in with_graph if row.fused_wgsl_wins]
    below = all(row.step_below_added for row in won)
    why = (
        " The graph adds more time to each step than a whole step of the fused kernel takes."
        if below
        else ""
    )
    names = listed([f"{row.name} {_range(row)}{_added(row)}" for row in won])
    first = (
        [f"One fused WGSL kernel is faster than the CUDA driver's graph: {names}.{why}"]
        if won
        else []
    )
    others = []
    for row in with_graph:
        if row not in won:
            verdicts = ", ".join(_by_verdict(row))
            others.append(
                f"{row.name.capitalize()}: compared with the graph, fused WGSL is"
                f" {verdicts}{_why_lost(row)}."
            )
    return [*first, *_cheapest_ways(with_graph), *others]


def remarks(found: Sequence[WorkRow]) -> list[str]:
    """One fused CUDA kernel and the graph; the rows that are no chain of equal steps; the rows of
    another run.
    """
    said = []
    own = []
    for row in found:
        if row.graph and row.is_chain:
            own += [f"{row.name} {compared(row, way)}" for way in row.of_kind("fused-cuda")]
    if own:
        said.append(
            "One fused CUDA kernel (a megakernel), compared with the CUDA driver's graph:"
            f" {listed(own)}."
        )
    said += [_program(row, row.work) for row in found if isinstance(row.work, ProgramWork)]
    runs: dict[str, list[str]] = {}
    for row in found:
        if row.run:
            runs.setdefault(row.run, []).append(row.name)
    others = [f"{listed(names)} from {run_time(run)}" for run, names in runs.items()]
    if others:
        said.append(f"These workloads were measured in other runs: {'; '.join(others)}.")
    return said


def _program(row: WorkRow, program: ProgramWork) -> str:
    """Fused WGSL beside the graph of the unfused program, and the cheapest way of all."""
    fused = listed(
        [f"{compared(row, way)} through {way.through}" for way in row.of_kind("fused-wgsl")]
    )
    beside = (
        f" Compared with the CUDA driver's graph of the unfused program, fused WGSL is {fused}."
        if fused
        else ""
    )
    least = min(row.ways, key=lambda way: way.cost.value if way.cost else float("inf"))
    wgsl = [way.cost for way in row.of_kind("fused-wgsl") if way.cost]
    than = min(wgsl, key=lambda cost: cost.value) / least.cost if wgsl and least.cost else None
    times = f", {point(than)} times faster than fused WGSL" if than and than.value > 1 else ""
    return (
        f"{row.name.capitalize()} ({_program_size(program)}): the fastest variant is"
        f" {way_label(least)}{times}.{beside}"
    )


def row_title(row: WorkRow) -> str:
    """Name and size; also the run, if it is another than the run shown."""
    return f"{row.name}: {_size(row)}" + (f", run of {run_time(row.run)}" if row.run else "")


def _size(row: WorkRow) -> str:
    """``1,500 steps of 4,096 elements``, ``qwen2.5-0.5b, 881 dispatches, 252 when fused``."""
    if isinstance(row.work, ProgramWork):
        return _program_size(row.work)
    return f"{row.work.steps:,} steps of {elements_text(row.work.elements)}"


def _program_size(program: ProgramWork) -> str:
    unfused, fused = (
        f"{count:,}" if count else "?" for count in (program.dispatches, program.fused)
    )
    size = named_in_a_file(f"{unfused} dispatches, {fused} when fused")
    return f"{program.name}, {size}"


def way_label(way: ChainWay) -> str:
    """The way in words: ``fused WGSL, Dawn``, ``CUDA graph by torch.compile``."""
    if way.arm is None:
        return way.label
    return f"CUDA graph by {way.arm.maker}" if way.arm.maker else arm_label(way.arm)


def way_title(way: ChainWay) -> str:
    """The label, with the day of the run if that is another than the row's."""
    return way_label(way) + (f", run of {way.run[:10]}" if way.run else "")


def no_figure(way: ChainWay, limit: int) -> str:
    """Why the way has no time, cut at so many letters."""
    why = why_no_speed(way.failed) if way.failed is not None else sentence(way.reason)
    return plain(f"no figure: {why}", limit)


def time_text(way: ChainWay) -> str:
    """The time of all steps, ``1,696 µs``; with a sign before it where it is read off the line."""
    if way.cost is None:
        return ""
    return f"{BEYOND if way.beyond else ''}{number(way.cost / 1e3)} {MICRO}"


def compared(row: WorkRow, way: ChainWay) -> str:
    """``11 times faster``, ``1.2 times slower``, ``equal`` or ``not told apart``."""
    times, verdict = row.relative(way), row.verdict(way)
    if times is None or verdict is None:
        return WAY_VERDICTS["unclear"]
    if verdict == "dearer":
        return f"{point(times)} times {WAY_VERDICTS[verdict]}"
    if verdict == "cheaper":
        return f"{point(exactly(1.0) / times)} times {WAY_VERDICTS[verdict]}"
    return WAY_VERDICTS[verdict]


def _cheapest_ways(found: Sequence[WorkRow]) -> list[str]:
    """For each row with a way of kind ``other``: what it takes, and beside which graph."""
    said = []
    for row in found:
        for way in row.of_kind(OTHER):
            where = f" in the run of {run_time(way.run)}" if way.run else ""
            least = (
                f"{row.name.capitalize()}: the fastest of all measured variants is"
                f" {way_label(way)}, {time_text(way)}"
            )
            said.append(f"{least}, {compared(row, way)} than the CUDA driver's graph{where}.")
    return said


def _added(row: WorkRow) -> str:
    """`` (its step takes 0.09 µs, the graph adds 1.1)``; '' if one is unknown."""
    times = row.step_times
    if times is None:
        return ""
    own, added = point(times.wgsl / 1e3), point(times.added / 1e3)
    return f" (a fused step takes {own} {MICRO}, and the graph adds {added} {MICRO} to each step)"


def _why_lost(row: WorkRow) -> str:
    """Why fused WGSL is not cheaper: the time of a step in each way. '' if the times do not show
    it.
    """
    times, why = row.step_times, row.why_lost
    if times is None or why is None:
        return ""
    if why == "graph-adds-little":
        cuda, added = point(times.cuda / 1e3), point(times.added / 1e3)
        return f", because the graph adds only {added} {MICRO} to each step of {cuda} {MICRO}"
    slower = times.wgsl / times.cuda
    return (
        f", because a step of the WGSL kernel takes {point(slower)} times as long as a step of the"
        " CUDA kernel"
    )


def _range(row: WorkRow) -> str:
    """How many times faster fused WGSL is: ``12 times``, ``8.5 to 12 times``."""
    found = [
        times.value for way in row.of_kind("fused-wgsl") if (times := row.relative(way)) is not None
    ]
    ends = dict.fromkeys(number(1 / times) for times in (max(found), min(found)))
    return f"{' to '.join(ends)} times"


def _by_verdict(row: WorkRow) -> list[str]:
    """``equal through wgpu-native`` and such, for each group of variants in fused WGSL with the
    same words.
    """
    through: dict[str, list[str]] = {}
    for way in row.of_kind("fused-wgsl"):
        through.setdefault(compared(row, way), []).append(way.through)
    return [f"{words} through {listed(names)}" for words, names in through.items()]
