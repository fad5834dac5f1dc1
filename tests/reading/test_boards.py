"""Figures of two boards are never subtracted or divided; those of one board are."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.chains import groups
from overhead.reading.graphs import graphs
from overhead.reading.view import View
from overhead.results import DifferentBoardsError, Params, Record, are_apart, ratio
from tests.fakes.report import driver, fingerprint, record, replay

_BOARDS = ("a" * 12, "b" * 12)


def _on(board: int, made: Record) -> Record:
    return msgspec.structs.replace(made, device=_BOARDS[board])


def test_a_difference_or_ratio_of_two_boards_is_refused() -> None:
    assert are_apart(*_BOARDS)
    assert not are_apart("0", "1")
    assert not are_apart("", "")
    first, second = (_on(board, record()).measured("complete") for board in (0, 1))
    assert first is not None
    assert second is not None
    assert ratio(first, second) is None
    assert ratio(first, first) is not None
    with pytest.raises(DifferentBoardsError):
        first - second
    with pytest.raises(DifferentBoardsError):
        first / second


def test_a_graph_is_compared_with_the_launch_on_its_board() -> None:
    (found,) = graphs(View(fingerprint(_on(0, driver(4_000.0)), _on(0, replay(1_000.0)))))
    assert found.saved_per_node is not None
    assert found.saved_per_node.value == pytest.approx(3_000.0)
    (alone,) = graphs(View(fingerprint(_on(0, driver(4_000.0)), _on(1, replay(1_000.0)))))
    assert alone.saved_per_node is None


def test_ways_to_run_a_chain_are_compared_on_one_board() -> None:
    params: Params = {"elements": 4096}

    def arm(stack: str, pattern: str, each: float, board: int) -> Record:
        own = record(stack, pattern, each, unit="step", params=params)  # type: ignore[arg-type]
        return _on(board, msgspec.structs.replace(own, workload="recurrence"))

    eager, fused = arm("torch", "per-submit", 9_000.0, 0), arm("dawn", "fused", 90.0, 0)
    (together,) = groups(View(fingerprint(eager, arm("cuda-graph", "replay", 1_000.0, 0))))
    two = groups(View(fingerprint(eager, fused, arm("cuda-graph", "replay", 1_000.0, 1))))
    assert [len(own.arms) for own in two] == [2, 1]
    assert {arm.record.stack for arm in together.arms} == {"torch", "cuda-graph"}
    assert not any({"torch", "cuda-graph"} <= {arm.record.stack for arm in own.arms} for own in two)
    h100, a2000 = ({"adapter": f"NVIDIA {name}"} for name in ("H100 80GB HBM3", "RTX A2000"))
    named = [
        msgspec.structs.replace(eager, **h100),
        msgspec.structs.replace(arm("torch", "per-submit", 8.0, 1), **a2000),
    ]
    unnamed = [
        msgspec.structs.replace(fused, device=str(i), **model)
        for i, model in enumerate((h100, a2000))
    ]
    for own in groups(View(fingerprint(*named, *unnamed))):
        assert len({arm.record.adapter for arm in own.arms}) == 1
        assert len(own.arms) == 2
