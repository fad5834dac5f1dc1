"""``overhead.explain``: what it puts together from a profile, times and alternatives; the file;
refusals.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import math
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import overhead
from overhead.errors import UsageError
from overhead.explaining import explaining
from overhead.explaining.attempts import Attempt, AttemptJob
from overhead.explaining.changes import Changes
from overhead.explaining.conditions import REFERENCE, Condition
from overhead.explaining.explaining import ExplainInterrupted, explain, explanation
from overhead.explaining.page import explained_page
from overhead.explaining.profiling import StepProfile
from overhead.explaining.record import Explanation, encode_explanation, save_explanation
from overhead.explaining.saved import read_explanation
from overhead.explaining.show import explanation_blocks
from overhead.explaining.verdict import judge_times, verdict_reasons
from overhead.results import Figure, Reason, Why, codes_of
from overhead.runner.progress import Listener
from overhead.timing.call_spec import FoundCall
from overhead.timing.steps import CALLING_THE_FUNCTION, StepSource
from overhead.timing.timing import Timing
from overhead.traces.trace import CallSite
from overhead.words.explaining.step import taken_as_step
from overhead.words.reasons import sentence
from tests.fakes.explanations import (
    DECODE,
    DEVICE,
    SOURCE,
    decode_explained,
    figure,
    profile_of,
    timing_of,
)
from tests.fakes.profiled_program import Launch
from tests.fakes.reasons import by_code, first_code
from tests.terminal.test_goldens import printed

ON_JAX = FoundCall(one_ns=1e6, waits=["jax"], said="", api="CUDA", adapter="NVIDIA H200")
ON_CPU = FoundCall(one_ns=1e6, waits=["none"], said="", api="CPU", adapter="CPU")


class FakeTimer:
    """A timer that goes off when a test says so."""

    made: FakeTimer

    def __init__(self, seconds: float, call: Callable[..., None], arguments: list[object]) -> None:
        self.seconds, self._ring = seconds, functools.partial(call, *arguments)
        self.started = self.ended = False
        FakeTimer.made = self

    def start(self) -> None:
        assert not self.ended, "a timer that was cancelled never goes off"
        self.started = True

    def cancel(self) -> None:
        self.ended = True

    def go_off(self) -> None:
        if self.started and not self.ended:
            self._ring()


class Noting(Listener):
    def __init__(self) -> None:
        self.told: list[object] = []

    def note(self, told: object) -> None:
        self.told.append(told)


@pytest.mark.parametrize(
    ("begun", "noted"),
    [(0, []), (1, []), (2, ["start-takes-long"]), (3, [])],
    ids=["nothing yet", "loading", "first call", "the step"],
)
def test_a_function_that_runs_long_at_its_first_call_is_noted_while_it_runs(
    begun: int, noted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "Timer", FakeTimer)
    listener = Noting()
    with explaining._noting_a_long_start(listener) as doing:
        doings: list[Why] = ["loading the program", CALLING_THE_FUNCTION, "the step"]
        for what in doings[:begun]:
            doing(what)
        FakeTimer.made.go_off()
    assert [first_code([told]) for told in listener.told] == noted
    assert FakeTimer.made.seconds == explaining.LONG_START_S
    FakeTimer.made.go_off()
    assert len(listener.told) == len(noted), "after the start nothing is noted"


def test_a_host_bound_step_with_one_read_is_explained_with_verdict_counts_and_lines() -> None:
    found = decode_explained()
    assert found.verdict.kind == "host"
    # Of DECODE: Python, 20 linear layers, 10 additions and one read.
    host_us = 200 + 20 * 20 + 10 * 10 + 10
    device_us = 20 * 4 + 10 * 2 + 1
    assert found.verdict.factor == pytest.approx(host_us / device_us, rel=0.03)
    assert found.replay.ok
    assert found.per_step.launches.value == 30
    assert found.per_step.synchronisations.value == 1
    assert found.synchronisations[0].site.line == "decode.py:18"
    assert found.operations[0].name == "aten::linear"
    assert found.operations[0].site.line == "decode.py:14"
    assert found.step.busy.value == pytest.approx(1e3 * device_us)
    assert found.program.arguments == {"layers": "4"}


def test_without_a_verdict_what_is_known_comes_first() -> None:
    """The measured time is three times the replayed one, so the replay gives no verdict."""
    found = explanation(
        SOURCE,
        profile_of(DECODE, measured_ns=3 * DEVICE.step_ns(DECODE)),
        timing_of(wall_ns=3e6, issue_ns=3e6),
    )
    codes = [first_code([one]) for one in found.verdict.sentences]
    assert codes[:3] == ["device-works-in-the-step", "calls-that-wait", "no-verdict-of-the-replay"]
    said = by_code(found.verdict.sentences[:3])
    shares = {}
    for name in ("share_low", "share", "share_high"):
        shares[name] = float(str(said["device-works-in-the-step"].values[name]))
    device_ns, measured_ns = 101_000, 3e6
    assert shares["share"] == pytest.approx(device_ns / measured_ns)
    assert shares["share_low"] < shares["share"] < shares["share_high"]
    assert "decode.py:18" in sentence(said["calls-that-wait"])
    assert verdict_reasons(found) == found.verdict.sentences
    assert "device-works-in-the-step" not in by_code(decode_explained().verdict.sentences)


@pytest.mark.parametrize(
    ("line", "status", "is_named"),
    [
        ("decode.py:18, in step", "failed", True),
        ("decode.py:18", "failed", True),
        ("decode.py:1", "failed", False),
        ("", "failed", False),
        ("decode.py:18", "refused", False),
    ],
)
def test_a_graph_that_a_waiting_call_forbids_names_that_call(
    line: str, status: str, is_named: bool
) -> None:
    made = decode_explained()
    graph = msgspec.structs.replace(made.alternatives[0], status=status, site=CallSite(line=line))
    found = explanation(SOURCE, profile_of(DECODE), timing_of(wall_ns=1e6, issue_ns=1e6), [graph])
    reason = found.alternatives[0].reason
    assert (first_code([reason]) == "capture-meets-a-wait") == is_named
    assert sentence(graph.reason) in sentence(reason)


def test_waits_of_streams_are_only_spoken_of_where_a_step_has_several() -> None:
    one = explanation(SOURCE, profile_of(DECODE), timing_of(wall_ns=1e6, issue_ns=1e6))
    several = [*DECODE, Launch(10_000, 2000, "aten::add", stream=9)]
    two = explanation(SOURCE, profile_of(several), timing_of(wall_ns=1e6, issue_ns=1e6))
    assert "waits-of-streams-from-times" not in by_code(one.not_seen)
    assert "waits-of-streams-from-times" in by_code(two.not_seen)


def test_a_step_whose_replayed_profile_misses_the_measured_time_gets_no_verdict() -> None:
    found = explanation(
        SOURCE,
        profile_of(DECODE, measured_ns=3 * DEVICE.step_ns(DECODE)),
        timing_of(wall_ns=3e6, issue_ns=3e6),
    )
    assert found.replay.ok is False
    assert found.verdict.kind == "unclear"
    assert found.replay.ratio == pytest.approx(1 / 3, rel=0.05)
    reason = by_code([found.replay.reason])["replay-takes-another-time"]
    assert reason.values["ratio"] == found.replay.ratio


@pytest.mark.parametrize(
    ("issue_ns", "kind"),
    [(990_000.0, "unclear"), (200_000.0, "device")],
    ids=["returns when it is done", "returns after a fifth of its time"],
)
def test_a_step_of_a_library_without_a_profiler_is_judged_by_its_two_times(
    issue_ns: float, kind: str
) -> None:
    profile = StepProfile(ON_JAX, "jax", "NVIDIA H200", reason="jax is not profiled here")
    found = explanation(SOURCE, profile, timing_of(wall_ns=1_000_000, issue_ns=issue_ns))
    assert found.verdict.kind == kind
    assert found.program.library == "jax"
    counts = (found.per_step.launches, found.per_step.synchronisations)
    for missing in (*counts, found.replay.replayed, found.step.busy):
        assert missing.value is None
        assert missing.reason == profile.reason
    assert by_code(found.not_seen)["not-profiled"].values["why"] == profile.reason


def test_a_function_on_the_processor_is_judged_host_bound() -> None:
    profile = StepProfile(ON_CPU, "none", "", reason="a step without PyTorch is not profiled")
    found = explanation(SOURCE, profile, timing_of(wall_ns=1_000_000, issue_ns=1_000_000, on="CPU"))
    assert found.verdict.kind == "host"
    assert codes_of(found.step.busy.reason) == {"no-device-in-the-step"}


NOT_RESOLVED = Figure(
    name="met", status="below-resolution", reason="the slope of a process is -1 ns"
)
"""The time of a step in an unpinned process, where that is not known."""


def on_cpu(shares: dict[str, float], *more: Figure) -> Explanation:
    """The explanation of a step of 100 µs on the processor, with more figures."""
    reason = "a step without PyTorch is not profiled"
    profile = StepProfile(ON_CPU, "none", "", reason=reason, shares=shares)
    times = timing_of(wall_ns=1e5, issue_ns=1e5, on="CPU")
    figures = [*times.calls[0].figures, *more]
    calls = [msgspec.structs.replace(times.calls[0], figures=figures)]
    return explanation(SOURCE, profile, msgspec.structs.replace(times, calls=calls))


def everything(mean_ns: float) -> Figure:
    """The mean of all steps, slow ones too; the usual one takes 100 µs."""
    return Figure(
        name="everything",
        value=mean_ns,
        low=-mean_ns,
        high=3 * mean_ns,
        status="noisy",
        processes=3,
    )


UNPINNED = Figure(name="met", value=3e5, low=2e5, high=4e5, processes=3)


@pytest.mark.parametrize(
    ("queued_share", "unpinned"),
    [(0.0, UNPINNED), (0.0, NOT_RESOLVED), (0.5, UNPINNED)],
    ids=["quiet processor", "unpinned time not resolved", "busy processor"],
)
def test_rare_slow_steps_are_told_first(queued_share: float, unpinned: Figure) -> None:
    mean_ns = 4e5
    found = on_cpu({"queued": queued_share}, unpinned, everything(mean_ns))
    assert first_code(found.verdict.sentences) == "slow-steps"
    slow_steps = by_code(found.verdict.sentences)["slow-steps"].values
    assert slow_steps["mean_ns"] == mean_ns
    assert slow_steps["mean_ns_low"] == -mean_ns
    assert slow_steps["mean_ns_high"] == 3 * mean_ns
    assert found.step.everything.value == mean_ns


@pytest.mark.parametrize(
    ("mean_ns", "queued_share"),
    [(1.6e5, 0.5), (1.05e5, 0.0)],
    ids=["half of the time without a processor", "hardly longer"],
)
def test_a_longer_mean_that_a_busy_processor_explains_is_not_taken_for_rare_slow_steps(
    mean_ns: float, queued_share: float
) -> None:
    found = on_cpu({"queued": queued_share}, UNPINNED, everything(mean_ns))
    assert first_code(found.verdict.sentences) != "slow-steps"
    assert found.step.everything.value == mean_ns


def test_a_step_whose_unpinned_time_is_not_resolved_says_so_first() -> None:
    found = on_cpu({}, NOT_RESOLVED)
    assert first_code(found.verdict.sentences) == "step-as-it-runs-not-resolved"


def test_work_in_other_threads_is_not_called_done_when_the_step_returns() -> None:
    wall = figure("wall", 1e5)
    # The share of the step's time in which other threads ran.
    alone, handed = (
        judge_times(wall, wall, synchronous=True, on_device=False, other_threads=share)
        for share in (0, 0.006)
    )
    assert list(by_code(alone.sentences)) == ["all-in-the-calling-thread"]
    assert list(by_code(handed.sentences)) == ["in-the-calling-thread", "other-threads-ran"]


@pytest.mark.parametrize(
    ("wall_half", "issue_half", "untold"),
    [(2.0, 0.1, "step-time-not-resolved"), (0.1, 2.0, "return-time-not-resolved")],
)
def test_a_step_with_one_uncertain_time_gets_no_verdict(
    wall_half: float, issue_half: float, untold: str
) -> None:
    """``wall_half``, ``issue_half``: relative half-widths of the intervals of both times."""

    def time(half: float) -> Figure:
        return Figure(name="", value=1e6, low=1e6 * (1 - half), high=1e6 * (1 + half))

    found = judge_times(time(wall_half), time(issue_half), synchronous=False, on_device=True)
    assert found.kind == "unclear"
    assert codes_of(found.sentences[0]) == {"no-verdict", untold}


@pytest.mark.parametrize(
    ("times_its_work", "status", "has_gain"),
    [(0.5, "differs", False), (1.2, "ok", True)],
    ids=["half of the work", "longer than the work"],
)
def test_a_graph_that_is_faster_than_the_work_of_the_step_leaves_work_out(
    times_its_work: float, status: str, has_gain: bool
) -> None:
    """The device has to do the step's work, however it is launched."""
    profile = profile_of(DECODE)
    timing = timing_of(wall_ns=7e5, issue_ns=7e5)
    device_work = explanation(SOURCE, profile, timing).step.busy
    assert device_work.value is not None
    graph_time = Figure(name="step", value=times_its_work * device_work.value)
    graph = msgspec.structs.replace(
        decode_explained().alternatives[1], name="CUDA graph", step=graph_time
    )
    (found,) = explanation(SOURCE, profile, timing, [graph]).alternatives
    assert found.status == status
    assert (found.gain.measured is not None) == has_gain


