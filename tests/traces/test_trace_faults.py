"""``overhead explain --trace``: recordings that have lost something, and what a reader must know
before a verdict.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import shutil
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from overhead.cli import main
from overhead.errors import BadFile, UsageError
from overhead.explaining.launch_delays import launch_delays
from overhead.explaining.ranks import compare_ranks, rank_reasons
from overhead.explaining.record import Explanation
from overhead.explaining.trace_file import explain_traces
from overhead.results import Reason, because, codes_of
from overhead.traces import nsys_export
from overhead.traces.clocks import ClockBound, Clocks, clocks_of
from overhead.traces.formats import read_trace_file
from overhead.traces.steps_taken import StepsTaken
from overhead.words.reasons import sentence
from tests.traces.test_trace_file import DEVICE_BOUND, events_of, kineto, nsys

Event = dict[str, Any]
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"


@dataclasses.dataclass
class Program:
    """A made program: µs of one process, with one device. Each call gets the next number."""

    pid: int = 1
    device: int = 0
    events: list[Event] = dataclasses.field(default_factory=list)
    number: int = 0

    def span(self, category: str, name: str, start: float, length_us: float, **more: Any) -> Event:
        made = {
            "ph": "X",
            "cat": category,
            "name": name,
            "ts": start,
            "dur": length_us,
            "pid": self.pid,
            "tid": 1,
        }
        self.events.append(made | {"args": {}} | more)
        return self.events[-1]

    def step(self, number: int, start: float, length_us: float) -> None:
        self.span("user_annotation", f"ProfilerStep#{number}", start=start, length_us=length_us)

    def call(
        self,
        name: str,
        start: float,
        length_us: float,
        category: str = "cuda_runtime",
        tid: int = 1,
    ) -> None:
        self.number += 1
        numbered = {"correlation": self.number}
        self.span(category, name, start=start, length_us=length_us, args=numbered, tid=tid)

    def launch(
        self, called: float, starts: float, length_us: float, kernel: str = "gemm", **more: Any
    ) -> None:
        """A call that launches work, and its work: when it is called, when the work starts."""
        self.call(
            more.pop("call", "cudaLaunchKernel"),
            start=called,
            length_us=more.pop("call_us", 2),
            category=more.pop("calls", "cuda_runtime"),
        )
        place: Event = {"pid": self.device, "tid": 7, "args": {"correlation": self.number}} | more
        self.span(
            place.pop("category", "kernel"), kernel, start=starts, length_us=length_us, **place
        )


def usual(
    host_us: float = 50, device_us: float = 5, steps: int = 6, launches: int = 10, wait: bool = True
) -> list[Event]:
    """Steps of launches of one kernel each; a wait at the end of each step. A launch takes the
    host ``host_us`` and the device ``device_us``.
    """
    program, now, free = Program(), 1e6, 0.0
    for number in range(steps):
        began = now
        for _ in range(launches):
            program.span("cpu_op", "aten::mul", start=now, length_us=0.8 * host_us)
            start = max(free, now + 0.2 * host_us + 5)
            program.launch(called=now + 0.2 * host_us, starts=start, length_us=device_us)
            free, now = start + device_us, now + host_us
        if wait:
            end = max(now, free) + 3
            program.call("cudaDeviceSynchronize", start=now, length_us=end - now)
            now = end
        program.step(number, start=began, length_us=now - began)
    return program.events


def is_kernel(event: Event) -> bool:
    return bool(event["cat"] == "kernel")


def explained(
    tmp_path: Path, events: Sequence[Event], step_ms: float = 0.0, **more: Any
) -> Explanation:
    return explain_traces([kineto(tmp_path / "t.json", events, **more)], step_ms)


def said(found: Explanation) -> dict[str, Reason]:
    """All that is said of the steps, by its code; also what is said inside of it."""
    return by_code([*found.verdict.sentences, *found.not_seen])


def steps_taken(found: Explanation) -> StepsTaken:
    assert found.steps_taken is not None
    return found.steps_taken


def by_code(reasons: Iterable[object]) -> dict[str, Reason]:
    found: dict[str, Reason] = {}
    for reason in reasons:
        if isinstance(reason, Reason):
            found |= {reason.code: reason} | by_code([*reason.values.values(), *reason.also])
    return found


def has_a_share(reason: object) -> bool:
    """Whether a reason, or one inside of it, says how large a share is."""
    return any("share" in each.values for each in by_code([reason]).values())


def _negative(events: list[Event]) -> list[Event]:
    return [
        event | {"dur": -event["dur"]} if is_kernel(event) and _every_second(event) else event
        for event in events
    ]


def _without_number(events: list[Event]) -> list[Event]:
    return [
        event | {"args": {}} if is_kernel(event) and _every_second(event) else event
        for event in events
    ]


def _without_kernels(events: list[Event]) -> list[Event]:
    return [event for event in events if not (is_kernel(event) and _every_second(event))]


def _without_calls(events: list[Event]) -> list[Event]:
    return [
        event
        for event in events
        if not (event["name"] == "cudaLaunchKernel" and _every_second(event))
    ]


def _of_the_last_steps(events: list[Event]) -> list[Event]:
    last = max(event["ts"] for event in events if is_kernel(event))
    return [event for event in events if not (is_kernel(event) and event["ts"] > (1e6 + last) / 2)]


def _one_number(events: list[Event]) -> list[Event]:
    return [event | {"args": {"correlation": 1}} if is_kernel(event) else event for event in events]


def _every_second(event: Event) -> bool:
    return bool(event["args"]["correlation"] % 2)


@pytest.mark.parametrize(
    "damage",
    [_negative, _without_number, _without_kernels, _without_calls, _of_the_last_steps, _one_number],
)
@pytest.mark.parametrize("wait", [True, False])
def test_a_recording_that_lost_much_gets_no_verdict(
    damage: Callable[[list[Event]], list[Event]], wait: bool, tmp_path: Path
) -> None:
    whole = usual(host_us=45, device_us=50, wait=wait)
    step_ms = 0.5  # of the program without the profiler: ten launches of 50 µs
    assert explained(tmp_path, whole, step_ms=step_ms).verdict.kind != "unclear"
    found = explained(tmp_path, damage(whole), step_ms=step_ms)
    assert found.verdict.kind == "unclear"
    assert has_a_share(found.verdict.sentences[0])


def test_a_recording_that_lost_little_says_so_and_gets_its_verdict(tmp_path: Path) -> None:
    events = usual(steps=6, launches=20)
    kernels = [event for event in events if is_kernel(event)]
    two_lost = [event for event in events if event not in kernels[40:42]]
    found = explained(tmp_path, two_lost)
    assert found.verdict.kind == "host"
    assert said(found)["launches-without-work"].values == {"lost": 2, "launches": 6 * 20}
    assert "launches-without-work" not in said(explained(tmp_path, events))


@pytest.mark.parametrize(
    ("lost", "kind"),
    [(2, "host"), (5, "unclear"), (12, "unclear")],
    ids=["1.7 % of 120", "4.2 % of 120", "10 % of 120"],
)
def test_a_share_of_lost_work_above_two_per_cent_allows_no_verdict(
    lost: int, kind: str, tmp_path: Path
) -> None:
    events = usual(steps=6, launches=20)
    kernels = [event for event in events if is_kernel(event)]
    lost_kernels = kernels[40 : 40 + lost]
    without_work = [event for event in events if event not in lost_kernels]
    assert explained(tmp_path, without_work).verdict.kind == kind
    # The other half of a launch may be lost too: the work is there, its call is not.
    lost_numbers = {event["args"]["correlation"] for event in lost_kernels}
    without_calls = [
        event
        for event in events
        if is_kernel(event) or event["args"].get("correlation") not in lost_numbers
    ]
    assert explained(tmp_path, without_calls).verdict.kind == kind


def test_what_needs_no_other_half_counts_as_no_loss(tmp_path: Path) -> None:
    """Launches into a graph that is captured do not run, and work from before the recording has no
    call in it.
    """
    program = Program(number=100)
    program.events = [*usual(host_us=5, device_us=50)]
    for event in program.events:  # so that their numbers are above that of the earlier work
        if "correlation" in event.get("args", {}):
            event["args"]["correlation"] += 1000
    began = max(event["ts"] + event["dur"] for event in program.events)
    program.step(99, start=began, length_us=500)
    program.call("cudaStreamBeginCapture", start=began + 1, length_us=1)
    for index in range(40):
        program.call("cudaLaunchKernel", start=began + 3 + index, length_us=1)
    program.call("cudaStreamEndCapture", start=began + 60, length_us=1)
    program.launch(called=began + 70, starts=began + 80, length_us=300, call="cudaGraphLaunch")
    program.span(  # a second kernel of the graph, of the same call
        "kernel",
        "gemm",
        start=began + 390,
        length_us=5,
        pid=0,
        tid=7,
        args={"correlation": program.number},
    )
    earlier = {
        "ph": "X",
        "cat": "kernel",
        "name": "gemm",
        "ts": 1e6 + 1,  # before any other work
        "dur": 5,
        "pid": 0,
        "tid": 7,
        "args": {"correlation": 1},  # a number below all of the recording
    }
    # A stream of its own, which is far behind the other one.
    later = earlier | {"ts": 1e6 + 100, "tid": 9, "args": {"correlation": 2}}
    found = explained(tmp_path, [*program.events, earlier, later])
    assert found.verdict.kind == "device"
    assert said(found)["earlier-work-left-out"].values == {"pieces": 2}


def test_work_of_a_low_number_that_begins_after_other_work_has_lost_its_call(
    tmp_path: Path,
) -> None:
    """Work from before the recording has a low number and runs before any other. Here every second
    launch after the 40th has lost its call, and its work has a number below all calls.
    """
    events = []
    for event in usual(launches=20):
        number = event["args"].get("correlation", 0)
        is_hit = number % 2 == 0 and number > 40
        if is_hit and event["name"] == "cudaLaunchKernel":
            continue
        is_work_without_call = is_hit and is_kernel(event)
        if number and not is_work_without_call:
            event["args"] = {"correlation": number + 1000}
        events.append(event)
    found = explained(tmp_path, events)
    assert found.verdict.kind == "unclear"


def test_a_recording_in_which_every_event_stands_twice_is_read_once(tmp_path: Path) -> None:
    once = explained(tmp_path, usual(launches=10))
    twice = explained(tmp_path, 2 * usual(launches=10))
    assert twice.per_step.launches.value == once.per_step.launches.value == 10
    assert twice.step.busy.value == once.step.busy.value
    assert "doubled-events-left-out" in said(twice)
    assert "doubled-events-left-out" not in said(once)


def with_late_device_clock(events: list[Event], late_us: float) -> list[Event]:
    """The events, with all kernels this much later; earlier if it is negative."""
    return [
        event | {"ts": event["ts"] + late_us} if is_kernel(event) else event for event in events
    ]


@pytest.mark.parametrize("late_us", [6, 10, 50, 1000, -10, -2000])
@pytest.mark.parametrize(
    ("host_us", "device_us", "kind"), [(5, 50, "device"), (50, 5, "host"), (20, 30, "device")]
)
def test_clocks_that_differ_change_no_verdict(
    late_us: float, host_us: float, device_us: float, kind: str, tmp_path: Path
) -> None:
    events = usual(host_us=host_us, device_us=device_us)
    right = explained(tmp_path, events)
    found = explained(tmp_path, with_late_device_clock(events, late_us))
    assert right.verdict.kind == found.verdict.kind == kind
    assert found.replay.replayed.value == pytest.approx(right.replay.replayed.value, rel=0.02)


@pytest.mark.parametrize(
    ("late_us", "side"),
    [(6, "late"), (10, "late"), (50, "late"), (1000, "late"), (-10, "early"), (-2000, "early")],
)
@pytest.mark.parametrize(("host_us", "device_us"), [(5, 50), (20, 30)])
def test_where_waits_end_with_the_work_a_device_clock_is_said_to_be_late_or_early(
    late_us: float, side: str, host_us: float, device_us: float, tmp_path: Path
) -> None:
    events = usual(host_us=host_us, device_us=device_us)
    found = explained(tmp_path, with_late_device_clock(events, late_us))
    assert said(found)["device-clock-apart"].values["side"] == side


def test_a_clock_that_drifts_changes_no_verdict(tmp_path: Path) -> None:
    host_us, device_us = 5, 50
    events = usual(host_us=host_us, device_us=device_us, steps=100)
    start_us, drift = 1e6, 500e-6
    drifting = [
        event | {"ts": event["ts"] + drift * (event["ts"] - start_us)}
        if is_kernel(event)
        else event
        for event in events
    ]
    found = explained(tmp_path, drifting)
    assert found.verdict.kind == "device"
    assert found.verdict.factor == pytest.approx(device_us / host_us, rel=0.02)
    # A number of NumPy cannot be written; the correction of a drift is made of such.
    assert msgspec.json.encode(found)


def test_times_that_no_clock_explains_give_no_verdict(tmp_path: Path) -> None:
    events = usual(host_us=5, device_us=50, steps=20)
    dice = random.Random(1)
    in_the_middle_us = 1.005e6
    jump, random_delays = [], []
    for event in events:
        jump_us = 300 if is_kernel(event) and event["ts"] > in_the_middle_us else 0
        jump.append(event | {"ts": event["ts"] + jump_us})
        random_us = 300 * dice.random() * is_kernel(event)
        random_delays.append(event | {"ts": event["ts"] + random_us})
    assert explained(tmp_path, jump).verdict.kind == "unclear"
    assert explained(tmp_path, random_delays).verdict.kind == "unclear"


def clocks_with(*, work_ends_after_wait: float | None, work_starts_after_call: float) -> Clocks:
    """The clocks of a recording with one wait, or none, and one call that issues work; ns."""
    waits = [] if work_ends_after_wait is None else [ClockBound(at=0, late_ns=work_ends_after_wait)]
    return clocks_of(waits, [ClockBound(at=0, late_ns=work_starts_after_call)])


def test_clocks_agree_where_work_starts_after_its_call_and_ends_before_its_wait() -> None:
    found = clocks_with(work_ends_after_wait=-5000, work_starts_after_call=4000)
    assert found.late_ns == 0


def test_a_late_clock_lies_between_what_waits_and_launches_allow() -> None:
    found = clocks_with(work_ends_after_wait=3000, work_starts_after_call=11_000)
    assert found.late_ns == 7000


def test_where_no_launch_is_close_a_wait_returns_six_us_after_its_work() -> None:
    found = clocks_with(work_ends_after_wait=3000, work_starts_after_call=900_000)
    assert found.late_ns == 9000


def test_work_that_starts_before_its_call_tells_of_an_early_clock() -> None:
    found = clocks_with(work_ends_after_wait=None, work_starts_after_call=-50_000)
    assert found.late_ns < -50_000


def test_a_wait_and_a_launch_that_no_clock_explains_contradict_each_other() -> None:
    found = clocks_with(work_ends_after_wait=50_000, work_starts_after_call=10_000)
    assert found.wrong_ns == 40_000


def test_times_that_are_rounded_to_microseconds_give_no_verdict(tmp_path: Path) -> None:
    # A float above 2**53 (9.0e15) is a whole number, so such times have no parts of a µs.
    events = [event | {"ts": event["ts"] + 9.9e15 - 1e7} for event in usual()]
    assert explained(tmp_path, events).verdict.kind == "unclear"


def rank(
    numbers: Sequence[int], collectives: Callable[[int], dict[int, tuple[str, float]]], number: int
) -> list[Event]:
    """Steps of 20 launches. ``collectives``: for a step, by the index of a launch, name and length
    of its kernel.
    """
    program, now, free = Program(), 1e6 + 1e5 * number, 0.0
    for step in numbers:
        began = now
        for index in range(20):
            name, length = collectives(step).get(index, ("mul", 5.0))
            start = max(free, now + 15)
            program.span("cpu_op", "aten::mul", start=now, length_us=40)
            program.launch(called=now + 10, starts=start, length_us=length, kernel=name)
            free, now = start + length, now + 50
        end = max(now, free) + 3
        program.call("cudaDeviceSynchronize", start=now, length_us=end - now)
        now = end
        program.step(step, start=began, length_us=now - began)
    return program.events


def rank_files(tmp_path: Path, all_events: Sequence[list[Event]]) -> list[Path]:
    return [
        kineto(tmp_path / f"r{number}.json", events, distributedInfo={"rank": number})
        for number, events in enumerate(all_events)
    ]


def test_the_late_rank_is_the_one_that_is_waited_for_longest_and_not_most_often(
    tmp_path: Path,
) -> None:
    """Rank 0 is last by 2 µs in five collectives, rank 1 by 500 µs in one. The kernel of the last
    rank is the shortest, as it waits for nobody.
    """

    def of(number: int) -> Callable[[int], dict[int, tuple[str, float]]]:
        small_us = 10.0 if number == 0 else 12.0 + number / 100
        large_us = 10.0 if number == 1 else 510.0 + number / 100
        return lambda step: {
            **dict.fromkeys((3, 6, 9, 12, 15), (ALL_REDUCE, small_us)),
            19: (ALL_REDUCE, large_us),
        }

    paths = rank_files(
        tmp_path,
        [rank(numbers=range(4), collectives=of(number), number=number) for number in range(4)],
    )
    found = compare_ranks([read_trace_file(path) for path in paths])
    assert max(found.rows, key=lambda row: row.last_share).rank == "1"
    waited_for_rank_1_ns = found.waited_for[1]
    assert waited_for_rank_1_ns == pytest.approx(500_000, rel=0.01)
    assert said(explain_traces(paths))["rank-is-late"].values["rank"] == "1"


@pytest.mark.parametrize(
    ("first_steps", "in_all"), [((1, 1, 1, 1), 5), ((2, 2, 2, 1), 4), ((2, 1, 1, 1), 4)]
)
def test_steps_of_ranks_are_paired_by_their_numbers(
    first_steps: Sequence[int], in_all: int, tmp_path: Path
) -> None:
    """Each rank recorded five steps. Rank 1 is late by 100 µs; the collectives take longer in each
    step.
    """

    def of(number: int) -> Callable[[int], dict[int, tuple[str, float]]]:
        waits_us = 0 if number == 1 else 100
        return lambda step: {19: (ALL_REDUCE, 300.0 * step + waits_us)}

    ranks = [
        rank(numbers=range(first, first + 5), collectives=of(number), number=number)
        for number, first in enumerate(first_steps)
    ]
    paths = rank_files(tmp_path, ranks)
    found = compare_ranks([read_trace_file(path) for path in paths])
    assert found.steps == in_all
    assert [row.last_share for row in found.rows] == pytest.approx([0, 1, 0, 0])
    assert [row.waits_ns for row in found.rows] == pytest.approx([100_000, 0, 100_000, 100_000])


def test_ranks_that_wait_in_turn_are_late_in_half(tmp_path: Path) -> None:
    """In steps 4 and 5, which both recorded, each rank waits 4,950 µs once."""

    def of(number: int) -> Callable[[int], dict[int, tuple[str, float]]]:
        return lambda step: {2: (ALL_REDUCE, 5000.0 if (step + number) % 2 == 0 else 50.0)}

    ranks = [
        rank(numbers=numbers, collectives=of(number), number=number)
        for number, numbers in enumerate([(3, 4, 5), (4, 5, 6)])
    ]
    found = compare_ranks([read_trace_file(path) for path in rank_files(tmp_path, ranks)])
    assert found.steps == 2
    assert found.collectives == 2
    assert [row.last_share for row in found.rows] == [0.5, 0.5]
    ns_per_step = 4_950_000 / 2
    assert [row.waits_ns for row in found.rows] == pytest.approx([ns_per_step, ns_per_step])
    assert "rank-is-late" not in by_code(rank_reasons(found)), (
        "none is, as each is as often as the other"
    )


def test_ranks_without_a_common_collective_are_compared_by_the_length_of_their_steps_alone(
    tmp_path: Path,
) -> None:
    rank_1 = [event | {"ts": 2 * event["ts"]} for event in usual(host_us=100)]
    told = said(explain_traces(rank_files(tmp_path, [usual(host_us=50), rank_1])))
    assert "no-collective-in-all-traces" in told
    assert "no-rank-is-late" not in told
    longer = [reason for code, reason in told.items() if code.startswith("longer-step")]
    assert [reason.values["rank"] for reason in longer] == ["1"]


def test_ranks_without_a_common_step_are_not_compared(tmp_path: Path) -> None:
    apart = [
        rank(numbers=numbers, collectives=lambda step: {1: (ALL_REDUCE, 9.0)}, number=0)
        for numbers in ((1, 2), (3, 4))
    ]
    assert "no-step-in-all-traces" in said(explain_traces(rank_files(tmp_path, apart)))


def test_collectives_of_which_ranks_have_other_numbers_are_left_out_and_counted(
    tmp_path: Path,
) -> None:
    """A step of one rank has one all-reduce, a step of the other has three; both have a gather."""
    steps, length_us = 4, 60.0
    gather = "ncclDevKernel_AllGather(x)"
    few = {3: (ALL_REDUCE, length_us), 9: (gather, length_us)}
    more = few | {5: (ALL_REDUCE, length_us), 7: (ALL_REDUCE, length_us)}
    ranks = [
        rank(numbers=range(steps), collectives=lambda step: few, number=0),
        rank(numbers=range(steps), collectives=lambda step: more, number=0),
    ]
    paths = rank_files(tmp_path, ranks)
    for order in (paths, paths[::-1]):
        found = compare_ranks([read_trace_file(path) for path in order])
        assert found.steps == steps
        assert found.collectives == steps, "the gathers"
        assert found.left_out == 3 * steps, "the all-reduces"


def test_a_rank_whose_recording_lost_much_is_not_compared(tmp_path: Path) -> None:
    ranks = [
        rank(numbers=range(4), collectives=lambda step: {1: (ALL_REDUCE, 9.0)}, number=number)
        for number in range(2)
    ]
    ranks[1] = _without_kernels(ranks[1])
    told = said(explain_traces(rank_files(tmp_path, ranks)))
    assert "ranks-not-comparable" in told
    assert told["recording-of-rank"].values["rank"] == "1"


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_one_file_is_one_rank(tmp_path: Path) -> None:
    first, second = rank_files(tmp_path, [usual(), usual(host_us=60)])
    shutil.copy(first, tmp_path / "copy.json")
    (tmp_path / "link.json").symlink_to(first)
    for other in (first, tmp_path / "copy.json", tmp_path / "link.json"):
        with pytest.raises(UsageError, match=r"r0\.json|copy\.json|link\.json"):
            explain_traces([first, second, other])


def test_two_files_of_the_same_rank_are_refused(tmp_path: Path) -> None:
    first, second = rank_files(tmp_path, [usual(), usual(host_us=60)])
    again = kineto(tmp_path / "again.json", usual(host_us=70), distributedInfo={"rank": 1})
    with pytest.raises(UsageError, match=r"\b1\b"):
        explain_traces([first, second, again])


def test_files_of_one_name_in_several_folders_are_several_ranks(tmp_path: Path) -> None:
    paths = []
    for number in range(2):
        (tmp_path / f"node{number}").mkdir()
        paths.append(kineto(tmp_path / f"node{number}" / "trace.json", usual(host_us=50 + number)))
    assert [row.rank for row in explain_traces(paths).ranks] == [
        "node0/trace.json",
        "node1/trace.json",
    ]


def waiting(late: bool, kernel: str, annotation: str = "") -> list[Event]:
    """A rank of two: 1 ms of computing in a step of 10 ms, and an exchange in which the first one
    waits.
    """
    program = Program()
    for number in range(4):
        start = number * 10_000.0
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "layer", start=start + 10, length_us=9900)
        program.launch(called=start + 100, starts=start + 110, length_us=1000)
        if annotation:
            program.span("user_annotation", annotation, start=start + 1190, length_us=40)
        program.launch(
            called=start + 1200,
            starts=start + 1210,
            length_us=60 if late else 8600,
            kernel=kernel,
            tid=9,
        )
    return program.events


@pytest.mark.parametrize(
    ("kernel", "annotation"), [(ALL_REDUCE, ""), ("ncclDevKernel_SendRecv(x)", "nccl:all_to_all")]
)
def test_a_collective_may_be_waiting_and_is_not_called_work(
    kernel: str, annotation: str, tmp_path: Path
) -> None:
    paths = rank_files(
        tmp_path,
        [waiting(late=late, kernel=kernel, annotation=annotation) for late in (False, True)],
    )
    rank_0_alone = explain_traces(paths[:1])
    assert rank_0_alone.verdict.kind == "unclear"
    told = said(rank_0_alone)["collectives-may-wait"].values
    assert told["collective_ns"] == pytest.approx(8.6e6)
    both = explain_traces(paths)
    assert both.verdict.kind == "host"
    assert said(both)["rank-is-late"].values["rank"] == "1"
    assert [row.device_ns for row in both.ranks] == [1e6, 1e6], "the computing alone"
    waited_ns = 8.6e6 - 0.06e6  # what the exchange takes longer than on the late rank
    assert both.ranks[0].waits_ns == pytest.approx(waited_ns)


@pytest.mark.parametrize(
    ("annotation", "compared"), [("nccl:all_to_all", 4), ("nccl:send", 0), ("", 0)]
)
def test_an_exchange_of_some_ranks_is_no_collective(
    annotation: str, compared: int, tmp_path: Path
) -> None:
    """All kinds of exchange run the same kernel; the annotation tells which one it is. A rank has
    four steps with one exchange each.
    """
    three = [
        waiting(late=False, kernel="ncclDevKernel_SendRecv(x)", annotation=annotation)
        for _ in range(3)
    ]
    traces = [read_trace_file(path) for path in rank_files(tmp_path, three)]
    assert compare_ranks(traces).collectives == compared


def test_time_between_marked_steps_is_no_time_of_a_step(tmp_path: Path) -> None:
    without = explained(tmp_path, usual(steps=6))
    apart = []
    for number in range(6):  # steps of 0.5 ms, one every 5 ms
        for event in usual(steps=1):
            moved = event | {"ts": event["ts"] + 5000 * number}
            if "correlation" in event["args"]:
                moved["args"] = {"correlation": event["args"]["correlation"] + 100 * number}
            apart.append(moved | {"name": event["name"].replace("Step#0", f"Step#{number}")})
    found = explained(tmp_path, apart)
    assert found.verdict.kind == "host"
    assert found.replay.ok
    assert found.replay.measured.value == pytest.approx(without.replay.measured.value, rel=0.02)


def test_work_after_the_last_step_is_no_idle_time(tmp_path: Path) -> None:
    """The work of each step begins as the step ends, and takes 9 of the 10 ms of the next one."""
    program = Program()
    for number in range(3):
        start, end = number * 10_000, (number + 1) * 10_000
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "prepare", start=start + 10, length_us=9900)
        program.launch(called=end - 50, starts=end, length_us=9000)
    found = explained(tmp_path, program.events)
    step_ns, idle_share = 1e7, 0.1
    assert found.replay.measured.value == pytest.approx(step_ns)
    assert found.verdict.overhead_share == pytest.approx(idle_share)


def test_a_recording_without_marks_is_one_step_from_the_first_launch_to_the_last_work(
    tmp_path: Path,
) -> None:
    """The device works from 0.9 s to 1.0 s of 1.9 s that were recorded."""
    program = Program()
    program.call("cudaFree", start=0, length_us=900_000)
    program.span("cpu_op", "work", start=900_000, length_us=1000)
    for index in range(100):
        program.launch(called=900_001 + 10 * index, starts=900_010 + 1000 * index, length_us=999)
    program.call("cudaDeviceSynchronize", start=901_100, length_us=98_910)
    program.call("cuModuleUnload", start=1_000_100, length_us=900_000)
    found = explained(tmp_path, program.events)
    taken = steps_taken(found)
    assert taken.how == "launches"
    assert taken.recorded_ns == pytest.approx(1.9e9, rel=0.01)
    assert taken.before_ns == pytest.approx(0.9e9, rel=0.01)
    assert taken.after_ns == pytest.approx(0.9e9, rel=0.01)
    assert found.verdict.kind == "device"
    idle_share = (1000 - 999) / 1000  # the pause between two kernels
    assert found.verdict.overhead_share == pytest.approx(idle_share, abs=2e-4)


def test_a_recording_without_marks_ends_with_the_wait_for_its_last_work(tmp_path: Path) -> None:
    program = Program()
    program.call("cudaFree", start=0, length_us=90)
    program.launch(called=100, starts=110, length_us=1000)
    program.call("cudaDeviceSynchronize", start=200, length_us=1400)
    program.call("cuModuleUnload", start=1700, length_us=5000)
    (step,) = read_trace_file(kineto(tmp_path / "t.json", program.events)).steps
    first_launch_ns, end_of_wait_ns = 100e3, (200 + 1400) * 1e3
    assert step.start == pytest.approx(first_launch_ns, abs=10)
    assert step.end == pytest.approx(end_of_wait_ns, abs=10)


def test_a_first_call_that_takes_long_is_start_up(tmp_path: Path) -> None:
    """The first call of an operation takes 0.9 s, the next hundred take 0.1 ms each."""
    program = Program()
    program.span("cpu_op", "aten::linear", start=0, length_us=900_000)
    program.launch(called=800_000, starts=800_100, length_us=50)
    for index in range(100):
        program.span("cpu_op", "aten::linear", start=900_000 + 1000 * index, length_us=100)
        program.span("cpu_op", "aten::relu", start=900_500 + 1000 * index, length_us=400)
        program.launch(called=900_010 + 1000 * index, starts=900_020 + 1000 * index, length_us=50)
    found = explained(tmp_path, program.events)
    assert found.operations[0].name in ("aten::relu", "between operations")
    taken = steps_taken(found)
    assert taken.first_call == "aten::linear"
    assert taken.first_call_ns == pytest.approx(900e6)


def test_the_marks_of_the_profiler_are_the_steps_also_beside_others(tmp_path: Path) -> None:
    events = usual()
    marks = [event for event in events if event["name"].startswith("ProfilerStep#")]
    quarters = []
    for mark in marks:
        quarter_us = mark["dur"] / 4
        for part in range(4):
            begins = mark["ts"] + part * quarter_us
            token = {"name": f"token {part}", "ts": begins, "dur": quarter_us * 1.0001}
            quarters.append(mark | token)
    assert explained(tmp_path, [*events, *quarters]).profiled_steps == len(marks)


def test_a_wait_for_work_of_another_stream_is_a_delay_but_no_latency(tmp_path: Path) -> None:
    """Stream 9 waits for the kernel of 9,000 µs, then starts 2 µs after its end."""
    program = Program()
    for number in range(3):
        start = number * 10_000
        program.step(number, start=start, length_us=10_000)
        program.launch(called=start + 20, starts=start + 30, length_us=9000, kernel="long")
        program.call("cudaStreamWaitEvent", start=start + 30, length_us=2)
        program.launch(called=start + 40, starts=start + 9032, length_us=100, kernel="after", tid=9)
    delays = launch_delays(read_trace_file(kineto(tmp_path / "streams.json", program.events)))
    mean_delay_us = (10 + 8992) / 2  # of "long" and "after"
    mean_wait_for_others_us = (0 + 8990) / 2
    assert statistics.fmean(each.delay for each in delays) == pytest.approx(1e3 * mean_delay_us)
    assert statistics.fmean(each.others for each in delays) == pytest.approx(
        1e3 * mean_wait_for_others_us
    )
    assert max(each.latency for each in delays) <= 10_000


def test_the_latency_is_a_median_and_the_longest_one_is_told_apart(tmp_path: Path) -> None:
    """The first launch waits 48,990 µs for the kernel to be loaded, nine later ones take 6 µs."""
    program = Program()
    program.step(1, start=0, length_us=100_000)
    program.launch(called=10, starts=49_000, length_us=10, kernel="loaded", call_us=48_985)
    for index in range(9):
        program.launch(
            called=51_010 + 1000 * index,
            starts=51_016 + 1000 * index,
            length_us=10,
            kernel="loaded",
        )
    told = said(explained(tmp_path, program.events))
    assert told["launch-latency"].values["latency_ns"] == pytest.approx(6000)
    assert told["first-launches-take-long"].values["longest_ns"] == pytest.approx(48_990_000)


def test_the_delay_of_a_graph_is_that_of_its_first_kernel(tmp_path: Path) -> None:
    program = Program()
    program.step(1, start=0, length_us=1000)
    program.launch(called=10, starts=20, length_us=5, call="cudaGraphLaunch")
    program.span("kernel", "gemm", start=26, length_us=5, pid=0, tid=7, args={"correlation": 1})
    (only,) = launch_delays(read_trace_file(kineto(tmp_path / "graph.json", program.events)))
    assert only.delay == pytest.approx(10_000), "the second node of a graph waits for the first one"


def test_a_stream_waits_for_others_only_until_the_first_work_after_the_event(
    tmp_path: Path,
) -> None:
    """Stream 9 waits for the kernel that runs until 5,000 µs. Its work at 7,010 µs no longer does:
    it waits for its own stream, and then for nobody.
    """
    program = Program()
    program.step(1, start=0, length_us=10_000)
    program.launch(called=100, starts=110, length_us=4_890, kernel="long")
    program.call("cudaStreamWaitEvent", start=200, length_us=2)
    program.launch(called=210, starts=5_005, length_us=10, kernel="after", tid=9)
    program.launch(called=220, starts=5_000, length_us=2_000, kernel="long")
    program.launch(called=300, starts=7_010, length_us=10, kernel="late", tid=9)
    delays = launch_delays(read_trace_file(kineto(tmp_path / "t.json", program.events)))
    end_of_long, end_of_after = 5_000, 5_015
    after_waits_us = end_of_long - 210
    assert [each.others for each in delays] == pytest.approx([0, 1e3 * after_waits_us, 0, 0])
    late = delays[3]
    assert late.own == pytest.approx(1e3 * (end_of_after - 300))
    assert late.latency == pytest.approx(1e3 * (7_010 - end_of_after))


def test_each_device_is_a_device(tmp_path: Path) -> None:
    """Device 0 works 97 % of the first half of a step, device 1 of the second half."""
    program = Program()
    for number in range(4):
        start = number * 10_000
        program.step(number, start=start, length_us=10_000)
        for index in range(100):
            at = start + 100 * index
            program.span("cpu_op", "layer", start=at, length_us=98)
            program.launch(called=at + 1, starts=at + 3, length_us=97, pid=int(index >= 50))
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "host"
    work_share = 50 * 97 / 10_000  # of one device
    assert found.verdict.overhead_share == pytest.approx(1 - work_share)
    in_turn = said(found)["devices-in-turn"].values
    assert in_turn["devices"] == 2
    assert in_turn["busy"] == pytest.approx(work_share)
    assert in_turn["together"] == pytest.approx(2 * work_share)
    assert [row.idle_ns for row in found.device_time] == pytest.approx(2 * [5.15e6])


def processes(first_number: int) -> list[Event]:
    """Two processes in one file; the second one numbers its calls from here on, and has less device
    work.
    """
    made = [Program(pid=1, device=0), Program(pid=2, device=1, number=first_number)]
    for program in made:
        for number in range(3):
            start = number * 10_000
            program.step(number, start=start, length_us=10_000)
            program.span("cpu_op", "layer", start=start + 10, length_us=9900)
            for index in range(4 if program.pid == 1 else 3):
                program.launch(
                    called=start + 20 + 100 * index, starts=start + 30 + 100 * index, length_us=50
                )
    events = []
    for program in made:
        events += program.events
    return events


def test_of_several_processes_one_is_read(tmp_path: Path) -> None:
    found = explained(tmp_path, processes(first_number=1000))
    # The first process has more device work: 4 launches of 50 µs per step.
    assert found.profiled_steps == 3
    assert found.per_step.launches.value == 4
    assert found.step.busy.value == 4 * 50_000
    assert said(found)["one-process-read"].values["processes"] == 2


def with_a_fill() -> list[Event]:
    """Steps of 1,000 µs with a launch, a fill of device memory, and an allocation by the driver."""
    program = Program()
    for number in range(3):
        start = number * 1000
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "aten::zeros", start=start + 10, length_us=900)
        program.launch(called=start + 20, starts=start + 30, length_us=100)
        program.launch(
            called=start + 140,
            starts=start + 150,
            length_us=5,
            kernel="Memset (Device)",
            call="cudaMemsetAsync",
            category="gpu_memset",
        )
        program.call("cudaMalloc", start=start + 300, length_us=20)
    return program.events


def test_fills_are_no_copies(tmp_path: Path) -> None:
    counts = explained(tmp_path, with_a_fill()).per_step
    assert counts.launches.value == 1
    assert counts.copies.value == 0
    assert counts.fills is not None
    assert counts.fills.value == 1


def test_allocations_that_were_not_recorded_are_unknown_and_not_zero(tmp_path: Path) -> None:
    counts = explained(tmp_path, with_a_fill()).per_step
    assert counts.allocations.value is None
    assert counts.driver_allocations.value == 1
    memory = {
        "ph": "i",
        "cat": "cpu_instant_event",
        "name": "[memory]",
        "ts": 5,
        "tid": 1,
        "args": {"Bytes": 512},
    }
    # One such event shows that allocations were recorded. The median step has none of them.
    recorded = explained(tmp_path, [*with_a_fill(), memory]).per_step
    assert recorded.allocations.value == 0


@pytest.mark.parametrize(("uploads", "advised"), [(1, False), (20, True)])
def test_advice_has_a_size(uploads: int, advised: bool, tmp_path: Path) -> None:
    """An upload holds up the host for 30 µs of a step of 10,000 µs: 0.3 %, or 6 % for twenty."""
    program, upload = Program(), "Memcpy HtoD (Pageable -> Device)"
    for number in range(3):
        start = number * 10_000
        program.step(number, start=start, length_us=10_000)
        for index in range(uploads):
            at = start + 12 + 100 * index
            program.launch(
                called=at,
                starts=at + 8,
                length_us=15,
                kernel=upload,
                call="cudaMemcpyAsync",
                call_us=30,
                category="gpu_memcpy",
            )

        program.span("cpu_op", "layer", start=start + 3000, length_us=6900)
        program.launch(called=start + 3100, starts=start + 3110, length_us=3000)
    assert ("pageable-uploads" in said(explained(tmp_path, program.events))) == advised


def test_a_program_on_the_processor_is_explained(tmp_path: Path) -> None:
    program = Program()
    for number in range(3):
        program.step(number, start=1000 * number, length_us=1000)
        program.span("cpu_op", "aten::mm", start=1000 * number + 10, length_us=700)
        program.span("cpu_op", "aten::relu", start=1000 * number + 720, length_us=200)
    found = explained(tmp_path, program.events, deviceProperties=[])
    assert found.program.device == ""
    assert found.verdict.kind == "host"
    assert found.operations[0].name == "aten::mm", "the one that takes longest"
    assert said(found)["processor-only"].values["step_ns"] == pytest.approx(1e6)


def renamed_categories(events: Sequence[Event], names: dict[str, str]) -> list[Event]:
    return [event | {"cat": names.get(event["cat"], event["cat"])} for event in events]


@pytest.mark.parametrize(
    "names",
    [
        {
            "cpu_op": "Operator",
            "user_annotation": "Operator",
            "cuda_runtime": "Runtime",
            "kernel": "Kernel",
        },
        {"cuda_runtime": "xpu_runtime"},
        {"cuda_runtime": "privateuse1_runtime"},
    ],
)
def test_categories_of_other_releases_and_devices_are_read(
    names: dict[str, str], tmp_path: Path
) -> None:
    events = renamed_categories(usual(launches=10), names)
    if "kernel" not in names:  # another device, whose calls have other names too
        for event in events:
            if event["name"] == "cudaLaunchKernel":
                event["name"] = "urEnqueueKernelLaunch"
    found = explained(tmp_path, events)
    assert found.verdict.kind == "host"
    assert found.per_step.launches.value == 10


def test_one_odd_event_costs_not_the_others(tmp_path: Path) -> None:
    odd: list[Event] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "toy"}},
        {"ph": "M", "name": "a", "ts": 1, "args": None},
        {"ph": "M", "name": "b", "ts": 1, "args": []},
        {"ph": "M", "name": None, "pid": None, "tid": 1.5, "ts": 1},
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "ts": 1,
            "args": {"Bytes": "many"},
        },
        {},
    ]
    for one in odd:
        assert explained(tmp_path, [one, *usual()]).verdict.kind == "host"


def test_many_events_whose_arguments_are_odd_cost_the_verdict(tmp_path: Path) -> None:
    broken = [
        event | {"args": []} if is_kernel(event) and _every_second(event) else event
        for event in usual()
    ]
    assert explained(tmp_path, broken).verdict.kind == "unclear"


FOREIGN = {
    "toplevel": [
        {"ph": "X", "cat": "toplevel", "name": "TaskRunner", "ts": 1, "dur": 5, "pid": 1, "tid": 1}
    ],
    "XProf": [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "X", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0, "name": "jit_toy"},
        {},
    ],
}


@pytest.mark.parametrize("word", FOREIGN)
def test_the_trace_of_another_program_is_named(word: str, tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=word):
        explained(tmp_path, FOREIGN[word])


def test_what_a_file_is_is_told_by_its_content(tmp_path: Path) -> None:
    text = kineto(tmp_path / "plain.json", usual()).read_bytes()
    (tmp_path / "packed.json").write_bytes(gzip.compress(text))
    (tmp_path / "plain.trace").write_bytes(text)
    nsys(tmp_path / "base.json", usual())
    for name in ("packed.json", "plain.trace", "base.json"):
        assert explain_traces([tmp_path / name]).verdict.kind == "host"


def test_a_report_of_nsys_and_a_folder_are_refused(tmp_path: Path) -> None:
    report = tmp_path / "report.nsys-rep"
    report.write_bytes(b"a report")
    with pytest.raises(BadFile, match="nsys export --type sqlite"):
        explain_traces([report])
    with pytest.raises(BadFile, match=str(tmp_path)):
        explain_traces([tmp_path])


def test_half_of_a_trace_is_refused_with_what_to_record(tmp_path: Path) -> None:
    events = usual(steps=6, launches=10)
    without_work = [event for event in events if not is_kernel(event)]
    with pytest.raises(BadFile) as refused:
        explained(tmp_path, without_work)
    file = str(tmp_path / "t.json")
    again = because("record-with-pytorch")
    assert refused.value.why == because(
        "trace-of-launches-alone", file=file, launches=60, again=again
    )


def test_a_database_without_the_table_of_gpus_is_read(tmp_path: Path) -> None:
    found = explain_traces([nsys(tmp_path / "t", usual(), "DROP TABLE TARGET_INFO_GPU")])
    assert found.verdict.kind == "host"
    assert found.program.device == "a device"


@pytest.mark.parametrize("mode", ["wal", "journal"])
def test_changes_beside_a_database_are_not_ignored(mode: str, tmp_path: Path) -> None:
    """Of a database that a program still writes, a part is in a second file. Here both are
    copied before the program is done.
    """
    path, copy = nsys(tmp_path / "t.sqlite", events_of(DEVICE_BOUND)), tmp_path / "copy.sqlite"
    with sqlite3.connect(path) as base:
        if mode == "wal":
            base.execute("PRAGMA journal_mode=wal")
        base.execute("PRAGMA cache_size=1")  # else the change would stay in memory
        base.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = start + 10")
        if mode == "wal":
            base.commit()
        for end in ("", f"-{mode}"):
            shutil.copy(f"{path}{end}", f"{copy}{end}")
    base.close()
    with pytest.raises(BadFile, match=f"copy.sqlite-{mode}"):
        explain_traces([copy])


@dataclasses.dataclass
class CopyRow:
    """A row of the table of copies of nsys. ``kind`` and ``source``: numbers of CUPTI."""

    start_ns: int
    end_ns: int | None
    kind: int
    source: int
    stream: int = 0
    number: int = 0

    def __str__(self) -> str:
        end = "NULL" if self.end_ns is None else self.end_ns
        device, process, to_device, size = 0, 77 << 24, 2, 9
        return (
            f"({self.start_ns}, {end}, {device}, {self.stream}, {self.number}, {process},"
            f" {self.kind}, {self.source}, {to_device}, {size})"
        )


def insert_copies(rows: Sequence[CopyRow]) -> str:
    """The statement of SQL that inserts these copies."""
    return f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES {','.join(map(str, rows))}"


HOST_TO_DEVICE, MIGRATION = 1, 11
PAGEABLE, MANAGED = 0, 4


@pytest.mark.parametrize(("length_ns", "kind"), [(800, "host"), (8000, "unclear")])
def test_migrations_of_managed_memory_are_counted(
    length_ns: int, kind: str, tmp_path: Path
) -> None:
    """No call issues them. Where they take a tenth of the steps, the host may wait for them."""
    first_ns = int(1e9 + 1)
    rows: list[CopyRow] = []
    for index in range(300):
        start_ns = first_ns + 9000 * index
        end_ns = start_ns + length_ns
        rows.append(CopyRow(start_ns, end_ns=end_ns, kind=MIGRATION, source=MANAGED))
    found = explain_traces([nsys(tmp_path / "t", usual(), insert_copies(rows))])
    assert found.verdict.kind == kind
    code = "migrations-beside" if kind == "host" else "migrations-take-steps"
    assert said(found)[code].values["pieces"] == 300
    assert ("managed-memory-moves" in said(found)) == (kind == "unclear")


@pytest.mark.parametrize(("many", "kind"), [(1, "host"), (300, "unclear")])
def test_rows_of_a_database_without_a_time_are_counted_as_lost(
    many: int, kind: str, tmp_path: Path
) -> None:
    first_ns = int(1e9)
    rows = [
        CopyRow(first_ns + 900 * index, end_ns=None, kind=HOST_TO_DEVICE, source=MANAGED)
        for index in range(many)
    ]
    found = explain_traces([nsys(tmp_path / "t", usual(), insert_copies(rows))])
    whole = explain_traces([nsys(tmp_path / "whole", usual())])
    assert found.verdict.kind == kind
    assert said(found) != said(whole)


def without_pytorch() -> list[Event]:
    """Steps that allocate managed memory for 380 µs, then launch one kernel."""
    program = Program()
    for number in range(3):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.call("cudaMallocManaged", start=start + 10, length_us=380)
        program.span("cpu_op", "sweep", start=start + 400, length_us=100)
        program.launch(called=start + 410, starts=start + 420, length_us=80)
    return program.events


def test_a_program_without_pytorch_is_not_called_pytorch(tmp_path: Path) -> None:
    found = explain_traces([nsys(tmp_path / "t", without_pytorch())])
    assert "PyTorch" not in " ".join(map(sentence, [*found.verdict.sentences, *found.not_seen]))


def test_a_call_of_the_runtime_that_takes_long_is_named(tmp_path: Path) -> None:
    found = explain_traces([nsys(tmp_path / "t", without_pytorch())])
    told = said(found)["runtime-call-takes"].values
    assert told["call"] == "cudaMallocManaged"
    assert told["call_ns"] == pytest.approx(380_000)
    assert told["calls"] == 1


def test_a_database_cannot_fill_the_memory(tmp_path: Path) -> None:
    """Texts of 400 MB and more, which SQLite would compute as they are read."""
    large = "hex(zeroblob(200000000))"
    view = [
        "DROP TABLE StringIds",
        f"CREATE VIEW StringIds AS SELECT 0 AS id, {large} || {large} AS value",
    ]
    computed = [
        f"CREATE TABLE S (id INTEGER PRIMARY KEY, value TEXT AS ({large}))",
        "INSERT INTO S (id) SELECT id FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE S RENAME TO StringIds",
    ]
    for name, statements in (("view", view), ("computed", computed)):
        with pytest.raises(BadFile):
            explain_traces([nsys(tmp_path / name, usual(), *statements)])


def test_a_database_with_too_many_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nsys_export, "_MOST_NAMES", 10)
    with pytest.raises(BadFile, match=r"\b10\b"):
        explain_traces([nsys(tmp_path / "names", usual())])


def test_no_verdict_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kineto(tmp_path / "t.json", _without_kernels(usual()))
    assert main(["explain", "--trace", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["kind"] == "unclear"


def test_six_steps_on_two_streams_recorded_on_an_h200_have_lost_nothing() -> None:
    """Torch 2.11 recorded them after two more steps, whose work runs in the time of these. The
    streams take turns.
    """
    path = Path(__file__).parents[1] / "data" / "traces" / "h200_two_streams.json.gz"
    trace = read_trace_file(path)
    recording = trace.recording
    assert len(trace.steps) == 6
    assert recording.launches == 12
    assert recording.earlier == 3
    assert recording.launches_without_work == 0
    assert recording.work_without_call == 0
    assert recording.clocks.late_ns == 0
    found = explain_traces([path])
    assert found.verdict.kind == "device"
    assert found.replay.ok
    delays = launch_delays(trace)
    assert max(each.latency for each in delays[1:]) < 10_000, (
        "what is longer is a wait for the other stream"
    )


def waited_steps(
    work: Callable[[Program, float], None], steps: int = 6, wait: str = "cudaStreamSynchronize"
) -> Program:
    """Steps of 1,000 µs, the host waits from 130 µs to 998 µs. ``work``: adds the work of a step
    that begins then.
    """
    program = Program()
    for number in range(steps):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "prepare", start=start + 1, length_us=100)
        program.launch(called=start + 50, starts=start + 60, length_us=9, kernel="small")
        work(program, start)
        program.call(wait, start=start + 130, length_us=868)
    return program


def _awaited(program: Program, start: float) -> None:
    """Work that ends 3 µs before the wait does."""
    program.launch(called=start + 100, starts=start + 110, length_us=885, kernel="large")


def _nothing(program: Program, start: float) -> None:
    pass


def _lost_copy(program: Program, start: float) -> None:
    program.call("cudaMemcpyAsync", start=start + 100, length_us=2)


def _other_stream(program: Program, start: float) -> None:
    program.launch(called=start + 100, starts=start + 110, length_us=950, kernel="large", tid=9)


@pytest.mark.parametrize(
    "wait", ["cudaStreamSynchronize", "cudaEventSynchronize", "cuStreamSynchronize"]
)
def test_a_wait_for_which_no_work_ends_gives_no_verdict(wait: str, tmp_path: Path) -> None:
    assert explained(tmp_path, waited_steps(_awaited, wait=wait).events).verdict.kind == "mixed"
    for no_awaited_work in (_nothing, _lost_copy, _other_stream):
        found = explained(tmp_path, waited_steps(no_awaited_work, wait=wait).events)
        assert found.verdict.kind == "unclear"
        assert has_a_share(found.verdict.sentences[0])


@pytest.mark.parametrize("late_us", [20, 200])
def test_a_copy_into_pageable_memory_compares_the_clocks(late_us: float, tmp_path: Path) -> None:
    """The call of such a copy waits for its end, which so has a time of both clocks."""

    def copying(late: float) -> Explanation:
        program = Program()
        for number in range(5):
            start = 2000.0 * number
            program.step(number, start=start, length_us=2000)
            program.launch(called=start + 20, starts=start + 30 + late, length_us=1800)
            copy = "Memcpy DtoH (Device -> Pageable)"
            program.launch(
                called=start + 40,
                starts=start + 1830 + late,
                length_us=2,
                kernel=copy,
                call="cudaMemcpyAsync",
                call_us=1795,  # it returns when the copy is done
                category="gpu_memcpy",
            )
        return explained(tmp_path, program.events)

    right, found = copying(late=0), copying(late=late_us)
    assert right.verdict.kind == found.verdict.kind == "device"
    assert "device-clock-apart" in said(found)
    assert found.verdict.factor == pytest.approx(right.verdict.factor, rel=0.05)


@pytest.mark.parametrize("call", ["cudaMemsetAsync", "cudaMemcpyAsync", "cudaLaunchKernel"])
def test_lost_work_weighs_by_the_time_that_it_may_have_taken(call: str, tmp_path: Path) -> None:
    """One call in a hundred has no work. If the launches are 10 µs apart, the device may have
    worked for 10 of 1,000 µs in place of it; if they are 0.1 µs apart and the call is the last one,
    for 970 of them.
    """
    steps, apart_us = 5, 10.0
    program = Program()
    for number in range(steps):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "prepare", start=start + 1, length_us=990)
        for index in range(99):
            program.launch(
                called=start + 2 + apart_us * index,
                starts=start + 7 + apart_us * index,
                length_us=0.5 * apart_us,
            )
            if index == 50:
                program.call(call, start=start + 2 + apart_us * (index + 0.5), length_us=0.1)
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == "host"
    told = said(found)
    (lost,) = {"launches-without-work", "copies-without-work"} & told.keys()
    assert told[lost].values["lost"] == steps

    program = Program()
    for number in range(steps):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "prepare", start=start + 1, length_us=990)
        for index in range(99):
            program.launch(
                called=start + 2 + index / 10, starts=start + 20 + index / 10, length_us=0.1
            )
        program.call(call, start=start + 25, length_us=1)
    assert explained(tmp_path, program.events).verdict.kind == "unclear"


@pytest.mark.parametrize(("recorded", "kind"), [(95, "host"), (94, "host"), (30, "unclear")])
def test_replays_of_one_graph_are_alike(recorded: int, kind: str, tmp_path: Path) -> None:
    """The graph has 95 kernels, as its first replay shows. Where the others have far fewer, some
    were not recorded.
    """
    program = Program()
    for number in range(6):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "prepare", start=start + 1, length_us=950)
        program.launch(
            called=start + 10,
            starts=start + 20,
            length_us=4,
            kernel="node 0",
            call="cudaGraphLaunch",
        )
        for node in range(1, recorded if number else 95):
            at = start + 20 + 5 * node
            program.span(
                "kernel",
                f"node {node}",
                start=at,
                length_us=4,
                pid=0,
                tid=7,
                args={"correlation": program.number},
            )
    assert explained(tmp_path, program.events).verdict.kind == kind


def test_one_bad_record_moves_no_clock(tmp_path: Path) -> None:
    events = usual(host_us=50, device_us=20, launches=20)
    right = explained(tmp_path, events)
    kernels = [event for event in events if is_kernel(event)]
    early_us = 1e5
    odd = [
        event | {"ts": event["ts"] - early_us} if event is kernels[33] else event
        for event in events
    ]
    found = explained(tmp_path, odd)
    assert found.verdict.kind == right.verdict.kind
    assert found.verdict.factor == pytest.approx(right.verdict.factor, rel=0.05)
    assert "device-clock-apart" not in said(found)
    assert said(found)["times-contradict"].values == {"pieces": 1}


def test_a_thread_that_waits_beside_another_gives_no_verdict(tmp_path: Path) -> None:
    program = Program()
    for number in range(5):
        start = 10_000.0 * number
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "layer", start=start + 1, length_us=9900)
        program.launch(called=start + 10, starts=start + 20, length_us=5000)
        program.call("cudaDeviceSynchronize", start=start + 30, length_us=4995, tid=2)
    assert explained(tmp_path, program.events).verdict.kind == "unclear"


def test_the_process_with_the_longest_work_is_read(tmp_path: Path) -> None:
    events = processes(first_number=1000)
    for event in events:
        if is_kernel(event) and event["pid"] == 1:
            event["dur"] *= 1.9
    assert explained(tmp_path, events).per_step.launches.value == 3


def test_an_upload_from_pageable_memory_blocks_also_in_a_database(tmp_path: Path) -> None:
    program = Program()
    for number in range(5):
        start = 10_000.0 * number
        program.step(number, start=start, length_us=10_000)
        program.launch(called=start + 9100, starts=start + 9110, length_us=100)
        program.call("cudaMemcpyAsync", start=start + 10, length_us=9005)
    copies: list[CopyRow] = []
    for number in range(5):
        start_ns = 10_000_000 * number
        copies.append(
            CopyRow(
                start_ns + 20_000,
                end_ns=start_ns + 9_010_000,
                kind=HOST_TO_DEVICE,
                source=PAGEABLE,
                stream=7,
                number=2 * number + 2,  # each step makes two calls, of which the copy is the second
            )
        )
    database = nsys(tmp_path / "t", program.events, insert_copies(copies))
    assert explain_traces([database]).verdict.kind == "device"


@dataclasses.dataclass(frozen=True)
class StepCost:
    """What a step takes the host and the device, µs."""

    host_us: float
    device_us: float


def varying(is_long: Callable[[int], bool], short: StepCost, long: StepCost) -> list[Event]:
    """20 steps; ``is_long``: whether the step of this number is a long one."""
    program, now = Program(), 0.0
    for number in range(20):
        cost = long if is_long(number) else short
        host_us, device_us = cost.host_us, cost.device_us
        program.span("cpu_op", "layer", start=now + 1, length_us=host_us - 10)
        program.launch(called=now + 10, starts=now + 20, length_us=device_us)
        asked = now + host_us
        end = max(now + 20 + device_us, asked) + 3
        program.call("cudaStreamSynchronize", start=asked, length_us=end - asked)
        program.step(number, start=now, length_us=end + 5 - now)
        now = end + 5
    return program.events


@pytest.mark.parametrize(
    ("short", "long"),
    [
        (StepCost(host_us=300, device_us=50), StepCost(host_us=300, device_us=5000)),
        (StepCost(host_us=300, device_us=280), StepCost(host_us=5000, device_us=280)),
    ],
    ids=["device longer", "host longer"],
)
@pytest.mark.parametrize(
    "is_long",
    [lambda number: number % 4 > 0, lambda number: number % 8 == 3],
    ids=["3 of 4", "1 of 8"],
)
def test_steps_that_differ_in_what_bounds_them_give_no_verdict(
    is_long: Callable[[int], bool], short: StepCost, long: StepCost, tmp_path: Path
) -> None:
    found = explained(tmp_path, varying(is_long, short, long))
    assert found.verdict.kind == "unclear"
    assert codes_of(found.verdict.sentences[0]) == {"steps-after-the-first-differ"}


def test_a_long_first_step_costs_no_verdict(tmp_path: Path) -> None:
    short = StepCost(host_us=300, device_us=50)
    long = StepCost(host_us=300, device_us=5000)
    events = varying(lambda number: number == 0, short, long)
    assert explained(tmp_path, events).verdict.kind == "host"


@pytest.mark.parametrize(
    ("call", "calls", "length"),
    [
        ("cudaEventQuery", 480, 18),
        ("cudaMalloc", 1, 9600),
        ("cudaFreeHost", 1, 9600),
        ("cudaHostUnregister", 1, 9600),
    ],
)
def test_calls_that_last_while_the_device_works_may_be_waits(
    call: str, calls: int, length: float, tmp_path: Path
) -> None:
    def stepping(kernel: float, thread: int) -> Explanation:
        """Steps of 10,000 µs that thread 1 launches. The call lasts until their end, or is made
        again and again.
        """
        program = Program()
        for number in range(5):
            start = 10_000.0 * number
            program.step(number, start=start, length_us=10_000)
            program.span("cpu_op", "layer", start=start + 1, length_us=100)
            program.launch(called=start + 10, starts=start + 20, length_us=kernel)
            for index in range(calls):
                program.call(call, start=start + 120 + 20 * index, length_us=length, tid=thread)
        return explained(tmp_path, program.events)

    found = stepping(kernel=9300, thread=1)
    assert found.verdict.kind == "unclear"
    assert said(found)["no-verdict-with-calls-that-may-wait"].values["call"] == call
    assert stepping(kernel=50, thread=1).verdict.kind == "host", (
        "the device is idle, so nothing is waited for"
    )
    watched = stepping(kernel=9300, thread=99)
    assert "no-verdict-with-calls-that-may-wait" not in said(watched), (
        "another thread does not delay the step"
    )


@pytest.mark.parametrize(
    "kernel",
    [
        "void vllm::cross_device_reduce_1stage<__half, 2>",
        "one_shot_all_reduce_kernel",
        "multimem_all_reduce_kernel",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<>",
        "deep_ep::intranode::dispatch<8, 768, 8192>",
        "void tensorrt_llm::kernels::twoShotAllReduceKernel",
        "_ZN3c10ncclDevKernel_AllReduce",
        "ncclSymkDevKernel_AllReduce_AGxLL_R_sum",
        "mori_ep_dispatch",
    ],
)
def test_kernels_of_all_libraries_may_wait_for_other_ranks(kernel: str, tmp_path: Path) -> None:
    assert explained(tmp_path, waiting(late=False, kernel=kernel)).verdict.kind == "unclear"


@pytest.mark.parametrize(
    "kernel", ["reduce_kernel", "softmax_WarpAllReduce", "cub::BlockReduce", "gather_kernel"]
)
def test_kernels_that_only_compute_wait_for_no_rank(kernel: str, tmp_path: Path) -> None:
    assert explained(tmp_path, waiting(late=False, kernel=kernel)).verdict.kind != "unclear"


def grouped(
    ranks: Sequence[int], exchange_us: float, host_us: float = 1000, steps: int = 4
) -> list[Event]:
    """An all-reduce between these ranks, after 500 µs of computing."""
    program = Program()
    for number in range(steps):
        start = number * 10_000.0
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "layer", start=start + 10, length_us=host_us)
        program.launch(called=start + 100, starts=start + 110, length_us=500)
        program.launch(
            called=start + 200, starts=start + 620, length_us=exchange_us, kernel=ALL_REDUCE
        )
        program.events[-1]["args"] |= {
            "Process Group Name": "tp",
            "Process Group Ranks": str(list(ranks)),
        }
        program.call(
            "cudaStreamSynchronize",
            start=start + host_us + 20,
            length_us=max(5.0, 620 + exchange_us - host_us - 15),
        )
    return program.events


def test_collectives_are_compared_within_their_group(tmp_path: Path) -> None:
    """Ranks 2 and 3 exchange more than ranks 0 and 1; nobody waits."""
    four = [
        grouped(ranks=(0, 1), exchange_us=100),
        grouped(ranks=(0, 1), exchange_us=100),
        grouped(ranks=(2, 3), exchange_us=9000),
        grouped(ranks=(2, 3), exchange_us=9000),
    ]
    paths = rank_files(tmp_path, four)
    found = explain_traces([paths[2], paths[0], paths[1], paths[3]])
    assert found.verdict.kind == "device"
    assert "rank-is-late" not in said(found)
    assert [row.waits_ns for row in found.ranks] == [0, 0, 0, 0]
    one_group = explain_traces(paths[2:])
    assert one_group.verdict.kind == found.verdict.kind


def test_collectives_on_two_streams_are_compared_in_the_order_of_their_calls(
    tmp_path: Path,
) -> None:
    """Each of two collectives takes equally long on both ranks, but on one rank the second call
    starts first.
    """

    def exchanging(swapped: bool) -> list[Event]:
        program = Program()
        for number in range(4):
            start = number * 10_000.0
            program.step(number, start=start, length_us=10_000)
            program.span("cpu_op", "layer", start=start + 10, length_us=9000)
            first, second = start + 210, start + 310
            if swapped:
                first, second = second, first
            program.launch(
                called=start + 100, starts=first, length_us=4000, kernel=ALL_REDUCE, tid=9
            )
            program.launch(
                called=start + 200, starts=second, length_us=100, kernel=ALL_REDUCE, tid=10
            )
        return program.events

    paths = rank_files(tmp_path, [exchanging(swapped=False), exchanging(swapped=True)])
    found = compare_ranks([read_trace_file(path) for path in paths])
    assert [row.waits_ns for row in found.rows] == [0, 0]


def test_waits_of_steps_that_are_not_in_all_traces_are_not_known(tmp_path: Path) -> None:
    paths = rank_files(
        tmp_path,
        [
            grouped(ranks=(0, 1), exchange_us=9000, steps=10),
            grouped(ranks=(0, 1), exchange_us=60, steps=2),
        ],
    )
    found = explain_traces(paths)
    waited = said(found)["collectives-wait-in-shared-steps"].values
    assert waited["waiting_ns"] == pytest.approx(9.0e6 - 0.06e6)
    assert waited["shared"] == 2
    assert waited["steps"] == 10


def test_only_exposed_waits_shorten_a_step(tmp_path: Path) -> None:
    """Rank 0 waits 2,900 µs in the second collective; the first one, which is longer, is hidden by
    a kernel.
    """

    def overlapping(wait: float) -> list[Event]:
        program = Program()
        for number in range(4):
            start = number * 10_000.0
            program.step(number, start=start, length_us=10_000)
            program.span("cpu_op", "layer", start=start + 10, length_us=8000)
            program.launch(called=start + 100, starts=start + 110, length_us=6000)
            program.launch(
                called=start + 150, starts=start + 160, length_us=5900, kernel=ALL_REDUCE, tid=9
            )
            program.launch(
                called=start + 200,
                starts=start + 6200,
                length_us=100 + wait,
                kernel=ALL_REDUCE,
                tid=9,
            )
        return program.events

    found = explain_traces(rank_files(tmp_path, [overlapping(wait=2900), overlapping(wait=0)]))
    assert said(found)["collectives-wait"].values["waiting_ns"] == pytest.approx(2.9e6)
    device = [reason.values.get("device_ns") for reason in said(found).values()]
    without_wait_ns = 6.0e6 + 0.1e6  # the kernel, and what the second collective takes at least
    assert any(ns == pytest.approx(without_wait_ns) for ns in device)


def test_numbers_that_repeat_pair_no_steps(tmp_path: Path) -> None:
    """Six steps have the numbers 0, 1, 2, 0, 1, 2. Nobody knows which of two is which."""

    def epochs(late: bool) -> list[Event]:
        program = Program()
        for number in range(6):
            start = number * 10_000.0
            program.span("user_annotation", f"batch {number % 3}", start=start, length_us=9900)
            program.span("cpu_op", "layer", start=start + 1, length_us=9000)
            program.launch(
                called=start + 10,
                starts=start + 20,
                length_us=5000 if late == (number < 3) else 50,
                kernel=ALL_REDUCE,
            )
        return program.events

    found = compare_ranks(
        [
            read_trace_file(path)
            for path in rank_files(tmp_path, [epochs(late=True), epochs(late=False)])
        ]
    )
    assert found.steps == 0


@pytest.mark.parametrize(
    ("profiler_us", "kind", "is_told"),
    [(100, "host", False), (500, "host", True), (5000, "unclear", True)],
    ids=["1 % of the step", "5 % of the step", "half of the step"],
)
def test_what_the_profiler_does_in_a_call_is_no_host_work(
    profiler_us: float, kind: str, is_told: bool, tmp_path: Path
) -> None:
    program = Program()
    for number in range(5):
        start = 10_000.0 * number
        program.step(number, start=start, length_us=10_000)
        program.span("cpu_op", "layer", start=start + 10, length_us=9900)
        program.launch(
            called=start + 100, starts=start + 9110, length_us=800, call_us=profiler_us + 10
        )
        program.span(
            "overhead",
            "Activity Buffer Request",
            start=start + 105,
            length_us=profiler_us,
            pid=-1,
            tid=0,
        )
    found = explained(tmp_path, program.events)
    assert found.verdict.kind == kind
    assert ("profiler-holds-up-calls" in said(found)) == is_told


def test_a_wait_for_an_event_before_later_work_is_no_host_work(tmp_path: Path) -> None:
    """Each step waits for the work of the one before, while its own is queued behind it."""
    program = Program()
    for number in range(8):
        start = 1000.0 * number
        program.step(number, start=start, length_us=1000)
        program.span("cpu_op", "layer", start=start + 1, length_us=100)
        program.launch(called=start + 10, starts=start + 950, length_us=990)
        program.call("cudaEventSynchronize", start=start + 110, length_us=835)
    assert explained(tmp_path, program.events).verdict.kind not in ("host", "mixed")


def of_two_ranks(tmp_path: Path, world_size: object) -> list[Path]:
    """The traces of ranks 0 and 1, which name this number of ranks."""
    return [
        kineto(
            tmp_path / f"r{late:d}.json",
            waiting(late=late, kernel=ALL_REDUCE),
            distributedInfo={"rank": late, "world_size": world_size},
        )
        for late in (False, True)
    ]


def test_traces_of_some_ranks_are_said_to_be_some(tmp_path: Path) -> None:
    told = said(explain_traces(of_two_ranks(tmp_path, world_size=8)))
    assert told["traces-of-some-ranks"].values == {"given": 2, "ranks": 8}


@pytest.mark.parametrize("world_size", [2, "8"], ids=["all given", "no number"])
def test_traces_are_not_said_to_be_some_if_all_are_given_or_the_number_is_not_known(
    world_size: object, tmp_path: Path
) -> None:
    told = said(explain_traces(of_two_ranks(tmp_path, world_size=world_size)))
    assert "traces-of-some-ranks" not in told


@pytest.mark.needs("scipy")
@pytest.mark.parametrize("seed", range(12))
def test_the_line_of_a_drifting_clock_crosses_its_bounds_least(seed: int) -> None:
    """As in a linear program: of all lines a + b x, that with the least crossing s."""
    from scipy.optimize import linprog

    dice = np.random.default_rng(seed)
    length, spread = 10 ** dice.uniform(8, 9), 10 ** dice.uniform(2, 3.5)
    drift = float(dice.choice([-1, 1])) * 10 ** dice.uniform(-4, -3.2)
    at = np.linspace(0, length, int(dice.integers(5, 150)))
    lower, upper = (drift * at + sign * dice.exponential(spread, at.size) for sign in (-1, 1))
    ones = np.ones(at.size)
    bounds = np.vstack([
        np.column_stack([-ones, -at / length, -ones]), np.column_stack([ones, at / length, -ones])
    ])  # fmt: skip
    limits = np.concatenate([-lower, upper])
    expected = linprog(
        [0, 0, 1], bounds, limits, bounds=[(None, None), (None, None), (-6000, None)]
    )

    waits = [ClockBound(*bound) for bound in zip(at, lower, strict=True)]
    starts = [ClockBound(*bound) for bound in zip(at, upper, strict=True)]
    found = clocks_of(waits, starts)
    line = np.array([found.late_at(x) for x in at])
    assert max((lower - line).max(), (line - upper).max()) == pytest.approx(expected.fun, abs=0.01)
    assert found.drift == pytest.approx(expected.x[1] / length, abs=0.01 / length)
