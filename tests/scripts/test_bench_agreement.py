"""Passes of our own chain beside another tool: their slopes, and the count of their units."""

from __future__ import annotations

import pytest

from overhead.errors import Unverified
from overhead.measure.sampling.clock import clock_facts
from scripts.agreement.ours import Passes
from tests.fakes.machine import FakeChain, FakeClock, Law


def passes_of(chain: FakeChain, clock: FakeClock) -> Passes:
    return Passes(0.01, chain, clock, clock_facts(clock))


def test_the_slopes_of_repeated_passes_are_the_true_cost_of_the_chain() -> None:
    clock = FakeClock()
    passes = passes_of(FakeChain(Law(host=1_000, device=300), clock), clock)
    slopes = []
    for _ in range(5):
        slopes += passes.more(2)
    passes.verify()
    assert slopes == pytest.approx([1_000] * 5, rel=0.05)


def test_a_measurement_is_refused_if_the_device_ran_another_number_of_units() -> None:
    clock = FakeClock()
    chain = FakeChain(Law(host=1_000, device=300), clock)
    chain.executed = lambda: 1  # type: ignore[method-assign]
    passes = passes_of(chain, clock)
    passes.more()
    with pytest.raises(Unverified, match="units issued, 1 executed"):
        passes.verify()
