"""The lines that a worker sends: each opened chain is reported at once, and so is long work before
the rounds.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from overhead.measure.sampling.events import Doing
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.results import Case, OneOffEntry, OpenedEntry, Target
from overhead.runner import worker
from overhead.runner.workers import Assignment, Job, Pause, Ready
from tests.fakes.chains import Steady
from tests.fakes.machine import FakeClock
from tests.fakes.workers import Parent

TARGET = Target(stack="fake", api="CPU", adapter="A")
CASES = [Case(pattern="per-submit", params={"n": n}) for n in range(3)]


class Fake(Probe):
    """A stack whose second case cannot be opened."""

    def targets(self) -> list[Target]:
        return [TARGET]

    def space(self, target: Target) -> Space:
        return Space(CASES[0])

    def open(self, target: Target, case: Case) -> Chain:
        if case.params["n"] == 1:
            raise Unsupported("not here")
        return Steady(FakeClock(), opening=lambda: {"compile": 5.0})


def run(*events: Doing, longest_silence_s: float = 1e9) -> tuple[list[Any], list[int]]:
    """The lines of a worker whose measurement emits these events, and the number of lines at every
    flush.
    """

    def measure(chains: Any, clock: Any, settings: Any, emit: Any, judge_first: Any) -> str:
        for event in events:
            emit(event)
        return "enough"

    job = Job(worker=TARGET.key, assignments=[Assignment(TARGET, case) for case in CASES])
    parent = Parent()
    stacks = {"fake": Fake()}
    with mock.patch.multiple(
        worker, LONGEST_SILENCE_S=longest_silence_s, registry=lambda: stacks, measure_cases=measure
    ):
        worker.Worker(job, parent).open_and_measure()
    return parent.answers, parent.flushed


def test_a_worker_sends_its_lines_after_each_case_that_it_opens() -> None:
    lines, flushed = run()
    assert flushed[:3] == [3, 4, 7]
    assert [line.name for line in lines if isinstance(line, OneOffEntry)] == [
        "open",
        "compile",
        "open",
        "compile",
    ]
    assert [type(line) for line in lines if isinstance(line, OpenedEntry | Ready)] == [
        OpenedEntry,
        OpenedEntry,
        Ready,
    ]


@pytest.mark.parametrize(("longest_silence_s", "pauses"), [(1e9, 1), (-1.0, 3)])
def test_a_worker_pauses_before_a_round_and_after_a_long_silence(
    longest_silence_s: float, pauses: int
) -> None:
    lines, _ = run(
        *(Doing(case, "first") for case in ("a", "b", "")), longest_silence_s=longest_silence_s
    )
    assert len([line for line in lines if isinstance(line, Pause)]) == pauses


def test_a_worker_that_pauses_says_whether_another_worker_measures_first() -> None:
    lines, _ = run(Doing("", "once", others=True), Doing("", "round 1"))
    assert [line.others for line in lines if isinstance(line, Pause)] == [True, False]
