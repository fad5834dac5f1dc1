"""The page of decoded tokens: every variant, fusing, reads, batches; and a token on the front
page.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import DecodeArm, DecoderResults, decoder_results
from overhead.reading.graph_or_fused import ChainWay, ProgramWork, WorkRow, register_rows
from overhead.reading.precision import by_interval
from overhead.reading.view import View
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.lines import DrawnLine, LinePanel, line_panels
from overhead.report.core.page_list import register_page, slug
from overhead.report.core.registry import register
from overhead.results import ChainWayFacts, Value, WayKind
from overhead.words.decode import (
    BATCH_CAPTION,
    BATCH_MATTERS,
    FUSED_CAPTION,
    arm_name,
    arm_with_reads,
    arms_title,
    batch_alternative,
    batch_intro,
    batch_table_title,
    batch_title,
    bound,
    dispatches,
    fused_alternative,
    fused_title,
    intro,
    lowered_label,
    remark,
    sweep_label,
)
from overhead.words.format import positive_spread

_MILLI = 1e6
_LINES = {"complete": "o", "issue": "v", "device_busy": "s"}
"""The marker of each figure over the batch."""
register_page(
    "decode",
    "Decoding tokens",
    20,
    "What a token of a language model costs through each stack, what kernel fusion saves, "
    "and from which batch on launch overhead no longer matters.",
)
_LEAST_ARMS = 2
"""A decoder with fewer arms has nothing to compare."""
_MOST_ROWS = 8
"""Ways that the figure of fusing shows."""
_Row = list[str | Cell]
_FUSED: dict[str, object] = {"fusions": len(FUSIONS)}


@register_rows
def token_rows(view: View) -> Iterator[WorkRow]:
    """A row for a token by the largest decoder of the run with fused WGSL: graphs of both programs
    beside it.
    """
    for found in reversed(decoder_results(view)):
        made = [_token_way(found, one) for one in _ways_compared(view)]
        ways = [way for way in made if way is not None]
        if not any(way.kind == "fused-wgsl" for way in ways):
            continue
        by_fusions = {arm.record.params.get("fusions"): arm.dispatches for arm in found.arms}
        work = ProgramWork(
            found.name, by_fusions.get(0) or None, by_fusions.get(len(FUSIONS)) or None
        )
        yield WorkRow("a token", work, view.fingerprint.created, tuple(ways))
        return


@dataclasses.dataclass(frozen=True)
class _TokenWay:
    """A way to compute a token. ``fields``: pattern and parameters of its case; None for an absent
    parameter.
    """

    kind: str
    label: str
    stack: str
    fields: Mapping[str, object]


def _ways_compared(view: View) -> Iterator[_TokenWay]:
    """The ways to compute a token that are compared on the front page, by the stacks that do whole
    chains so.
    """
    stacks: dict[WayKind, list[tuple[str, ChainWayFacts]]] = collections.defaultdict(list)
    for stack, facts in view.known_stacks.items():
        for way in facts.ways:
            stacks[way.kind].append((stack, way))
    for stack, way in stacks["eager"]:
        yield _TokenWay("eager", way.label, stack, {"fusions": None})
    for stack, _ in stacks["eager"]:
        recorded = view.graph_of(stack)
        if recorded is not None:
            graphs, maker = recorded
            yield _TokenWay(
                "graph-torch", f"a graph, by {view.facts(stack).label}", graphs, {"maker": maker}
            )
    for stack, _ in stacks["graph-driver"]:
        fields = {"maker": "driver", "fusions": 0}
        yield _TokenWay("graph-driver", "an unfused graph, by the driver", stack, fields)
    for stack, _ in stacks["fused-cuda"]:
        yield _TokenWay(
            "fused-cuda", "fused CUDA, launched", stack, {"pattern": "per-submit", **_FUSED}
        )
    for stack, _ in stacks["graph-driver"]:
        yield _TokenWay(
            "fused-cuda", "a fused graph, by the driver", stack, {"maker": "driver", **_FUSED}
        )
    for stack, way in stacks["fused-wgsl"]:
        yield _TokenWay("fused-wgsl", way.label, stack, {"pattern": "per-pass", **_FUSED})


def _token_way(found: DecoderResults, way: _TokenWay) -> ChainWay | None:
    """The arm from Python with these parameters, as a way; None if there is none with a time."""
    for arm in found.arms:
        record = arm.record
        own = {"pattern": record.pattern, "fusions": None, "maker": None, **record.params}
        alike = (
            record.stack == way.stack
            and record.caller == "binding"
            and way.fields.items() <= own.items()
        )
        if alike and arm.complete is not None:
            cost = by_interval(dataclasses.replace(arm.complete, status=record.status))
            return ChainWay(way.kind, record.stack, way.label, cost, through=arm.target.facts.label)
    return None


@register("decode", "A token through each stack", 10, page="decode", any_run=True)
def token_section(view: View) -> Iterator[Part]:
    """For each decoder what fusing saves, its variants and its reads."""
    for found in decoder_results(view):
        if len(found.arms) < _LEAST_ARMS:
            continue
        yield Text([intro(found)])
        if (drawing := _fused_or_not(found)) is not None:
            yield drawing
        yield _arms(found)


@register(
    "decode-batch",
    "From which batch on overhead no longer matters",
    20,
    page="decode",
    any_run=True,
)
def batch_section(view: View) -> Iterator[Part]:
    """For each decoder with several batches: the time over the batch, and a table with what bounds
    each step.
    """
    for found in decoder_results(view):
        if not found.sweeps:
            continue
        yield Text([batch_intro(found), BATCH_MATTERS])
        if any(arm.is_resolved("complete") for sweep in found.sweeps for arm in sweep):
            yield _sweep_drawing(found)
        yield _sweeps(found)


def _sweeps(found: DecoderResults) -> Table:
    rows: list[_Row] = []
    for arm in (arm for sweep in found.sweeps for arm in sweep):
        rows.append(
            [_stack(arm), arm_name(arm), str(arm.batch), *_times(arm), bound(arm), remark(arm)]
        )
    columns = [
        "stack",
        "variant",
        "batch",
        "a step, ms",
        "enqueue, ms",
        "device, ms",
        "tokens/s",
        "limit",
        "remark",
    ]
    return Table(batch_table_title(found), columns, rows, numeric=range(2, 7), sortable=True)


def _sweep_drawing(found: DecoderResults) -> Drawing:
    panels = []
    for sweep in found.sweeps:
        target = sweep[0].target
        lines = []
        for name, marker in _LINES.items():
            times = [
                (arm.batch, arm.record.measured(name)) for arm in sweep if arm.is_resolved(name)
            ]
            points = [
                (batch, by_interval(time / _MILLI)) for batch, time in times if time is not None
            ]
            lines.append(DrawnLine(points, target.facts.colour, marker))
        panels.append(LinePanel(sweep_label(sweep[0]), "batch", lines))
    return Drawing(
        f"decode-{slug(found.name)}-batches",
        batch_title(found),
        batch_alternative(found),
        BATCH_CAPTION,
        partial(line_panels, panels, "ms a step"),
    )


def _arms(found: DecoderResults) -> Table:
    columns = [
        "stack",
        "variant",
        "dispatches",
        "a token, ms",
        "enqueue, ms",
        "device, ms",
        "tokens/s",
        "remark",
    ]
    rows: list[_Row] = [
        [_stack(arm), arm_with_reads(arm), dispatches(arm), *_times(arm), remark(arm)]
        for arm in (*found.arms, *found.reads)
    ]
    return Table(arms_title(found), columns, rows, numeric=range(2, 7), sortable=True)


def _fused_or_not(found: DecoderResults) -> Drawing | None:
    """A dumbbell for each way to run the program: a token unfused and with all fusions; None
    without such ways.
    """
    pairs = [
        (series[0], series[-1])
        for series in found.levels
        if series[0].record.params["fusions"] == 0
    ]
    both = [pair for pair in pairs if all(arm.is_resolved("complete") for arm in pair)]
    ordered = sorted(both, key=lambda pair: pair[1].record.value("complete") or 0.0)[:_MOST_ROWS]
    rows = [DotRow(lowered_label(fused), [_mark(one), _mark(fused)]) for one, fused in ordered]
    if not rows:
        return None
    one, arm = ordered[0]
    return Drawing(
        f"decode-{slug(found.name)}-fused",
        fused_title(found),
        fused_alternative(one, arm),
        FUSED_CAPTION,
        partial(dot_figure, {"": rows}, "ms a token", {"unfused": "o", "fused": "P"}, joined=True),
    )


def _mark(arm: DecodeArm) -> Mark:
    assert arm.complete is not None
    time = dataclasses.replace(arm.complete / _MILLI, status=arm.record.status)
    return Mark(time, arm.target.facts.colour, "o" if arm.record.params["fusions"] == 0 else "P")


def _stack(arm: DecodeArm) -> Cell:
    return Cell(arm.target.label, arm.target.stack)


def _times(arm: DecodeArm) -> list[str]:
    """The time of a step, of handing it over (``issue``) and the device's in ms, and tokens a
    second.
    """
    return [
        *(_shown(one, _MILLI) for one in (arm.complete, arm.host, arm.device)),
        _shown(arm.tokens_per_s, 1),
    ]


def _shown(found: Value | None, unit: float) -> str:
    return "" if found is None else positive_spread(found / unit)
