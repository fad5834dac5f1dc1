"""The split of fake stacks with injected costs: each share as injected, or marked."""

from __future__ import annotations

import pytest

from overhead.measure.fitting.data import Estimate
from scripts.bench.shares_truth import STACKS, Stack, right, score, split


@pytest.mark.parametrize("stack", STACKS, ids=lambda stack: stack.name)
def test_each_share_is_what_was_injected_or_says_that_it_is_not_known(stack: Stack) -> None:
    found = split(stack, seed=1)
    truth = stack.truth()
    assert [share for share, estimate in found.items() if not right(estimate, truth[share])] == []
    for share, estimate in found.items():
        if not truth[share]:
            assert estimate.reason.startswith("not separable")


def test_a_wrong_share_is_told() -> None:
    stack = STACKS[0]
    truth = stack.truth()["api"]
    exact = Estimate(truth, truth * 0.99, truth * 1.01)
    off = Estimate(truth * 1.1, truth * 1.09, truth * 1.11)
    wide = Estimate(truth * 1.1, truth * 0.9, truth * 1.3)
    lost = Estimate(-5.0, -50.0, 40.0, "noisy", "not separable: the interval of the difference reaches 0 or below")
    assert [right(e, truth) for e in (exact, off, wide, lost)] == [True, False, True, False]
    assert right(lost, 0.0)
    told = score(stack, "api", [exact, off, wide, lost])
    assert (told.within, told.covered, told.separable, told.right) == (1, 2, 3, 2)
