"""Pairing the steps of ranks whose traces number them differently."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from overhead.explaining.rank_steps import paired_steps
from overhead.results import codes_of
from overhead.traces.trace import DeviceWork, StepTrace, Trace

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"


def step_ends(jitter_ns: float, steps: int = 9) -> list[float]:
    """When the collective of each step of about 10 ms ends, in all ranks."""
    generator = random.Random(1)
    return [1e7 * (step + 1) + generator.uniform(-1, 1) * jitter_ns for step in range(steps)]


def rank(name: str, ends: Sequence[float], first_number: int | None, clock_ns: float) -> Trace:
    """A rank that records one collective in each step. ``clock_ns``: how much its clock is late."""
    steps = []
    for index, end in enumerate(ends):
        collective = DeviceWork(ALL_REDUCE, "0:7", end - 1e5 + clock_ns, end + clock_ns, index + 1)
        number = None if first_number is None else first_number + index
        start = clock_ns + end - 9e6
        steps.append(StepTrace(start, start + 9.5e6, device=[collective], number=number))
    return Trace(steps, rank=name)


def numbers(trace: Trace) -> list[int | None]:
    return [step.number for step in trace.steps]


@pytest.mark.parametrize("clock_ns", [0.0, 3.7e9])
@pytest.mark.parametrize("shift", [-2, -1, 1, 2])
def test_numbers_of_another_kind_are_found_by_the_ends_of_collectives(
    shift: int, clock_ns: float
) -> None:
    ends = step_ends(jitter_ns=1e6)
    ranks = [rank("0", ends, 5, 0.0), rank("1", ends, 5 + shift, clock_ns)]
    paired = paired_steps(ranks)
    assert numbers(paired.traces[1]) == numbers(paired.traces[0])
    (said,) = paired.said
    assert codes_of(said) == {"steps-numbered-otherwise"}
    assert said.values["shift"] == -shift


def test_a_rank_that_begins_later_keeps_its_right_numbers() -> None:
    ends = step_ends(jitter_ns=1e6)
    paired = paired_steps([rank("0", ends, 5, 0.0), rank("1", ends[2:], 7, 1e9)])
    assert numbers(paired.traces[1]) == list(range(7, 14))
    assert not paired.said


def test_steps_without_numbers_are_paired_too() -> None:
    ends = step_ends(jitter_ns=1e6)
    paired = paired_steps([rank("0", ends, None, 0.0), rank("1", ends[1:], None, 1e9)])
    assert numbers(paired.traces[1]) == list(range(1, 9))


@pytest.mark.parametrize(("jitter_ns", "steps"), [(0.0, 9), (1e6, 3)])
def test_where_it_is_not_certain_other_first_numbers_are_said(jitter_ns: float, steps: int) -> None:
    ends = step_ends(jitter_ns, steps)
    paired = paired_steps([rank("0", ends, 5, 0.0), rank("1", ends, 4, 0.0)])
    assert numbers(paired.traces[1]) == list(range(4, 4 + steps))
    (said,) = paired.said
    assert codes_of(said) == {"steps-begin-elsewhere"}


def test_ranks_with_the_same_numbers_need_no_word() -> None:
    ends = step_ends(jitter_ns=0.0)
    assert not paired_steps([rank("0", ends, 5, 0.0), rank("1", ends, 5, 0.0)]).said
