"""Attempt, compare and time alternatives; child processes are replaced."""

import math
import time
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.explaining.alternatives import ALTERNATIVES, PINNED
from overhead.explaining.attempts import Attempt, AttemptJob
from overhead.explaining.changes import AGAINST, Changes
from overhead.explaining.outcome import NotCompared, StepOutcome, result_values
from overhead.results import because, codes_of
from overhead.runner.progress import Listener
from overhead.timing.call_spec import FoundCall
from overhead.timing.timing import CallRatio
from tests.fakes.timings import call, figure, timing

FOUND = FoundCall(one_ns=1e6, waits=["none"], said="", api="CPU", adapter="CPU")
JOB = AttemptJob(setup="step = print")


def outcome(*results: Any) -> Any:
    """What steps with these results computed."""
    values = []
    for number, result in enumerate(results, 1):
        of_step, _ = result_values(f"step {number}", result)
        values += of_step
    return StepOutcome(values, [])


def times_of(*, step_ns: Any, others_ns: Any = (), half: Any = 0.02) -> Any:
    """The times of the step and of others in turn; None: a statement without figures. ``half``: the
    relative half-width of the intervals.
    """

    def timed(ns: Any) -> Any:
        if ns is None:
            return call("", [], status="failed", reason="out of memory")
        return call("", [figure("complete", ns, ns * (1 - half), ns * (1 + half))])

    def against(position: Any, other_ns: Any) -> Any:
        ratio = other_ns / step_ns
        saved_ns = other_ns - step_ns
        half_ns = half * step_ns
        return CallRatio(
            position=position,
            difference=figure("difference", saved_ns, saved_ns - half_ns, saved_ns + half_ns),
            ratio=figure("ratio", ratio, ratio - half, ratio + half, unit="ratio"),
        )

    calls = [timed(ns) for ns in (step_ns, *others_ns)]
    ratios = [against(n, ns) for n, ns in enumerate(others_ns, 2) if ns is not None]
    return timing(*calls, ratios=ratios)


def changes(attempts: Any, times: Any = None, asked: Any = None, leave_out: Any = ()) -> Any:
    """Changes without child processes. ``attempts``: the answer for each name; "" is the original
    step. ``times``: the answer of each measurement, or by the number of its statements. ``asked``:
    gets these numbers.
    """

    def attempted(job: Any, limit_s: Any) -> Any:
        answer = attempts[AGAINST if job.against else job.alternative]
        return answer.pop(0) if isinstance(answer, list) else answer

    def timed(spec: Any, *args: Any, **kwargs: Any) -> Any:
        if asked is not None:
            asked.append(len(spec.calls))
        found = times(len(spec.calls)) if callable(times) else times
        if isinstance(found, Exception):
            raise found
        return found

    return Changes(JOB, FOUND, Listener(), attempted, timed, leave_out)


NONE = Attempt(reason="no CUDA device", refused=True)
REFUSED = {"CUDA graph": NONE, "without synchronisations": NONE, "torch.compile": NONE}
REFUSED |= dict.fromkeys(("torch.compile reduce-overhead", PINNED), NONE)


def one(attempts: Any, name: Any, times: Any = None) -> Any:
    """The alternative of this name where all others are refused."""
    answers = {"": Attempt(outcome(1.0)), **REFUSED, **attempts}
    _, found = changes(answers, times).try_all()
    return next(each for each in found if each.name == name)


def test_a_faster_alternative_gets_its_gain_and_the_steps_until_its_making_is_repaid() -> None:
    graph = Attempt(outcome(1.0), making_s=2.0)
    found = one({"CUDA graph": graph}, "CUDA graph", times_of(step_ns=10e6, others_ns=[2e6]))
    assert found.gain.value == pytest.approx(10e6 / 2e6)
    assert found.gain.low < 5 < found.gain.high
    making_ns, saved_ns = 2e9, 10e6 - 2e6
    assert found.repaid_after.value == math.ceil(making_ns / saved_ns)
    assert found.kind == "measured"
    assert found.status == "ok"
    assert found.same_results is True
    assert found.compared == 1
    assert found.not_compared == 0


def test_an_alternative_with_other_results_shows_both_values_and_is_not_timed() -> None:
    attempts = {"": Attempt(outcome(1.0, 2.0)), "CUDA graph": Attempt(outcome(1.0, 3.0))}
    found = one(attempts, "CUDA graph", times_of(step_ns=2e6))
    assert found.status == "differs"
    assert found.same_results is False
    assert codes_of(found.results) == {"values-differ-by-share"}
    assert found.results.values["name"] == "step 2"
    assert found.results.values["first"] == "2"
    assert found.results.values["second"] == "3"
    assert found.step.value is None


