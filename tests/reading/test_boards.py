"""Figures of two boards are never subtracted or divided; those of one board are."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.reading.chains import Group, groups
from overhead.reading.graphs import graphs
from overhead.reading.view import View
from overhead.results import DifferentBoardsError, Record, are_apart, ratio
from tests.fakes.report import driver, fingerprint, record, replay

FIRST = "a" * 12
SECOND = "b" * 12


def on(board: str, made: Record) -> Record:
    return msgspec.structs.replace(made, device=board)


def test_a_difference_or_ratio_of_two_boards_is_refused() -> None:
    assert are_apart(FIRST, SECOND)
    first = on(FIRST, record()).measured("complete")
    second = on(SECOND, record()).measured("complete")
    assert first is not None
    assert second is not None
    assert ratio(first, second) is None
    assert ratio(first, first) is not None
    with pytest.raises(DifferentBoardsError):
        first - second
    with pytest.raises(DifferentBoardsError):
        first / second


def test_devices_without_the_id_of_a_board_are_not_apart() -> None:
    assert not are_apart("0", "1")
    assert not are_apart("", "")


def test_a_graph_is_compared_with_the_launch_on_its_board() -> None:
    launch = on(FIRST, driver(4_000.0))
    (found,) = graphs(View(fingerprint(launch, on(FIRST, replay(1_000.0)))))
    assert found.saved_per_node is not None
    assert found.saved_per_node.value == pytest.approx(3_000.0)
    (alone,) = graphs(View(fingerprint(launch, on(SECOND, replay(1_000.0)))))
    assert alone.saved_per_node is None


def way(stack: str, pattern: Any, each: float, board: str) -> Record:
    """A way to run a chain, on a board."""
    step = record(stack, pattern, each, unit="step", params={"elements": 4096})
    return on(board, msgspec.structs.replace(step, workload="recurrence"))


EAGER = way("torch", "per-submit", 9_000.0, FIRST)
FUSED = way("dawn", "fused", 90.0, FIRST)


def stacks_of(group: Group) -> set[str]:
    return {arm.record.stack for arm in group.arms}


def test_ways_to_run_a_chain_are_compared_on_one_board() -> None:
    graph = way("cuda-graph", "replay", 1_000.0, FIRST)
    (together,) = groups(View(fingerprint(EAGER, graph)))
    assert stacks_of(together) == {"torch", "cuda-graph"}


def test_ways_to_run_a_chain_on_two_boards_are_two_groups() -> None:
    graph = way("cuda-graph", "replay", 1_000.0, SECOND)
    first, second = groups(View(fingerprint(EAGER, FUSED, graph)))
    assert stacks_of(first) == {"torch", "dawn"}
    assert stacks_of(second) == {"cuda-graph"}


def test_a_way_that_names_no_board_is_on_each_board_of_its_model() -> None:
    records = []
    for number, name in enumerate(("NVIDIA H100 80GB HBM3", "NVIDIA RTX A2000")):
        board = (FIRST, SECOND)[number]
        eager = msgspec.structs.replace(EAGER, device=board, adapter=name)
        fused = msgspec.structs.replace(FUSED, device=str(number), adapter=name)
        records += [eager, fused]
    for group in groups(View(fingerprint(*records))):
        assert len(group.arms) == 2
        assert len({arm.record.adapter for arm in group.arms}) == 1
