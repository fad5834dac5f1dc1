"""The JAX stack on the CPU."""

from __future__ import annotations

import contextlib

import pytest

from overhead.measure.sampling.calibrate import CLIMB, Limits, calibrate
from overhead.measure.sampling.clock import SystemClock
from overhead.probes.jax.jax import JaxProbe
from overhead.results import Target
from tests.fakes.of_step import of_step

PROBE = JaxProbe()
CPU = Target(stack="jax", api="CPU", adapter="CPU", options={"platform": "cpu", "index": 0})


@pytest.mark.needs("jax")
def test_calibration_finds_a_fused_jax_chain_that_takes_long_enough_to_measure() -> None:
    cases = of_step(PROBE.space(CPU).star())
    (fused,) = [case for case in cases if case.params.get("loop") == "scan"]
    with contextlib.closing(PROBE.open(CPU, fused)) as chain:
        found = calibrate(chain, SystemClock(), Limits(precision=0.1))
    longest_ns = found.unit_ns * found.ns[-1]
    assert longest_ns > 2 * CLIMB.least_ns
