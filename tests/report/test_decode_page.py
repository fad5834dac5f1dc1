"""The page of decoded tokens: arms, fusion levels, reads, and the slope over added dispatches."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Cell, Drawing, Table, Text
from overhead.decode.reading import decoder_results, slope_over_dispatches
from overhead.decode.sections import batch_section, token_section
from overhead.reading.view import View
from overhead.results import Caller, Figure, Pattern, Record
from tests.fakes.report import fingerprint, record as base_record

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
        figures = [Figure(name=n, value=v * 1e6, low=v * 0.99e6, high=v * 1.01e6) for n, v in names.items()]
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
    (table, *_) = [part for part in token_section(view(level(0), bent, eager)) if isinstance(part, Table)]
    rows = [text_of(row) for row in table.rows]
    assert rows[0][1:3] == ["unfused, one pass a token, from compiled code", "89"]
    assert rows[0][3].startswith("1.89 (1.87 to 1.91)")
    assert rows[0][6].startswith("529")
    assert rows[1][1] == "unfused, a submission a dispatch, from Python"
    assert rows[1][7] == "nonlinear: T(n) bends"
    assert rows[2][1] == "eager"
    assert rows[2][6].startswith("50.0")


def test_a_browsers_row_of_decoding_is_called_from_javascript() -> None:
    given = [
        record("per-pass", 3.0, "chromium", "browser", 89, fusions=0),
        record("per-submit", 9.0, "firefox", "browser", 32, fusions=6),
    ]
    (table, *_) = [part for part in token_section(view(*given)) if isinstance(part, Table)]
    assert [text_of(row)[1] for row in table.rows] == [
        "unfused, one pass a token, from JavaScript",
        "fused, a submission a dispatch, from JavaScript",
    ]


def test_the_table_of_fusion_levels_names_each_fusion_with_its_change_and_gain() -> None:
    parts = list(token_section(view(*(level(fusions) for fusions in range(7)))))
    table = next(part for part in parts if isinstance(part, Table) and "fusions" in part.caption)
    rows = [text_of(row) for row in table.rows]
    assert [row[2] for row in rows] == [
        "unfused",
        "+ rms_norm",
        "+ mlp",
        "+ k_and_v",
        "+ residual_norm",
        "+ rotary",
        "+ attention",
    ]
    assert [row[4] for row in rows] == ["", "-10", "-6", "-2", "-4", "-16", "-19"]
    assert rows[1][6].startswith("1.06")


def test_each_way_to_run_the_decoder_has_rows_of_its_own() -> None:
    bent = record("per-submit", None, caller="binding", dispatches=89, fusions=0)
    fused = record("per-submit", 2.0, caller="binding", dispatches=32, fusions=6)
    parts = [part for part in token_section(view(level(0), level(6), bent, fused)) if isinstance(part, Table)]
    (table,) = [part for part in parts if "fusions" in part.caption]
    rows = [text_of(row)[1:] for row in table.rows]
    assert [row[:3] for row in rows[:2]] == [
        ["one pass a token, from compiled code", "unfused", "89"],
        ["one pass a token, from compiled code", "with 6 fusions", "32"],
    ]
    assert rows[1][5].startswith("1.43")
    assert [row[6:] for row in rows[1:]] == [["host or both", ""], ["", "nonlinear: T(n) bends"], ["host or both", ""]]
    assert rows[3][4:6] == ["2.00 (1.98 to 2.02)", ""]


def test_the_cost_of_an_added_dispatch_in_a_decoder_is_fitted_with_its_intercept() -> None:
    shown = view(level(0), level(0, 100), level(0, 200), level(0, 400))
    (found,) = decoder_results(shown)
    line = slope_over_dispatches(found.padded[0])
    assert line is not None
    assert line.slope.value == pytest.approx(10_000)
    assert line.intercept.value == pytest.approx(1e6)
    assert line.slope.low is not None
    assert line.slope.low < 10_000
    (text,) = [p for part in token_section(shown) if isinstance(part, Text) for p in part.paragraphs if "trivial" in p]
    assert "10.0" in text


def in_language(name: str, ms: float, stack: str, pattern: Pattern, fusions: int) -> Record:
    """All kernels of the program take ``ms`` on the device."""
    made = record(pattern, 4 * ms, stack, "binding", LEVELS[fusions], fusions=fusions)
    made.window["language"] = name
    return made


def test_the_kernels_of_each_program_are_compared_in_one_table() -> None:
    torch = record("launches", 8.0, stack="cuda-graph", caller="binding", maker="torch")
    cuda = [in_language("cuda", ms, "cuda-graph", "launches", fusions) for fusions, ms in ((0, 2.0), (6, 1.0))]
    wgsl = [in_language("wgsl", ms, "dawn", "per-pass", fusions) for fusions, ms in ((0, 2.5), (6, 3.1), (1, 1.5))]
    slower = in_language("wgsl", 9.0, "wgpu-native", "per-pass", 6)
    parts = list(token_section(view(torch, *cuda, *wgsl, slower)))
    (table,) = [part for part in parts if isinstance(part, Table) and "kernels" in part.caption]
    rows = [[cell.partition(" (")[0] for cell in text_of(row)] for row in table.rows]
    assert rows == [
        ["unfused", "2.00", "2.50", "1.25×", "1.00×", "1.25×"],
        ["1 fusion", "", "1.50", "", "", "0.750×"],
        ["fused", "1.00", "3.10", "3.10×", "0.500×", "1.55×"],
    ]
    ((said,),) = [part.paragraphs for part in parts if isinstance(part, Text) and "WGSL and" in part.paragraphs[0]]
    assert " fused, so" in said


def test_kernels_of_one_program_alone_have_no_table() -> None:
    parts = token_section(view(in_language("wgsl", 2.0, "dawn", "per-pass", 0)))
    assert not [part for part in parts if isinstance(part, Table) and "kernels" in part.caption]


def of_one_process(found: Record) -> Record:
    figures = [msgspec.structs.replace(f, low=None, high=None, processes=1, status="noisy") for f in found.figures]
    return msgspec.structs.replace(found, figures=figures, status="noisy")


def test_a_sentence_counts_the_ways_to_decode_that_ran_in_one_process_only() -> None:
    parts = list(token_section(view(of_one_process(level(0)), of_one_process(level(3)), level(6))))
    assert isinstance(parts[0], Text)
    assert parts[0].paragraphs[1].startswith("2 of 3 arms ran in one process only")
    (table, *_) = [part for part in parts if isinstance(part, Table)]
    assert [text_of(row)[-1] for row in table.rows] == ["", "", ""]


def step(batch: int, device_ms: float | None, stack: str, pattern: Pattern, bound: Any = "", **params: Any) -> Record:
    """A step that the host issues in 2 ms."""
    more = {"batch": batch} if batch > 1 else {}
    made = record(pattern, max(2.0, device_ms or 0), stack=stack, caller="binding", **params, **more)
    times = {"complete": made.value("complete"), "issue": 2e6}
    times |= {} if device_ms is None else {"device_busy": device_ms * 1e6}
    figures = [Figure(name=n, value=v, low=v * 0.99, high=v * 1.01) for n, v in times.items() if v is not None]
    return msgspec.structs.replace(made, figures=figures, bound=bound)


def test_the_table_of_batches_says_from_which_batch_the_device_is_the_limit() -> None:
    eager = [step(batch, None, "torch", "per-submit", "host") for batch in (1, 4, 16, 64)]
    graph = [step(batch, 3.0 + batch, "cuda-graph", "launches", maker="torch") for batch in (1, 4, 16, 64)]
    dawn = [step(batch, 0.2 * batch, "dawn", "per-pass", fusions=6) for batch in (1, 4, 16, 64)]
    shown = view(*eager, *graph, *dawn)
    _, drawing, table = batch_section(shown)
    assert isinstance(drawing, Drawing)
    assert isinstance(table, Table)
    rows = [text_of(row)[2:] for row in table.rows]
    assert [row[0] for row in rows] == ["1", "4", "16", "64"] * 3
    assert rows[10][4].startswith("5,000")  # 16 tokens in 3.2 ms
    assert [row[5] for row in rows] == [*["host or both"] * 4, *["device"] * 4, *["host or both"] * 2, *["device"] * 2]
    (found,) = decoder_results(shown)
    assert [arm.batch for arm in found.arms] == [1, 1, 1]
    assert found.levels == ()


def test_without_intervals_the_limit_of_a_step_is_not_resolved() -> None:
    eager = [of_one_process(step(batch, None, "torch", "per-submit", "host")) for batch in (1, 4)]
    graph = [step(batch, 3.0 + batch, "cuda-graph", "launches", "device", maker="torch") for batch in (1, 4, 16)]
    graph[1] = of_one_process(graph[1])
    dawn = [step(batch, 0.2 * batch, "dawn", "per-pass", fusions=6) for batch in (1, 4)]
    dawn[1] = of_one_process(dawn[1])
    numpy = [msgspec.structs.replace(one, api="CPU", stack="numpy") for one in eager]
    _, _, table = batch_section(view(*eager, *graph, *dawn, *numpy))
    assert isinstance(table, Table)
    assert [text_of(row)[7] for row in table.rows] == [
        "not resolved",
        "not resolved",
        "device",
        "not resolved",
        "device",
        "host or both",
        "not resolved",
        "",
        "",
    ]


def with_issue(found: Record, **changes: Any) -> Record:
    figures = [msgspec.structs.replace(f, **changes) if f.name == "issue" else f for f in found.figures]
    return msgspec.structs.replace(found, figures=figures)


def test_a_host_time_whose_interval_holds_zero_and_the_device_time_is_not_resolved() -> None:
    wide = with_issue(step(4, 3.0, "dawn", "per-pass", fusions=6), low=-4e6, high=8e6)
    narrow = with_issue(step(16, 9.0, "dawn", "per-pass", fusions=6), low=-4e6, high=8e6)
    _, _, table = batch_section(view(wide, narrow))
    assert isinstance(table, Table)
    assert [text_of(row)[7] for row in table.rows] == ["not resolved", "device"]
    assert text_of(table.rows[0])[4] == "2.0 (at most 8.0)"


def test_a_host_time_below_the_resolution_counts_as_less_than_the_device_time() -> None:
    graph = [step(batch, 3.0, "cuda-graph", "launches", maker="torch") for batch in (1, 4)]
    graph[1] = with_issue(graph[1], value=None, low=None, high=None, status="below-resolution")
    _, _, table = batch_section(view(*graph))
    assert isinstance(table, Table)
    assert [text_of(row)[7] for row in table.rows] == ["device", "device"]


def test_a_single_batch_size_has_no_section_of_batches() -> None:
    assert list(batch_section(view(level(0), level(6)))) == []


def test_two_numbers_of_dispatches_give_no_cost_of_an_added_dispatch() -> None:
    (found,) = decoder_results(view(level(0), level(0, 100)))
    assert slope_over_dispatches(found.padded[0]) is None


def test_a_cost_of_an_added_dispatch_whose_interval_holds_zero_is_not_shown() -> None:
    first = record("per-pass", 2.0, dispatches=89, fusions=0)
    equal = [first, *(record("per-pass", 2.0, dispatches=89 + n, fusions=0, padding=n) for n in (100, 200))]
    parts = [part for part in token_section(view(*equal)) if isinstance(part, Text)]
    (text,) = [sentence for part in parts for sentence in part.paragraphs if "trivial" in sentence]
    assert "trivial dependent dispatch adds to an unfused token is not resolved" in text


def test_cases_that_read_tokens_back_have_a_table_of_their_own() -> None:
    first = record("read-each", 12.0, caller="binding", fusions=6, readback="token", tokens=5)
    parts = token_section(view(level(6), first))
    table = next(part for part in parts if isinstance(part, Table) and "read" in part.caption)
    assert text_of(table.rows[0])[1:3] == ["the first token of a prompt of 5, as 5 decode steps", "4 bytes"]


def test_a_run_without_decoded_tokens_has_no_page_of_tokens() -> None:
    assert list(token_section(view())) == []
