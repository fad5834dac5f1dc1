"""Workers take turns at the machine: whole rounds each, until all have ended, and only then may any release."""

from __future__ import annotations

import contextlib
import dataclasses
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from overhead.profiles import PROFILES
from overhead.results import Case, EndedLine, Target
from overhead.runner import campaign, spawn
from overhead.runner.campaign import Campaign, Lane
from overhead.runner.interpreter import Interpreter
from overhead.runner.progress import Listener
from overhead.runner.protocol import Assignment, Job, Pause, Ready
from overhead.runner.schedule import Task
from overhead.runner.spawn import Died, WorkerProcess

said: list[str] = []


class Journal:
    path = Path("journal")

    def write(self, lines: Any) -> None:
        """Takes everything."""
        list(lines)

    def sync(self) -> None:
        """Nothing to write."""


class Worker:
    """Pauses after each of its rounds, ``asking`` for another's turn or not; ``dying`` at a round the first time it is
    started."""

    rounds = 3
    asking: ClassVar[set[str]] = set()
    dying: ClassVar[dict[str, int]] = {}

    def __init__(self, job: Job, *_: object, **__: object) -> None:
        self.name, self.process = job.worker.split("@")[0], job.process
        ended = EndedLine(worker=job.worker, process=job.process, rule="3 rounds")
        self.lines: list[Any] = [Ready(), *[Pause(others=self.name in self.asking)] * (self.rounds - 1), ended]
        self.dies = self.dying.pop(self.name, None)

    def listen(self) -> Any:
        line = self.lines.pop(0)
        if self.dies is not None and len(self.lines) == self.rounds - 1 - self.dies:
            raise Died(0, "it was killed")
        return line

    def go(self) -> None:
        said.append(self.name)

    def release(self) -> None:
        said.append(f"{self.name} may release")

    def end(self) -> None:
        said.append(f"{self.name} ends")


def _task(name: str, cases: int = 1, on: str = "CPU", device: str = "") -> Task:
    target = Target(stack=name, api="CPU", adapter=on, device=device)
    wanted = [Assignment(target, Case(pattern="per-submit", unit="launch", params={"n": n})) for n in range(cases)]
    return Task(target, tuple(wanted), 1.0, 3)


def _run(
    monkeypatch: pytest.MonkeyPatch,
    tasks: Sequence[Task],
    turn_s: float = 0.0,
    listener: Listener | None = None,
    **limits: Any,
) -> Campaign:
    said.clear()
    monkeypatch.setattr(campaign, "WorkerProcess", Worker)
    monkeypatch.setattr(campaign, "baton", lambda waiting: contextlib.nullcontext())
    monkeypatch.setattr(campaign, "TURN_S", turn_s)
    monkeypatch.setattr(campaign, "widths", lambda tasks, journals: {})
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    for name, value in limits.items():
        monkeypatch.setattr(campaign, name, value)
    lane = Lane(Journal(), tasks)  # type: ignore[arg-type]
    made = Campaign([lane], PROFILES["quick"], listener or Listener(), [], random.Random(1))
    made._group([[(lane, task)] for task in tasks])
    return made


def test_workers_measure_a_turn_each_until_all_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    _run(monkeypatch, [_task("a"), _task("b")])
    assert said[:6] == ["a", "b"] * 3
    assert said[6:] == ["a may release", "b may release", "a ends", "b ends"]


def test_a_worker_waits_where_it_asks_to_until_another_of_its_device_has_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Worker, "asking", {"a"})
    _run(monkeypatch, [_task("a", on="GPU"), _task("b"), _task("c", on="GPU"), _task("d")], turn_s=1e9)
    assert said[:12] == ["a", "c", "a", "c", "a", "b", "b", "b", "c", "d", "d", "d"]