def figures(value: Any) -> list[Figure]:
    """Every figure in an answer, on all levels."""
    if isinstance(value, Figure):
        return [value]
    if isinstance(value, msgspec.Struct):
        return figures([getattr(value, name) for name in value.__struct_fields__])
    found: list[Figure] = []
    if isinstance(value, list):
        for part in value:
            found += figures(part)
    return found


def test_an_explanation_gives_a_reason_for_each_missing_figure() -> None:
    profile = StepProfile(ON_CPU, "none", "", reason="a step without PyTorch is not profiled")
    for found in (
        decode_explained(),
        explanation(SOURCE, profile, timing_of(wall_ns=1e6, issue_ns=1e6, on="CPU")),
    ):
        every = figures(found)
        assert len(every) > 10
        assert [figure for figure in every if figure.value is None and not figure.reason] == []


def test_an_explanation_is_the_same_after_saving_and_reading(tmp_path: Path) -> None:
    found, path = decode_explained(), tmp_path / "new" / "explained.json"
    save_explanation(path, found)
    assert read_explanation(path) == found
    assert list(json.loads(path.read_bytes()))[:2] == ["format", "version"]


def run(
    patch: pytest.MonkeyPatch, step: str, one_ns: float = 1e6
) -> tuple[Explanation, dict[str, Any]]:
    asked: dict[str, Any] = {}

    def profiled(source: StepSource, **more: Any) -> StepProfile:
        found = profile_of(DECODE)
        return dataclasses.replace(found, found=msgspec.structs.replace(found.found, one_ns=one_ns))

    def timed(spec: Any, listener: Any, **more: Any) -> Timing:
        asked.update(more, spec=spec)
        return timing_of(wall_ns=7e5, issue_ns=7e5)

    patch.setattr(explaining, "device_lock", lambda waiting: contextlib.nullcontext())
    patch.setattr(explaining, "profile_step", profiled)
    patch.setattr(explaining, "time_statements", timed)
    return explain(step, alternatives="none"), asked


