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


def times_of(step_ns: Any, *others_ns: Any, half: Any = 0.02) -> Any:
    """The step and others in turn; None: a statement without figures."""

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
    step.
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
    found = one({"CUDA graph": graph}, "CUDA graph", times_of(10e6, 2e6))
    assert found.gain.value == pytest.approx(5)
    assert found.gain.low < 5 < found.gain.high
    assert found.repaid_after.value == math.ceil(2e9 / 8e6)
    assert (found.kind, found.status, found.same_results) == ("measured", "ok", True)
    assert (found.compared, found.not_compared) == (1, 0)


def test_an_alternative_with_other_results_shows_both_values_and_is_not_timed() -> None:
    attempts = {"": Attempt(outcome(1.0, 2.0)), "CUDA graph": Attempt(outcome(1.0, 3.0))}
    found = one(attempts, "CUDA graph", times_of(2e6))
    assert (found.status, found.same_results) == ("differs", False)
    assert codes_of(found.results) == {"values-differ-by-share"}
    assert found.results.values["name"] == "step 2"
    assert (found.results.values["first"], found.results.values["second"]) == ("2", "3")
    assert found.step.value is None


def test_a_step_with_other_results_in_each_process_gets_alternatives_without_comparison() -> None:
    attempts = {
        "": [Attempt(outcome(1.0)), Attempt(outcome(5.0))],
        "CUDA graph": Attempt(outcome(3.0)),
    }
    found = one(attempts, "CUDA graph", times_of(10e6, 2e6))
    assert found.same_results is None
    assert "step-not-repeatable" in codes_of(found.reason)
    assert found.status == "ok"


def test_an_alternative_names_the_parts_of_the_state_that_were_not_compared() -> None:
    left_out: NotCompared = {"model.cache": (7, because("part-too-large"))}
    made = Attempt(StepOutcome(outcome(1.0).results, [], left_out))
    found = one({"CUDA graph": made}, "CUDA graph", times_of(10e6, 2e6))
    assert (found.status, found.same_results) == ("ok", True)
    part = because("part-not-compared", name="model.cache", why=because("part-too-large"))
    assert found.reason == because("parts-not-compared", parts=part)
    assert (found.compared, found.not_compared) == (1, 7)


def test_an_alternative_that_is_only_a_bound_is_timed_without_a_comparison_of_results() -> None:
    name = "without synchronisations"
    found = one({name: Attempt(outcome(3.0))}, name, times_of(10e6, 2e6))
    assert (found.kind, found.same_results, found.status) == ("bound", None, "ok")


@pytest.mark.parametrize(("refused", "status"), [(True, "refused"), (False, "failed")])
def test_an_alternative_that_cannot_be_made_has_the_reason_and_the_line(
    refused: Any, status: Any
) -> None:
    made = Attempt(reason="not capturable", where="train.py:3, in step", refused=refused)
    found = one({"CUDA graph": made}, "CUDA graph", times_of(2e6))
    assert (found.status, found.reason) == (status, "not capturable")
    assert found.site.line == "train.py:3, in step"
    assert found.gain.reason == "not capturable"


def test_a_step_that_cannot_be_repeated_raises_a_usage_error() -> None:
    attempts = {"": Attempt(reason="ValueError: no"), "CUDA graph": Attempt(outcome(1.0))}
    with pytest.raises(UsageError) as refused:
        one(attempts, "CUDA graph")
    assert refused.value.why == because("step-cannot-be-repeated", why="ValueError: no")


def test_an_alternative_with_a_wide_interval_gets_no_gain() -> None:
    found = one({"CUDA graph": Attempt(outcome(1.0))}, "CUDA graph", times_of(1e6, 1e4, half=0.5))
    assert found.gain.value is None
    assert found.gain.reason


BOTH = {
    "": Attempt(outcome(1.0)),
    **REFUSED,
    **dict.fromkeys((AGAINST, "CUDA graph"), Attempt(outcome(1.0))),
}


def test_all_alternatives_are_timed_in_turn_with_the_step() -> None:
    asked: list[int] = []
    times, found = changes(BOTH, times_of(8e6, 4e6, 2e6), asked).try_all(
        compiled=False, against="step = print"
    )
    assert asked == [3]
    assert [each.name for each in found[:2]] == [AGAINST, "CUDA graph"]
    assert [each.gain.value for each in found[:2]] == [pytest.approx(2), 4]
    assert times.calls[0].figures[0].value == 8e6


