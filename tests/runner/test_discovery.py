"""A stack whose worker dies while it lists its targets is asked once more."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.results import because
from overhead.runner import discovery
from overhead.runner.discovery import discover
from overhead.runner.events import RunStep
from overhead.runner.workers import FoundTargets, WorkerDied
from tests.fakes.simulated import TARGET

KILLED = because("died-while", why=because("process-killed", signal="SIGKILL"), doing="starting")


class Asked:
    """Workers of which the first ``dying`` die. ``made``: how many were started."""

    def __init__(self, dying: int) -> None:
        self.dying, self.made = dying, 0

    def __call__(self, *_: Any, **__: Any) -> Asked:
        self.made += 1
        return self

    def receive(self) -> FoundTargets:
        if self.made <= self.dying:
            raise WorkerDied(-1, KILLED)
        return FoundTargets(targets=[TARGET])

    def release(self) -> None:
        """Nothing is open."""

    def end(self) -> None:
        """There is no process."""


@pytest.mark.parametrize(
    ("dying", "found"),
    [
        pytest.param(0, True, id="the first worker answers"),
        pytest.param(1, True, id="the second answers"),
        pytest.param(2, False, id="both die"),
    ],
)
def test_a_stack_whose_worker_dies_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch, dying: int, found: bool
) -> None:
    asked = Asked(dying)
    monkeypatch.setattr(discovery, "WorkerProcess", asked)
    told: list[RunStep] = []
    answer = discover(["numpy"], working=told.append)
    assert len(told) == 2, "told at the beginning and after the answer"
    assert asked.made == min(2, dying + 1), "a second worker only where the first has died"
    assert bool(answer.targets) == found
    assert [missing.reason for missing in answer.missing] == ([] if found else [KILLED])
