"""The page of decoded tokens: every variant, fusing, reads, batches; and a token on the front
page.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from functools import partial

from overhead.blocks.parts import Cell, Column, Drawing, Part, Table, Text, table_of
from overhead.decode.lowering.fusions import FUSIONS
from overhead.decode.reading import (
    DecoderResults,
    MeasuredVariant,
    VariantSeries,
    cheapest_variants,
    decoder_results,
    race_of_graphs,
    recorded_pair,
)
from overhead.reading.chain_ways import ChainWay, kind_of
from overhead.reading.graph_or_fused import ProgramWork, WorkRow, register_rows
from overhead.reading.precision import by_interval, is_steady
from overhead.reading.view import View, graph_maker
from overhead.report.core.dots import DotLook, DotRow, Head, Mark, dot_figure, narrow_dot_figure
from overhead.report.core.draw import INK, NARROW_INCHES, WIDE_INCHES
from overhead.report.core.lines import DrawnLine, line_chart
from overhead.report.core.page_list import register_page, slug
from overhead.report.core.registry import register
from overhead.results import Caller, Value
from overhead.words.decode import (
    BATCH_AXIS,
    BATCH_CAPTION,
    BATCHES_TITLE,
    DEVICE_TIME,
    FUSED,
    FUSED_CAPTION,
    NO_DEVICE_TIME,
    SOME_FUSIONS,
    STEP_AXIS,
    TOKEN_AXIS,
    UNFUSED,
    answer,
    batch_answer,
    batch_intro,
    batch_table_title,
    batch_title,
    bound,
    called,
    dispatches,
    fused_alternative,
    fused_title,
    graph_saves,
    intro,
    line_name,
    measured_with,
    race,
    range_of,
    remark,
    row_name,
    variant_name,
    variant_with_reads,
    variants_title,
)
from overhead.words.format import number, positive_spread
from overhead.words.graph_or_fused import program_label

_NS_PER_MS = 1e6
_NO_FUSION, _SOME_FUSIONS, _ALL_FUSIONS = "o", "|", "P"
_MARKERS = {UNFUSED: _NO_FUSION, SOME_FUSIONS: _SOME_FUSIONS, FUSED: _ALL_FUSIONS}
"""The markers of the figure of tokens, as its legend names them."""
_SWEEP_MARKERS = "osvDP^"
"""The markers of the lines over the batch."""
register_page(
    "decode",
    "Decoding tokens",
    20,
    "What a token of a language model costs through each stack, what kernel fusion saves, "
    "and from which batch on the CPU no longer limits a step.",
)
_LEAST_VARIANTS = 2
"""A decoder with fewer variants has nothing to compare."""


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
    """For each decoder the answer, a figure of all ways in which a token was computed, and a table
    of these.
    """
    # ``any_run``: where this run gives no table, another run of the machine is the view.
    for decoder in decoder_results(view):
        # With one variant there is nothing to compare.
        if len(decoder.variants) < _LEAST_VARIANTS:
            continue
        answers = _answers(decoder)
        if answers:
            yield Text(answers, lead=True)
        table = _variants_table(decoder)
        drawing = _tokens_drawing(decoder, table)
        # Without a time that may be drawn there is the table alone, which says why.
        yield drawing if drawing is not None else table
        yield Text([measured_with(decoder)])
        yield Text([intro(decoder)], quiet=True)


def _answers(decoder: DecoderResults) -> list[str]:
    """What the page opens with: the cheapest token, what a graph saves, and at which batches a
    library's graph is faster than the fused graph; only what was measured.
    """
    answers = []
    cheapest = cheapest_variants(decoder)
    if cheapest:
        answers.append(answer(cheapest, decoder.name))
    pair = recorded_pair(decoder)
    if pair is not None:
        answers.append(graph_saves(*pair))
    graphs = race_of_graphs(decoder)
    if graphs is not None:
        answers.append(race(graphs))
    return answers


@register("decode-batch", BATCHES_TITLE, 20, page="decode", any_run=True)
def batch_section(view: View) -> Iterator[Part]:
    """For each decoder that was measured with several batches (numbers of sequences per step): from
    which batch on the CPU no longer limits a step, a figure of the time of a step over the batch,
    and a table that says whether the CPU or the device limits each step.
    """
    # ``any_run``: where this run gives no table, another run of the machine is the view.
    for decoder in decoder_results(view):
        # ``sweeps``: groups of variants that differ in the batch alone.
        if not decoder.sweeps:
            continue
        yield Text([batch_answer(decoder)], lead=True)
        table = _sweeps_table(decoder)
        drawing = _sweep_drawing(decoder, table)
        yield drawing if drawing is not None else table
        yield Text([batch_intro(decoder)], quiet=True)


def _sweeps_table(decoder: DecoderResults) -> Table:
    """The table of steps with different batches: a row for each variant and batch, with its times
    and with what limits the step, the CPU or the device.
    """
    columns = [
        Column("stack", _stack),
        Column("variant", variant_name),
        Column("batch", _batch, is_number=True),
        Column("a step, ms", _time, is_number=True),
        *_OTHER_TIMES,
        Column("limit", bound),
        Column("remark", remark),
    ]
    rows = itertools.chain.from_iterable(decoder.sweeps)
    return table_of(batch_table_title(decoder), columns, rows, sortable=True, folded=True)


def _batch(variant: MeasuredVariant) -> str:
    return str(variant.batch)


def _sweep_drawing(decoder: DecoderResults, table: Table) -> Drawing | None:
    """The figure of the time of a step over the batch, with a line for each sweep, which is one
    variant with several batches; None without a time that may be drawn. ``table``: the same
    numbers.
    """
    lines = []
    # Two lines of one stack have one colour, so the marker tells them apart.
    for sweep, marker in zip(decoder.sweeps, itertools.cycle(_SWEEP_MARKERS)):
        points = _points_over_batch(sweep)
        if points:
            colour = sweep[0].target.facts.colour
            lines.append(DrawnLine(line_name(sweep[0]), points, colour, marker))
    if not lines:
        return None
    draw = partial(line_chart, lines, BATCH_AXIS, STEP_AXIS)
    # The name of its files, the title, what it shows for screen readers, the caption, what draws
    # it.
    return Drawing(
        f"decode-{slug(decoder.name)}-batches",
        batch_title(decoder),
        batch_answer(decoder),
        BATCH_CAPTION,
        partial(draw, width=WIDE_INCHES),
        draw_narrow=partial(draw, width=NARROW_INCHES),
        table=table,
    )


def _points_over_batch(sweep: VariantSeries) -> list[tuple[float, Value]]:
    """The points of a line: the batch, and the time of a step in ms, of each variant of the
    sweep.
    """
    points: list[tuple[float, Value]] = []
    for variant in sweep:
        time = variant.complete
        # A logarithmic axis has no place for what is not above zero.
        if time is not None and time.value > 0:
            # ``by_interval``: the point is drawn as ``ok`` or ``noisy`` by its interval alone.
            points.append((variant.batch, by_interval(time / _NS_PER_MS)))
    return points


def _variants_table(decoder: DecoderResults) -> Table:
    """The table of all ways to compute one token: a row for each variant with one sequence, and
    then one for each that also reads a value back after each token.
    """
    columns = [
        Column("stack", _stack),
        Column("variant", variant_with_reads),
        Column("dispatches", dispatches, is_number=True),
        Column("a token, ms", _time, is_number=True),
        *_OTHER_TIMES,
        Column("remark", remark),
    ]
    rows = (*decoder.variants, *decoder.reads)
    return table_of(variants_title(decoder), columns, rows, sortable=True, folded=True)


@dataclasses.dataclass(frozen=True)
class _TokenRow:
    """A row of the figure of tokens: the variants of one stack that differ in their fusions alone,
    the fewest first; or one variant of a library.
    """

    variants: VariantSeries

    @property
    def cheapest_ns(self) -> float:
        """The shortest time of a token, ns."""
        times = [variant.complete.value for variant in self.variants if variant.complete]
        return min(times)


def _tokens_drawing(decoder: DecoderResults, table: Table) -> Drawing | None:
    """The figure of every variant that decodes a token: a panel for each caller, a row for each
    stack and the way it hands a token over, with joined dots for the fusions. The cheapest row
    comes first. None if no time may be drawn. ``table``: the same numbers.
    """
    rows_by_caller: dict[Caller, list[_TokenRow]] = {}
    for row in _token_rows(decoder):
        rows_by_caller.setdefault(row.variants[0].record.caller, []).append(row)
    if not rows_by_caller:
        return None

    panels = {}
    for caller, rows in rows_by_caller.items():
        rows.sort(key=lambda row: row.cheapest_ns)
        panels[called(caller)] = [_dot_row(row) for row in rows]
    heads = [Head(name, _MARKERS[name], INK) for name in (UNFUSED, FUSED)]
    look = DotLook(heads, joined=True)
    return Drawing(
        f"decode-{slug(decoder.name)}-fused",
        fused_title(decoder),
        fused_alternative(decoder),
        FUSED_CAPTION,
        partial(dot_figure, panels, TOKEN_AXIS, _MARKERS, width=WIDE_INCHES, look=look),
        draw_narrow=partial(narrow_dot_figure, panels, TOKEN_AXIS, _MARKERS, look=look),
        table=table,
    )


def _token_rows(decoder: DecoderResults) -> list[_TokenRow]:
    """The rows of the figure; a variant without a time above zero has no place in it."""
    # Variants of one stack that are handed over alike differ in their fusions.
    rows: dict[tuple[str, str, Caller], list[MeasuredVariant]] = {}
    for variant in decoder.variants:
        if variant.complete is not None and variant.complete.value > 0:
            key = (variant.target.key, row_name(variant), variant.record.caller)
            rows.setdefault(key, []).append(variant)
    made = []
    for variants in rows.values():
        variants.sort(key=_fusions)
        made.append(_TokenRow(tuple(variants)))
    return made


def _fusions(variant: MeasuredVariant) -> int:
    """How many fusions of this project its program has; 0 for a library's own operations."""
    return int(variant.record.params.get("fusions", 0))


