"""CUDA graph or one fused kernel, in words: which variants are faster, by how much, and why others
are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.chain_ways import ChainWay, WayGroup
from overhead.reading.chains import own_parameters
from overhead.reading.graph_or_fused import SAME_WITHIN, ProgramWork, WayRow, WorkRow
from overhead.reading.plain_text import plain
from overhead.reading.view import parameter_texts
from overhead.results import Record, Value, exactly, formed
from overhead.words.chains import arm_label, elements_text, why_no_speed
from overhead.words.format import MICRO, TIMES, listed, number, point, run_time
from overhead.words.names import CALLER_WORDS
from overhead.words.printed import named_in_a_file, printed
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
_WITHIN = f"within {100 * SAME_WITHIN:.0f} %"
_RUN_MARKS = "\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
"""Marks of variants that another run measured."""
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")

_LABELS: dict[WayGroup, str] = {
    "eager": "eager",
    "per-step": "call per step",
    "launches": "launch per step",
    "wgsl": "WGSL dispatch per step",
    "graph-driver": "CUDA graph",
    "graph-captured": "CUDA graph",
    "graph-compiled": "CUDA graph of each step",
    "loop": "compiled loop",
    "fused-cuda": "fused kernel",
    "fused-graph": "CUDA graph of fused kernels",
    "fused-wgsl": "fused WGSL",
}
"""The kinds of variants, before the name of the stack."""
KINDS: dict[WayGroup, str] = {
    "eager": "eager operations",
    "per-step": "call per step",
    "launches": "launch per step",
    "wgsl": "WGSL dispatches",
    "graph-driver": "graph by CUDA driver",
    "graph-captured": "graph by a library",
    "graph-compiled": "graph by torch.compile",
    "loop": "compiled loop",
    "fused-cuda": "fused CUDA, Triton",
    "fused-graph": "graph of fused kernels",
    "fused-wgsl": "fused WGSL",
}
"""The kinds of variants, in a legend."""
_IN_A_SENTENCE: dict[WayGroup, str] = {
    "eager": "eager operations through {}",
    "per-step": "one call per step through {}",
    "launches": "one launch per step through {}",
    "wgsl": "one WGSL dispatch per step through {}",
    "graph-driver": "a CUDA graph by {}",
    "graph-captured": "a CUDA graph by {}",
    "graph-compiled": "a CUDA graph by {}",
    "loop": "a compiled loop of {}",
    "fused-cuda": "one fused kernel through {}",
    "fused-graph": "a CUDA graph of fused kernels",
    "fused-wgsl": "one fused WGSL kernel through {}",
}


def program_label(kind: WayGroup, through: str, pattern: str) -> str:
    """The label of a way to run a whole program, such as the decoding of a token. ``through``: its
    stack, or who made the graph. ``pattern``: how its launches are handed over.
    """
    one_by_one = ", one submit per dispatch" if pattern == "per-submit" else ""
    labels: dict[WayGroup, str] = {
        "eager": f"eager, {through}",
        "per-step": f"one call, {through}",
        "launches": "unfused CUDA, launched",
        "wgsl": f"unfused WGSL, {through}{one_by_one}",
        "graph-driver": f"CUDA graph, unfused, {through}",
        "graph-captured": f"CUDA graph, unfused, {through}",
        "graph-compiled": f"CUDA graph, {through}",
        "fused-cuda": "fused CUDA, launched",
        "fused-wgsl": f"fused WGSL, {through}{one_by_one}",
    }
    return labels.get(kind, _LABELS[kind])


def answer(found: Sequence[WorkRow]) -> str:
    """The sentence that answers the question of the section: in how many workloads one fused kernel
    (all steps in one launch) is faster than the CUDA driver's graph, and what is faster still; ''
    where neither was measured.

    ``found``: a row for each workload, with the time of each variant.
    """
    chains = [row for row in found if row.is_chain]
    with_graph = [row for row in chains if row.graph is not None and row.best_fused is not None]
    parts = []
    if with_graph:
        parts.append(_fused_or_graph(with_graph))
    elif chains:
        parts.append(_beside_dispatches(chains))
    others = []
    for row in with_graph:
        fastest = row.beats_fused
        if fastest is not None and row.verdict(fastest) == "cheaper":
            others.append(f"{row.name} is fastest as {_with_gain(row, fastest)}")
    for row in found:
        if not row.is_chain and row.fastest is not None:
            others.append(f"{row.name} is fastest as {_with_gain(row, row.fastest)}")
    if others:
        parts.append(", and ".join(others))
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _with_gain(row: WorkRow, way: ChainWay) -> str:
    """``a CUDA graph by torch.compile (3.0 times faster than the driver's graph)``."""
    named = in_a_sentence(way)
    if way.kind == "fused-graph" and isinstance(row.work, ProgramWork):
        named = _of_merged_kernels(row.work)
    if row.graph is None or way is row.graph:
        return named
    return f"{named} ({compared(row, way)})"


def _of_merged_kernels(program: ProgramWork) -> str:
    """A graph of a program with fewer kernels. Not "fused", which beside it in the answer is one
    kernel for all steps.
    """
    if not program.dispatches or not program.fused:
        return "a CUDA graph of merged kernels"
    numbers = named_in_a_file(f"{program.fused:,} in place of {program.dispatches:,}")
    return f"a CUDA graph of merged kernels, {numbers}"


def _fused_or_graph(found: Sequence[WorkRow]) -> str:
    """In how many workloads one fused kernel is faster than the graph, and how many times."""
    gains = []
    for row in found:
        fused = row.best_fused
        if fused is None or row.verdict(fused) != "cheaper":
            continue
        times = row.relative(fused)
        if times is not None:
            gains.append(exactly(1.0) / times)
    every = "the only workload" if len(found) == 1 else f"all {spelled(len(found))} workloads"
    if len(gains) < len(found):
        every = f"{spelled(len(gains))} of {spelled(len(found))} workloads"
    if not gains:
        return f"one fused kernel is faster than the CUDA driver's graph in {every}"
    most = max(gains, key=_value)
    up_to = "" if len(gains) == 1 else "up to "
    return (
        f"one fused kernel is faster than the CUDA driver's graph in {every},"
        f" by {up_to}{point(most)} times"
    )


def _value(of: Value) -> float:
    return of.value


def spelled(number_of: int) -> str:
    """A small number as a word."""
    return _NUMBERS[number_of] if number_of < len(_NUMBERS) else f"{number_of:,}"


def _beside_dispatches(found: Sequence[WorkRow]) -> str:
    """How one fused WGSL kernel compares with a dispatch for each step, where no CUDA graph was
    measured.
    """
    verdicts = []
    for row in found:
        by_verdict = _by_verdict(row)
        if by_verdict:
            verdicts.append(f"{row.name} {', '.join(by_verdict)}")
    if not verdicts:
        return ""
    return (
        "one fused WGSL kernel, compared with one dispatch per step through the same stack:"
        f" {'; '.join(verdicts)}"
    )


def bullets(found: Sequence[WorkRow]) -> list[str]:
    """At most three sentences behind the answer: where a fused kernel gains most and why, where
    WebGPU gains, and where not and why, and what a whole program takes.
    """
    with_graph = [row for row in found if row.is_chain and row.graph is not None]
    said = [_why_it_pays(with_graph), _through_webgpu(with_graph)]
    for row in found:
        if isinstance(row.work, ProgramWork):
            said.append(_program(row, row.work))
    return [text for text in said if text]


def _why_it_pays(found: Sequence[WorkRow]) -> str:
    """What the graph adds to each step, where one fused kernel gains most."""
    for row in found:
        times = row.step_times
        fused = row.best_fused
        if times is None or fused is None or row.verdict(fused) != "cheaper":
            continue
        own, added = point(times.cuda / 1e3), point(times.added / 1e3)
        return (
            "A fused kernel gains most where a step is short: in"
            f" {row.name} a fused step takes {own} {MICRO}, and the graph adds {added} {MICRO} to"
            " each step."
        )
    return ""


def _through_webgpu(found: Sequence[WorkRow]) -> str:
    """For which workloads one fused WGSL kernel is faster than the graph, and why not for the
    others.
    """
    measured = [row for row in found if row.of_kind("fused-wgsl")]
    said = []
    for row in measured:
        # Won: all fused WGSL kernels of the workload are faster than the graph.
        if row.fused_wgsl_wins:
            said.append(f"{row.name} {_range(row)} faster")
        else:
            said.append(f"{row.name} {', '.join(_by_verdict(row))}{_why_lost(row)}")
    if not said:
        return ""
    return f"Through WebGPU (fused WGSL), compared with the graph: {'; '.join(said)}."


def _program(row: WorkRow, program: ProgramWork) -> str:
    """A sentence on a whole program, such as a model: the times of the fastest and the slowest kind
    of variant, and between them those of fused WGSL and of the CUDA driver's graph.
    """
    told: list[ChainWay] = []
    compared_rows = [shown for shown in row.shown if shown.first.cost is not None]
    for place, shown in enumerate(compared_rows):
        is_end = place in (0, len(compared_rows) - 1)
        if is_end or shown.first.kind in ("fused-wgsl", "graph-driver"):
            told.append(shown.first)
    times = [f"{time_text(way)} {way.label}" for way in told]
    named = f"{row.name.capitalize()} ({program.name}, single precision, one sequence)"
    return f"{named}: {'; '.join(times)}."


def row_title(row: WorkRow) -> str:
    """Name and size: ``recurrence: 1,500 steps of 4,096 elements``."""
    return f"{row.name}: {_size(row)}"


def _size(row: WorkRow) -> str:
    """``1,500 steps of 4,096 elements``, or of a program its name and its dispatches."""
    if isinstance(row.work, ProgramWork):
        return _program_size(row.work)
    return f"{row.work.steps:,} steps of {elements_text(row.work.elements)}"


def _program_size(program: ProgramWork) -> str:
    """``qwen2.5-0.5b, 881 dispatches, 252 when fused (neighbouring kernels merged)``; a question
    mark for an unknown number.
    """
    unfused = f"{program.dispatches:,}" if program.dispatches else "?"
    fused = f"{program.fused:,}" if program.fused else "?"
    size = named_in_a_file(f"{unfused} dispatches, {fused} when fused")
    return f"{program.name}, {size} (neighbouring kernels merged)"


def variant_label(variant: ChainWay) -> str:
    """The variant in words: ``fused WGSL, Dawn checks=off``, ``CUDA graph, torch.compile``."""
    record = variant.record
    # A way of a program has the label of its kind of program, and no fitted line. A chain whose
    # time bends has no line either.
    bends = variant.cost is not None and variant.cost.status == "nonlinear"
    has_no_line = variant.arm is None and variant.failed is None
    is_of_a_program = has_no_line and not bends and variant.label
    if record is None or (variant.is_compared and is_of_a_program):
        return variant.label
    if not variant.is_compared:
        return _label_beside(variant, record)
    maker = variant.arm.maker if variant.arm is not None else ""
    own = own_parameters(record)
    if variant.label:
        name = variant.label
    elif maker:
        name = f"CUDA graph, {maker}"
    elif record.pattern == "hybrid":
        name = f"every other step on the CPU, {variant.through}"
    else:
        name = f"{_LABELS[variant.kind]}, {variant.through}"
    return " ".join([name, *parameter_texts(own)])


def _label_beside(variant: ChainWay, record: Record) -> str:
    """The label of a variant on the CPU or from compiled code, as the file calls it: ``numpy,
    per-submit (CPU)``.
    """
    label = f"{variant.stack}, {record.pattern}"
    says_where = False
    if variant.arm is not None:
        label = arm_label(variant.arm)
        says_where = variant.arm.names_processor
    if record.software and "(software)" not in label:
        label += " (software)"
    elif record.api == "CPU" and not says_where:
        label += " (CPU)"
    if record.caller != "binding":
        label += f", {CALLER_WORDS[record.caller]}"
    return label


def in_a_sentence(variant: ChainWay) -> str:
    """``a CUDA graph by torch.compile``, ``a compiled loop of JAX``."""
    maker = variant.arm.maker if variant.arm is not None else ""
    return _IN_A_SENTENCE[variant.kind].format(maker or variant.through)


def row_label(row: WorkRow, shown: WayRow, *, is_short: bool = False) -> str:
    """The label of a row of the picture: the variant that stands for its kind, how many more the
    row has, and how the slowest of them compares with it: ``fused CUDA, CuPy (2 more, up to 1.5×
    slower)``.

    ``is_short``: without the last, where there is no room.
    """
    label = variant_label(shown.first)
    first = row.relative(shown.first)
    others = []
    for way in shown.others:
        times = row.relative(way)
        if times is not None:
            others.append(times)
    if first is None or not others:
        return label
    # Noted with its noun, because a number alone would be taken for another on the page.
    counted = Value(len(others), origin=formed("count", *(times.origin for times in others)))
    more = printed(f"{len(others)} more", counted)
    if is_short:
        return f"{label} ({more})"
    if all(_is_near(times, first) for times in others):
        return f"{label} ({more} {_WITHIN})"
    slowest = max(others, key=_value)
    # Each is relative to the graph of its own run, so runs of two boards may be divided here.
    times_first = Value(
        slowest.value / first.value, origin=formed("/", slowest.origin, first.origin)
    )
    if times_first.value > 1 + SAME_WITHIN:
        return f"{label} ({more}, up to {point(times_first)}{TIMES} slower)"
    # None is slower. What is faster has no checks, or is of another run and not surely faster.
    if not any(way.is_usual for way in shown.others):
        return f"{label} ({more}, without its checks)"
    return f"{label} ({more}, perhaps faster)"


def _is_near(times: Value, first: Value) -> bool:
    """Whether two times count as equal, but for their intervals."""
    return 1 / (1 + SAME_WITHIN) <= times.value / first.value <= 1 + SAME_WITHIN


def run_marks(found: Sequence[WorkRow]) -> dict[str, str]:
    """A mark for each run that a label names a variant of besides its main run, the newest
    first.
    """
    runs: set[str] = set()
    for row in found:
        runs |= {shown.first.run for shown in row.shown if shown.first.run}
    marks = {}
    for place, run in enumerate(sorted(runs, reverse=True)):
        marks[run] = _RUN_MARKS[place] if place < len(_RUN_MARKS) else "*"
    return marks


def runs_text(found: Sequence[WorkRow], shown_run: str) -> str:
    """The line below the picture: which run each time is of. It explains the marks at labels, such
    as ¹, and names the runs of small marks. ``shown_run``: when the run of the page began.
    """
    by_run: dict[str, list[str]] = {}
    for row in found:
        by_run.setdefault(row.run or shown_run, []).append(row.name)
    mains = [f"{listed(names)}: {run_time(run)}" for run, names in by_run.items()]
    if len(by_run) == 1:
        (run,) = by_run
        mains = [f"run of {run_time(run)}"]
    said = [f"Measured: {'; '.join(mains)}."]
    others = [f"{mark} run of {run_time(run)}" for run, mark in run_marks(found).items()]
    days = _days_of_small_marks(found)
    if days:
        others.append(f"some small marks: runs of {listed(days)}")
    if others:
        text = f"{'; '.join(others)}; each compared with the CUDA driver's graph of its own run."
        said.append(f"{text[0].upper()}{text[1:]}")
    return " ".join(said)


def _days_of_small_marks(found: Sequence[WorkRow]) -> list[str]:
    """The days of the other runs that variants without a label are of."""
    days: set[str] = set()
    for row in found:
        for shown in row.shown:
            days |= {way.run[:10] for way in shown.others if way.run}
    return sorted(days)


def no_figure(variant: ChainWay, limit: int) -> str:
    """Why the variant has no time; where that has no room in so many letters, only its status."""
    why = why_no_speed(variant.failed) if variant.failed is not None else sentence(variant.reason)
    text = f"no figure: {why}"
    if len(text) > limit and variant.failed is not None:
        return f"no figure: {variant.failed.status}"
    return plain(text, limit)


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
    return f", because a step of its kernel takes {slower} times as long as in CUDA"


def _range(row: WorkRow) -> str:
    """How many times faster fused WGSL is than the CUDA graph, through the stack where it gains
    least and where it gains most: ``12 times``, ``8.5 to 12 times``.
    """
    relative_times = []  # the time over that of the graph, below 1
    for variant in row.of_kind("fused-wgsl"):
        times = row.relative(variant)
        if times is not None:
            relative_times.append(times)
    # The largest time is the least gain. A row that won has at least one of these times.
    least = point(exactly(1.0) / max(relative_times, key=_value))
    most = point(exactly(1.0) / min(relative_times, key=_value))
    return f"{least} times" if least == most else f"{least} to {most} times"


def _by_verdict(row: WorkRow) -> list[str]:
    """How fused WGSL compares with the base: ``equal``, or where stacks differ ``equal through
    Dawn``, a text for each verdict, with the stacks that have it.
    """
    through: dict[str, list[str]] = {}
    for variant in row.of_kind("fused-wgsl"):
        through.setdefault(compared(row, variant), []).append(variant.through)
    if len(through) == 1:
        return list(through)
    return [f"{words} through {listed(names)}" for words, names in through.items()]
