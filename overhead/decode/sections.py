"""The page of decoded tokens: every arm (way to decode), fusing, reads, batches; and a token on the front page."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import (
    MOST_KERNEL_RATIO,
    PUBLISHED_INTERCEPT_NS,
    PUBLISHED_SLOPE_NS,
    DecodeArm,
    DecoderResults,
    decoder_results,
    device_time_ratio,
    eager_graph_arm,
    fastest_kernels,
    slope_over_dispatches,
)
from overhead.reading.format import MICRO, TIMES, count, factor_spread, listed, positive_spread, run_time, spread
from overhead.reading.graph_or_fused import Row, Way, compared, register_rows
from overhead.reading.missing_values import why
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.lines import DrawnLine, LinePanel, line_panels
from overhead.report.core.page_list import register_page, slug
from overhead.report.core.palette import colour
from overhead.report.core.registry import register
from overhead.results import Value, ratio

_MILLI = 1e6
_LINES = {"complete": "o-", "issue": "--", "device_busy": ":"}
"""The style of the line of each figure over the batch."""
_PAGE = register_page(
    "decode",
    "Decoding tokens",
    20,
    "What a token of a language model costs through each stack, what fusing its dispatches saves, what one "
    "dispatch costs in a real program, and from which batch on overhead stops mattering.",
)
_PUBLISHED = (
    f"Published times to the first token (arXiv 2604.02344) give {PUBLISHED_SLOPE_NS / 1e3:.1f} {MICRO} a dispatch "
    f"with an intercept of {PUBLISHED_INTERCEPT_NS / _MILLI:.1f} ms. A negative intercept means that the cost of a "
    "dispatch was not constant there."
)
_MOST_ROWS = 8
"""Ways that the figure of fusing shows."""
_Row = list[str | Cell]
_FUSED: dict[str, object] = {"fusions": len(FUSIONS)}
_WAYS: tuple[tuple[str, str, dict[str, object]], ...] = (
    ("eager", "eager, PyTorch", {"stack": "torch", "fusions": None}),
    ("graph-torch", "a graph, by PyTorch", {"stack": "cuda-graph", "maker": "torch"}),
    ("graph-driver", "an unfused graph, by the driver", {"stack": "cuda-graph", "maker": "driver", "fusions": 0}),
    ("fused-cuda", "fused CUDA, launched", {"stack": "cuda-driver", "pattern": "per-submit", **_FUSED}),
    ("fused-cuda", "a fused graph, by the driver", {"stack": "cuda-graph", "maker": "driver", **_FUSED}),
    ("fused-wgsl", "fused WGSL, Dawn", {"stack": "dawn", "pattern": "per-pass", **_FUSED}),
    ("fused-wgsl", "fused WGSL, wgpu-native", {"stack": "wgpu-native", "pattern": "per-pass", **_FUSED}),
)
"""Kind, label, and stack, pattern and parameters of the ways to compute a token that are compared on the front page."""


@register_rows
def token_rows(view: View) -> Iterator[Row]:
    """A row for a token by the largest decoder of the run with fused WGSL: graphs of both programs beside it."""
    for found in reversed(decoder_results(view)):
        ways = [way for kind, label, fields in _WAYS if (way := _token_way(found, kind, label, fields)) is not None]
        if not any(way.kind == "fused-wgsl" for way in ways):
            continue
        counts = {arm.record.params.get("fusions"): _dispatches(arm) for arm in found.arms}
        work = f"{found.name}, {counts.get(0) or '?'} dispatches, {counts.get(len(FUSIONS)) or '?'} when fused"
        row = Row("a token", work, run_time(view.fingerprint.created), tuple(ways))
        fused = listed([f"{compared(row, way)} through {way.through}" for way in row.of_kind("fused-wgsl")])
        least = min(ways, key=lambda way: way.cost.value if way.cost else float("inf"))
        beside = f"fused WGSL is {fused}, beside the CUDA driver's graph of the unfused program; " if fused else ""
        yield dataclasses.replace(row, said=f"A token ({work}): {beside}the cheapest is {least.label}.")
        return


def _token_way(found: DecoderResults, kind: str, label: str, fields: dict[str, object]) -> Way | None:
    """The arm from Python with these parameters, as a way; None if there is none with a time."""
    for arm in found.arms:
        record = arm.record
        own = {"stack": record.stack, "pattern": record.pattern, "fusions": None, "maker": None, **record.params}
        if record.caller == "binding" and arm.complete is not None and fields.items() <= own.items():
            return Way(kind, record.stack, label, dataclasses.replace(arm.complete, status=record.status))
    return None


@register("decode", "A token through each stack", 10, page="decode", any_run=True)
def token_section(view: View) -> Iterator[Part]:
    """For each decoder its arms, reads and kernels, what fusing saves, and what an added dispatch costs."""
    for found in decoder_results(view):
        intro = (
            f"{found.name}: one token at batch 1 in float32 with random weights. The token and the cache stay on the "
            "device. Each arm was compared with float64 on 32 given tokens before it was timed. Dispatches are "
            "those of the program that ran; for PyTorch they are operations, for ONNX Runtime nodes."
        )
        yield Text([intro, *_one_process(found)])
        if (drawing := _fused_or_not(found)) is not None:
            yield drawing
        yield _arms(found)
        if found.reads:
            yield _reads(found)
        yield from _kernels(found)
        if sentences := list(padded_sentences(found)):
            yield Text([*sentences, _PUBLISHED])


@register("decode-batch", "Where overhead stops mattering", 20, page="decode", any_run=True)
def batch_section(view: View) -> Iterator[Part]:
    """For each decoder with several batches: the time over the batch, and a table with what bounds each step."""
    for found in decoder_results(view):
        if not found.sweeps:
            continue
        intro = (
            f"{found.name}: a step makes one token of each sequence of a batch, with as many dispatches as for one "
            "sequence: more work for the device, but hardly more for the host. The kernels of the lowered program read "
            "each weight from memory once for all sequences, but they are no tuned matrix products like those that "
            "PyTorch calls: compare device times within an arm."
        )
        yield Text([intro, "Overhead stops mattering where the host issues a step in less time than the device needs."])
        if any(arm.is_resolved("complete") for sweep in found.sweeps for arm in sweep):
            yield _sweep_drawing(found)
        yield _sweeps(found)


def _one_process(found: DecoderResults) -> Iterator[str]:
    arms = [*found.arms, *found.reads, *(arm for sweep in found.sweeps for arm in sweep if arm.batch > 1)]
    alone = sum(arm.is_from_one_process for arm in arms)
    if alone:
        yield f"{alone} of {count(len(arms), 'arm')} ran in one process only, so most of their times have no interval."


def _bound_by(arm: DecodeArm) -> str:
    """Whether the host or the device takes the time of a step; '' where a time is missing."""
    if arm.lacks_intervals:
        return "not resolved"
    return {True: "device", False: "host or both", None: ""}[arm.is_device_bound]


def _sweeps(found: DecoderResults) -> Table:
    rows: list[_Row] = [
        [_stack(arm), arm.description, str(arm.batch), *_times(arm), _bound_by(arm), _remark(arm)]
        for sweep in found.sweeps
        for arm in sweep
    ]
    columns = ["stack", "how", "batch", "a step, ms", "host, ms", "device, ms", "tokens/s", "bound by", "remark"]
    return Table(f"{found.name}: batches", columns, rows, numeric=range(2, 7), sortable=True)


def _sweep_drawing(found: DecoderResults) -> Drawing:
    panels = []
    for sweep in found.sweeps:
        target = sweep[0].target
        lines = []
        for name, style in _LINES.items():
            times = [(arm.batch, arm.record.value(name)) for arm in sweep if arm.is_resolved(name)]
            points = [(batch, Value(time / _MILLI)) for batch, time in times if time is not None]
            lines.append(DrawnLine(points, colour(target.stack), style))
        panels.append(LinePanel(f"{target.short}: {sweep[0].description}", "batch", lines))
    return Drawing(
        f"decode-{slug(found.name)}-batches",
        f"Time of a step of {found.name} over the batch",
        f"The time of a step over the batch for {count(len(found.sweeps), 'arm')}; the numbers are in the table below.",
        "Dots: a step with its work done. Dashed: the host's time to issue it. Dotted: the device's time. Both axes "
        "are logarithmic.",
        partial(line_panels, panels, "ms a step"),
    )


def _arms(found: DecoderResults) -> Table:
    columns = ["stack", "how", "dispatches", "a token, ms", "host, ms", "device, ms", "tokens/s", "remark"]
    rows: list[_Row] = [
        [_stack(arm), arm.description, _dispatches(arm), *_times(arm), _remark(arm)] for arm in found.arms
    ]
    return Table(f"Ways to decode a token of {found.name}", columns, rows, numeric=range(2, 7), sortable=True)


def _reads(found: DecoderResults) -> Table:
    rows: list[_Row] = []
    for arm in found.reads:
        tokens = arm.record.params.get("tokens", 1)
        read = {"token": "4 bytes", "logits": "all logits"}.get(str(arm.record.params.get("readback")), "")
        unit = "a token" if tokens == 1 else f"the first token of a prompt of {tokens}, as {tokens} decode steps"
        rows.append([_stack(arm), unit, read, _shown(arm.complete, _MILLI), _remark(arm)])
    columns = ["stack", "until", "read", "time with the wait, ms", "remark"]
    return Table(f"A read after every token of {found.name}", columns, rows, numeric=[3])


def _fused_or_not(found: DecoderResults) -> Drawing | None:
    """A dumbbell for each way to run the program: a token unfused and with all fusions; None without such ways."""
    pairs = [(series[0], series[-1]) for series in found.levels]
    both = [pair for pair in pairs if all(arm.complete is not None and arm.is_resolved("complete") for arm in pair)]
    timed = sorted((fused.complete.value, i) for i, (_, fused) in enumerate(both) if fused.complete is not None)
    ordered = [both[i] for _, i in timed[:_MOST_ROWS]]
    rows = [DotRow(f"{fused.target.short}, {fused.issued}", [_mark(one), _mark(fused)]) for one, fused in ordered]
    if not rows:
        return None
    gains = [
        f"{arm.target.short}, {arm.issued}: {factor_spread(ratio(one.complete, arm.complete))}" for one, arm in ordered
    ]
    return Drawing(
        f"decode-{slug(found.name)}-fused",
        f"A token of {found.name}, unfused and fused",
        f"Fusing makes a token cheaper by these factors: {'; '.join(gains)}.",
        "Round: every dispatch on its own. Diamond: with all fusions. Hollow: noisy. The axis is logarithmic.",
        partial(dot_figure, {"": rows}, "ms a token", {"unfused": "o", "fused": "D"}, joined=True),
    )


def _mark(arm: DecodeArm) -> Mark:
    assert arm.complete is not None
    time = dataclasses.replace(arm.complete / _MILLI, status=arm.record.status)
    return Mark(time, colour(arm.target.stack), "o" if arm.record.params["fusions"] == 0 else "D")


def _kernels(found: DecoderResults) -> Iterator[Part]:
    """Device times of each program in both languages; nothing if there is nothing to compare them with."""
    fastest, eager = fastest_kernels(found), eager_graph_arm(found)
    rows, unfair = list[_Row](), list[str]()
    for fusions in range(len(FUSIONS) + 1):
        arms = cuda, wgsl = [fastest.get((language, fusions)) for language in ("cuda", "wgsl")]
        between, *over = (device_time_ratio(*pair) for pair in ((wgsl, cuda), (cuda, eager), (wgsl, eager)))
        if not any((between, *over)):
            continue
        program = next(arm.description.partition(",")[0] for arm in arms if arm)
        # Device time in ms, with the colour and the name of its stack.
        times = [Cell(_shown(a.device, _MILLI), a.target.stack, hover=a.target.label) if a else "" for a in arms]
        rows.append([program, *times, *(factor_spread(one) if one else "" for one in (between, *over))])
        if between and max(between.value, 1 / between.value) > MOST_KERNEL_RATIO:
            unfair.append(program)
    if rows:
        columns = ["program", "CUDA C, ms", "WGSL, ms", "WGSL over CUDA C", "CUDA C over PyTorch", "WGSL over PyTorch"]
        title = "the kernels on the device, in the fastest stack of each language and in PyTorch's eager step"
        yield Table(f"{found.name}: {title}", columns, rows, numeric=range(1, 6))
    if unfair:
        differ = f"The device times of WGSL and CUDA C differ by more than {MOST_KERNEL_RATIO}{TIMES} for"
        yield Text([f"{differ} {listed(unfair)}, so the times of a token cannot compare the hosts there."])


def padded_sentences(found: DecoderResults) -> Iterator[str]:
    """What a dispatch that is added to an unfused token costs, a sentence for each stack that has such tokens."""
    for series in found.padded:
        line, first = slope_over_dispatches(series), series[0]
        if line and line.slope.floor <= 0:
            yield f"What a trivial dependent dispatch adds to an unfused token is not resolved ({first.target.label})."
        elif line:
            yield (
                "A trivial dependent dispatch that is added to an unfused token costs "
                f"{_shown(line.slope, 1e3)} {MICRO}, with an intercept of {spread(line.intercept / _MILLI)} ms "
                f"({first.target.label}, {first.description}, {line.points} lengths)."
            )


def _stack(arm: DecodeArm) -> Cell:
    return Cell(arm.target.label, arm.target.stack)


def _times(arm: DecodeArm) -> list[str]:
    """The time of a step, the host's and the device's in ms, and tokens a second."""
    return [*(_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)), _shown(arm.tokens_per_s, 1)]


def _dispatches(arm: DecodeArm) -> str:
    return f"{arm.dispatches:,}" if arm.dispatches else ""


def _shown(found: Value | None, unit: float) -> str:
    return "" if found is None else positive_spread(found / unit)


def _remark(arm: DecodeArm) -> str:
    if arm.complete is None:
        return why(arm.record, "complete")
    noisy_alone = arm.is_from_one_process and arm.record.status == "noisy"
    return "" if noisy_alone or arm.record.status == "ok" else arm.record.status