def _dot_row(row: _TokenRow) -> DotRow:
    """The row as it is drawn: a mark for each variant, and the times of those without fusions and
    with all of them as text.
    """
    times = ["", ""]
    for variant in row.variants:
        if variant.is_fused:
            times[1] = _short_time(variant)
        elif _fusions(variant) == 0:
            times[0] = _short_time(variant)
    marks = [_mark(variant) for variant in row.variants]
    return DotRow(row_name(row.variants[0]), marks, columns=times)


def _short_time(variant: MeasuredVariant) -> str:
    """The time of a token in ms without its interval; of one whose interval reaches zero the
    interval alone.
    """
    assert variant.complete is not None
    time = variant.complete / _NS_PER_MS
    return number(time) if time.resolved else range_of(time)


def _mark(variant: MeasuredVariant) -> Mark:
    assert variant.complete is not None
    time = dataclasses.replace(variant.complete / _NS_PER_MS, status=variant.record.status)
    if variant.is_fused:
        marker = _ALL_FUSIONS
    else:
        marker = _NO_FUSION if _fusions(variant) == 0 else _SOME_FUSIONS
    return Mark(time, variant.target.facts.colour, marker)


def _stack(variant: MeasuredVariant) -> Cell:
    return Cell(variant.target.short, variant.target.stack)