def test_explain_times_the_step_in_fresh_processes_and_not_in_the_profiled_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("def step(): pass\n")
    found, asked = run(monkeypatch, f"{tmp_path}/a.py:step")
    assert asked["spec"].calls == ["step()"]
    assert asked["spec"].found, "the step is not tried a second time"
    assert asked["plan"].processes == 3
    assert found.program.file == "a.py"
    assert str(tmp_path) not in encode_explanation(found).decode()


def test_a_step_that_is_too_short_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text("def step(): pass\n")
    with pytest.raises(UsageError, match=r"\b300 ns\b"):
        run(monkeypatch, f"{tmp_path}/a.py:step", one_ns=300)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"alternatives": False}, "alternatives=False"),
        ({"alternatives": "compile"}, "alternatives='compile'"),
        ({"seconds": 0}, "seconds=0: "),
        ({"seconds": "90"}, "seconds='90': "),
        ({"seconds": True}, "seconds=True: "),
        ({"seconds": math.nan}, "seconds=nan: "),
        ({"arguments": "n=1"}, "arguments='n=1'"),
    ],
)
def test_options_that_would_be_misread_are_refused_before_anything_runs(
    options: dict[str, Any], line: str
) -> None:
    explain_step: Any = overhead.explain
    with pytest.raises(UsageError, match=re.escape(line)):
        explain_step("nowhere.py:step", **options)


