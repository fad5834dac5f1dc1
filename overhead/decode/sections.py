"""The page of decoded tokens: every variant, fusing, reads, batches; and a token on the front
page.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import (
    DecoderResults,
    MeasuredVariant,
    VariantSeries,
    decoder_results,
)
from overhead.reading.chain_ways import ChainWay, kind_of
from overhead.reading.graph_or_fused import ProgramWork, WorkRow, register_rows
from overhead.reading.precision import by_interval
from overhead.reading.view import View, graph_maker
from overhead.report.core.dots import DotRow, Mark, dot_figure
from overhead.report.core.lines import DrawnLine, LinePanel, line_panels
from overhead.report.core.page_list import register_page, slug
from overhead.report.core.registry import register
from overhead.results import Value
from overhead.words.decode import (
    BATCH_CAPTION,
    BATCH_MATTERS,
    FUSED_CAPTION,
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
    variant_name,
    variant_with_reads,
    variants_title,
)
from overhead.words.format import positive_spread
from overhead.words.graph_or_fused import program_label

_NS_PER_MS = 1e6
_LINES = {"complete": "o", "issue": "v", "device_busy": "s"}
"""The marker of each figure over the batch."""
register_page(
    "decode",
    "Decoding tokens",
    20,
    "What a token of a language model costs through each stack, what kernel fusion saves, "
    "and from which batch on launch overhead no longer matters.",
)
_LEAST_VARIANTS = 2
"""A decoder with fewer variants has nothing to compare."""
_MOST_ROWS = 8
"""Rows of the figure of fusing, those with the cheapest fused token. Chosen, not measured."""
_Row = list[str | Cell]


@register_rows
def token_rows(view: View) -> Iterator[WorkRow]:
    """The row "a token" of the front page's picture, which compares the ways to save launch
    overhead: CUDA graphs and fused kernels. No row if no decoder was measured with fused kernels in
    WGSL.

    The row shows the largest decoder for which the run has them.
    """
    for decoder in reversed(decoder_results(view)):
        ways: list[ChainWay] = []
        for variant in decoder.variants:
            if variant.record.caller == "binding" and variant.complete is not None:
                ways += _measured_way(view, variant)
        # Without fused kernels in WGSL the row would have nothing to compare with the graphs.
        if not any(way.kind == "fused-wgsl" for way in ways):
            continue

        # By the number of fusions: none is the unfused program, all the fused one.
        dispatches = {
            variant.record.params.get("fusions"): variant.dispatches for variant in decoder.variants
        }
        # None where the program was not measured or its dispatches are not known.
        unfused = dispatches.get(0) or None
        fused = dispatches.get(len(FUSIONS)) or None
        work = ProgramWork(decoder.name, unfused, fused)
        yield WorkRow("a token", work, view.fingerprint.created, tuple(ways))
        return


def _measured_way(view: View, variant: MeasuredVariant) -> Iterator[ChainWay]:
    """The variant as a way to compute a token. None of a program with some of the fusions: the page
    of tokens has these.
    """
    record = variant.record
    fusions = record.params.get("fusions")
    if variant.complete is None or fusions not in (None, 0, len(FUSIONS)):
        return
    kind = kind_of(view, record, fused=fusions == len(FUSIONS))
    # ``by_interval``: a value that is ``ok`` or ``noisy`` is called so by its own interval alone.
    cost = by_interval(dataclasses.replace(variant.complete, status=record.status))
    facts = variant.target.facts
    through = graph_maker(record, facts) if facts.graphs else facts.label
    through = through.removeprefix("the ")
    label = program_label(kind, through, record.pattern)
    yield ChainWay(kind, record.stack, label, cost, through=through, record=record)


@register("decode", "A token through each stack", 10, page="decode", any_run=True)
def token_section(view: View) -> Iterator[Part]:
    """For each decoder a sentence, a figure of what kernel fusion saves, and a table of all ways in
    which a token was computed.
    """
    # ``any_run``: where this run gives no table, another run of the machine is the view.
    for decoder in decoder_results(view):
        # With one variant there is nothing to compare.
        if len(decoder.variants) < _LEAST_VARIANTS:
            continue
        yield Text([intro(decoder)])
        drawing = _fused_or_not(decoder)
        if drawing is not None:
            yield drawing
        yield _variants_table(decoder)


@register(
    "decode-batch",
    "From which batch on overhead no longer matters",
    20,
    page="decode",
    any_run=True,
)
def batch_section(view: View) -> Iterator[Part]:
    """For each decoder that was measured with several batches (numbers of sequences per step): a
    figure of the time of a step over the batch, and a table that says whether the CPU or the device
    limits each step.
    """
    # ``any_run``: where this run gives no table, another run of the machine is the view.
    for decoder in decoder_results(view):
        # ``sweeps``: groups of variants that differ in the batch alone.
        if not decoder.sweeps:
            continue
        yield Text([batch_intro(decoder), BATCH_MATTERS])
        swept = list(itertools.chain.from_iterable(decoder.sweeps))
        # A figure without a single time that may be drawn would be empty.
        if any(variant.is_resolved("complete") for variant in swept):
            yield _sweep_drawing(decoder)
        yield _sweeps_table(decoder)


def _sweeps_table(decoder: DecoderResults) -> Table:
    """The table of steps with different batches: a row for each variant and batch, with its times
    and with what limits the step, the CPU or the device.
    """
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
    rows: list[_Row] = []
    for variant in itertools.chain.from_iterable(decoder.sweeps):
        row: _Row = [_stack(variant), variant_name(variant), str(variant.batch)]
        # ``_times`` fills four columns, "a step" to "tokens/s".
        row += [*_times(variant), bound(variant), remark(variant)]
        rows.append(row)
    return Table(batch_table_title(decoder), columns, rows, numeric=range(2, 7), sortable=True)


def _sweep_drawing(decoder: DecoderResults) -> Drawing:
    """The figure of the time of a step over the batch. Each sweep, one variant with several
    batches, has a panel, with a line for the whole time, the CPU's and the device's.
    """
    panels = []
    for sweep in decoder.sweeps:
        colour = sweep[0].target.facts.colour
        lines = [
            DrawnLine(_points_over_batch(sweep, figure), colour, marker)
            for figure, marker in _LINES.items()
        ]
        panels.append(LinePanel(sweep_label(sweep[0]), "batch", lines))
    # The name of its files, the title, what it shows for screen readers, the caption, what draws
    # it.
    return Drawing(
        f"decode-{slug(decoder.name)}-batches",
        batch_title(decoder),
        batch_alternative(decoder),
        BATCH_CAPTION,
        partial(line_panels, panels, "ms a step"),
    )


def _points_over_batch(sweep: VariantSeries, figure: str) -> list[tuple[float, Value]]:
    """The points of a line: the batch, and the time in ms, of each variant of the sweep.

    ``figure``: which time of the record, such as ``complete``.
    """
    points: list[tuple[float, Value]] = []
    for variant in sweep:
        time = variant.record.measured(figure)
        # A time whose interval reaches zero (it is not *resolved*) is left out.
        if time is not None and variant.is_resolved(figure):
            # ``by_interval``: the point is drawn as ``ok`` or ``noisy`` by its interval alone.
            points.append((variant.batch, by_interval(time / _NS_PER_MS)))
    return points


def _variants_table(decoder: DecoderResults) -> Table:
    """The table of all ways to compute one token: a row for each variant with one sequence, and
    then one for each that also reads a value back after each token.
    """
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
    rows: list[_Row] = []
    for variant in (*decoder.variants, *decoder.reads):
        row: _Row = [_stack(variant), variant_with_reads(variant), dispatches(variant)]
        # ``_times`` fills four columns, "a token" to "tokens/s".
        row += [*_times(variant), remark(variant)]
        rows.append(row)
    return Table(variants_title(decoder), columns, rows, numeric=range(2, 7), sortable=True)


def _fused_or_not(decoder: DecoderResults) -> Drawing | None:
    """The figure of what kernel fusion saves: for each stack two joined dots, the time of a token
    without fusions and with all of them. The cheapest fused token comes first. None if no stack
    has both times.
    """
    pairs: list[tuple[MeasuredVariant, MeasuredVariant]] = []
    # A series is one stack with more and more fusions.
    for series in decoder.levels:
        unfused, fused = series[0], series[-1]
        # If the unfused program was not measured, the series begins with a few fusions.
        has_unfused = unfused.record.params["fusions"] == 0
        if has_unfused and unfused.is_resolved("complete") and fused.is_resolved("complete"):
            pairs.append((unfused, fused))
    if not pairs:
        return None

    pairs.sort(key=_time_of_fused)
    rows = []
    for unfused, fused in pairs[:_MOST_ROWS]:
        rows.append(DotRow(lowered_label(fused), [_mark(unfused), _mark(fused)]))
    markers = {"unfused": "o", "fused": "P"}
    # One panel, without a title; ``joined``: a bar between both dots of a row.
    draw = partial(dot_figure, {"": rows}, "ms a token", markers, joined=True)
    return Drawing(
        f"decode-{slug(decoder.name)}-fused",
        fused_title(decoder),
        fused_alternative(*pairs[0]),
        FUSED_CAPTION,
        draw,
    )


def _time_of_fused(pair: tuple[MeasuredVariant, MeasuredVariant]) -> float:
    """The time of a fused token, ns."""
    _, fused = pair
    return fused.record.value("complete") or 0.0


def _mark(variant: MeasuredVariant) -> Mark:
    assert variant.complete is not None
    time = dataclasses.replace(variant.complete / _NS_PER_MS, status=variant.record.status)
    marker = "o" if variant.record.params["fusions"] == 0 else "P"
    return Mark(time, variant.target.facts.colour, marker)


def _stack(variant: MeasuredVariant) -> Cell:
    return Cell(variant.target.label, variant.target.stack)


def _times(variant: MeasuredVariant) -> list[str]:
    """Four cells of a table, '' where not measured: the time of a step, the CPU's part of handing
    it over, the device's time for it, all in ms, and tokens a second.
    """
    return [
        _shown(variant.complete, _NS_PER_MS),
        _shown(variant.host, _NS_PER_MS),
        _shown(variant.device, _NS_PER_MS),
        _shown(variant.tokens_per_s, 1),
    ]


def _shown(value: Value | None, unit: float) -> str:
    """The value in this unit, with its interval; '' where it was not measured."""
    return "" if value is None else positive_spread(value / unit)
