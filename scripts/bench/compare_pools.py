"""Runs in which nothing changed, to put ``compare`` to the test: made up on a fake machine, or recorded on a real."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from overhead.measure.fitting.data import Process, Round, Series
from overhead.versus import sides as versus
from overhead.versus.pairing import in_turn, together
from overhead.versus.sides import FIGURE, Sampled, Side, read_side, sampled
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law

RECORDED = Path(__file__).with_name("compare_recorded.json")
"""Slopes and canaries of real runs: what is left of them once every process is fitted."""
LADDER = (1, 4, 16, 64, 128)
ROUNDS = 8
CASES = 20
RUNS = 24
Run = Mapping[str, Sampled]
"""By case, one slope a process."""


@dataclass(frozen=True)
class Pool:
    """``runs``: separate runs. ``turns``: two runs whose n-th processes were measured in turn, or None."""

    name: str
    processes: int
    runs: Sequence[Run]
    turns: tuple[Run, Run] | None


@dataclass(frozen=True)
class SimulatedMachine:
    """A made-up machine. ``run``: standard deviation (logarithm) of a case's cost between runs."""

    name: str
    weather: Disturbance
    run: float
    processes: int = 3
    slow: float = 0.0
    """Chance that a whole run, or a pair of processes, falls into the machine's second speed."""
    turning: float = 0.0
    """Chance that the speed changes between the two processes of a pair."""


MACHINES = (
    SimulatedMachine("quiet: processes 0.3 %, runs 0.3 %", Disturbance(spread=0.003), 0.003),
    SimulatedMachine("usual: processes 1 %, runs 1 %", Disturbance(spread=0.01), 0.01),
    SimulatedMachine("usual: processes 1 %, runs 1 %", Disturbance(spread=0.01), 0.01, processes=5),
    SimulatedMachine("noisy: processes 3 %, runs 1 %", Disturbance(spread=0.03), 0.01),
    SimulatedMachine(
        "half of the time twice as slow", Disturbance(spread=0.005, slowdown=2.0), 0.005, slow=0.5, turning=0.05
    ),
)


def simulated(machine: SimulatedMachine, dice: np.random.Generator) -> Pool:
    """Runs of a made-up machine, sampled and fitted as real ones are."""
    laws = {f"case {i}": Law(host=500.0 * 2 ** (i % 8), device=100.0, own=0.003) for i in range(CASES)}
    runs = [_run(machine, laws, dice) for _ in range(RUNS)]
    return Pool(machine.name, machine.processes, runs, _in_turn(machine, laws, dice))


def _run(machine: SimulatedMachine, laws: Mapping[str, Law], dice: np.random.Generator) -> Run:
    slow = bool(dice.random() < machine.slow)
    today = {name: replace(law, host=law.host * math.exp(dice.normal(0, machine.run))) for name, law in laws.items()}
    return _fitted([_process(today, _clock(machine, slow, dice)) for _ in range(machine.processes)])


def _in_turn(machine: SimulatedMachine, laws: Mapping[str, Law], dice: np.random.Generator) -> tuple[Run, Run]:
    sides: tuple[list[dict[str, Process]], list[dict[str, Process]]] = ([], [])
    for _ in range(RUNS):
        slow = bool(dice.random() < machine.slow)
        for side in sides:
            side.append(_process(laws, _clock(machine, slow, dice)))
            slow ^= bool(dice.random() < machine.turning)
    return _fitted(sides[0]), _fitted(sides[1])


def _clock(machine: SimulatedMachine, slow: bool, dice: np.random.Generator) -> FakeClock:
    return FakeClock(machine.weather, seed=int(dice.integers(2**32)), slow=slow)


def _fitted(measured: Sequence[Mapping[str, Process]]) -> Run:
    return {name: sampled(Series([one[name] for one in measured])) for name in measured[0]}


def _process(laws: Mapping[str, Law], clock: FakeClock) -> dict[str, Process]:
    chains = {name: FastFakeChain(law, clock) for name, law in laws.items()}
    rounds: dict[str, list[Round]] = {name: [] for name in laws}
    for number in range(ROUNDS):
        canary = clock.canary()
        for name, chain in chains.items():
            rounds[name].append(Round(chain.sample(LADDER, False), canary, number))
    return {name: Process(taken) for name, taken in rounds.items()}


def recorded(name: str, separate: Sequence[Path], base: Path | None = None, new: Path | None = None) -> Pool:
    """The pool of recorded runs of one machine, and of ``base`` and ``new``, whose runs were taken together.

    Holds the cases that every run has a value of. Raises ``BadFile``.
    """
    runs = _common([_of(run) for run in read_side("recorded", separate).runs])
    turns = None
    if base is not None and new is not None:
        turns = _joined(read_side("BASE", [base]), read_side("NEW", [new]))
    least = min(s.slopes.size for run in runs for s in run.values())
    return Pool(name, least, runs, turns)


def _of(run: versus.Run) -> Run:
    valued = {record.key for record in run.fingerprint.records if record.value(FIGURE) is not None}
    return {key: s for key, s in (run.sampled or {}).items() if key in valued and s.slopes.size > 1}


def _common(runs: Sequence[Run]) -> list[Run]:
    keys = sorted(set.intersection(*(set(run) for run in runs)))
    return [{key: run[key] for key in keys} for run in runs]


def _joined(base: Side, new: Side) -> tuple[Run, Run]:
    """All pairs of processes of all runs, one after the other."""
    runs = _common([_of(run) for pair in together(base, new) for run in pair])
    sides: tuple[dict[str, Sampled], dict[str, Sampled]] = ({}, {})
    for key in runs[0]:
        matched = [in_turn(b[key], n[key]) for b, n in zip(runs[::2], runs[1::2], strict=True)]
        for side, parts in zip(sides, zip(*matched, strict=True), strict=True):
            side[key] = Sampled(np.concatenate([s.slopes for s in parts]), np.concatenate([s.canary for s in parts]))
    return sides


def save(pool: Pool, path: Path = RECORDED) -> None:
    """Keep a recorded pool: logarithms with six digits after the point."""
    body = {
        "name": pool.name,
        "processes": pool.processes,
        "runs": [_plain(run) for run in pool.runs],
        "turns": [_plain(run) for run in pool.turns] if pool.turns else None,
    }
    path.write_text(json.dumps(body, separators=(",", ":")).replace("}},", "}},\n") + "\n", "utf-8")


def load(path: Path = RECORDED) -> Pool:
    """The pool that was kept."""
    body = json.loads(path.read_text("utf-8"))
    turns = [_samples(run) for run in body["turns"] or ()]
    runs = [_samples(run) for run in body["runs"]]
    return Pool(body["name"], body["processes"], runs, (turns[0], turns[1]) if turns else None)


def _plain(run: Run) -> dict[str, dict[str, list[float]]]:
    return {k: {"slopes": s.slopes.round(6).tolist(), "canary": s.canary.round(6).tolist()} for k, s in run.items()}


def _samples(run: Mapping[str, Mapping[str, Sequence[float]]]) -> Run:
    return {k: Sampled(np.array(s["slopes"]), np.array(s["canary"])) for k, s in run.items()}