def test_of_two_devices_of_a_name_it_is_the_same_if_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "asking", {"a"})
    others = [_task("b", on="GPU", device="1"), _task("c", on="GPU", device="0")]
    _run(monkeypatch, [_task("a", on="GPU", device="0"), *others], turn_s=1e9)
    assert said[:5] == ["a", "c", "a", "c", "a"]
    _run(monkeypatch, [_task("a", on="GPU"), *others], turn_s=1e9)
    assert said[:5] == ["a", "b", "a", "b", "a"]


def test_two_who_ask_alternate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "asking", {"a", "b"})
    _run(monkeypatch, [_task("a"), _task("b"), _task("c")], turn_s=1e9)
    assert said[:9] == ["a", "b", "a", "b", "a", "b", "c", "c", "c"]


def test_who_asks_and_who_does_not_get_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "asking", {"a"})
    monkeypatch.setattr(Worker, "rounds", 40)
    monkeypatch.setattr("time.monotonic", lambda: float(len(said)))
    _run(monkeypatch, [_task("a"), _task("b"), _task("c")], turn_s=4.0)
    for at in range(12, 110):
        counts = [said[:at].count(name) for name in "abc"]
        assert max(counts) - min(counts) <= 2 * 4, (at, counts)


def test_one_who_asks_alone_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Worker, "asking", {"a"})
    _run(monkeypatch, [_task("a", on="GPU"), _task("b")], turn_s=1e9)
    assert said[:6] == ["a", "a", "a", "b", "b", "b"]


def test_a_target_of_fewer_processes_takes_part_in_the_first_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    often = dataclasses.replace(_task("a"), processes=PROFILES["quick"].processes)
    made = _run(monkeypatch, [often, _task("b")])
    said.clear()
    made.run()
    ends = [line for line in said if line.endswith("ends")]
    assert (ends.count("a ends"), ends.count("b ends")) == (4, 3)
    assert "b" not in said[-1 - said[::-1].index("b ends") + 1 :]
    assert ends[-1] == "a ends"


def test_a_turn_holds_as_many_rounds_as_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    _run(monkeypatch, [_task("a"), _task("b")], turn_s=60.0)
    assert said[:6] == ["a", "a", "a", "b", "b", "b"]


def test_who_died_starts_anew_and_takes_its_turns_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Worker.dying = {"a": 0}
    _run(monkeypatch, [_task("a", cases=2), _task("b")])
    assert said[:3] == ["a", "a ends", "b"]
    assert said[3:7] == ["a", "b", "a", "b"]
    assert said[7] == "a"


def test_an_interruption_while_workers_start_ends_those_that_have(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting(Listener):
        def working(self, what: str) -> None:
            if "opening b" in what:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run(monkeypatch, [_task("a"), _task("b")], listener=Interrupting())
    assert said == ["a ends"]


def test_no_more_workers_are_open_than_memory_and_processors_have_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("psutil.virtual_memory", lambda: type("Memory", (), {"total": 16 << 30}))
    assert _run(monkeypatch, [_task("a")]).abreast == 5
    assert _run(monkeypatch, [_task("a")], WORKER_BYTES=64 << 30).abreast == 1
    assert _run(monkeypatch, [_task("a")], WORKER_BYTES=1).abreast == 8


def test_workers_told_together_release_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, waited = [100.0], list[float]()
    monkeypatch.setattr(spawn, "time", SimpleNamespace(monotonic=lambda: now[0]))
    hanging = Interpreter([sys.executable, "-c", "import time; time.sleep(60)"])
    two = [
        WorkerProcess(Job(worker="w"), {}, silence_s=1.0, memory_bytes=1 << 30, interpreter=hanging) for _ in range(2)
    ]

    def wait(self: Any, timeout: float | None = None) -> None:
        if timeout is not None:
            waited.append(timeout)
            now[0] += timeout
            raise subprocess.TimeoutExpired("worker", timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait)
    for one in two:
        one.release()
    for one in two:
        one.end()
    assert waited == [spawn.RELEASE_S, 0.0]
