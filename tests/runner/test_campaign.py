"""Open workers measure in turns of whole rounds. No worker releases its objects before all have
measured.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from overhead.profiles import Plan
from overhead.results import Case, Target
from overhead.runner.campaign import InterpreterRun, WorkerLimits, room_for_workers
from overhead.runner.events import Opening, RunStep
from overhead.runner.interpreter import Interpreter
from overhead.runner.progress import Listener
from overhead.runner.schedule import Task
from overhead.runner.workers import Assignment, Job
from tests.fakes.workers import FakeJournal, FakeWorkers, faked

ENDLESS_S = 1e9


class InOrder(random.Random):
    """A random generator that does not change the order of the targets."""

    def shuffle(self, x: Any) -> None:
        return


def task(
    name: str, *, cases: int = 1, adapter: str = "CPU", device: str = "", processes: int = 1
) -> Task:
    target = Target(stack=name, api="CPU", adapter=adapter, device=device)
    wanted = [
        Assignment(target, Case(pattern="per-submit", unit="launch", params={"n": n}))
        for n in range(cases)
    ]
    return Task(target, tuple(wanted), 1.0, processes)


def calls(
    tasks: Sequence[Task],
    workers: FakeWorkers | None = None,
    *,
    turn_s: float = 0.0,
    processes: int = 1,
    listener: Listener | None = None,
    clock: Callable[[], float] | None = None,
) -> list[str]:
    """The calls that the workers get in a campaign with these tasks."""
    workers = workers or FakeWorkers()
    limits = WorkerLimits(turn_s=turn_s, open_workers=8, memory_bytes=1)
    plan = Plan(processes=processes, precision=0.1, sampling_s=None, wall_s=None, case_s=1.0)
    runs = [InterpreterRun(FakeJournal(), tasks)]  # type: ignore[arg-type]
    faked(workers, clock)(runs, plan, listener or Listener(), [], InOrder(1), limits).run()
    return workers.calls


def test_workers_measure_in_turns_until_all_have_ended() -> None:
    done = calls([task("a"), task("b")])
    assert done[:6] == ["a", "b"] * 3
    assert done[6:] == ["a may release", "b may release", "b ends", "a ends"]


def test_a_turn_of_a_worker_has_as_many_rounds_as_fit_into_its_time() -> None:
    assert calls([task("a"), task("b")], turn_s=60.0)[:6] == ["a", "a", "a", "b", "b", "b"]


def test_a_worker_can_let_another_worker_on_its_device_measure_next() -> None:
    tasks = [task("a", adapter="GPU"), task("b"), task("c", adapter="GPU"), task("d")]
    done = calls(tasks, FakeWorkers(asking="a"), turn_s=ENDLESS_S)
    assert done[:12] == ["a", "c", "a", "c", "a", "b", "b", "b", "c", "d", "d", "d"]


@pytest.mark.parametrize(("device", "other"), [("0", "c"), ("", "b")])
def test_the_next_worker_is_on_the_same_device_or_one_of_the_same_name(
    device: str, other: str
) -> None:
    others = [task("b", adapter="GPU", device="1"), task("c", adapter="GPU", device="0")]
    done = calls(
        [task("a", adapter="GPU", device=device), *others],
        FakeWorkers(asking="a"),
        turn_s=ENDLESS_S,
    )
    assert done[:5] == ["a", other, "a", other, "a"]


def test_workers_that_alternate_and_other_workers_measure_for_the_same_time() -> None:
    workers = FakeWorkers(rounds=40, asking="a")
    done = calls(
        [task("a"), task("b"), task("c")],
        workers,
        turn_s=4.0,
        clock=lambda: float(len(workers.calls)),
    )
    for at in range(12, 110):
        counts = [done[:at].count(name) for name in "abc"]
        # A call takes a second here, so a turn of 4 s is four calls.
        assert max(counts) - min(counts) <= 2 * 4, (at, counts)


def test_a_worker_continues_if_no_other_worker_uses_its_device() -> None:
    done = calls([task("a", adapter="GPU"), task("b")], FakeWorkers(asking="a"), turn_s=ENDLESS_S)
    assert done[:6] == ["a", "a", "a", "b", "b", "b"]


def test_a_target_with_fewer_processes_is_measured_in_the_first_ones() -> None:
    done = calls([task("a", processes=4), task("b", processes=3)], processes=4)
    ends = [call for call in done if call.endswith("ends")]
    assert ends.count("a ends") == 4
    assert ends.count("b ends") == 3
    last_end_of_b = len(done) - 1 - done[::-1].index("b ends")
    assert "b" not in done[last_end_of_b + 1 :]
    assert ends[-1] == "a ends"


def test_the_workers_of_two_interpreters_take_turns_and_the_order_changes() -> None:
    workers, order = FakeWorkers(), list[tuple[str, int]]()

    class Sides(faked(workers)):  # type: ignore[misc]
        def start_worker(
            self, job: Job, environment: Mapping[str, str], interpreter: Interpreter
        ) -> Any:
            order.append((interpreter.python, job.process))
            return super().start_worker(job)

    plan = Plan(processes=3, precision=0.1, sampling_s=None, wall_s=None, case_s=1.0)
    sides = [Interpreter(python="base"), Interpreter(python="new")]
    runs = [InterpreterRun(FakeJournal(), [task("a", processes=3)], side) for side in sides]  # type: ignore[arg-type]
    Sides(
        runs, plan, Listener(), [], random.Random(1), WorkerLimits(memory_bytes=1, open_workers=8)
    ).run()
    first, second, third = order[:2], order[2:4], order[4:]
    assert sorted(first) == [("base", 0), ("new", 0)]
    assert sorted(second) == [("base", 1), ("new", 1)]
    assert sorted(third) == [("base", 2), ("new", 2)]
    beginning_sides = [turn[0][0] for turn in (first, second, third)]
    assert beginning_sides in (["base", "new", "base"], ["new", "base", "new"])


def test_a_worker_that_died_is_started_again_with_all_its_cases() -> None:
    workers = FakeWorkers(dying={"a": [0]})
    done = calls([task("a", cases=2), task("b")], workers)
    assert done[:3] == ["a", "a ends", "b"], "the first worker of a dies in its first round"
    assert done[3:7] == ["a", "b", "a", "b"]
    assert done[7] == "a"
    died, again = [job for job in workers.jobs if "a@" in job.worker]
    assert died.process == 0
    assert len(died.assignments) == 2
    assert again.process == 1
    assert len(again.assignments) == 2


def test_a_case_at_which_two_workers_died_is_left_out() -> None:
    workers = FakeWorkers(dying={"a": [1, 0]})
    calls([task("a", cases=3, processes=2)], workers, processes=2)
    started = [[a.case.params["n"] for a in job.assignments] for job in workers.jobs]
    assert started == [[0, 1, 2], [0, 1, 2], [1, 2], [1, 2]]


def test_a_worker_that_dies_in_a_later_process_is_started_again() -> None:
    workers = FakeWorkers(dying={"a": [1, 99, 1, 99]})
    calls([task("a", cases=2, processes=2)], workers, processes=2)
    assert [len(job.assignments) for job in workers.jobs] == [2, 2, 2, 2]


def test_an_interruption_while_workers_start_ends_the_running_workers() -> None:
    class Interrupting(Listener):
        def working(self, now: RunStep) -> None:
            if isinstance(now, Opening) and now.target.startswith("b"):
                raise KeyboardInterrupt

    workers = FakeWorkers()
    with pytest.raises(KeyboardInterrupt):
        calls([task("a"), task("b")], workers, listener=Interrupting())
    assert workers.calls == ["a ends"]


@pytest.mark.parametrize(
    ("processors", "memory_gib", "workers"), [(8, 16, 5), (8, 1, 1), (8, 1024, 8), (128, 1024, 16)]
)
def test_memory_and_processors_limit_the_open_workers(
    processors: int, memory_gib: int, workers: int
) -> None:
    assert room_for_workers(processors, memory_gib << 30) == workers