def test_a_step_with_other_results_in_each_process_gets_alternatives_without_comparison() -> None:
    first_process, second_process = Attempt(outcome(1.0)), Attempt(outcome(5.0))
    attempts = {
        "": [first_process, second_process],
        "CUDA graph": Attempt(outcome(3.0)),
    }
    found = one(attempts, "CUDA graph", times_of(step_ns=10e6, others_ns=[2e6]))
    assert found.same_results is None
    assert "step-not-repeatable" in codes_of(found.reason)
    assert found.status == "ok"


def test_an_alternative_names_the_parts_of_the_state_that_were_not_compared() -> None:
    values_left_out = 7
    left_out: NotCompared = {"model.cache": (values_left_out, because("part-too-large"))}
    made = Attempt(StepOutcome(outcome(1.0).results, [], left_out))
    found = one({"CUDA graph": made}, "CUDA graph", times_of(step_ns=10e6, others_ns=[2e6]))
    assert found.status == "ok"
    assert found.same_results is True
    part = because("part-not-compared", name="model.cache", why=because("part-too-large"))
    assert found.reason == because("parts-not-compared", parts=part)
    assert found.compared == 1
    assert found.not_compared == values_left_out


def test_an_alternative_that_is_only_a_bound_is_timed_without_a_comparison_of_results() -> None:
    name = "without synchronisations"
    found = one({name: Attempt(outcome(3.0))}, name, times_of(step_ns=10e6, others_ns=[2e6]))
    assert found.kind == "bound"
    assert found.same_results is None
    assert found.status == "ok"


@pytest.mark.parametrize(("refused", "status"), [(True, "refused"), (False, "failed")])
def test_an_alternative_that_cannot_be_made_has_the_reason_and_the_line(
    refused: Any, status: Any
) -> None:
    made = Attempt(reason="not capturable", where="train.py:3, in step", refused=refused)
    found = one({"CUDA graph": made}, "CUDA graph", times_of(step_ns=2e6))
    assert found.status == status
    assert found.reason == "not capturable"
    assert found.site.line == "train.py:3, in step"
    assert found.gain.reason == "not capturable"


def test_a_step_that_cannot_be_repeated_raises_a_usage_error() -> None:
    attempts = {"": Attempt(reason="ValueError: no"), "CUDA graph": Attempt(outcome(1.0))}
    with pytest.raises(UsageError) as refused:
        one(attempts, "CUDA graph")
    assert refused.value.why == because("step-cannot-be-repeated", why="ValueError: no")


def test_an_alternative_with_a_wide_interval_gets_no_gain() -> None:
    found = one(
        {"CUDA graph": Attempt(outcome(1.0))},
        "CUDA graph",
        times_of(step_ns=1e6, others_ns=[1e4], half=0.5),
    )
    assert found.gain.value is None
    assert found.gain.reason


BOTH = {
    "": Attempt(outcome(1.0)),
    **REFUSED,
    **dict.fromkeys((AGAINST, "CUDA graph"), Attempt(outcome(1.0))),
}


def test_all_alternatives_are_timed_in_turn_with_the_step() -> None:
    asked: list[int] = []
    times, found = changes(BOTH, times_of(step_ns=8e6, others_ns=[4e6, 2e6]), asked=asked).try_all(
        compiled=False, against="step = print"
    )
    assert asked == [3], "one measurement of three statements: the step and both alternatives"
    assert [each.name for each in found[:2]] == [AGAINST, "CUDA graph"]
    assert [each.gain.value for each in found[:2]] == [pytest.approx(8e6 / 4e6), 8e6 / 2e6]
    assert times.calls[0].figures[0].value == 8e6


def test_an_alternative_that_fails_among_others_is_timed_again_with_the_step_alone() -> None:
    asked: list[int] = []
    times = {
        3: times_of(step_ns=8e6, others_ns=[4e6, None]),
        2: times_of(step_ns=8e6, others_ns=[2e6]),
    }
    found = changes(BOTH, times.__getitem__, asked=asked).try_all(against="step = print")[1]
    assert asked == [3, 2], "three statements in turn, then the step with the failed one"
    # The first alternative keeps its gain over 8 ms; the other one has that of its own measurement.
    assert [each.gain.value for each in found[:2]] == [pytest.approx(2), pytest.approx(4)]


def test_alternatives_that_end_the_process_are_failed_and_the_step_still_gets_its_times() -> None:
    asked: list[int] = []
    times = {
        3: UsageError("the process crashed"),
        2: UsageError("out of memory"),
        1: times_of(step_ns=8e6),
    }
    first, found = changes(BOTH, times.__getitem__, asked=asked).try_all(against="step = print")
    # All three in turn, then each alternative with the step; after each crash the step alone.
    assert asked == [3, 1, 2, 1, 2, 1]
    assert first.calls[0].figures[0].value == 8e6
    assert [(each.status, each.reason) for each in found[:2]] == [("failed", "out of memory")] * 2