def explained_in_order(
    folder: Path, patch: pytest.MonkeyPatch, **options: Any
) -> tuple[Explanation, list[str]]:
    """An explanation against the step itself, where every alternative is refused; and what was done
    for it, in order.
    """
    done: list[str] = []

    def attempted(job: AttemptJob, **more: Any) -> Attempt:
        done.append("against" if job.against else job.alternative or "the step")
        return Attempt(reason="refused here", refused=True)

    def conditions(source: StepSource, threads: int, **more: Any) -> list[Condition]:
        done.append("conditions")
        return [Condition(Reason("a"), usual=[1e6] * 10, under=[2e6] * 10)]

    def timed(*given: Any, **more: Any) -> Timing:
        done.append("times")
        return timing_of(wall_ns=7e5, issue_ns=7e5)

    patch.setattr(explaining, "device_lock", lambda waiting: contextlib.nullcontext())
    patch.setattr(explaining, "profile_step", lambda source, **more: profile_of(DECODE))
    patch.setattr(explaining, "measure_conditions", conditions)
    patch.setattr(explaining, "time_statements", timed)
    patch.setattr(explaining, "Changes", functools.partial(Changes, attempted=attempted))
    (folder / "a.py").write_text("def step(): pass\n")
    step = f"{folder}/a.py:step"
    return explain(step, against=step, alternatives="eager", **options), done


