"""Whole runs without other processes: the workers measure a stack of known cost on a fake clock, in
this process.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from overhead.measure.sampling.rounds import measure_cases
from overhead.probes.base import Chain, Probe, Space
from overhead.profiles import Plan
from overhead.results import Case, JournalEntry, Target, Why
from overhead.runner import run as run_module, worker
from overhead.runner.discovery import Discovery
from overhead.runner.interpreter import Interpreter
from overhead.runner.output import Outcome
from overhead.runner.workers import Job, Message
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law
from tests.fakes.workers import Parent, Unlocked, run_with

PLUGIN = Path(__file__).parent / "stacks" / "steady.py"
TARGET = Target(stack="steady", api="CPU", adapter="A")
UNIT_NS = 1_000.0
PLAN = Plan(
    processes=4, precision=0.1, sampling_s=0.2, wall_s=None, case_s=0.01, min_rounds=4, max_rounds=4
)
_NOISE = Disturbance(spread=0.004, preemptions=0.0)


class _Simulated(Probe):
    """A stack with the costs of ``tests/fakes/stacks/steady.py``, times ``factor``."""

    def __init__(self, clock: FakeClock, factor: float) -> None:
        self.clock, self.factor = clock, factor

    def targets(self) -> list[Target]:
        return [TARGET]

    def space(self, target: Target) -> Space:
        raise NotImplementedError

    def open(self, target: Target, case: Case) -> Chain:
        size = {"small": 1.0, "large": 8.0}[str(case.params["size"])]
        return FastFakeChain(Law(host=self.factor * size * UNIT_NS, device=10.0), self.clock)


class _FinishedWorker:
    """A worker that has measured everything, and sends its lines one by one."""

    def __init__(self, lines: Sequence[Message | JournalEntry]) -> None:
        self.lines = iter(lines)

    def receive(self) -> Message | JournalEntry:
        return next(self.lines)

    def go(self) -> None:
        """The lines do not depend on the time."""

    def release(self) -> None:
        """There is nothing to release."""

    def end(self) -> None:
        """There is no process."""


@functools.cache
def _lines(job: bytes, process: int, factor: float) -> Sequence[Message | JournalEntry]:
    clock, parent = FakeClock(_NOISE, seed=process), Parent()

    def measure(chains: Any, _: object, settings: Any, emit: Any, judge_first: Any) -> Why:
        return measure_cases(chains, clock, settings, emit, judge_first)

    stacks = {TARGET.stack: _Simulated(clock, factor)}
    with mock.patch.multiple(worker, registry=lambda: stacks, measure_cases=measure):
        worker.Worker(msgspec.json.decode(job, type=Job), parent).open_and_measure()
    return parent.answers


class _SimulatedCampaign(Unlocked):
    def start_worker(
        self, job: Job, environment: Mapping[str, str], interpreter: Interpreter
    ) -> Any:
        factor = float(interpreter.variables.get("STEADY_FACTOR", "1"))
        return _FinishedWorker(_lines(msgspec.json.encode(job), job.process, factor))


def simulated_run(**options: Any) -> Outcome:
    """``run`` with simulated workers; the same options give the same samples."""
    with mock.patch.object(run_module, "discover", return_value=Discovery([TARGET], [])):
        return run_with(
            profile="quick", plugins=[PLUGIN], plan=PLAN, campaign=_SimulatedCampaign, **options
        )
