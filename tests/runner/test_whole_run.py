"""What an ordinary run of all stacks on a machine with a GPU holds, and that it fits into its
time.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from overhead.profiles import PROFILES
from overhead.results import Case, EndedEntry, OneOffEntry, Target
from overhead.runner.campaign import InterpreterRun, WorkerLimits
from overhead.runner.progress import Listener
from overhead.runner.schedule import Choice, Task, choose_targets, schedule
from overhead.runner.workers import Job, Ready
from tests.fakes.workers import FakeJournal, faked

OPENING_S = {
    "torch-compile": 16.0,
    "triton": 7.0,
    "torch": 7.0,
    "cuda-graph": 6.5,
    "wgpu-native": 5.0,
    "dawn": 4.5,
    "vulkan": 3.5,
    "jax": 3.5,
    "cuda-driver": 3.0,
    "cupy": 2.5,
    "numpy": 2.0,
    "floor": 2.0,
}
"""How long the processes of each stack took to open on a machine with an H100 and 16 processors,
s.
"""
MET_S, ANCHOR_S, RELEASE_S, FINDING_S = 0.35, 0.15, 1.5, 15.0
"""Time of a case's met cost, of its anchors, of the end of a replicate, and of finding all targets,
s.
"""
LIMIT_S = {"quick": 240.0, "default": 480.0}
COLUMNS = {
    "torch": "per-submit",
    "cuda-graph": "replay",
    "cuda-driver": "fused",
    "dawn": "fused",
    "wgpu-native": "fused",
}


def planned(profile: str) -> list[Task]:
    gpu: dict[str, Any] = {
        "adapter": "NVIDIA H100",
        "device": "0123456789ab",
        "options": {"device": "cuda:0"},
    }
    vulkan, host = {"dawn", "wgpu-native", "vulkan"}, {"floor", "numpy"}
    found = [
        Target(stack=s, api="Vulkan" if s in vulkan else "CUDA", **gpu)
        for s in sorted(OPENING_S.keys() - host)
    ]
    found += [
        Target(stack=stack, api="CPU", adapter="CPU") for stack in (*sorted(host), "torch", "jax")
    ]
    chosen = choose_targets(found, Choice()).targets
    return schedule(chosen, Choice(), PROFILES[profile]).tasks


class Simulated:
    """A worker that opens beside others and then measures alone, in one turn. ``Simulated.now`` is
    the time, s.
    """

    now = 0.0

    def __init__(self, job: Job) -> None:
        opening_s = OPENING_S[job.worker.split("@")[0]]
        self.ready_s = Simulated.now + opening_s
        opened = OneOffEntry(
            target="t",
            case="c",
            worker=job.worker,
            process=0,
            name="open",
            values=[opening_s * 1e9],
        )
        measuring_s = (
            job.settings.seconds + MET_S * len(job.settings.met) + ANCHOR_S * len(job.assignments)
        )
        ended = EndedEntry(worker=job.worker, process=job.process, rule="")
        self.lines: list[tuple[float, Any]] = [(0.0, opened), (0.0, Ready()), (measuring_s, ended)]

    def receive(self) -> Any:
        took_s, line = self.lines.pop(0)
        Simulated.now = max(Simulated.now, self.ready_s) + took_s
        return line

    def go(self) -> None: ...

    release = end = go


@pytest.mark.parametrize("profile", LIMIT_S)
def test_a_run_of_all_stacks_measures_every_planned_process_in_its_time(profile: str) -> None:
    workers, plan, Simulated.now = list[Simulated](), PROFILES[profile], 0.0

    def start(job: Job) -> Simulated:
        workers.append(Simulated(job))
        return workers[-1]

    runs = [InterpreterRun(FakeJournal(), planned(profile))]  # type: ignore[arg-type]
    campaign = faked(start, lambda: Simulated.now)  # type: ignore[arg-type]
    campaign(
        runs, plan, Listener(), [], random.Random(1), WorkerLimits(memory_bytes=1, open_workers=16)
    ).run()
    assert len(workers) == plan.processes * len(OPENING_S)
    assert not any(worker.lines for worker in workers)
    assert FINDING_S + Simulated.now + plan.processes * RELEASE_S <= LIMIT_S[profile]


@pytest.mark.parametrize("profile", LIMIT_S)
def test_a_run_of_all_stacks_has_the_workloads_and_the_waits_of_the_step(profile: str) -> None:
    cases: dict[str, list[Case]] = {
        task.target.stack: [a.case for a in task.own] for task in planned(profile)
    }
    for stack, pattern in COLUMNS.items():
        own = [
            c
            for c in cases[stack]
            if c.pattern == pattern and c.params.get("maker", "driver") == "driver"
        ]
        assert {c.workload for c in own} >= {
            "recurrence",
            "acrobot",
            "simulation",
            "rastrigin",
        }, stack
    for stack in COLUMNS.keys() - {"cuda-graph"}:
        assert {c.pattern for c in cases[stack] if c.workload == "step"} >= {
            "wait-each",
            "read-each",
        }, stack
