"""The page of decoded tokens: variants, fusion levels, reads, the slope over added dispatches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Part, Table, Text, cell_text
from overhead.decode.reading import (
    MeasuredVariant,
    cheapest_variants,
    decoder_results,
    device_bound_from,
    race_of_graphs,
    slope_over_dispatches,
)
from overhead.decode.sections import batch_section, token_section
from overhead.reading.view import View
from overhead.results import Caller, Figure, Pattern, Record, Status
from overhead.words.decode import (
    bound,
    line_name,
    measured_with,
    remark,
    row_name,
    variant_name,
    variant_with_reads,
)
from overhead.words.names import CALLER_WORDS
from tests.fakes.report import fingerprint, record as base_record
from tests.report.report_page import numbers

TINY = "qwen2.5-tiny"
LEVELS = (89, 79, 73, 71, 67, 51, 32)
"""Dispatches of a token with 0 to 6 fusions."""


def record(
    pattern: Pattern,
    ms: float | None,
    stack: str = "dawn",
    caller: Caller = "native",
    dispatches: int = 0,
    **params: Any,
) -> Record:
    """A case that decodes a token in so many ms; None: its times bend."""
    if ms is None:
        status: Status = "nonlinear"
        figures = [Figure(name="complete", status="nonlinear", reason="T(n) bends")]
    else:
        status = "ok"
        figures = [time("complete", ms), time("issue", ms / 2), time("device_busy", ms / 4)]
    made = base_record(
        stack,
        pattern,
        None,
        caller=caller,
        adapter="Fake GPU",
        unit="token",
        status=status,
        params=params,
        more=tuple(figures),
    )
    window = {"dispatches": dispatches} if dispatches else {}
    return msgspec.structs.replace(made, workload=TINY, window=window, bound="")


def time(name: str, ms: float) -> Figure:
    """A time with an interval of 1 % to both sides."""
    ns = ms * 1e6
    return Figure(name=name, value=ns, low=ns * 0.99, high=ns * 1.01)


def level(fusions: int, padding: int = 0) -> Record:
    """A token costs 1 ms, and 10 us for each dispatch."""
    count = LEVELS[fusions] + padding
    more: dict[str, Any] = {"padding": padding} if padding else {}
    return record("per-pass", 1 + 0.01 * count, dispatches=count, fusions=fusions, **more)


def view(*records: Record) -> View:
    return View(fingerprint(*records))


def text_of(row: Sequence[str | Cell]) -> list[str]:
    return [cell_text(cell) for cell in row]


def rows_of(table: Any) -> list[list[str]]:
    """The texts of the cells of each row."""
    assert isinstance(table, Table)
    return [text_of(row) for row in table.rows]


def tables_of(parts: Iterable[Part]) -> list[Table]:
    """The tables among the parts, also those that stand below a drawing."""
    tables = []
    for part in parts:
        table = part.table if isinstance(part, Drawing) else part
        if isinstance(table, Table):
            tables.append(table)
    return tables


def token_table(run: View) -> list[list[str]]:
    """The table of the section on tokens."""
    (table,) = tables_of(token_section(run))
    return rows_of(table)


def token_drawings(run: View) -> list[Drawing]:
    return [part for part in token_section(run) if isinstance(part, Drawing)]


def batch_table(run: View) -> list[list[str]]:
    """The table of the section on batches."""
    (table,) = tables_of(batch_section(run))
    return rows_of(table)


def answers(run: View) -> list[str]:
    """What the section on tokens opens with."""
    first = next(iter(token_section(run)))
    assert isinstance(first, Text)
    assert first.lead
    return list(first.paragraphs)


def swept(run: View) -> list[MeasuredVariant]:
    """The variants of a run with several batches, in the order of the table of batches."""
    (found,) = decoder_results(run)
    variants: list[MeasuredVariant] = []
    for sweep in found.sweeps:
        variants += sweep
    return variants


def test_every_way_to_decode_has_a_row_with_times_dispatches_and_tokens_a_second() -> None:
    bent = record("per-submit", None, caller="binding", dispatches=89, fusions=0)
    eager = record("per-submit", 20.0, stack="torch", caller="binding")
    run = view(level(0), bent, eager)
    rows = token_table(run)
    (found,) = decoder_results(run)
    assert [row[1] for row in rows] == [variant_name(variant) for variant in found.variants]
    assert len({row[1] for row in rows}) == 3
    assert [variant.is_lowered for variant in found.variants] == [True, True, False]
    # The columns: variant, dispatches, ms a token with its interval, tokens a second, remark.
    of_level, of_bent, of_eager = rows
    assert of_level[2] == "89"
    assert numbers(of_level[3]) == ["1.89", "1.87", "1.91"], "1 ms and 10 us a dispatch; 1 %"
    assert numbers(of_level[6])[0] == "529", "1,000 / 1.89"
    assert of_bent[7] == remark(found.variants[1])
    assert "T(n) bends" in of_bent[7]
    assert numbers(of_eager[6])[0] == "50.0", "1,000 / 20"


def test_a_browsers_row_of_decoding_is_called_from_javascript() -> None:
    given = [
        record("per-pass", 3.0, "chromium", "browser", dispatches=89, fusions=0),
        record("per-submit", 9.0, "firefox", "browser", dispatches=32, fusions=6),
    ]
    run = view(*given)
    (found,) = decoder_results(run)
    assert [variant.record.caller for variant in found.variants] == ["browser", "browser"]
    names = [variant_name(variant) for variant in found.variants]
    assert [row[1] for row in token_table(run)] == names
    assert all(CALLER_WORDS["browser"] in name for name in names)


def test_the_cost_of_an_added_dispatch_in_a_decoder_is_fitted_with_its_intercept() -> None:
    # A token of the fake costs 1 ms, and 10 us for each dispatch.
    unpadded = level(fusions=0)
    padded = [level(fusions=0, padding=count) for count in (100, 200, 400)]
    shown = view(unpadded, *padded)
    (found,) = decoder_results(shown)
    line = slope_over_dispatches(found.padded[0])
    assert line is not None
    assert line.slope.value == pytest.approx(10_000), "ns a dispatch"
    assert line.intercept.value == pytest.approx(1e6), "ns a token"
    assert line.slope.low is not None
    assert line.slope.low < 10_000
    (two,) = decoder_results(view(unpadded, padded[0]))
    assert slope_over_dispatches(two.padded[0]) is None, "two numbers of dispatches give no line"


def labels(drawing: Drawing) -> list[str]:
    """The labels of the rows of a drawing, from top to bottom."""
    found: list[str] = []
    for ax in drawing.draw().axes:
        found += [label.get_text() for label in ax.get_yticklabels()]
    return found


@pytest.mark.needs("matplotlib", "seaborn")
def test_every_variant_that_decodes_a_token_is_drawn_the_cheapest_first() -> None:
    launched = record("per-submit", 2.0, "cuda-driver", "binding", dispatches=89, fusions=0)
    fused = record("per-submit", 1.0, "cuda-driver", "binding", dispatches=32, fusions=6)
    eager = record("per-submit", 20.0, stack="torch", caller="binding")
    bent = record("per-submit", None, caller="binding", dispatches=89, fusions=0)
    run = view(eager, level(0), level(3), level(6), launched, fused, bent)
    (drawing,) = token_drawings(run)
    (found,) = decoder_results(run)
    names = {row_name(variant) for variant in found.variants if variant.complete is not None}
    drawn = labels(drawing)
    assert set(drawn) == names
    assert len(drawn) == 3, "fused and unfused, with some fusions between, are one row"
    # From Python: 1 ms and 20 ms; from compiled code there is one row.
    by_name = {row_name(variant): variant.record.stack for variant in found.variants}
    assert [by_name[name] for name in drawn] == ["cuda-driver", "torch", "dawn"]


def test_the_page_says_the_cheapest_token_and_what_the_intervals_do_not_tell_apart() -> None:
    clear = view(level(6), record("per-submit", 9.0, "cuda-driver", "binding", fusions=6))
    assert numbers(answers(clear)[0])[1:4] == ["1.32", "1.31", "1.33"], "1 ms and 32 dispatches"
    (found,) = decoder_results(clear)
    assert [variant.record.stack for variant in cheapest_variants(found)] == ["dawn"]
    alike = view(level(6), record("per-submit", 1.33, "cuda-driver", "binding", fusions=6))
    (found,) = decoder_results(alike)
    assert len(cheapest_variants(found)) == 2
    assert {"1.32", "1.33"} <= set(numbers(answers(alike)[0]))


def test_the_page_says_from_which_batch_a_librarys_graph_beats_the_fused_graph() -> None:
    records = []
    for batch, recorded_ms, fused_ms in [(1, 3.0, 1.0), (4, 3.5, 2.5), (16, 5.0, 5.0), (64, 6, 30)]:
        more = {"batch": batch} if batch > 1 else {}
        records += [
            record("launches", recorded_ms, "cuda-graph", "binding", maker="torch", **more),
            record("replay", fused_ms, "cuda-graph", "binding", maker="driver", fusions=6, **more),
        ]
    (found,) = decoder_results(view(*records))
    graphs = race_of_graphs(found)
    assert graphs is not None
    assert graphs.overtaken_at == 3, "at 64; at 16 the intervals overlap"
    assert graphs.fused_is_faster_at == 1, "at 4"
    (found,) = decoder_results(view(*records[:6]))
    graphs = race_of_graphs(found)
    assert graphs is not None
    assert graphs.overtaken_at is None


def test_the_page_says_what_its_tokens_were_measured_with() -> None:
    (found,) = decoder_results(steps_of_batches())
    batches = {variant.batch for sweep in found.sweeps for variant in sweep}
    said = measured_with(found)
    shown = [part for part in token_section(steps_of_batches()) if isinstance(part, Text)]
    assert any(said in part.paragraphs and not part.folded for part in shown)
    assert numbers(said)[-2:] == [str(min(batches)), str(max(batches))]


def test_the_page_says_from_which_batch_on_the_device_limits_each_step() -> None:
    (found,) = decoder_results(steps_of_batches())
    assert [device_bound_from(sweep) for sweep in found.sweeps] == [None, 1, 16]


def test_cases_that_read_tokens_back_say_so_and_have_no_rate_where_a_prompt_comes_first() -> None:
    first = record("read-each", 12.0, caller="binding", fusions=6, readback="token", tokens=5)
    run = view(level(0), level(6), first)
    (found,) = decoder_results(run)
    (variant,) = found.reads
    name = variant_with_reads(variant)
    assert name != variant_name(variant)
    assert numbers(name) == ["4", "5"], "bytes, tokens of the prompt"
    (row,) = [row for row in token_table(run) if row[1] == name]
    tokens_a_second = row[6]
    assert tokens_a_second == ""


def of_one_process(found: Record) -> Record:
    """The same record as one process measures it: without intervals."""
    figures = []
    for figure in found.figures:
        figures.append(
            msgspec.structs.replace(figure, low=None, high=None, processes=1, status="noisy")
        )
    return msgspec.structs.replace(found, figures=figures, status="noisy")


def step(
    batch: int,
    device_ms: float | None,
    stack: str,
    pattern: Pattern,
    bound: Any = "",
    **params: Any,
) -> Record:
    """A step that the host issues in 2 ms. ``device_ms``: None where the device has no time."""
    step_ms = max(2.0, device_ms or 0)
    if batch > 1:
        params["batch"] = batch
    made = record(pattern, step_ms, stack=stack, caller="binding", **params)
    figures = [time("complete", step_ms), time("issue", 2.0)]
    if device_ms is not None:
        figures.append(time("device_busy", device_ms))
    return msgspec.structs.replace(made, figures=figures, bound=bound)


def eager_step(batch: int) -> Record:
    """PyTorch issues operations one by one: the host is the limit."""
    return step(batch, None, "torch", "per-submit", "host")


def graph_step(batch: int) -> Record:
    """A CUDA graph, in which the device needs 1 ms more for each sequence."""
    return step(batch, 3.0 + batch, "cuda-graph", "launches", maker="torch")


def dawn_step(batch: int) -> Record:
    """Dawn, in which the device needs 0.2 ms for each sequence."""
    return step(batch, 0.2 * batch, "dawn", "per-pass", fusions=6)


def steps_of_batches() -> View:
    """A run with three variants and four batches."""
    records = []
    for make_step in (eager_step, graph_step, dawn_step):
        records += [make_step(batch) for batch in (1, 4, 16, 64)]
    return view(*records)


def test_the_table_of_batches_has_a_row_for_each_batch_of_each_variant() -> None:
    rows = batch_table(steps_of_batches())
    batches = [row[2] for row in rows]
    assert batches == ["1", "4", "16", "64"] * 3
    tokens_a_second = rows[10][6]
    assert tokens_a_second.startswith("5,000")  # 16 tokens in 3.2 ms


def test_the_table_of_batches_says_from_which_batch_the_device_is_the_limit() -> None:
    run = steps_of_batches()
    variants = swept(run)
    eager = [False, False, False, False]
    graph = [True, True, True, True]
    dawn = [False, False, True, True]
    assert [variant.is_device_bound for variant in variants] == [*eager, *graph, *dawn]
    limits = [row[7] for row in batch_table(run)]
    assert limits == [bound(variant) for variant in variants]
    assert len(set(limits)) == 2


def test_a_run_with_batches_has_no_levels_and_one_without_has_no_section_of_them() -> None:
    (found,) = decoder_results(steps_of_batches())
    assert [variant.batch for variant in found.variants] == [1, 1, 1]
    assert found.levels == ()
    assert list(batch_section(view(level(0), level(6)))) == []
    assert list(token_section(view())) == []


@dataclasses.dataclass(frozen=True)
class Limit:
    """Whether the device limits a step: None where that is not known."""

    is_device_bound: bool | None
    lacks_intervals: bool


NOT_RESOLVED = Limit(None, lacks_intervals=True)
BY_DEVICE = Limit(is_device_bound=True, lacks_intervals=False)
BY_BOTH = Limit(is_device_bound=False, lacks_intervals=False)
WITHOUT_DEVICE = Limit(None, lacks_intervals=False)


def limits_of(run: View) -> list[Limit]:
    """What the facts say of each step; the table must say the same."""
    variants = swept(run)
    assert [row[7] for row in batch_table(run)] == [bound(variant) for variant in variants]
    return [Limit(variant.is_device_bound, variant.lacks_intervals) for variant in variants]


def graph_bound_step(batch: int) -> Record:
    return step(batch, 3.0 + batch, "cuda-graph", "launches", "device", maker="torch")


def test_without_intervals_the_limit_of_a_step_is_not_resolved() -> None:
    eager = [of_one_process(eager_step(1)), of_one_process(eager_step(4))]
    graph = [graph_bound_step(1), of_one_process(graph_bound_step(4)), graph_bound_step(16)]
    dawn = [dawn_step(1), of_one_process(dawn_step(4))]
    numpy = [msgspec.structs.replace(one, api="CPU", stack="numpy") for one in eager]
    assert limits_of(view(*eager, *graph, *dawn, *numpy)) == [
        *[NOT_RESOLVED, NOT_RESOLVED],  # eager: no step has intervals
        *[BY_DEVICE, NOT_RESOLVED, BY_DEVICE],  # graph: the second step has none
        *[BY_BOTH, NOT_RESOLVED],  # dawn: the second has none
        *[WITHOUT_DEVICE, WITHOUT_DEVICE],  # numpy has no device, with or without intervals
    ]


def with_figure(found: Record, name: str, **changes: Any) -> Record:
    """The record with another figure of that name."""
    figures = []
    for figure in found.figures:
        is_changed = figure.name == name
        figures.append(msgspec.structs.replace(figure, **changes) if is_changed else figure)
    return msgspec.structs.replace(found, figures=figures)


def test_a_host_time_whose_interval_holds_zero_and_the_device_time_is_not_resolved() -> None:
    # A host time of 2 ms with an interval from -4 to 8 ms: above or below the device time of the
    # short step, and below that of the long one.
    short = step(4, 3.0, "dawn", "per-pass", fusions=6)
    long = step(16, 9.0, "dawn", "per-pass", fusions=6)
    run = view(
        with_figure(short, "issue", low=-4e6, high=8e6),
        with_figure(long, "issue", low=-4e6, high=8e6),
    )
    assert limits_of(run) == [NOT_RESOLVED, BY_DEVICE]
    host_time = batch_table(run)[0][4]
    assert numbers(host_time) == ["8.0"], "at most"


def test_a_host_time_below_the_resolution_counts_as_less_than_the_device_time() -> None:
    clear, tiny = (step(batch, 3.0, "cuda-graph", "launches", maker="torch") for batch in (1, 4))
    tiny = with_figure(tiny, "issue", value=None, low=None, high=None, status="below-resolution")
    bounds = [limit.is_device_bound for limit in limits_of(view(clear, tiny))]
    assert bounds == [True, True]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        pytest.param(5e6, 37e6, "not-resolved", id="the interval holds the 17 ms of the token"),
        pytest.param(20e6, 22e6, "exceeds", id="all of the interval is above the token"),
    ],
)
def test_a_device_time_above_its_token_is_remarked(low: float, high: float, expected: str) -> None:
    eager = record("per-submit", 17.0, stack="torch", caller="binding")
    doubtful = with_figure(eager, "device_busy", value=21e6, low=low, high=high)
    run = view(doubtful, record("launches", 2.0, "cuda-graph", maker="torch"))
    (found,) = decoder_results(run)
    assert [variant.device_doubt for variant in found.variants] == [expected, ""]
    rows = token_table(run)
    remarks = [row[-1] for row in rows]
    assert remarks == [remark(variant) for variant in found.variants]
    of_doubtful, of_clear = remarks
    assert of_doubtful
    assert not of_clear
    if expected == "not-resolved":
        assert numbers(rows[0][5]) == [], "a time that cannot be right is no number of the table"


def test_a_device_time_that_is_as_long_as_its_token_within_narrow_intervals_is_no_doubt() -> None:
    step = record("launches", 2.0, "cuda-graph", maker="torch")
    busy = with_figure(step, "device_busy", value=2.01e6, low=1.99e6, high=2.03e6)
    (found,) = decoder_results(view(busy, record("per-submit", 17.0, stack="torch")))
    assert [variant.device_doubt for variant in found.variants] == ["", ""]


@pytest.mark.needs("matplotlib", "seaborn")
def test_the_batches_are_one_panel_with_a_labelled_line_for_each_variant() -> None:
    run = steps_of_batches()
    (found,) = decoder_results(run)
    (drawing,) = [part for part in batch_section(run) if isinstance(part, Drawing)]
    (ax,) = drawing.draw().axes
    names = {line_name(sweep[0]) for sweep in found.sweeps}
    assert {text.get_text() for text in ax.texts} == names
    assert drawing.draw_narrow is not None
    (legend,) = drawing.draw_narrow().legends
    assert {text.get_text() for text in legend.get_texts()} == names


@pytest.mark.needs("matplotlib", "seaborn")
def test_a_token_whose_interval_reaches_zero_is_drawn_without_a_value() -> None:
    eager = record("per-submit", 28.0, stack="torch", caller="binding")
    unclear = with_figure(eager, "complete", low=-50e6, high=110e6)
    run = view(level(0), level(6), unclear)
    (drawing,) = token_drawings(run)
    figure = drawing.draw()
    assert len(labels(drawing)) == 2
    texts: list[str] = []
    for ax in figure.axes:
        texts += [text.get_text() for text in ax.texts]
    assert any("110" in text for text in texts)
    assert "28" not in texts
    (found,) = decoder_results(run)
    assert [variant.record.stack for variant in cheapest_variants(found)] == ["dawn"]
