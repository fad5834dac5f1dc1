"""The row of the front page for decoded tokens."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.decode.sections import token_rows
from overhead.reading.graph_or_fused import ProgramWork, WorkRow, rows
from overhead.results import Record
from tests.fakes.report import fingerprint, record as step
from tests.report.test_decode_page import record, view


def model(name: str = "qwen2.5-0.5b") -> list[Record]:
    def one(pattern: Any, ms: float, stack: str, fusions: int | None, **params: Any) -> Record:
        lowered: dict[str, Any] = {} if fusions is None else {"fusions": fusions}
        dispatches = 0 if fusions is None else 252 if fusions else 881
        made = record(pattern, ms, stack, "binding", dispatches, **lowered, **params)
        return msgspec.structs.replace(made, workload=name)

    return [
        one("per-submit", 20.0, "torch", None),
        one("launches", 2.5, "cuda-graph", None, maker="torch"),
        one("launches", 2.0, "cuda-graph", 0, maker="driver"),
        one("launches", 1.2, "cuda-graph", 6, maker="driver"),
        one("per-pass", 1.7, "dawn", 6),
        one("per-pass", 3.0, "dawn", 0),
    ]


def test_the_row_of_a_token_stands_beside_the_drivers_graph_of_the_unfused_program() -> None:
    (row,) = token_rows(view(*model()))
    assert isinstance(row, WorkRow)
    assert row.work == ProgramWork("qwen2.5-0.5b", 881, 252)
    assert row.graph is not None
    assert row.graph.cost is not None
    assert row.graph.cost.value == 2e6
    assert [(way.stack, row.verdict(way)) for way in row.ways if way is not row.graph] == [
        ("torch", "dearer"),
        ("cuda-graph", "dearer"),
        ("cuda-graph", "cheaper"),
        ("dawn", "cheaper"),
    ]
    (dawn,) = row.of_kind("fused-wgsl")
    times = row.relative(dawn)
    assert times is not None
    assert times.value == pytest.approx(1.7 / 2.0)


def test_a_run_with_several_models_has_one_row_for_the_largest_and_a_run_without_any_none() -> None:
    works = [row.work for row in token_rows(view(*model(), *model("qwen2.5-1.5b")))]
    assert works == [ProgramWork("qwen2.5-1.5b", 881, 252)]
    assert list(token_rows(view(step()))) == []
    assert list(token_rows(view(*(r for r in model() if r.stack != "dawn")))) == []


def test_the_row_of_a_token_comes_from_another_run_which_it_names() -> None:
    (row,) = rows(view(step()), [view(*model())])
    assert row.run == fingerprint().created
