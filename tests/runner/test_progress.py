"""The time left of a run comes true, counts down, and its lines do not break words. On a fake
clock.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import pytest
from rich.console import Console

from overhead.profiles import Plan
from overhead.results import Together
from overhead.runner import progress as progress_module
from overhead.runner.campaign import InterpreterRun, WorkerLimits
from overhead.runner.progress import Listener, Progress, shortened
from overhead.runner.time_left import Durations, PlannedProcess, RunTimeLeft
from overhead.runner.workers import Job
from overhead.words.runner import time_left
from tests.fakes.workers import FakeJournal, FakeWorker, FakeWorkers, faked
from tests.runner.test_campaign import InOrder, task

Side = Literal["base", "new"]
TURN_S = 0.5
ROUNDS = 6


class SlowWorkers(FakeWorkers):
    """Each process takes ``opening_s`` of its number to open, and a turn takes half a second."""

    def __init__(self, opening_s: Sequence[float]) -> None:
        super().__init__(rounds=ROUNDS)
        self.opening_s = opening_s

    def __call__(self, job: Job) -> FakeWorker:
        self.now_s += self.opening_s[job.process]
        return super().__call__(job)

    def clock(self) -> float:
        turns = sum(" " not in call for call in self.calls)
        return self.now_s + TURN_S * turns


class Estimates(Listener):
    """Keeps when each estimate came, and when it said that the run ends."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.came: list[float] = []
        self.left_s: list[float] = []

    def left(self, seconds: float) -> None:
        self.came.append(self.clock())
        self.left_s.append(seconds)

    @property
    def ends(self) -> list[float]:
        return [came + left for came, left in zip(self.came, self.left_s, strict=True)]


def estimated(
    opening_s: Sequence[float],
    wait_s: float = 0.0,
    sides: Sequence[Side] = (),
    wall_s: float | None = None,
) -> tuple[Estimates, float]:
    """The estimates of a run of five processes, and when it ended. ``wait_s``: for other runs,
    before each process.
    """
    workers = SlowWorkers(opening_s)
    estimates = Estimates(workers.clock)

    class Waiting(faked(workers)):  # type: ignore[misc]
        def lock(self, waiting: Callable[[float], None]) -> Any:
            workers.now_s += wait_s
            return contextlib.nullcontext()

    plan = Plan(processes=5, precision=0.1, sampling_s=None, wall_s=wall_s, case_s=1.0)
    limits = WorkerLimits(turn_s=TURN_S, open_workers=8, memory_bytes=1)
    tasks = [task("a", processes=5)]
    compared = [Together(id="1", side=side) for side in sides]
    together: list[Together | None] = [*compared] or [None]
    runs = [InterpreterRun(FakeJournal(), tasks, together=one) for one in together]  # type: ignore[arg-type]
    Waiting(runs, plan, estimates, [], InOrder(1), limits).run()
    return estimates, workers.clock()


def assert_comes_true(estimates: Estimates, ended: float) -> None:
    """There is an estimate at once, and from a quarter of the run on none is wrong by more than 30
    %.
    """
    assert estimates.came[0] == 0.0
    later = [
        end for came, end in zip(estimates.came, estimates.ends, strict=True) if came > ended / 4
    ]
    assert len(later) > 3
    assert all(0.7 * ended < end < 1.3 * ended for end in later)


@pytest.mark.parametrize(
    ("opening_s", "wait_s"),
    [
        ([3.0] * 5, 0.0),
        ([3.0, 4.5, 4.5, 4.5, 4.5], 0.0),
        ([7.0, 3.0, 3.0, 3.0, 3.0], 0.0),
        ([3.0] * 5, 4.0),
        ([0.0] * 5, 0.0),
        ([20.0] * 5, 0.0),
    ],
    ids=[
        "steady",
        "slower after the first",
        "slow first",
        "waits for others",
        "nothing to open",
        "slow to open",
    ],
)
def test_the_time_left_of_a_short_run_comes_true(opening_s: Sequence[float], wait_s: float) -> None:
    estimates, ended = estimated(opening_s, wait_s)
    assert_comes_true(estimates, ended)


def test_the_time_left_of_two_interpreters_comes_true() -> None:
    estimates, ended = estimated([3.0, 2.0, 2.0, 2.0, 2.0], sides=("base", "new"))
    assert_comes_true(estimates, ended)


def test_the_time_left_ends_at_the_limit_of_the_run() -> None:
    estimates, ended = estimated([10.0] * 5, wall_s=45.0)
    assert ended < 45.0
    assert_comes_true(estimates, ended)


def test_a_slower_process_moves_the_estimate_while_it_runs() -> None:
    estimates, ended = estimated([3.0, 12.0, 12.0, 12.0, 12.0])
    last_of_second = max(
        n for n, came in enumerate(estimates.came) if came < 3.0 + 12.0 + 2 * ROUNDS * TURN_S + 0.1
    )
    assert estimates.ends[last_of_second] == pytest.approx(ended, rel=0.3)


