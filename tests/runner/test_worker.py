"""What a worker says, and when: the parent must hear of each opening, and of long work before the rounds."""

from __future__ import annotations

import io
from typing import Any

import pytest

from overhead.measure.sampling import rounds as c
from overhead.probes.base import Chain, Unsupported
from overhead.results import Case, OpenedLine, Target
from overhead.runner import worker
from overhead.runner.protocol import Assignment, Job, Pause, Ready, decode

TARGET = Target(stack="fake", api="CPU", adapter="A")
CASES = [Case(pattern="per-submit", params={"n": n}) for n in range(3)]


class Still(Chain):
    def issue(self, n: int) -> None:
        return

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return 0

    def opening(self) -> dict[str, float]:
        return {"compile": 5.0}


class Fake:
    def open(self, target: Target, case: Case) -> Chain:
        if case.params["n"] == 1:
            raise Unsupported("not here")
        return Still()


class Told(io.BytesIO):
    """Remembers how many lines had been said at every flush."""

    def __init__(self) -> None:
        super().__init__()
        self.flushed: list[int] = []

    def flush(self) -> None:
        self.flushed.append(self.getvalue().count(b"\n"))


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    monkeypatch.setattr(worker, "registry", lambda: {"fake": Fake()})
    return Told()


def made(told: Told) -> worker.Worker:
    job = Job(worker=TARGET.key, assignments=[Assignment(TARGET, case) for case in CASES])
    return worker.Worker(job, told, lambda: None)


def lines(told: Told) -> list[Any]:
    return [decode(line) for line in told.getvalue().splitlines()]


def test_every_opening_is_told_at_once(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.Worker, "_conduct", lambda self: "enough")
    made(told).measure()
    said = lines(told)
    assert told.flushed[:3] == [3, 4, 7]
    assert [line.name for line in said if hasattr(line, "values")] == ["open", "compile", "open", "compile"]
    assert [type(line) for line in said if isinstance(line, OpenedLine | Ready)] == [OpenedLine, OpenedLine, Ready]


@pytest.mark.parametrize(("quiet_s", "pauses"), [(1e9, 1), (-1.0, 3)])
def test_long_work_before_the_rounds_is_interrupted_by_a_word(
    told: Told, monkeypatch: pytest.MonkeyPatch, quiet_s: float, pauses: int
) -> None:
    def conduct(chains: Any, clock: Any, settings: Any, emit: Any) -> str:
        for case in ("a", "b", ""):
            emit(c.Doing(case, "first"))
        return "enough"

    monkeypatch.setattr(c, "conduct", conduct)
    monkeypatch.setattr(worker, "QUIET_S", quiet_s)
    made(told).measure()
    assert len([line for line in lines(told) if isinstance(line, Pause)]) == pauses


def test_a_pause_says_whether_another_is_to_measure(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def conduct(chains: Any, clock: Any, settings: Any, emit: Any) -> str:
        emit(c.Doing("", "once", others=True))
        emit(c.Doing("", "round 1"))
        return "enough"

    monkeypatch.setattr(c, "conduct", conduct)
    made(told).measure()
    assert [line.others for line in lines(told) if isinstance(line, Pause)] == [True, False]
