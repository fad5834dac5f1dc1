"""Ranks beside each other: groups of some ranks, exchanges of uneven size, and traces that begin at
different collectives.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from overhead.explaining.ranks import RankComparison, are_shifted, compare_ranks
from overhead.traces.formats import read_trace_file
from tests.traces.test_trace_faults import ALL_REDUCE, Event, Program, rank_files

Exchange = tuple[str, float, dict[str, object]]
"""Kernel, how long it runs, µs, and what the file says of it."""


def of_steps(exchanges: Sequence[Exchange], steps: int = 4) -> list[Event]:
    """Steps of 500 µs of computing, then these exchanges."""
    program = Program()
    for number in range(steps):
        start = number * 10_000.0
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "layer", start=start + 10, length_us=1000)
        program.launch(called=start + 100, starts=start + 110, length_us=500)
        begins = start + 620
        for kernel, length_us, more in exchanges:
            program.launch(called=start + 200, starts=begins, length_us=length_us, kernel=kernel)
            program.events[-1]["args"] |= more
            begins += length_us + 10
    return program.events


def compared(tmp_path: Path, ranks: Sequence[list[Event]]) -> RankComparison:
    return compare_ranks([read_trace_file(path) for path in rank_files(tmp_path, ranks)])


def group(*ranks: int) -> dict[str, object]:
    return {"Collective name": "allreduce", "Process Group Ranks": str(list(ranks))}


def test_groups_of_some_ranks_are_compared_on_their_own(tmp_path: Path) -> None:
    """Ranks 0 and 1, and 2 and 3, exchange; then all do. Rank 3 is late in its pair by 300 µs."""
    ranks = []
    for rank in range(4):
        pair = group(0, 1) if rank < 2 else group(2, 3)
        waits_us = 300 if rank == 2 else 0
        ranks.append(
            of_steps([(ALL_REDUCE, 100 + waits_us, pair), (ALL_REDUCE, 50, group(0, 1, 2, 3))])
        )
    found = compared(tmp_path, ranks)
    assert found.left_out == 0
    assert [row.waits_ns for row in found.rows] == pytest.approx([0, 0, 300e3, 0])
    assert found.rows[3].last_share == pytest.approx(1)
    assert found.waited_for[3] == pytest.approx(300e3), "by the only other rank of its group"


def test_a_group_of_which_one_trace_is_given_is_left_out(tmp_path: Path) -> None:
    ranks = [of_steps([(ALL_REDUCE, 100, group(rank, rank + 2))]) for rank in (0, 1)]
    found = compared(tmp_path, ranks)
    assert (found.collectives, found.left_out) == (0, 4)


def test_a_group_that_is_smaller_than_all_and_not_listed_is_left_out(tmp_path: Path) -> None:
    named = {"Collective name": "allreduce", "Process Group Name": "tp", "Group size": 2}
    ranks = [of_steps([(ALL_REDUCE, 100, named)]) for _ in range(4)]
    assert compared(tmp_path, ranks).collectives == 0
    assert compared(tmp_path, ranks[:2]).collectives == 4


def test_an_all_to_all_of_uneven_parts_is_one_exchange(tmp_path: Path) -> None:
    ranks = []
    for rank in range(3):
        more = {
            "Collective name": "all_to_allv",
            "Process Group Ranks": "[0, 1, 2]",
            "In msg nelems": 100 + rank,
        }
        waits_us = 0 if rank == 1 else 400
        ranks.append(of_steps([("ncclDevKernel_SendRecv(x)", 100 + waits_us, more)]))
    found = compared(tmp_path, ranks)
    assert found.collectives == 4
    assert [row.waits_ns for row in found.rows] == pytest.approx([400e3, 0, 400e3])


def collective_ends(shift: int, drift: float = 0.0, seed: int = 3) -> np.ndarray:
    """Ends of 60 collectives on two ranks, whose clocks lie apart; the second rank's trace begins
    ``shift`` collectives later.
    """
    chance = random.Random(seed)
    ends = [0.0]
    for _ in range(60 + shift):
        ends.append(ends[-1] + chance.uniform(100e3, 900e3))
    first = ends[:60]
    other = [7e9 + (1 + drift) * end + chance.uniform(0, 3e3) for end in ends[shift : shift + 60]]
    return np.array([first, other])


@pytest.mark.parametrize(("shift", "shifted"), [(0, False), (1, True), (5, True)])
@pytest.mark.parametrize("drift", [0.0, 50e-6])
def test_traces_that_begin_at_different_collectives_are_noticed(
    shift: int, shifted: bool, drift: float
) -> None:
    assert are_shifted(collective_ends(shift, drift)) == shifted


def test_ranks_whose_collectives_are_shifted_are_not_compared(tmp_path: Path) -> None:
    """One trace begins a step later than the other one, and neither has numbers of steps."""
    chance = random.Random(1)
    lengths = [chance.uniform(50, 2000) for _ in range(30)]
    ranks = []
    for first in (0, 1):
        program = Program()
        now = 0.0
        program.span("cpu_op", "layer", start=0, length_us=100_000)
        for length in lengths[first : first + 29]:
            program.launch(called=now + 5, starts=now + 10, length_us=length, kernel=ALL_REDUCE)
            now += length + 50
        ranks.append(program.events)
    found = compared(tmp_path, ranks)
    assert found.are_shifted
    assert found.collectives == 0
