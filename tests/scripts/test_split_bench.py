"""Test the bench of host-time shares on simulated stacks with known costs."""

from __future__ import annotations

import pytest

from overhead.measure.fitting.data import Estimate
from scripts.bench.split import SIMULATED_STACKS, SimulatedStack, right, score, split


@pytest.mark.slow
@pytest.mark.parametrize("stack", SIMULATED_STACKS, ids=lambda stack: stack.name)
def test_each_share_is_right_or_marked_as_uncertain(stack: SimulatedStack) -> None:
    found = split(stack, seed=1)
    truth = stack.truth()
    assert [share for share, estimate in found.items() if not right(estimate, truth[share])] == []
    for share, estimate in found.items():
        if not truth[share]:
            assert estimate.reason.startswith("not separable")


def test_a_wrong_share_is_counted_as_wrong() -> None:
    stack = SIMULATED_STACKS[0]
    truth = stack.truth()["api"]
    exact = Estimate(truth, truth * 0.99, truth * 1.01)
    off = Estimate(truth * 1.1, truth * 1.09, truth * 1.11)
    wide = Estimate(truth * 1.1, truth * 0.9, truth * 1.3)
    inseparable = Estimate(
        -5.0, -50.0, 40.0, "noisy", "not separable: the interval of the difference reaches 0 or below"
    )
    assert [right(e, truth) for e in (exact, off, wide, inseparable)] == [True, False, True, False]
    assert right(inseparable, 0.0)
    counted = score(stack, "api", [exact, off, wide, inseparable])
    assert (counted.within, counted.covered, counted.separable, counted.right) == (1, 2, 3, 2)
