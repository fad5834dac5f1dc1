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
    """The ways to decode a token of a model: PyTorch, CUDA graphs, and Dawn, unfused and fused."""
    unfused: dict[str, Any] = {"dispatches": 881, "fusions": 0}
    fused: dict[str, Any] = {"dispatches": 252, "fusions": 6}
    records = [
        record("per-submit", 20.0, "torch", "binding"),
        record("launches", 2.5, "cuda-graph", "binding", maker="torch"),
        record("launches", 2.0, "cuda-graph", "binding", maker="driver", **unfused),
        record("launches", 1.2, "cuda-graph", "binding", maker="driver", **fused),
        record("per-pass", 1.7, "dawn", "binding", **fused),
        record("per-pass", 3.0, "dawn", "binding", **unfused),
    ]
    return [msgspec.structs.replace(one, workload=name) for one in records]


def test_the_row_of_a_token_stands_beside_the_drivers_graph_of_the_unfused_program() -> None:
    (row,) = token_rows(view(*model()))
    assert isinstance(row, WorkRow)
    # Dispatches of a token, and those of the fused program.
    assert row.work == ProgramWork("qwen2.5-0.5b", 881, 252)
    assert row.graph is not None
    assert row.graph.cost is not None
    assert row.graph.cost.value == 2e6, "2 ms: made by the driver, without fusions"
    others = [way for way in row.ways if way is not row.graph]
    assert [(way.stack, row.verdict(way)) for way in others] == [
        ("torch", "dearer"),
        ("cuda-graph", "dearer"),
        ("cuda-graph", "cheaper"),
        ("dawn", "cheaper"),
        ("dawn", "dearer"),
    ]
    kinds = [way.kind for way in row.ways]
    assert kinds == ["eager", "graph-captured", "graph-driver", "fused-graph", "fused-wgsl", "wgsl"]
    (dawn,) = row.of_kind("fused-wgsl")
    times = row.relative(dawn)
    assert times is not None
    assert times.value == pytest.approx(1.7 / 2.0), "ms of Dawn over ms of the graph"


def test_a_run_with_several_models_has_one_row_for_the_largest() -> None:
    run = view(*model(), *model("qwen2.5-1.5b"))
    (row,) = token_rows(run)
    assert row.work == ProgramWork("qwen2.5-1.5b", 881, 252)


def test_a_run_without_a_model_or_without_fused_wgsl_has_no_row_of_a_token() -> None:
    without_dawn = [case for case in model() if case.stack != "dawn"]
    assert list(token_rows(view(step()))) == []
    assert list(token_rows(view(*without_dawn))) == []


def test_the_row_of_a_token_comes_from_another_run_which_it_names() -> None:
    (row,) = rows(view(step()), [view(*model())])
    assert row.run == fingerprint().created
