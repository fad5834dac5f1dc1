"""Decoded tokens: the arms of each decoder, fusion levels, reads, batches, and the cost of a dispatch in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import (
    MOST_KERNEL_RATIO,
    MOST_OVER_EAGER,
    PUBLISHED_INTERCEPT_NS,
    PUBLISHED_SLOPE_NS,
    BatchSweep,
    DecodeArm,
    Decoded,
    DispatchSlope,
    FusionLevels,
    decoded,
    eager_kernels,
    fastest_kernels,
    kernel_ratio,
    slope_over_dispatches,
)
from overhead.reading.format import MICRO, TIMES, count, factor_spread, listed, positive_spread, spread
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.lines import DrawnLine, LinePanel, LinePoint, line_panels
from overhead.report.core.page_list import slug
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Value, ratio

_MILLI = 1e6
_LINES = {"complete": "o-", "issue": "--", "device_busy": ":"}
"""The style of the line of each figure over the batch."""
_MARKERS = {"complete": "o", "issue": "|", "device_busy": "D"}
"""The marker of each figure of an arm."""


@register("decode", "A token through each stack", 10, page="decode", any_run=True)
def decoding(view: View) -> Iterator[Part]:
    for found in decoded(view):
        yield Text(
            [
                f"{found.name}: one token at batch 1 in float32 with random weights. The token and the cache "
                f"stay on the "
                "device. Each arm was compared with float64 on 32 given tokens before it was timed. Dispatches "
                "are counted "
                "where they are handed to the API; for PyTorch they are operations, for ONNX Runtime nodes.",
                *_one_process(found),
            ]
        )
        if any(arm.complete is not None for arm in found.arms):
            yield _arms_drawing(found)
        yield _arms(found)
        if found.reads:
            yield _reads(found)
        yield from _level_drawing(found)
        if found.levels:
            yield _levels(found)
        yield from _kernels(found)
        sentences = [*padded_sentences(found), *level_sentences(found)]
        if sentences:
            yield Text([*sentences, _published()])


@register("decode-batch", "Where overhead stops mattering", 20, page="decode", any_run=True)
def batches(view: View) -> Iterator[Part]:
    for found in decoded(view):
        if not found.sweeps:
            continue
        said = [
            f"{found.name}: a step makes one token of each sequence of a batch, with as many dispatches as for one "
            "sequence: more work for the device, but hardly more for the host. The kernels of the lowered program read "
            "each weight from memory once for all sequences, but they are no tuned matrix products like those that "
            "PyTorch calls: compare device times within an arm.",
            *_bound_sentences(found),
        ]
        yield Text(said)
        if any(arm.resolved("complete") for sweep in found.sweeps for arm in sweep.arms):
            yield _sweep_drawing(found)
        yield _sweeps(found)


def _one_process(found: Decoded) -> Iterator[str]:
    arms = [*found.arms, *found.reads, *(arm for sweep in found.sweeps for arm in sweep.arms if arm.batch > 1)]
    alone = sum(arm.one_process for arm in arms)
    if alone:
        yield f"{alone} of {count(len(arms), 'arm')} ran in one process only, so most of their times have no interval."


def _bound_sentences(found: Decoded) -> Iterator[str]:
    """At which batches each arm is bound by the device, and where that is not known for want of processes."""
    yield "Overhead stops mattering where the host issues a step in less time than the device needs."
    said = [f"{_name(sweep)} {_bound(sweep)}" for sweep in found.sweeps if sweep.device_bound]
    if said:
        yield f"This holds for {'; for '.join(said)}."
    said = [
        f"{_name(sweep)} at {_batches(sweep.known)}" for sweep in found.sweeps if sweep.known and not sweep.device_bound
    ]
    if said:
        yield f"It does not hold for {'; for '.join(said)}."
    said = [f"{_name(sweep)} at {_batches(sweep.lacking)}" for sweep in found.sweeps if sweep.lacking]
    if said:
        yield (
            "The run has too few processes to tell whether host or device needs more time for a step. This is so "
            f"for {'; for '.join(said)}."
        )


def _bound(sweep: BatchSweep) -> str:
    every, bound = [arm.batch for arm in sweep.arms], sweep.device_bound
    if bound == every:
        return "at every batch measured"
    return f"from batch {bound[0]} on" if bound == every[-len(bound) :] else f"at {_batches(bound)}"


def _batches(batches: list[int]) -> str:
    return f"batch {listed([*map(str, batches)])}"


def _bound_by(arm: DecodeArm) -> str:
    """Whether the host or the device takes the time of a step; '' where a time is missing."""
    if arm.lacks_intervals:
        return "not resolved"
    return {True: "device", False: "host or both", None: ""}[arm.device_bound]


def _name(sweep: BatchSweep) -> str:
    first = sweep.arms[0]
    return f"{first.target.label} ({first.how})"


def _sweeps(found: Decoded) -> Table:
    rows: list[list[str | Cell]] = []
    for sweep in found.sweeps:
        for arm in sweep.arms:
            times = [_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)]
            row = [arm.how, str(arm.batch), *times, _shown(arm.tokens_per_s, 1), _bound_by(arm), _remark(arm)]
            rows.append([_stack(arm), *row])
    columns = ["stack", "how", "batch", "a step, ms", "host, ms", "device, ms", "tokens/s", "bound by", "remark"]
    return Table(f"{found.name}: batches", columns, rows, numeric=range(2, 7), sortable=True)


def _sweep_drawing(found: Decoded) -> Drawing:
    panels = []
    for sweep in found.sweeps:
        first = sweep.arms[0]
        own = colour(first.target.stack)
        lines = [DrawnLine(_over_batch(sweep, name), own, style) for name, style in _LINES.items()]
        panels.append(LinePanel(f"{first.target.short}: {first.how}", "batch", lines))
    return Drawing(
        f"decode-{slug(found.name)}-batches",
        f"Time of a step of {found.name} over the batch",
        f"The time of a step over the batch for {count(len(found.sweeps), 'arm')}; the numbers are in the table below.",
        "Dots: a step with its work done. Dashed: the host's time to issue it. Dotted: the device's time. Both axes "
        "are logarithmic.",
        partial(line_panels, panels, "ms a step"),
    )


def _over_batch(sweep: BatchSweep, name: str) -> list[LinePoint]:
    """Batch and ms of each arm in which the figure of this name is resolved."""
    found = [(arm.batch, arm.record.value(name)) for arm in sweep.arms if arm.resolved(name)]
    return [(batch, Value(value / _MILLI)) for batch, value in found if value is not None]


def _arms(found: Decoded) -> Table:
    columns = ["stack", "how", "dispatches", "a token, ms", "host, ms", "device, ms", "tokens/s", "remark"]
    rows: list[list[str | Cell]] = []
    for arm in found.arms:
        times = [_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)]
        dispatches = f"{arm.dispatches:,}" if arm.dispatches else ""
        rate = _shown(arm.tokens_per_s, 1)
        rows.append([_stack(arm), arm.how, dispatches, *times, rate, _remark(arm)])
    return Table(f"Ways to decode a token of {found.name}", columns, rows, numeric=range(2, 7), sortable=True)


def _arms_drawing(found: Decoded) -> Drawing:
    rows = []
    for arm in found.arms:
        own = colour(arm.target.stack)
        figures = [(arm.record.measured(name), shape) for name, shape in _MARKERS.items()]
        marks = [
            Mark(Value(one.value / _MILLI, status=one.status), own, shape)
            for one, shape in figures
            if one is not None and one.resolved
        ]
        rows.append(DotRow(f"{arm.target.stack}: {arm.how}", marks, "not resolved"))
    shapes = dict(zip(("a token with its work done", "the host's time to issue it", "the device's time"),
                      _MARKERS.values(), strict=True))  # fmt: skip
    return Drawing(
        f"decode-{slug(found.name)}",
        f"Time of a token of {found.name}",
        f"A row for each of {len(rows)} ways to decode; the numbers are in the table below.",
        "Host and device work at the same time where the stack allows it, so the two do not add up.",
        partial(dot_figure, {"": rows}, "ms a token", shapes),
    )


def _reads(found: Decoded) -> Table:
    rows: list[list[str | Cell]] = []
    for arm in found.reads:
        tokens = arm.record.params.get("tokens", 1)
        read = {"token": "4 bytes", "logits": "all logits"}.get(str(arm.record.params.get("readback")), "")
        unit = "a token" if tokens == 1 else f"the first token of a prompt of {tokens}, as {tokens} decode steps"
        rows.append([_stack(arm), unit, read, _shown(arm.complete, _MILLI), _remark(arm)])
    columns = ["stack", "until", "read", "time with the wait, ms", "remark"]
    return Table(f"A read after every token of {found.name}", columns, rows, numeric=[3])


def _levels(found: Decoded) -> Table:
    """A row for each fusion level of each way to run the program, beside the level before it."""
    rows: list[list[str | Cell]] = []
    for levels in found.levels:
        before: DecodeArm | None = None
        for level, arm in levels.arms:
            change, gain = "", None
            if before is not None:
                gain = ratio(before.complete, arm.complete)
                if arm.dispatches and before.dispatches:
                    change = f"{arm.dispatches - before.dispatches:,}"
            cells = [
                _way(arm),
                _program(level, before),
                f"{arm.dispatches:,}" if arm.dispatches else "",
                change,
                _shown(arm.complete, _MILLI),
                factor_spread(gain) if gain else "",
                _bound_by(arm),
                _remark(arm),
            ]
            rows.append([_stack(arm), *cells])
            before = arm
    columns = ["stack", "how", "program", "dispatches", "change", "a token, ms", "faster by", "bound by", "remark"]
    return Table(f"{found.name}: fusions", columns, rows, numeric=range(3, 7), sortable=True)


def _program(level: int, before: DecodeArm | None) -> str:
    if not level:
        return "unfused"
    if before is None or level - int(before.record.params["fusions"]) > 1:
        return f"with {count(level, 'fusion')}"
    return f"+ {tuple(FUSIONS)[level - 1]}"


def _level_drawing(found: Decoded) -> Iterator[Drawing]:
    """A panel for each program whose time is resolved at three fusion levels or more."""
    panels = []
    for levels in found.levels:
        if len(levels.points) > 2:
            points = [(x, time / _MILLI) for x, time in levels.points]
            line = DrawnLine(points, colour(levels.arms[0][1].target.stack), "o-")
            panels.append(LinePanel(_place(levels), "dispatches a token", [line], log=False))
    if panels:
        yield Drawing(
            f"decode-{slug(found.name)}-levels",
            f"{found.name}: each fusion",
            f"The time of a token over its dispatches for {count(len(panels), 'program')}; the numbers are in the "
            "tables below.",
            "Upright lines: intervals within this run.",
            partial(line_panels, panels, "ms a token"),
        )


def _kernels(found: Decoded) -> Iterator[Part]:
    """Device times of each program in both languages; nothing if there is nothing to compare them with."""
    fastest, eager = fastest_kernels(found), eager_kernels(found)
    rows, unfair, slow = list[list[str | Cell]](), list[str](), list[str]()
    for fusions in range(len(FUSIONS) + 1):
        cuda, wgsl = (fastest.get((language, fusions)) for language in ("cuda", "wgsl"))
        between, *over = kernel_ratio(wgsl, cuda), kernel_ratio(cuda, eager), kernel_ratio(wgsl, eager)
        if not any((between, *over)):
            continue
        program = next(arm.how.partition(",")[0] for arm in (cuda, wgsl) if arm)
        times = [_device(arm) if arm else "" for arm in (cuda, wgsl)]
        rows.append([program, *times, *(factor_spread(one) if one else "" for one in (between, *over))])
        if between and max(between.value, 1 / between.value) > MOST_KERNEL_RATIO:
            unfair.append(program)
        languages = zip(("CUDA C", "WGSL"), over, strict=True)
        slow += [f"{program} in {language}" for language, one in languages if one and one.value > MOST_OVER_EAGER]
    if rows:
        columns = ["program", "CUDA C, ms", "WGSL, ms", "WGSL over CUDA C", "CUDA C over PyTorch", "WGSL over PyTorch"]
        title = "the kernels on the device, in the fastest stack of each language and in PyTorch's eager step"
        yield Table(f"{found.name}: {title}", columns, rows, numeric=range(1, 6))
    said = {
        f"The device times of WGSL and CUDA C differ by more than {MOST_KERNEL_RATIO}{TIMES} for these programs, so "
        "their times of a token cannot compare the hosts": unfair,
        f"On the device these take over {MOST_OVER_EAGER}{TIMES} as long as PyTorch's eager step": slow,
    }
    if unfair or slow:
        yield Text([f"{words}: {listed(programs)}." for words, programs in said.items() if programs])


def padded_sentences(found: Decoded) -> Iterator[str]:
    """What a dispatch that is added to an unfused token costs, a sentence for each stack."""
    for group in found.padded:
        line = slope_over_dispatches(group)
        if line and line.slope.floor <= 0:
            place = group[0].target.label
            yield (
                f"What a trivial dependent dispatch adds to an unfused token is not resolved ({place})."
                + _on_device("It adds", "to", group)
            )
        elif line:
            yield (
                f"A trivial dependent dispatch that is added to an unfused token costs {_line(line)} "
                f"({group[0].target.label}, {group[0].how}, {line.points} lengths)."
            )


def level_sentences(found: Decoded) -> Iterator[str]:
    """What each dispatch that is removed saves over the fusion levels, a sentence for each stack."""
    for levels in found.levels:
        arms = [arm for _, arm in levels.arms]
        line = slope_over_dispatches(arms)
        if line and line.slope.floor <= 0:
            yield (
                f"What each dispatch that is removed saves over the fusion levels is not resolved ({_place(levels)})."
                + _on_device("It saves", "of", arms)
            )
        elif line:
            yield (
                f"Over the fusion levels each dispatch that is removed saves {_line(line)} ({_place(levels)}). "
                "Fusions also change the work of the kernels, so this is not the cost of a dispatch."
            )


def _on_device(begin: str, of: str, arms: Sequence[DecodeArm]) -> str:
    """A sentence on the slope of the device's times; '' where that is not resolved either."""
    line = slope_over_dispatches(arms, on_device=True)
    if line is None or line.slope.floor <= 0:
        return ""
    return f" {begin} {_shown(line.slope, 1e3)} {MICRO} {of} the device's time."