def test_what_is_tried_comes_before_the_conditions_on_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, done = explained_in_order(tmp_path, monkeypatch)
    assert done[:2] == ["against", "CUDA graph"]
    assert done[-1] == "conditions"
    conditions_shown = [each for each in found.alternatives if each.kind == "condition"]
    assert [each.condition for each in conditions_shown] == [REFERENCE, Reason("a")]


def test_what_the_user_asks_for_is_tried_however_short_the_time_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, done = explained_in_order(tmp_path, monkeypatch, seconds=0.001)
    assert done == ["against", "times"]
    assert "no-time-for-conditions" in by_code(found.not_seen), "what is missing has its reason"


def test_an_interrupt_after_the_alternatives_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any, **more: Any) -> list[Condition]:
        raise KeyboardInterrupt

    monkeypatch.setattr(explaining, "device_lock", lambda waiting: contextlib.nullcontext())
    monkeypatch.setattr(explaining, "profile_step", lambda source, **more: profile_of(DECODE))
    monkeypatch.setattr(
        explaining, "time_statements", lambda *given, **more: timing_of(wall_ns=7e5, issue_ns=7e5)
    )
    monkeypatch.setattr(explaining, "measure_conditions", interrupted)
    refused = functools.partial(
        Changes, attempted=lambda job, **more: Attempt(reason="refused here", refused=True)
    )
    monkeypatch.setattr(explaining, "Changes", refused)
    (tmp_path / "a.py").write_text("def step(): pass\n")
    with pytest.raises(ExplainInterrupted) as caught:
        explain(f"{tmp_path}/a.py:step", alternatives="eager")
    found = caught.value.explanation
    assert found.step.wall.value == 7e5
    assert found.alternatives
    assert "interrupted-later" in by_code(found.not_seen)


@pytest.mark.parametrize(("step_s", "is_told"), [(0.6, True), (0.001, False)])
def test_a_slow_step_that_needs_longer_than_it_may_take_is_said_before_it_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_s: float, is_told: bool
) -> None:
    """Measuring a step of 0.6 s takes up to 10 minutes, and 60 s are given."""
    notes: list[object] = []

    class Notes(Listener):
        def note(self, text: object) -> None:
            notes.append(text)

    def timed(*given: Any, **more: Any) -> Timing:
        long = by_code(notes).get("step-takes-long")
        assert (long is not None) is is_told
        if long is not None:
            assert long.values["seconds"] == 60
            assert long.values["minutes"] == 10
        return timing_of(wall_ns=7e5, issue_ns=7e5)

    slow = msgspec.structs.replace(ON_CPU, one_ns=step_s * 1e9)
    profile = StepProfile(slow, "none", "", reason="a step without PyTorch is not profiled")
    monkeypatch.setattr(explaining, "device_lock", lambda waiting: contextlib.nullcontext())
    monkeypatch.setattr(explaining, "profile_step", lambda source, **more: profile)
    monkeypatch.setattr(explaining, "Changes", functools.partial(Changes, timed=timed))
    monkeypatch.setattr(explaining, "time_statements", timed)
    (tmp_path / "a.py").write_text("def step(): pass\n")
    explain(f"{tmp_path}/a.py:step", alternatives="none", seconds=60, listener=Notes())


