"""Runs of a simulated machine on which nothing changes, for the bench of ``overhead compare``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from overhead.measure.fitting.data import Process, Round, Series
from overhead.versus.sides import Sampled, sampled
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law

_LADDER = (1, 4, 16, 64, 128)
_ROUNDS_PER_PROCESS = 8
CASES_PER_RUN = 20
RUNS_PER_MACHINE = 24
SimulatedRun = Mapping[str, Sampled]
"""By case, one slope per process."""


@dataclass(frozen=True)
class RunPool:
    """``runs``: separate runs. ``turns``: two long runs whose n-th processes were measured in turn."""

    name: str
    processes: int
    runs: Sequence[SimulatedRun]
    turns: tuple[SimulatedRun, SimulatedRun]


@dataclass(frozen=True)
class SimulatedMachine:
    """``disturbance``: the noise in each process. ``run_spread``: standard deviation between runs (logarithm).

    ``slow``: probability that a run, or a pair of processes, has the second speed. ``turning``: probability that the
    speed changes between the two processes of a pair.
    """

    name: str
    disturbance: Disturbance
    run_spread: float
    processes: int = 3
    slow: float = 0.0
    turning: float = 0.0


SIMULATED_MACHINES = (
    SimulatedMachine("quiet: processes 0.3 %, runs 0.3 %", Disturbance(spread=0.003), 0.003),
    SimulatedMachine("usual: processes 1 %, runs 1 %", Disturbance(spread=0.01), 0.01),
    SimulatedMachine("usual: processes 1 %, runs 1 %", Disturbance(spread=0.01), 0.01, processes=5),
    SimulatedMachine("noisy: processes 3 %, runs 1 %", Disturbance(spread=0.03), 0.01),
    SimulatedMachine(
        "half of the time twice as slow", Disturbance(spread=0.005, slowdown=2.0), 0.005, slow=0.5, turning=0.05
    ),
)


def simulated(machine: SimulatedMachine, dice: np.random.Generator) -> RunPool:
    """Separate runs of the machine and runs taken in turn, sampled on a fake clock and fitted by the real code."""
    laws = {f"case {i}": Law(host=500.0 * 2 ** (i % 8), device=100.0, own=0.003) for i in range(CASES_PER_RUN)}
    runs = [_run(machine, laws, dice) for _ in range(RUNS_PER_MACHINE)]
    return RunPool(machine.name, machine.processes, runs, _in_turn(machine, laws, dice))


def _run(machine: SimulatedMachine, laws: Mapping[str, Law], dice: np.random.Generator) -> SimulatedRun:
    slow = bool(dice.random() < machine.slow)
    today = {
        name: replace(law, host=law.host * math.exp(dice.normal(0, machine.run_spread))) for name, law in laws.items()
    }
    return _fitted([_process(today, _clock(machine, slow, dice)) for _ in range(machine.processes)])


def _in_turn(
    machine: SimulatedMachine, laws: Mapping[str, Law], dice: np.random.Generator
) -> tuple[SimulatedRun, SimulatedRun]:
    sides: tuple[list[dict[str, Process]], list[dict[str, Process]]] = ([], [])
    for _ in range(RUNS_PER_MACHINE):
        slow = bool(dice.random() < machine.slow)
        for side in sides:
            side.append(_process(laws, _clock(machine, slow, dice)))
            slow ^= bool(dice.random() < machine.turning)
    return _fitted(sides[0]), _fitted(sides[1])


def _clock(machine: SimulatedMachine, slow: bool, dice: np.random.Generator) -> FakeClock:
    return FakeClock(machine.disturbance, seed=int(dice.integers(2**32)), slow=slow)


def _fitted(measured: Sequence[Mapping[str, Process]]) -> SimulatedRun:
    return {name: sampled(Series([one[name] for one in measured])) for name in measured[0]}


def _process(laws: Mapping[str, Law], clock: FakeClock) -> dict[str, Process]:
    chains = {name: FastFakeChain(law, clock) for name, law in laws.items()}
    rounds: dict[str, list[Round]] = {name: [] for name in laws}
    for number in range(_ROUNDS_PER_PROCESS):
        canary = clock.canary()
        for name, chain in chains.items():
            rounds[name].append(Round(chain.sample(_LADDER, False), canary, number))
    return {name: Process(taken) for name, taken in rounds.items()}
