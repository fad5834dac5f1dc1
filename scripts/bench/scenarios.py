"""The simulated stacks of ``main.py known-truth``: laws of cost, the noise of the machine, and the
truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from overhead.profiles import Cost
from tests.fakes.machine import Disturbance, Law

USUAL_NOISE = Disturbance(spread=0.005, preemptions=50.0, preempted_ns=(50e3, 5e6))


@dataclass(frozen=True)
class Scenario:
    """``law``: the true costs; ``disturbance``: the machine's noise; ``cost``: the class by which
    the plan gives time.

    ``slow_share``: the share of processes that run at the second speed. ``refused``: the statuses
    of ``complete`` that are right where no single slope describes the law; the scenario then has no
    true figures.
    """

    name: str
    law: Law
    cost: Cost = "fast"
    disturbance: Disturbance = USUAL_NOISE
    resolution_ns: int = 1
    slow_share: float = 0.0
    refused: tuple[str, ...] = ()

    @property
    def two_speeds(self) -> bool:
        """Whether the machine has a slow speed beside its usual one."""
        return self.disturbance.slowdown > 1

    def truth(self) -> dict[str, float]:
        """ns, and units for ``knee_n`` and ``queue_depth``; empty if the method must refuse the
        law.
        """
        return {} if self.refused else self.law.truth()

    def scale(self, figure: str) -> float:
        """Divisor of a relative error, ns: the true figure; for ``fixed`` the true T(1), plus a
        locked poll's step.
        """
        truth = self.truth()
        if figure != "fixed":
            return truth[figure]
        return truth["fixed"] + truth["complete"] + (self.law.poll if self.law.locked else 0.0)


def _law(host: float, device: float, fixed: float, **more: object) -> Law:
    """A law with costs in ns, and the usual noise where ``more`` does not replace it."""
    noise: dict[str, object] = {"wake": 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}
    return Law(host, device, fixed, **(noise | more))  # type: ignore[arg-type]


def _sync(unit: float, **more: object) -> Law:
    """A law whose launches return only when their work is done, ns per unit."""
    return _law(unit, 0.0, 0.0, synchronous=True, wake=0.0, **more)


SCENARIOS = (
    Scenario("synchronous, 0.2 us", _sync(200.0), "cheap"),
    Scenario("synchronous, 2 us", _sync(2_000.0), "cheap"),
    Scenario("synchronous, 1 ms", _sync(1e6, scatter=0.01), "slow"),
    Scenario("native submit, deferred work", _law(1_400.0, 500.0, 40e3, deferred=900.0)),
    Scenario("binding, 143 us wait", _law(15e3, 5e3, 143e3)),
    Scenario("deferred more than issued", _law(1_500.0, 1_000.0, 10e3, deferred=2_500.0)),
    Scenario("device-bound, pipelined", _law(1_400.0, 5e3, 20e3)),
    Scenario("nearly balanced, pipelined", _law(5e3, 4.5e3, 20e3)),
    Scenario("device-bound, 200 us", _law(3e3, 200e3, 20e3, scatter=0.02), "slow"),
    Scenario("serial, 2.6 us", _law(600.0, 2e3, 30e3, overlap="serial")),
    Scenario("serial, 100 us", _law(2e3, 100e3, 30e3, overlap="serial", scatter=0.02)),
    Scenario("queue of 1,024", _law(2e3, 5e3, 20e3, depth=1024)),
    Scenario("queue of 64", _law(3e3, 36e3, 20e3, depth=64, scatter=0.03)),
    Scenario(
        "Chromium-like, 5 us clock", _law(12e3, 9e3, 2.5e6, wake=50e3), "slow", resolution_ns=5_000
    ),
    Scenario("free-running 1 ms poll", _law(40e3, 10e3, 1.2e6, poll=1e6, locked=False), "slow"),
    Scenario("locked 0.2 ms poll", _law(3e3, 500.0, 20e3, poll=2e5)),
    Scenario("locked 1 ms poll", _law(4e3, 10e3, 200e3, poll=1e6), "slow"),
    Scenario(
        "Firefox-like, 100 ms poll",
        _law(2e3, 5e3, 3e6, poll=1e8, wake=50e3),
        "polling",
        resolution_ns=20_000,
    ),
    Scenario(
        "two speeds, by process",
        _law(3e3, 2e3, 30e3),
        disturbance=replace(USUAL_NOISE, slowdown=2.0),
        slow_share=0.4,
    ),
    Scenario(
        "two speeds, within a process",
        _law(3e3, 2e3, 30e3),
        disturbance=replace(USUAL_NOISE, slowdown=1.8, dwell_s=0.15),
    ),
    Scenario(
        "a machine that spreads by 5 %",
        _law(3e3, 6e3, 30e3, jitter=0.03),
        disturbance=replace(USUAL_NOISE, spread=0.05),
    ),
    Scenario(
        "Firefox-like, busy looker",
        _law(10e3, 60e3, 1.5e6, poll=1e8, busy=90e3),
        "polling",
        resolution_ns=20_000,
    ),
    Scenario("knee at 90", _law(5e3, 13e3, 20e3, depth=56)),
    Scenario("5 us issued, 8 us deferred", _law(5e3, 1e3, 10e3, deferred=8e3)),
    Scenario("10 % of the samples 200 us late", _law(13e3, 5e3, 10e3, late_share=0.1, late=200e3)),
    Scenario("first unit 300 us", _law(5e3, 1e3, 10e3, first=300e3)),
    Scenario("undeclared 1 ms poll, 30 us a unit", _law(2e3, 30e3, 5e3, poll=1e6)),
    Scenario(
        "quadratic, 5 n + 0.01 n^2 us", _law(5e3, 100.0, 5e3, bend=10.0), refused=("nonlinear",)
    ),
    Scenario(
        "drift in a process, 9 to 11.7 us",
        _law(9e3, 100.0, 5e3, rise=0.3, rise_s=0.2),
        refused=("noisy",),
    ),
)