def _published() -> str:
    return (
        f"Published times to the first token (arXiv 2604.02344) give {PUBLISHED_SLOPE_NS / 1e3:.1f} {MICRO} a dispatch "
        f"with an intercept of {PUBLISHED_INTERCEPT_NS / _MILLI:.1f} ms. A negative intercept means that the cost of a "
        "dispatch was not constant there."
    )


def _line(line: DispatchSlope) -> str:
    return f"{_shown(line.slope, 1e3)} {MICRO}, with an intercept of {spread(line.intercept / _MILLI)} ms"


def _place(levels: FusionLevels) -> str:
    first = levels.arms[0][1]
    return f"{first.target.label}, {_way(first)}"


def _way(arm: DecodeArm) -> str:
    """How the program of the arm is issued, without its fusions."""
    return arm.how.partition(", ")[2]


def _stack(arm: DecodeArm) -> Cell:
    return Cell(arm.target.label, arm.target.stack)


def _device(arm: DecodeArm) -> Cell:
    """Device time in ms, with the colour and the name of its stack."""
    return Cell(_shown(arm.device, _MILLI), arm.target.stack, hover=arm.target.label)


def _shown(found: Value | None, unit: float) -> str:
    return "" if found is None else positive_spread(found / unit)


def _remark(arm: DecodeArm) -> str:
    if arm.complete is None:
        return why(arm.record, "complete")
    noisy_alone = arm.one_process and arm.record.status == "noisy"
    return "" if noisy_alone or arm.record.status == "ok" else arm.record.status
