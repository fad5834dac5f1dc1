"""The row of the front page for decoded tokens."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from overhead.blocks.parts import Cell, Table
from overhead.decode.sections import token_row
from overhead.results import Figure, Record
from tests.fakes.report import fingerprint, record as step
from tests.report.report_page import Page
from tests.report.test_decode_page import TINY, level, record, text_of, view


def test_the_summary_of_tokens_has_the_fastest_unfused_and_fused_way_with_the_share_of_the_host() -> None:
    slow = record("per-submit", 5.0, caller="binding", dispatches=32, fusions=6)
    bent = record("per-pass", None, stack="wgpu-native", dispatches=32, fusions=6)
    (table,) = token_row(view(level(0), level(3), level(6), slow, bent, level(0, 100)))
    assert isinstance(table, Table)
    ((model, unfused, by, share, fused, *_),) = table.rows
    assert isinstance(model, Cell)
    assert (model.text, model.path) == (TINY, "pages/decode.html")
    assert str(unfused).startswith("1.89 (")
    assert text_of([by])[0].endswith("one pass a token, from compiled code")
    assert str(share).startswith("50.0 %")
    assert str(fused).startswith("1.32 (")


def test_a_host_time_below_the_resolution_has_a_share_too_small_to_measure() -> None:
    whole = level(6)
    figures = [f if f.name != "issue" else Figure(name="issue", status="below-resolution") for f in whole.figures]
    fused = msgspec.structs.replace(whole, figures=figures)
    (table,) = token_row(view(fused))
    assert isinstance(table, Table)
    assert text_of(table.rows[0])[6] == "too small to measure"


def of_model(name: str, fusions: int) -> Record:
    return msgspec.structs.replace(level(fusions), workload=name)


@pytest.mark.parametrize(
    ("models", "shown"),
    [
        ([(TINY, 0), (TINY, 6), ("qwen2.5-0.5b", 0)], "qwen2.5-0.5b"),
        ([("qwen2.5-0.5b", 0), ("qwen2.5-0.5b", 6), ("qwen2.5-1.5b", 0), ("qwen2.5-1.5b", 6)], "qwen2.5-0.5b"),
        ([("qwen2.5-0.5b", 0), ("qwen2.5-1.5b", 0), ("qwen2.5-1.5b", 6)], "qwen2.5-1.5b"),
    ],
)
def test_the_summary_of_tokens_shows_one_model_and_prefers_a_large_one_with_both_programs(
    models: list[tuple[str, int]], shown: str
) -> None:
    (table,) = token_row(view(*(of_model(*model) for model in models)))
    assert isinstance(table, Table)
    assert [text_of(row)[0] for row in table.rows] == [shown]


def test_the_cells_of_the_fused_program_are_empty_if_only_the_unfused_one_was_measured() -> None:
    (table,) = token_row(view(level(0)))
    assert isinstance(table, Table)
    assert text_of(table.rows[0])[4:] == ["", "", ""]


def test_a_run_without_the_time_of_a_token_has_no_summary_of_tokens() -> None:
    assert list(token_row(view(step()))) == []
    assert list(token_row(view(record("per-pass", None, dispatches=89, fusions=0)))) == []


@pytest.mark.needs("matplotlib", "seaborn", "jinja2")
def test_the_front_page_links_to_the_page_of_tokens(tmp_path: Path) -> None:
    from overhead.report import render

    front = Page(render([fingerprint(step(), level(0), level(6))], tmp_path).read_text(encoding="utf-8"))
    assert "pages/decode.html" in front.links
    assert "a-token" in front.ids
    assert (tmp_path / "pages" / "decode.html").exists()