def _time(variant: MeasuredVariant) -> str:
    """The time of a step in ms, with its interval; '' where it was not measured."""
    time = variant.complete
    return "" if time is None else positive_spread(time / _NS_PER_MS)


def _enqueue_time(variant: MeasuredVariant) -> str:
    """The CPU's time to hand a step over, in ms."""
    return _or_range(variant.host)


def _device_time(variant: MeasuredVariant) -> str:
    """The device's time for a step, in ms; no number where it would be longer than the step."""
    if variant.device_doubt == "not-resolved":
        return NO_DEVICE_TIME
    return _or_range(variant.device)


def _or_range(time: Value | None) -> str:
    """A time in ms, with its interval; the interval alone if it is wide; '' without a time."""
    if time is None:
        return ""
    return positive_spread(time / _NS_PER_MS) if is_steady(time) else range_of(time / _NS_PER_MS)


def _tokens_per_s(variant: MeasuredVariant) -> str:
    """Tokens a second; their interval is that of the time of a step."""
    tokens = variant.tokens_per_s
    return "" if tokens is None else number(tokens)


_OTHER_TIMES: list[Column[MeasuredVariant]] = [
    Column("enqueue, ms", _enqueue_time, is_number=True),
    Column("device, ms", _device_time, is_number=True, meaning=DEVICE_TIME),
    Column("tokens/s", _tokens_per_s, is_number=True),
]
"""What both tables say of a step besides its time."""