def test_the_time_left_counts_down_to_the_end() -> None:
    estimates, ended = estimated([1.0, 4.0, 4.0, 4.0, 6.0])
    last = [
        left
        for came, left in zip(estimates.came, estimates.left_s, strict=True)
        if came > ended - 5 * TURN_S
    ]
    assert len(last) > 2
    assert last == sorted(last, reverse=True)
    assert len(set(last)) == len(last)
    assert last[-1] < 2 * TURN_S


def terminal(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return (
        Console(
            file=out, width=width, force_terminal=True, color_system=None, legacy_windows=False
        ),
        out,
    )


def test_a_note_in_a_terminal_breaks_between_words() -> None:
    text = (
        "left out (it is not installed here): some-stack unavailable, another-stack unavailable;"
        " Subnormal"
    )
    words = text.split()
    console, out = terminal(30)
    Progress(console).note(text)
    lines = out.getvalue().splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 30 for line in lines)
    assert " ".join(lines).split() == words


@pytest.mark.parametrize("width", [60, 80])
def test_the_line_of_the_bar_fits_the_terminal_and_breaks_no_word(width: int) -> None:
    text = "12 of 20 answers; waiting for chromium-unavailable, Subzero"
    console, out = terminal(width)
    with Progress(console) as progress:
        progress.begin()
        progress.working(text)
        progress.left(754.0)
    frames = [
        re.sub(r"\x1b\[[0-9?]*[a-zA-Z]", "", frame) for frame in re.split(r"[\r\n]", out.getvalue())
    ]
    assert all(len(frame) <= width for frame in frames)
    last = next(frame for frame in reversed(frames) if "12 of" in frame)
    told = last[last.index("12 of") :].rstrip().removesuffix("\N{HORIZONTAL ELLIPSIS}")
    assert text.startswith(told)
    assert text[len(told)] in " ,;"


@pytest.mark.parametrize("room", [20, 30, 60, 200])
def test_what_runs_now_is_cut_after_a_word(room: int) -> None:
    text = "base: opening wgpu-native@Vulkan:NVIDIA H100 80GB HBM3, process 12 of 20"
    found = shortened(text, room)
    assert len(found) <= room
    kept = found.removesuffix("\N{HORIZONTAL ELLIPSIS}")
    assert text.startswith(kept)
    assert kept == text or text[len(kept)] in " ,"


def test_seconds_below_five_are_told_and_no_line_of_its_own_stays() -> None:
    console, out = terminal(120)
    with Progress(console) as progress:
        progress.begin()
        for seconds in (4.0, 3.0, 2.0):
            progress.left(seconds)
        before = out.getvalue()
    assert "\n" not in before, "a line of its own would stay on the screen"
    assert all(f"about {seconds} s left" in before for seconds in (4, 3, 2))


def log() -> tuple[Progress, io.StringIO, list[float]]:
    """The progress as a log gets it, and its clock."""
    out, now = io.StringIO(), [0.0]
    return Progress(Console(file=out, width=200), clock=lambda: now[0]), out, now


def test_a_log_says_for_which_process_and_how_long_the_run_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_module, "device_lock_holder", lambda: 4321)
    progress, out, now = log()
    progress.begin()
    for _ in range(300):
        progress.waiting(now[0])
        now[0] += 0.2
    waits = [line for line in out.getvalue().splitlines() if "waiting" in line]
    # It waits for 60 s: a line after 3 s, and then every 20 s.
    assert 2 <= len(waits) <= 4
    assert all("4321" in line for line in waits)
    assert "3 s" in waits[0]
    assert "43 s" in waits[-1]


def test_short_waits_fill_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "device_lock_holder", lambda: None)
    progress, out, now = log()
    for _ in range(5):
        progress.waiting(0.0)
        progress.waiting(0.2)
        progress.waited(0.4)
        now[0] += 30.0
    assert out.getvalue() == ""


def test_a_log_has_the_first_estimate_at_once_and_then_one_every_twenty_seconds() -> None:
    progress, out, now = log()
    progress.begin()
    for _ in range(50):
        progress.left(60.0 - now[0])
        now[0] += 1.0
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        time_left(seconds) for seconds in (60.0, 40.0, 20.0)
    ]


def test_work_of_a_kind_that_was_not_done_takes_as_much_longer_than_planned_as_others() -> None:
    durations = Durations(planned_s={"a": 10.0, "b": 10.0})
    durations.took("a", seconds=40.0)
    assert 20.0 < durations.expected_s("b") <= 40.0, "longer than planned, as the other was"
    durations.took("a", seconds=10.0)
    assert durations.expected_s("a") == 10.0, "as the last one"
    durations.runs_for("a", seconds=30.0)
    assert durations.expected_s("a") == 30.0, "what runs now has already taken longer"
    assert durations.rest_s("a") == 0.0


def test_a_plan_that_knows_how_long_processes_open_gives_the_right_first_estimate() -> None:
    planned = [PlannedProcess("a", 4.0, 3)]
    assert RunTimeLeft(planned, opening_s=20.0).left_s(0.0) == pytest.approx(3 * 24.0)
