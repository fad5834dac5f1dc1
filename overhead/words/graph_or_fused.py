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
    """The sentences above the picture: for which workloads one fused WGSL kernel (all steps in one
    launch) is faster than the CUDA driver's graph, which variant is the fastest of all, and for
    each other workload why the fused kernel is not faster. [] where neither was measured.

    ``found``: a row for each workload, with the time of each variant.
    """
    # Chains of equal steps only: remarks() tells of whole programs.
    chains = [row for row in found if row.is_chain and row.of_kind("fused-wgsl")]
    # ``row.graph``: the CUDA graph of the same steps, which the driver made; None without its time.
    with_graph = [row for row in chains if row.graph]
    if not with_graph:
        return _beside_dispatches(chains)
    # Won: all fused WGSL kernels of the workload are faster than the graph.
    won = [row for row in with_graph if row.fused_wgsl_wins]
    not_won = [row for row in with_graph if row not in won]
    sentences = []
    if won:
        sentences.append(_won(won))
    sentences += _cheapest_ways(with_graph)
    for row in not_won:
        verdicts = ", ".join(_by_verdict(row))
        sentences.append(
            f"{row.name.capitalize()}: compared with the graph, fused WGSL is"
            f" {verdicts}{_why_lost(row)}."
        )
    return sentences


def _won(rows: Sequence[WorkRow]) -> str:
    """For which workloads one fused WGSL kernel is faster than the CUDA driver's graph, and the
    reason, where that holds for all of them.
    """
    # _range(): how many times faster it is. _added(): in brackets, how long a fused step takes, and
    # what the graph adds to each step.
    names = listed([f"{row.name} {_range(row)}{_added(row)}" for row in rows])
    faster = f"One fused WGSL kernel is faster than the CUDA driver's graph: {names}."
    # ``step_below_added``: a fused step surely takes less time than the graph adds to a step.
    if not all(row.step_below_added for row in rows):
        return faster
    return (
        f"{faster} The graph adds more time to each step than a whole step of the fused kernel"
        " takes."
    )


def _beside_dispatches(rows: Sequence[WorkRow]) -> list[str]:
    """How one fused WGSL kernel compares with a dispatch for each step, in place of the sentences
    on the CUDA graph where none was measured.
    """
    if not rows:
        return []
    verdicts = [f"{row.name} {', '.join(_by_verdict(row))}" for row in rows]
    return [
        "Fused WGSL, compared with one dispatch per step through the same stack:"
        f" {'; '.join(verdicts)}."
    ]


def remarks(found: Sequence[WorkRow]) -> list[str]:
    """The further sentences above the picture: how one fused CUDA kernel compares with the CUDA
    graph, what whole programs (of different kernels, not equal steps) take, and which workloads
    another run measured.
    """
    sentences = []
    # First the fused CUDA kernels (megakernels).
    fused_cuda = []
    for row in found:
        if row.graph and row.is_chain:
            for variant in row.of_kind("fused-cuda"):
                fused_cuda.append(f"{row.name} {compared(row, variant)}")
    if fused_cuda:
        sentences.append(
            "One fused CUDA kernel (a megakernel), compared with the CUDA driver's graph:"
            f" {listed(fused_cuda)}."
        )
    for row in found:
        if isinstance(row.work, ProgramWork):
            sentences.append(_program(row, row.work))
    # At last the workloads whose times are of another run, by the time when that began; '' stands
    # for the run shown.
    runs: dict[str, list[str]] = {}
    for row in found:
        if row.run:
            runs.setdefault(row.run, []).append(row.name)
    others = [f"{listed(names)} from {run_time(run)}" for run, names in runs.items()]
    if others:
        sentences.append(f"These workloads were measured in other runs: {'; '.join(others)}.")
    return sentences


def _program(row: WorkRow, program: ProgramWork) -> str:
    """Sentences on a whole program, such as a model: the fastest variant of all, and how fused WGSL
    compares with the CUDA graph of the unfused program.
    """
    fused_wgsl = row.of_kind("fused-wgsl")
    verdicts = []
    for variant in fused_wgsl:
        verdicts.append(f"{compared(row, variant)} through {variant.through}")
    # ``ways``: all variants of the row, each with its time (``cost``).
    fastest = min(row.ways, key=_cost_or_infinity)
    times = _faster_than(fused_wgsl, fastest)
    first = (
        f"{row.name.capitalize()} ({_program_size(program)}): the fastest variant is"
        f" {variant_label(fastest)}{times}."
    )
    if not verdicts:
        return first
    return (
        f"{first} Compared with the CUDA driver's graph of the unfused program, fused WGSL is"
        f" {listed(verdicts)}."
    )


def _cost_or_infinity(variant: ChainWay) -> float:
    """The time of a variant in ns; one without a time counts as slower than all others."""
    return variant.cost.value if variant.cost is not None else float("inf")


def _faster_than(fused_wgsl: Sequence[ChainWay], fastest: ChainWay) -> str:
    """The end of a sentence: how many times faster the fastest variant is than the fastest fused
    WGSL one. '' where both are the same, or one has no time.
    """
    costs = [variant.cost for variant in fused_wgsl if variant.cost is not None]
    if not costs or fastest.cost is None:
        return ""
    # How many times as long the fastest fused WGSL variant takes.
    times = min(costs, key=lambda cost: cost.value) / fastest.cost
    if times.value <= 1:
        return ""
    return f", {point(times)} times faster than fused WGSL"


def row_title(row: WorkRow) -> str:
    """Name and size; also the run, if it is another than the run shown."""
    title = f"{row.name}: {_size(row)}"
    return f"{title}, run of {run_time(row.run)}" if row.run else title