def test_an_alternative_that_fails_among_others_is_timed_again_with_the_step_alone() -> None:
    asked: list[int] = []
    times = {3: times_of(8e6, 4e6, None), 2: times_of(8e6, 2e6)}
    found = changes(BOTH, times.__getitem__, asked).try_all(against="step = print")[1]
    assert asked == [3, 2]
    assert [each.gain.value for each in found[:2]] == [pytest.approx(2), pytest.approx(4)]


def test_alternatives_that_end_the_process_are_failed_and_the_step_still_gets_its_times() -> None:
    asked: list[int] = []
    times = {3: UsageError("the process crashed"), 2: UsageError("out of memory"), 1: times_of(8e6)}
    first, found = changes(BOTH, times.__getitem__, asked).try_all(against="step = print")
    assert asked == [3, 1, 2, 1, 2, 1]
    assert first.calls[0].figures[0].value == 8e6
    assert [(each.status, each.reason) for each in found[:2]] == [("failed", "out of memory")] * 2


def test_a_step_without_pytorch_is_compared_only_with_the_alternative_of_the_user() -> None:
    times = times_of(10e6, 5e6)
    assert changes({}, times_of(10e6), leave_out=ALTERNATIVES).try_all()[1] == []
    attempts = {"": Attempt(outcome(1.0)), AGAINST: Attempt(outcome(1.0))}
    (own,) = changes(attempts, times, leave_out=ALTERNATIVES).try_all(
        compiled=False, against="step = print"
    )[1]
    assert (own.name, own.status) == (AGAINST, "ok")
    assert own.gain.value == pytest.approx(2)


@pytest.mark.parametrize(
    ("second", "note"), [(0.02, ""), (0.6, "step-needs-seconds"), (6.0, "step-not-resolved")]
)
def test_a_step_that_is_not_resolved_is_timed_again_for_longer_and_says_what_it_needs(
    second: float, note: str
) -> None:
    asked: list[int] = []
    first = times_of(1e6, half=0.9)
    timed = changes({}, times_of(1e6, half=second), asked)
    timed.ends = time.monotonic() + 60
    found = timed.resolved(first)
    assert asked == [1]
    assert found.calls[0].figures[0].high == pytest.approx(1e6 * (1 + second))
    assert [codes_of(one) for one in found.notes] == ([{note}] if note else [])
    timed.ends = time.monotonic()
    assert timed.resolved(first).calls == first.calls
    assert timed.resolved(found) == found if not note else asked == [1]


def test_no_alternative_is_attempted_after_the_time_of_the_user() -> None:
    asked: list[int] = []
    timed = changes({}, times_of(1e6), asked)
    timed.ends = time.monotonic()
    found = timed.try_all(compiled=False)[1]
    assert {each.status for each in found} == {"refused"}
    assert {each.reason for each in found} == {because("no-time-for-alternative")}
    assert asked == [1], "the step gets its times"


def test_alternatives_that_do_not_apply_are_left_out() -> None:
    made = changes({"": Attempt(outcome(1.0)), **REFUSED}, times_of(1e6), leave_out=[PINNED])
    assert PINNED not in [one.name for one in made.try_all()[1]]


def test_the_time_left_is_told_before_each_attempt_and_holds_what_comes_later() -> None:
    left: list[float] = []

    class Told(Listener):
        def left(self, seconds: float) -> None:
            left.append(seconds)

    def timed(spec: Any, listener: Listener, **more: Any) -> Any:
        listener.left(9.0)
        return times_of(10e6)

    answers = {"": Attempt(outcome(1.0)), **REFUSED}
    made = Changes(JOB, FOUND, Told(), lambda job, limit_s: answers[job.alternative], timed)
    made.conditions_s = 5.0
    made.try_all(compiled=False)
    *before, measuring = left
    assert len(before) > 1
    assert before == sorted(before, reverse=True)
    assert min(before) > made.least_s + made.conditions_s
    assert measuring == 14.0


def test_a_wait_for_other_runs_reaches_the_listener() -> None:
    waits: list[float] = []

    class Told(Listener):
        def waiting(self, seconds: float) -> None:
            waits.append(seconds)

    def timed(spec: Any, listener: Listener, **more: Any) -> Any:
        listener.waiting(3.0)
        return times_of(10e6)

    Changes(JOB, FOUND, Told(), timed=timed).time_alone()
    assert waits == [3.0]
