"""The page of decoded tokens: variants, fusion levels, reads, the slope over added dispatches."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Table
from overhead.decode.reading import decoder_results, slope_over_dispatches
from overhead.decode.sections import batch_section, token_section
from overhead.reading.view import View
from overhead.results import Caller, Figure, Pattern, Record
from overhead.words.decode import bound, remark, variant_name, variant_with_reads
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
    figures = [Figure(name="complete", status="nonlinear", reason="T(n) bends")]
    if ms is not None:
        names = {"complete": ms, "issue": ms / 2, "device_busy": ms / 4}
        figures = [
            Figure(name=n, value=v * 1e6, low=v * 0.99e6, high=v * 1.01e6) for n, v in names.items()
        ]
    made = base_record(
        stack, pattern, None, caller=caller, adapter="Fake GPU", unit="token",
        status="ok" if ms is not None else "nonlinear", params=params, more=tuple(figures),
    )  # fmt: skip
    return msgspec.structs.replace(
        made, workload=TINY, window={"dispatches": dispatches} if dispatches else {}, bound=""
    )


def level(fusions: int, padding: int = 0) -> Record:
    """A token costs 1 ms, and 10 us for each dispatch."""
    count = LEVELS[fusions] + padding
    more: dict[str, Any] = {"padding": padding} if padding else {}
    return record("per-pass", 1 + 0.01 * count, dispatches=count, fusions=fusions, **more)


def view(*records: Record) -> View:
    return View(fingerprint(*records))


def text_of(row: Any) -> list[str]:
    return [cell.text if isinstance(cell, Cell) else cell for cell in row]


def test_every_way_to_decode_has_a_row_with_times_dispatches_and_tokens_a_second() -> None:
    bent = record("per-submit", None, caller="binding", dispatches=89, fusions=0)
    eager = record("per-submit", 20.0, stack="torch", caller="binding")
    run = view(level(0), bent, eager)
    (table, *_) = [part for part in token_section(run) if isinstance(part, Table)]
    rows = [text_of(row) for row in table.rows]
    (found,) = decoder_results(run)
    assert [row[1] for row in rows] == [variant_name(variant) for variant in found.variants]
    assert len({row[1] for row in rows}) == 3
    assert [variant.is_lowered for variant in found.variants] == [True, True, False]
    assert rows[0][2] == "89"
    assert numbers(rows[0][3]) == ["1.89", "1.87", "1.91"]
    assert numbers(rows[0][6])[0] == "529"
    assert rows[1][7] == remark(found.variants[1])
    assert "T(n) bends" in rows[1][7]
    assert numbers(rows[2][6])[0] == "50.0"


def test_a_browsers_row_of_decoding_is_called_from_javascript() -> None:
    given = [
        record("per-pass", 3.0, "chromium", "browser", 89, fusions=0),
        record("per-submit", 9.0, "firefox", "browser", 32, fusions=6),
    ]
    run = view(*given)
    (table, *_) = [part for part in token_section(run) if isinstance(part, Table)]
    (found,) = decoder_results(run)
    assert [variant.record.caller for variant in found.variants] == ["browser", "browser"]
    names = [variant_name(variant) for variant in found.variants]
    assert [text_of(row)[1] for row in table.rows] == names
    assert all(CALLER_WORDS["browser"] in name for name in names)


def test_the_cost_of_an_added_dispatch_in_a_decoder_is_fitted_with_its_intercept() -> None:
    shown = view(level(0), level(0, 100), level(0, 200), level(0, 400))
    (found,) = decoder_results(shown)
    line = slope_over_dispatches(found.padded[0])
    assert line is not None
    assert line.slope.value == pytest.approx(10_000)
    assert line.intercept.value == pytest.approx(1e6)
    assert line.slope.low is not None
    assert line.slope.low < 10_000
    (two,) = decoder_results(view(level(0), level(0, 100)))
    assert slope_over_dispatches(two.padded[0]) is None, "two numbers of dispatches give no line"


def test_a_token_is_drawn_unfused_and_fused_for_each_way_that_has_both() -> None:
    fused = record("per-submit", 2.0, caller="binding", dispatches=32, fusions=6)
    drawn = [
        part
        for part in token_section(view(level(0), level(3), level(6), fused))
        if isinstance(part, Drawing)
    ]
    assert len(drawn) == 1
    assert "1.43" in drawn[0].alt
    assert not [part for part in token_section(view(level(6), fused)) if isinstance(part, Drawing)]


def test_cases_that_read_tokens_back_say_so_and_have_no_rate_where_a_prompt_comes_first() -> None:
    first = record("read-each", 12.0, caller="binding", fusions=6, readback="token", tokens=5)
    table = next(
        part for part in token_section(view(level(0), level(6), first)) if isinstance(part, Table)
    )
    (found,) = decoder_results(view(level(0), level(6), first))
    (variant,) = found.reads
    assert variant_with_reads(variant) != variant_name(variant)
    assert numbers(variant_with_reads(variant)) == ["4", "5"], "bytes, tokens of the prompt"
    row = next(row for row in map(text_of, table.rows) if row[1] == variant_with_reads(variant))
    assert row[6] == ""


def of_one_process(found: Record) -> Record:
    figures = [
        msgspec.structs.replace(f, low=None, high=None, processes=1, status="noisy")
        for f in found.figures
    ]
    return msgspec.structs.replace(found, figures=figures, status="noisy")


def step(
    batch: int,
    device_ms: float | None,
    stack: str,
    pattern: Pattern,
    bound: Any = "",
    **params: Any,
) -> Record:
    """A step that the host issues in 2 ms."""
    more = {"batch": batch} if batch > 1 else {}
    made = record(
        pattern, max(2.0, device_ms or 0), stack=stack, caller="binding", **params, **more
    )
    times = {"complete": made.value("complete"), "issue": 2e6}
    times |= {} if device_ms is None else {"device_busy": device_ms * 1e6}
    figures = [
        Figure(name=n, value=v, low=v * 0.99, high=v * 1.01)
        for n, v in times.items()
        if v is not None
    ]
    return msgspec.structs.replace(made, figures=figures, bound=bound)


def test_the_table_of_batches_says_from_which_batch_the_device_is_the_limit() -> None:
    eager = [step(batch, None, "torch", "per-submit", "host") for batch in (1, 4, 16, 64)]
    graph = [
        step(batch, 3.0 + batch, "cuda-graph", "launches", maker="torch")
        for batch in (1, 4, 16, 64)
    ]
    dawn = [step(batch, 0.2 * batch, "dawn", "per-pass", fusions=6) for batch in (1, 4, 16, 64)]
    shown = view(*eager, *graph, *dawn)
    _, drawing, table = batch_section(shown)
    assert isinstance(drawing, Drawing)
    assert isinstance(table, Table)
    rows = [text_of(row)[2:] for row in table.rows]
    assert [row[0] for row in rows] == ["1", "4", "16", "64"] * 3
    assert rows[10][4].startswith("5,000")  # 16 tokens in 3.2 ms
    (found,) = decoder_results(shown)
    variants = [variant for sweep in found.sweeps for variant in sweep]
    assert [variant.is_device_bound for variant in variants] == [
        *[False] * 4,
        *[True] * 4,
        *[False] * 2,
        *[True] * 2,
    ]
    assert [row[5] for row in rows] == [bound(variant) for variant in variants]
    assert len({row[5] for row in rows}) == 2
    assert [variant.batch for variant in found.variants] == [1, 1, 1]
    assert found.levels == ()
    assert list(batch_section(view(level(0), level(6)))) == list(token_section(view())) == []


def test_without_intervals_the_limit_of_a_step_is_not_resolved() -> None:
    eager = [of_one_process(step(batch, None, "torch", "per-submit", "host")) for batch in (1, 4)]
    graph = [
        step(batch, 3.0 + batch, "cuda-graph", "launches", "device", maker="torch")
        for batch in (1, 4, 16)
    ]
    graph[1] = of_one_process(graph[1])
    dawn = [step(batch, 0.2 * batch, "dawn", "per-pass", fusions=6) for batch in (1, 4)]
    dawn[1] = of_one_process(dawn[1])
    numpy = [msgspec.structs.replace(one, api="CPU", stack="numpy") for one in eager]
    _, _, table = batch_section(view(*eager, *graph, *dawn, *numpy))
    assert isinstance(table, Table)
    limits = {
        "unresolved": (None, True),
        "device": (True, False),
        "both": (False, False),
        "no device": (None, False),
    }
    expected = [
        *(
            "unresolved",
            "unresolved",
            "device",
            "unresolved",
            "device",
            "both",
            "unresolved",
            "no device",
            "no device",
        ),
    ]
    (found,) = decoder_results(view(*eager, *graph, *dawn, *numpy))
    variants = [variant for sweep in found.sweeps for variant in sweep]
    assert [(variant.is_device_bound, variant.lacks_intervals) for variant in variants] == [
        limits[one] for one in expected
    ]
    assert [text_of(row)[7] for row in table.rows] == [bound(variant) for variant in variants]


def with_issue(found: Record, **changes: Any) -> Record:
    figures = [
        msgspec.structs.replace(f, **changes) if f.name == "issue" else f for f in found.figures
    ]
    return msgspec.structs.replace(found, figures=figures)


def test_a_host_time_whose_interval_holds_zero_and_the_device_time_is_not_resolved() -> None:
    wide = with_issue(step(4, 3.0, "dawn", "per-pass", fusions=6), low=-4e6, high=8e6)
    narrow = with_issue(step(16, 9.0, "dawn", "per-pass", fusions=6), low=-4e6, high=8e6)
    shown = view(wide, narrow)
    _, _, table = batch_section(shown)
    assert isinstance(table, Table)
    (found,) = decoder_results(shown)
    variants = [variant for sweep in found.sweeps for variant in sweep]
    assert [(variant.is_device_bound, variant.lacks_intervals) for variant in variants] == [
        (None, True),
        (True, False),
    ]
    assert [text_of(row)[7] for row in table.rows] == [bound(variant) for variant in variants]
    assert numbers(text_of(table.rows[0])[4]) == ["2.0", "8.0"]


def test_a_host_time_below_the_resolution_counts_as_less_than_the_device_time() -> None:
    graph = [step(batch, 3.0, "cuda-graph", "launches", maker="torch") for batch in (1, 4)]
    graph[1] = with_issue(graph[1], value=None, low=None, high=None, status="below-resolution")
    _, _, table = batch_section(view(*graph))
    assert isinstance(table, Table)
    (found,) = decoder_results(view(*graph))
    variants = [variant for sweep in found.sweeps for variant in sweep]
    assert [variant.is_device_bound for variant in variants] == [True, True]
    assert [text_of(row)[7] for row in table.rows] == [bound(variant) for variant in variants]


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(5e6, 37e6, "not-resolved"), (20e6, 22e6, "exceeds")]
)
def test_a_device_time_above_its_token_is_remarked(low: float, high: float, expected: str) -> None:
    eager = record("per-submit", 17.0, stack="torch", caller="binding")
    figures = [
        msgspec.structs.replace(f, value=21e6, low=low, high=high) if f.name == "device_busy" else f
        for f in eager.figures
    ]
    shown = view(
        msgspec.structs.replace(eager, figures=figures),
        record("launches", 2.0, "cuda-graph", maker="torch"),
    )
    tables = [part for part in token_section(shown) if isinstance(part, Table)]
    (found,) = decoder_results(shown)
    assert [variant.device_doubt for variant in found.variants] == [expected, ""]
    remarks = [text_of(row)[-1] for table in tables for row in table.rows]
    assert remarks == [remark(variant) for variant in found.variants]
    assert [bool(said) for said in remarks] == [True, False]