def _size(row: WorkRow) -> str:
    """``1,500 steps of 4,096 elements``, ``qwen2.5-0.5b, 881 dispatches, 252 when fused``."""
    if isinstance(row.work, ProgramWork):
        return _program_size(row.work)
    return f"{row.work.steps:,} steps of {elements_text(row.work.elements)}"


def _program_size(program: ProgramWork) -> str:
    """``qwen2.5-0.5b, 881 dispatches, 252 when fused``; a question mark for an unknown number."""
    unfused = f"{program.dispatches:,}" if program.dispatches else "?"
    fused = f"{program.fused:,}" if program.fused else "?"
    size = named_in_a_file(f"{unfused} dispatches, {fused} when fused")
    return f"{program.name}, {size}"


def variant_label(variant: ChainWay) -> str:
    """The variant in words: ``fused WGSL, Dawn``, ``CUDA graph by torch.compile``."""
    if variant.arm is None:
        return variant.label
    return f"CUDA graph by {variant.arm.maker}" if variant.arm.maker else arm_label(variant.arm)


def variant_title(variant: ChainWay) -> str:
    """The label, with the day of the run if that is another than the row's."""
    label = variant_label(variant)
    return f"{label}, run of {variant.run[:10]}" if variant.run else label


def no_figure(variant: ChainWay, limit: int) -> str:
    """Why the variant has no time, cut at so many letters."""
    why = why_no_speed(variant.failed) if variant.failed is not None else sentence(variant.reason)
    return plain(f"no figure: {why}", limit)


def time_text(variant: ChainWay) -> str:
    """The time of all steps, ``1,696 µs``; with a sign before it where it is read off the line."""
    if variant.cost is None:
        return ""
    time = f"{number(variant.cost / 1e3)} {MICRO}"
    return f"{BEYOND}{time}" if variant.beyond else time


def compared(row: WorkRow, variant: ChainWay) -> str:
    """How a variant's time compares with that of the row's base, the CUDA graph where there is one:
    ``11 times faster``, ``1.2 times slower``, ``equal`` or ``not told apart``.
    """
    # ``relative``: the time of the variant over that of the base. ``verdict``: "cheaper", "dearer",
    # "tie" or "unclear".
    times, verdict = row.relative(variant), row.verdict(variant)
    if times is None or verdict is None:
        return WAY_VERDICTS["unclear"]
    if verdict == "dearer":
        return f"{point(times)} times {WAY_VERDICTS[verdict]}"
    if verdict == "cheaper":
        # The inverse of the ratio: how many times faster. exactly(1.0): a value without
        # uncertainty, whose origin is known.
        return f"{point(exactly(1.0) / times)} times {WAY_VERDICTS[verdict]}"
    return WAY_VERDICTS[verdict]


def _cheapest_ways(found: Sequence[WorkRow]) -> list[str]:
    """A sentence for each workload that a variant of another kind than the compared ones runs
    fastest: its time, and how that compares with the CUDA driver's graph.
    """
    sentences = []
    for row in found:
        # A row has such a variant only if it is surely faster than all the others.
        for variant in row.of_kind(OTHER):
            where = f" in the run of {run_time(variant.run)}" if variant.run else ""
            fastest = (
                f"{row.name.capitalize()}: the fastest of all measured variants is"
                f" {variant_label(variant)}, {time_text(variant)}"
            )
            verdict = compared(row, variant)
            sentences.append(f"{fastest}, {verdict} than the CUDA driver's graph{where}.")
    return sentences


def _added(row: WorkRow) -> str:
    """`` (its step takes 0.09 µs, the graph adds 1.1)``; '' if one is unknown."""
    times = row.step_times
    if times is None:
        return ""
    own, added = point(times.wgsl / 1e3), point(times.added / 1e3)
    return f" (a fused step takes {own} {MICRO}, and the graph adds {added} {MICRO} to each step)"


def _why_lost(row: WorkRow) -> str:
    """The end of a sentence: why fused WGSL is not faster than the CUDA graph, by the times of a
    step in each. Either the graph adds little to a step, or the WGSL kernel itself is slow. '' if
    the times show neither.
    """
    times = row.step_times
    if times is None or row.why_lost is None:
        return ""
    if row.why_lost == "graph-adds-little":
        # ``cuda``: a step of the fused CUDA kernel. ``added``: what the graph takes longer than
        # that. In ns, shown in µs.
        cuda, added = point(times.cuda / 1e3), point(times.added / 1e3)
        return f", because the graph adds only {added} {MICRO} to each step of {cuda} {MICRO}"
    # Else the kernels differ: ``wgsl`` is a step of the fastest fused WGSL kernel, ns.
    slower = point(times.wgsl / times.cuda)
    return (
        f", because a step of the WGSL kernel takes {slower} times as long as a step of the CUDA"
        " kernel"
    )


def _range(row: WorkRow) -> str:
    """How many times faster fused WGSL is than the CUDA graph, through the stack where it gains
    least and where it gains most: ``12 times``, ``8.5 to 12 times``.
    """
    relative_times = []  # the time over that of the graph, below 1
    for variant in row.of_kind("fused-wgsl"):
        times = row.relative(variant)
        if times is not None:
            relative_times.append(times.value)
    # The largest time is the least gain. A row that won has at least one of these times.
    least = number(1 / max(relative_times))
    most = number(1 / min(relative_times))
    return f"{least} times" if least == most else f"{least} to {most} times"


def _by_verdict(row: WorkRow) -> list[str]:
    """How fused WGSL compares with the base: ``equal through wgpu-native and Dawn``, a text for
    each verdict, with the stacks that have it.
    """
    through: dict[str, list[str]] = {}
    for variant in row.of_kind("fused-wgsl"):
        through.setdefault(compared(row, variant), []).append(variant.through)
    return [f"{words} through {listed(names)}" for words, names in through.items()]