def test_a_wait_for_another_run_is_said_with_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[object] = []
    now_s = [0.0]
    for_device_s, for_timing_s = 97.0, 50.0

    class Notes(Listener):
        def note(self, text: object) -> None:
            notes.append(text)

    @contextlib.contextmanager
    def held(waiting: Callable[[float], None]) -> Iterator[None]:
        waiting(0.0)
        now_s[0] += for_device_s
        waiting(for_device_s)
        yield

    def timed(spec: Any, listener: Listener, **more: Any) -> Timing:
        now_s[0] += for_timing_s
        listener.waited(for_timing_s)
        return timing_of(wall_ns=7e5, issue_ns=7e5)

    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    monkeypatch.setattr(explaining, "device_lock", held)
    monkeypatch.setattr(explaining, "profile_step", lambda source, **more: profile_of(DECODE))
    monkeypatch.setattr(explaining, "measure_conditions", lambda *given, **more: [])
    monkeypatch.setattr(explaining, "time_statements", timed)
    refused = functools.partial(
        Changes, attempted=lambda job, **more: Attempt(reason="refused here", refused=True)
    )
    monkeypatch.setattr(explaining, "Changes", refused)
    (tmp_path / "a.py").write_text("def step(): pass\n")
    found = explain(f"{tmp_path}/a.py:step", alternatives="eager", seconds=60, listener=Notes())
    assert first_code(notes) == "waited-for-another-run"
    with_seconds = [note for note in by_code(notes).values() if "seconds" in note.values]
    assert [note.values["seconds"] for note in with_seconds] == [for_device_s, for_timing_s]
    assert "no-time-for-conditions" not in by_code(found.not_seen), "waiting is not counted"


def test_an_explanation_reads_as_its_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "explain", lambda step, **more: decode_explained())
    monkeypatch.setenv("COLUMNS", "300")
    explain_step: Any = overhead.explain
    found = explain_step("train.py:step")
    assert str(found).split() == printed(explanation_blocks(found), 300).split()
    assert sentence(found.verdict.sentences[0]) in str(found)
    assert "torch.compile" in str(found)
    assert "\n" not in repr(found)


@pytest.mark.parametrize(("low_ns", "value_ns"), [(-5e6, 1e6), (-5e6, -1e6)])
def test_no_time_of_a_step_is_below_zero(low_ns: float, value_ns: float) -> None:
    """Noise can measure such times; they are shown from zero on."""
    timing = timing_of(wall_ns=1e6, issue_ns=1e6)
    wall = Figure(name="complete", value=value_ns, low=low_ns, high=16e6)
    figures = [wall, *timing.calls[0].figures[1:]]
    call = msgspec.structs.replace(timing.calls[0], figures=figures)
    timing = msgspec.structs.replace(timing, calls=[call])
    found = explanation(SOURCE, profile_of(DECODE), timing)
    step = found.step.wall
    for end in (step.value, step.low, step.high):
        assert end is None or end >= 0
    shown = printed(explanation_blocks(found), 200)
    assert "−" not in shown
    assert "16,000" in shown, "the upper end, in µs"


@pytest.mark.parametrize(
    ("is_returned", "returned", "taken"),
    [(True, "Model", "returned"), (False, "", "itself"), (None, "", "")],
    ids=["what the function returned", "the function itself", "no step was tried"],
)
def test_it_is_said_what_was_taken_as_the_step(
    is_returned: bool | None, returned: str, taken: str
) -> None:
    profile = dataclasses.replace(profile_of(DECODE), is_returned=is_returned, returned=returned)
    found = explanation(SOURCE, profile, timing_of(wall_ns=7e5, issue_ns=7e5))
    assert found.program.taken == taken
    assert found.program.returned == returned
    words = taken_as_step(found.program)
    assert bool(words) == bool(taken)
    assert words in printed(explanation_blocks(found), 200)
    assert words in explained_page(found)
