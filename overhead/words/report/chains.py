"""The variants of a chain of steps: the fastest, every other one, and which run they are of."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chain_ways import ChainWay, WayGroup
from overhead.reading.graph_or_fused import WorkRow
from overhead.reading.missing_values import why
from overhead.reading.plain_text import plain
from overhead.results import Record, Value, formed
from overhead.words.chains import elements_text
from overhead.words.format import count, factor, listed, positive_spread, run_time
from overhead.words.graph_or_fused import (
    BEYOND,
    KINDS,
    in_a_sentence,
    no_figure,
    variant_label,
)
from overhead.words.printed import printed
from overhead.words.reasons import one_line
from overhead.words.report.graph_or_fused import verdict_at_end
from overhead.workloads import workloads

METHOD_NOTE = (
    "The result of every variant was compared with NumPy in float64 before the variant was timed; a"
    " variant with a wrong result has no time. A time is for one chain and one wait, without"
    " recording and compiling. \u2248 marks a time that was not measured but calculated from"
    " shorter chains: one-off cost + steps \u00d7 cost of a step."
)
OF_SEVERAL_RUNS = (
    "A workload has the times of the newest run that measured a CUDA graph and fused kernels; what"
    " this run lacks comes from the newest other run, which the column \u201crun\u201d names. Runs"
    " may be of other boards, so each variant is compared with the CUDA driver's graph of its own"
    " run. The first page shows the same times."
)
CHEAPEST = "The fastest variant of each workload and size"
ALL_VARIANTS = "All variants"
ABOUT = "What each workload computes"
DOTS_TITLE = "Time of one step, by kind of variant"
DOTS_CAPTION = (
    "A mark is the fastest variant of its kind, called from Python: the time of a whole chain with"
    " its wait, divided by the number of steps. Hollow: noisy, with its interval. The marks of a"
    " row may be of several runs, which the table names. A size with one kind of variant is in the"
    " table alone."
)
DOTS_AXIS = "\u00b5s per step (log scale): left is faster"
FASTEST = "fastest"
KIND_NAMES: dict[WayGroup, str] = dict(KINDS)


def without_figure(*, measured: bool) -> str:
    """Why there is no variant to show. ``measured``: a workload was, but has no figure."""
    return "No workload has a figure." if measured else "No workload was measured."


def case_reason(record: Record) -> str:
    """Why a case of a workload has no figure."""
    reason = one_line(why(record, "complete"))
    return f"{record.stack} {record.workload}: {reason}"


def more_cases(number: int) -> str:
    """How many more cases have no figure, and where they stand."""
    return f"The page All cases lists {count(number, 'more case')} without a figure."


def without_gpu(sizes: int) -> str:
    """How many sizes of workloads have no figure on a GPU."""
    return f"{count(sizes, 'size')} of workloads ran on the CPU only: see the table below."


def answer(found: Sequence[WorkRow]) -> str:
    """The sentence that the page opens with: in how many cases one fused kernel is the fastest, and
    what is faster in the others. ``found``: the workloads that have fused kernels and other
    variants on a GPU; '' without any.
    """
    if not found:
        return ""
    won = []
    others = []
    for row in found:
        kinds = row.fastest_kinds()
        if any(way.kind in ("fused-cuda", "fused-wgsl") for way in kinds):
            won.append(row)
        elif kinds:
            others.append(f"{work_name(row)} ({in_a_sentence(kinds[0])})")
    has_graphs = all(row.graph is not None for row in found)
    which = "with a CUDA graph and one" if has_graphs else "that have one"
    text = (
        "One fused kernel is the fastest, or as fast as the fastest, in"
        f" {_number_of(won, 'of')} {_number_of(found, 'workloads')} and sizes {which}"
    )
    if not others:
        return f"{text}."
    verb = "the exception is" if len(others) == 1 else "the exceptions are"
    return f"{text}; {verb} {listed(others)}."


def _number_of(found: Sequence[WorkRow], word: str) -> str:
    """How many workloads these are, with the word behind the number."""
    times = [row.fastest_kinds()[0].cost for row in found]
    origins = [time.origin if time is not None else None for time in times]
    counted = Value(len(found), origin=formed("count", *origins))
    return printed(f"{len(found)} {word}", counted)


def work_name(row: WorkRow) -> str:
    """``recurrence, 4,096 elements``."""
    elements = row.group.elements if row.group is not None else 0
    return f"{row.name}, {elements_text(elements)}"


def about(workload: str) -> str:
    """What a workload computes; '' for one that is not known here."""
    known = workloads().get(workload)
    return f"{workload}: {known.about}." if known is not None else ""


def label(variant: ChainWay) -> str:
    """The variant; one that failed has the parameters of its case."""
    return plain(variant_label(variant), 90)


def time(variant: ChainWay) -> str:
    """The time of a chain in microseconds with its interval, or why there is none."""
    if variant.cost is None:
        return no_figure(variant, 120)
    micros = positive_spread(variant.cost / 1e3)
    return f"{BEYOND}{micros}" if variant.beyond else micros


def beside_graph(row: WorkRow, variant: ChainWay) -> str:
    """How the variant compares with the CUDA driver's graph of the same run, in the words of the
    first page: ``5.9 times faster``; '' without a graph there.
    """
    times = row.relative(variant)
    if row.graph is None or times is None:
        return ""
    return verdict_at_end(row, variant, times)


def over_graph(row: WorkRow, variant: ChainWay) -> str:
    """The time of the variant over that of the CUDA driver's graph of the same run, which sorts; ''
    without a graph there.
    """
    if row.graph is None:
        return ""
    if variant is row.graph:
        return "= 1"
    times = row.relative(variant)
    return factor(times) if times is not None else ""


def run(variant: ChainWay, row: WorkRow, shown_run: str) -> str:
    """When the run began that measured the variant; '' for the run of the page."""
    created = variant.run or row.run
    return run_time(created) if created and created != shown_run else ""


def next_label(variant: ChainWay, fastest: ChainWay) -> str:
    """The next variant in the table of the fastest ones, with the day of its run if that is not the
    run of the fastest.
    """
    text = label(variant)
    if variant.run == fastest.run or not variant.run:
        return text
    return f"{text}, run of {variant.run[:10]}"