def test_a_step_without_pytorch_has_no_alternatives_of_its_own() -> None:
    without_pytorch = changes(attempts={}, times=times_of(step_ns=10e6), leave_out=ALTERNATIVES)
    _, found = without_pytorch.try_all()
    assert found == []


def test_a_step_without_pytorch_is_compared_only_with_the_alternative_of_the_user() -> None:
    attempts = {"": Attempt(outcome(1.0)), AGAINST: Attempt(outcome(1.0))}
    times = times_of(step_ns=10e6, others_ns=[5e6])
    without_pytorch = changes(attempts, times, leave_out=ALTERNATIVES)
    _, (own,) = without_pytorch.try_all(compiled=False, against="step = print")
    assert own.name == AGAINST
    assert own.status == "ok"
    assert own.gain.value == pytest.approx(10e6 / 5e6)


WIDE = times_of(step_ns=1e6, half=0.9)
"""Times with an interval of ± 90 %, too wide for a verdict."""


@pytest.mark.parametrize(
    ("half_of_second", "notes"),
    [(0.02, []), (0.6, ["step-needs-seconds"]), (6.0, ["step-not-resolved"])],
    ids=["resolved", "too wide", "much too wide"],
)
def test_a_step_that_is_not_resolved_is_timed_again_for_longer_and_says_what_it_needs(
    half_of_second: float, notes: list[str]
) -> None:
    asked: list[int] = []
    timed = changes(attempts={}, times=times_of(step_ns=1e6, half=half_of_second), asked=asked)
    timed.ends = time.monotonic() + 60
    found = timed.resolved(WIDE)
    assert asked == [1], "the step alone is timed once more"
    assert found.calls[0].figures[0].high == pytest.approx(1e6 * (1 + half_of_second))
    assert [codes_of(one) for one in found.notes] == [{note} for note in notes]


def test_a_step_that_is_not_resolved_is_not_timed_again_without_time_left() -> None:
    asked: list[int] = []
    timed = changes(attempts={}, times=times_of(step_ns=1e6), asked=asked)
    timed.ends = time.monotonic()
    assert timed.resolved(WIDE).calls == WIDE.calls
    assert asked == []


def test_a_step_that_is_resolved_is_not_timed_again() -> None:
    asked: list[int] = []
    resolved = times_of(step_ns=1e6)
    timed = changes(attempts={}, times=resolved, asked=asked)
    timed.ends = time.monotonic() + 60
    assert timed.resolved(resolved) == resolved
    assert asked == []


def test_no_alternative_is_attempted_after_the_time_of_the_user() -> None:
    asked: list[int] = []
    timed = changes(attempts={}, times=times_of(step_ns=1e6), asked=asked)
    timed.ends = time.monotonic()
    found = timed.try_all(compiled=False)[1]
    assert {each.status for each in found} == {"refused"}
    assert {each.reason for each in found} == {because("no-time-for-alternative")}
    assert asked == [1], "the step gets its times"


def test_alternatives_that_do_not_apply_are_left_out() -> None:
    made = changes(
        {"": Attempt(outcome(1.0)), **REFUSED}, times_of(step_ns=1e6), leave_out=[PINNED]
    )
    assert PINNED not in [one.name for one in made.try_all()[1]]


def test_the_time_left_is_told_before_each_attempt_and_holds_what_comes_later() -> None:
    left_s: list[float] = []

    class Told(Listener):
        def left(self, seconds: float) -> None:
            left_s.append(seconds)

    times_take_s, conditions_take_s = 9.0, 5.0

    def timed(spec: Any, listener: Listener, **more: Any) -> Any:
        listener.left(times_take_s)
        return times_of(step_ns=10e6)

    answers = {"": Attempt(outcome(1.0)), **REFUSED}
    made = Changes(JOB, FOUND, Told(), lambda job, limit_s: answers[job.alternative], timed)
    made.conditions_s = conditions_take_s
    made.try_all(compiled=False)
    *before_attempts, before_timing = left_s
    assert len(before_attempts) > 1
    assert before_attempts == sorted(before_attempts, reverse=True)
    assert min(before_attempts) > made.least_s + conditions_take_s
    assert before_timing == times_take_s + conditions_take_s


def test_a_wait_for_other_runs_reaches_the_listener() -> None:
    waits: list[float] = []

    class Told(Listener):
        def waiting(self, seconds: float) -> None:
            waits.append(seconds)

    def timed(spec: Any, listener: Listener, **more: Any) -> Any:
        listener.waiting(3.0)
        return times_of(step_ns=10e6)

    Changes(JOB, FOUND, Told(), timed=timed).time_alone()
    assert waits == [3.0]
