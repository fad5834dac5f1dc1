"""Test how the parent asks stacks for their targets, and what a resume does where they are missing now."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from overhead.errors import UsageError
from overhead.results import MissingStack
from overhead.runner import discovery, start
from overhead.runner.discovery import Discovery, discover
from overhead.runner.protocol import FoundTargets
from overhead.runner.workers import WorkerDied
from tests.fakes.disk import Disk, Killed, measured_lines
from tests.fakes.simulated import TARGET, simulated_run


class Asked:
    """Workers of which the first ``dying`` die. ``made``: how many were started."""

    def __init__(self, dying: int) -> None:
        self.dying, self.made = dying, 0

    def __call__(self, *_: Any, **__: Any) -> Asked:
        self.made += 1
        return self

    def listen(self) -> FoundTargets:
        if self.made <= self.dying:
            raise WorkerDied(-1, "the worker was killed by SIGKILL (while starting)")
        return FoundTargets(targets=[TARGET])

    def release(self) -> None:
        """Nothing is open."""

    def end(self) -> None:
        """There is no process."""


@pytest.mark.parametrize(("dying", "found"), [(0, True), (1, True), (2, False)])
def test_a_stack_whose_worker_dies_is_asked_once_more(monkeypatch: pytest.MonkeyPatch, dying: int, found: bool) -> None:
    asked = Asked(dying)
    monkeypatch.setattr(discovery, "WorkerProcess", asked)
    answer = discover(["numpy"])
    assert asked.made == min(2, dying + 1)
    assert bool(answer.targets) == found
    assert [missing.reason for missing in answer.missing] == (
        [] if found else ["the worker was killed by SIGKILL (while starting)"]
    )


def test_the_stacks_that_are_being_asked_are_named_until_all_have_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "WorkerProcess", Asked(0))
    said: list[str] = []
    discover(["numpy", "torch"], working=said.append)
    assert all(any(name in words for words in said) for name in ("numpy", "torch"))
    assert all("numpy" in words or "torch" in words for words in said)


def interrupted(folder: Path, step: tuple[str, int]) -> Path:
    with Disk(step).installed(), pytest.raises(Killed):
        simulated_run(stacks=["steady"], out=folder / "r.json")
    return folder / "r.jsonl"


def test_a_resume_that_can_measure_nothing_leaves_the_journal_as_it_is(tmp_path: Path) -> None:
    journal = interrupted(tmp_path, ("write r.jsonl", 12))
    before = measured_lines(journal)
    missing = Discovery([], [MissingStack(stack="steady", reason="the driver does not answer")])
    with (
        mock.patch("tests.fakes.simulated.Discovery", return_value=missing),
        pytest.raises(UsageError, match="nothing that it lacks can be measured now: steady: the driver does not"),
    ):
        simulated_run(resume=journal)
    assert measured_lines(journal) == before


def test_a_complete_journal_is_finished_without_asking_any_stack(tmp_path: Path) -> None:
    journal = interrupted(tmp_path, ("open r.json.part", 0))
    with mock.patch.object(start, "resumed", side_effect=AssertionError("nothing is missing")):
        assert simulated_run(resume=journal).measured
    assert not journal.exists()
