"""Decoded tokens: the arms of each decoder, fusion levels, reads, batches, and the cost of a dispatch in a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import fill

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
from overhead.report.core.draw import PAPER, SMALL, canvas, plain_log_ticks
from overhead.report.core.page_list import slug
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Value, ratio

_MILLI = 1e6
_PANELS = 3
_LINES = {"complete": "-", "issue": "--", "device_busy": ":"}
"""The style of the line of each figure over the batch."""


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
        for number, levels in enumerate(found.levels):
            if len(levels.points) > 2:
                yield _level_drawing(found, levels, number)
        for levels in found.levels:
            if not levels.ends_alone:
                yield _level_table(found, levels)
        yield from _unfused_and_fused(found)
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
            rows.append([_stack(found, arm), *row])
    columns = ["stack", "how", "batch", "a step, ms", "host, ms", "device, ms", "tokens/s", "bound by", "remark"]
    return Table(f"{found.name}: batches", columns, rows, numeric=range(2, 7), sortable=True)


def _over_batch(sweep: BatchSweep, name: str) -> list[tuple[int, float]]:
    """Batch and ms of each arm in which the figure of this name is resolved."""
    found = [(arm.batch, arm.record.value(name)) for arm in sweep.arms if arm.resolved(name)]
    return [(batch, value / _MILLI) for batch, value in found if value is not None]


def _sweep_drawing(found: Decoded) -> Drawing:
    rows = -(-len(found.sweeps) // _PANELS)
    figure, grid = canvas([1.8] * rows, _PANELS, around=0.75)
    axes = [ax for row in grid for ax in row]
    times = [ms for sweep in found.sweeps for name in _LINES for _, ms in _over_batch(sweep, name)]
    for ax, sweep in zip(axes, found.sweeps, strict=False):
        first = sweep.arms[0]
        own = colour(first.target.stack)
        for name, style in _LINES.items():
            if points := _over_batch(sweep, name):
                marker = "o" if name == "complete" else None
                ax.plot(*zip(*points, strict=True), style, color=own, linewidth=1.2, marker=marker, markersize=4)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(0.8 * min(times), 1.25 * max(times))
        ax.set_xticks([arm.batch for arm in sweep.arms], [str(arm.batch) for arm in sweep.arms])
        ax.minorticks_off()
        plain_log_ticks(ax.yaxis)
        ax.set_title(fill(f"{first.target.short}: {first.how}", 28), fontsize=SMALL)
        ax.set_xlabel("batch", fontsize=SMALL)
        ax.tick_params(labelsize=SMALL)
    for row in grid:
        row[0].set_ylabel("ms a step", fontsize=SMALL)
    for ax in axes[len(found.sweeps) :]:
        ax.set_visible(False)
    return Drawing(
        f"decode-{slug(found.name)}-batches",
        f"Time of a step of {found.name} over the batch",
        f"The time of a step over the batch for {count(len(found.sweeps), 'arm')}; the numbers are in the table below.",
        "Dots: a step with its work done. Dashed: the host's time to issue it. Dotted: the device's time. Both axes "
        "are logarithmic.",
        figure,
    )


def _arms(found: Decoded) -> Table:
    columns = ["stack", "how", "dispatches", "a token, ms", "host, ms", "device, ms", "tokens/s", "remark"]
    rows: list[list[str | Cell]] = []
    for arm in found.arms:
        times = [_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)]
        dispatches = f"{arm.dispatches:,}" if arm.dispatches else ""
        rate = _shown(arm.tokens_per_s, 1)
        rows.append([_stack(found, arm), arm.how, dispatches, *times, rate, _remark(arm)])
    return Table(f"Ways to decode a token of {found.name}", columns, rows, numeric=range(2, 7), sortable=True)


def _arms_drawing(found: Decoded) -> Drawing:
    shown = [(arm, time) for arm in found.arms if (time := arm.complete) is not None]
    dotted = " Dotted bar: the mean of processes that differ so much that the time is not resolved."
    figure, [[ax]] = canvas([0.36 * len(shown) + 0.2], around=0.6)
    for row, (arm, time) in enumerate(shown):
        own = colour(arm.target.stack)
        if arm.resolved("complete"):
            ax.barh(row, time.value / _MILLI, height=0.6, color=own, alpha=0.35)
        else:
            ax.barh(row, time.value / _MILLI, height=0.6, facecolor="none", edgecolor=own, linestyle=":")
        for one, name, marker in ((arm.host, "issue", "|"), (arm.device, "device_busy", "o")):
            if one is not None and arm.resolved(name):
                ax.plot(one.value / _MILLI, row, marker=marker, color=own, markersize=5, markeredgewidth=1.6)
    names = [f"{arm.target.short}\n{arm.how}" for arm, _ in shown]
    ax.set_yticks(range(len(shown)), names, fontsize=SMALL)
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.set_xlabel("ms a token")
    return Drawing(
        f"decode-{slug(found.name)}",
        f"Time of a token of {found.name}",
        f"A bar for each of {len(shown)} ways to decode; the numbers are in the table below.",
        "Bar: a token with its work done. Stroke: the host's time to issue it. Point: the device's time. Host and "
        "device work at the same time where the stack allows it, so the two do not add up."
        + ("" if all(arm.resolved("complete") for arm, _ in shown) else dotted),
        figure,
    )


def _reads(found: Decoded) -> Table:
    rows: list[list[str | Cell]] = []
    for arm in found.reads:
        tokens = arm.record.params.get("tokens", 1)
        read = {"token": "4 bytes", "logits": "all logits"}.get(str(arm.record.params.get("readback")), "")
        unit = "a token" if tokens == 1 else f"the first token of a prompt of {tokens}, as {tokens} decode steps"
        rows.append([_stack(found, arm), unit, read, _shown(arm.complete, _MILLI), _remark(arm)])
    columns = ["stack", "until", "read", "time with the wait, ms", "remark"]
    return Table(f"A read after every token of {found.name}", columns, rows, numeric=[3])


def _level_table(found: Decoded, levels: FusionLevels) -> Table:
    rows: list[list[str | Cell]] = []
    before: DecodeArm | None = None
    for level, arm in levels.arms:
        change, gain = "", None
        if before is not None:
            gain = ratio(before.complete, arm.complete)
            if arm.dispatches and before.dispatches:
                change = f"{arm.dispatches - before.dispatches:,}"
        dispatches = f"{arm.dispatches:,}" if arm.dispatches else ""
        times = [_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)]
        faster = factor_spread(gain) if gain else ""
        rows.append([_program(level, before), dispatches, change, *times, faster, _remark(arm)])
        before = arm
    columns = ["program", "dispatches", "change", "a token, ms", "host, ms", "device, ms", "faster by", "remark"]
    return Table(f"{found.name}: fusions, {_place(levels)}", columns, rows, numeric=range(1, 7))


def _unfused_and_fused(found: Decoded) -> Iterator[Table]:
    """A row for each way to run the program of which only the unfused and the fused form were measured."""
    rows: list[list[str | Cell]] = []
    for levels in found.levels:
        if not levels.ends_alone:
            continue
        (_, before), (_, after) = levels.arms
        gain = ratio(before.complete, after.complete)
        bound, remark = (_of_both(say(before), say(after)) for say in (_bound_by, _remark))
        dispatches = [f"{arm.dispatches:,}" if arm.dispatches else "" for arm in (before, after)]
        times = [_shown(arm.complete, _MILLI) for arm in (before, after)]
        faster = factor_spread(gain) if gain else ""
        rows.append([_stack(found, before), _way(before), *dispatches, *times, faster, bound, remark])
    if rows:
        pair = ["dispatches, unfused", "dispatches, fused", "unfused, ms", "fused, ms"]
        columns = ["stack", "how", *pair, "faster by", "bound by", "remark"]
        yield Table(f"{found.name}: unfused against fused", columns, rows, numeric=range(2, 7), sortable=True)


def _of_both(unfused: str, fused: str) -> str:
    """The texts of both programs, each with the program's name; one text without a name if they are equal."""
    named = {"unfused": unfused, "fused": fused}
    return fused if unfused == fused else "; ".join(f"{name}: {said}" for name, said in named.items() if said)


