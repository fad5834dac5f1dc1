"""Attempt, compare and time alternatives; child processes are replaced."""

import math
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.explain.attempts import Attempt, AttemptJob
from overhead.explain.call_spec import FoundCall
from overhead.explain.changes import AGAINST, Changes
from overhead.explain.outcome import StepOutcome, of_result
from overhead.explain.timing import CallRatio, CallTiming, Timing
from overhead.results import Figure, Machine
from overhead.runner.progress import Listener

FOUND = FoundCall(one_ns=1e6, waits=["none"], said="", api="CPU", adapter="CPU")
JOB = AttemptJob(setup="step = print")


def outcome(*results: Any) -> Any:
    values = [value for index, one in enumerate(results) for value in of_result(f"step {index + 1}", one)]
    return StepOutcome(values, [])


def timing(step_ns: Any, other_ns: Any, half: Any = 0.02) -> Any:
    def call(ns: Any) -> Any:
        figures = [Figure(name="complete", value=ns, low=ns * (1 - half), high=ns * (1 + half))]
        return CallTiming(
            call="", status="ok", reason="", wait="", on="CPU", bound="host", flags=[], prints=False, figures=figures
        )

    ratio, difference = other_ns / step_ns, other_ns - step_ns
    ratios = [
        CallRatio(
            position=2,
            difference=Figure(name="difference", value=difference, low=difference - half * step_ns,
                              high=difference + half * step_ns),
            ratio=Figure(name="ratio", unit="ratio", value=ratio, low=ratio - half, high=ratio + half),
        )
    ]  # fmt: skip
    return Timing(
        created="2026-11-23T12:00:00Z", setup="", machine=Machine(id="0" * 12, cpu="", cores=1, memory_gib=1),
        versions={}, calls=[call(step_ns), call(other_ns)], ratios=ratios, notes=[],
    )  # fmt: skip


def changes(attempts: Any, times: Any = None) -> Any:
    """Changes without child processes. ``attempts``: the answer for each name; "" is the original step."""

    def attempted(job: Any, limit_s: Any) -> Any:
        answer = attempts[AGAINST if job.against else job.alternative]
        return answer.pop(0) if isinstance(answer, list) else answer

    return Changes(JOB, FOUND, Listener(), attempted, lambda *args, **kwargs: times)


def test_a_faster_alternative_has_a_gain_and_is_repaid() -> None:
    made = Attempt(outcome(1.0), making_s=2.0)
    found = changes({"": Attempt(outcome(1.0)), "CUDA graph": made}, timing(10e6, 2e6)).one(
        "CUDA graph", AttemptJob(setup="", alternative="CUDA graph")
    )
    assert found.gain.value == pytest.approx(5)
    assert found.gain.low < 5 < found.gain.high
    assert found.repaid_after.value == math.ceil(2e9 / 8e6)
    assert (found.kind, found.status, found.same_results) == ("measured", "ok", True)


def test_a_slower_alternative_is_never_repaid() -> None:
    made = Attempt(outcome(1.0), making_s=2.0)
    found = changes({"": Attempt(outcome(1.0)), "torch.compile": made}, timing(2e6, 3e6)).one(
        "torch.compile", AttemptJob(setup="", alternative="torch.compile")
    )
    assert found.repaid_after.value is None
    assert found.gain.value == pytest.approx(2 / 3)


def test_other_results_are_told_with_both_values_and_not_timed() -> None:
    found = changes({"": Attempt(outcome(1.0, 2.0)), "CUDA graph": Attempt(outcome(1.0, 3.0))}).one(
        "CUDA graph", AttemptJob(setup="", alternative="CUDA graph")
    )
    assert (found.status, found.same_results) == ("differs", False)
    assert found.results.startswith("step 2: 2 and 3")
    assert found.step.value is None


def test_a_step_that_differs_from_itself_cannot_be_compared() -> None:
    attempts = {"": [Attempt(outcome(1.0)), Attempt(outcome(5.0))], "CUDA graph": Attempt(outcome(3.0))}
    found = changes(attempts, timing(10e6, 2e6)).one("CUDA graph", AttemptJob(setup="", alternative="CUDA graph"))
    assert found.same_results is None
    assert "the step itself gives different results in two processes" in found.reason
    assert found.status == "ok"


def test_a_bound_is_timed_whatever_it_computes() -> None:
    name = "without synchronisations"
    found = changes({"": Attempt(outcome(1.0)), name: Attempt(outcome(3.0))}, timing(10e6, 2e6)).one(
        name, AttemptJob(setup="", alternative=name)
    )
    assert (found.kind, found.same_results, found.status) == ("bound", None, "ok")


@pytest.mark.parametrize(("refused", "status"), [(True, "refused"), (False, "failed")])
def test_an_impossible_alternative_keeps_its_reason_and_line(refused: Any, status: Any) -> None:
    made = Attempt(reason="not capturable", where="train.py:3, in step", refused=refused)
    found = changes({"": Attempt(outcome(1.0)), "CUDA graph": made}).one(
        "CUDA graph", AttemptJob(setup="", alternative="CUDA graph")
    )
    assert (found.status, found.reason, found.site.line) == (status, "not capturable", "train.py:3, in step")
    assert found.gain.reason == "not capturable"


def test_a_step_that_fails_ends_everything() -> None:
    with pytest.raises(UsageError, match="cannot be repeated: ValueError: no"):
        changes({"": Attempt(reason="ValueError: no")}).one("CUDA graph", JOB)


def test_an_unresolved_ratio_gives_no_gain() -> None:
    made = Attempt(outcome(1.0))
    found = changes({"": made, "CUDA graph": made}, timing(1e6, 1e4, half=0.5)).one(
        "CUDA graph", AttemptJob(setup="", alternative="CUDA graph")
    )
    assert found.gain.value is None
    assert found.gain.reason


def test_compiling_is_left_out_on_request() -> None:
    attempts = {"": Attempt(outcome(1.0)), **dict.fromkeys((AGAINST, "CUDA graph"), Attempt(outcome(1.0)))}
    attempts["without synchronisations"] = Attempt(reason="no CUDA device", refused=True)
    names = [one.name for one in changes(attempts, timing(2e6, 1e6)).all(compiled=False, against="step = print")]
    assert names == [AGAINST, "CUDA graph", "without synchronisations"]