def _program(level: int, before: DecodeArm | None) -> str:
    if not level:
        return "unfused"
    if before is None or level - int(before.record.params["fusions"]) > 1:
        return f"with {count(level, 'fusion')}"
    return f"+ {tuple(FUSIONS)[level - 1]}"


def _level_drawing(found: Decoded, levels: FusionLevels, number: int) -> Drawing:
    figure, [[ax]] = canvas([2.2], around=0.6)
    points, stack = levels.points, levels.arms[0][1].target.stack
    own = colour(stack)
    ax.plot(
        [x for x, _ in points],
        [s.value / _MILLI for _, s in points],
        color=own,
        linewidth=0.8,
        marker="o",
        markersize=5.5,
        markerfacecolor=PAPER,
        markeredgecolor=own,
        clip_on=False,
    )
    for x, one in points:
        if one.low is not None and one.high is not None:
            ax.plot([x, x], [one.low / _MILLI, one.high / _MILLI], color=own, linewidth=1.6)
    ax.set_xlim(0, None)
    ax.set_ylim(0, None)
    ax.set_xlabel("dispatches a token")
    ax.set_title("time of a token, ms")
    name = f"decode-{slug(found.name)}-levels-{number + 1}"
    return Drawing(
        name,
        f"{found.name}: each fusion, {_place(levels)}",
        f"The time of a token over its dispatches at {len(points)} fusion levels; the numbers are in the table below.",
        "Lines: intervals within this run.",
        figure,
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


def _stack(found: Decoded, arm: DecodeArm) -> Cell:
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
