"""An attempt in a real child process, and the parts of it in this one."""

from typing import Any

import msgspec
import pytest

from overhead.explain.alternatives import ALTERNATIVES
from overhead.explain.attempts import Attempt, AttemptJob, NotPossible, attempted, prepared, run_attempt, steps_of
from overhead.explain.outcome import StepOutcome, differences

COUNTER = """
count = [0]
def step() -> Any:
    count[0] += 1
    return count[0]
"""
FAILS = """
def step() -> Any:
    raise ValueError("no more data")
"""


def outcome_of(found: Attempt) -> StepOutcome:
    assert found.outcome is not None, found.reason
    return found.outcome


def test_the_outcome_holds_the_results_after_the_first_steps() -> None:
    found = run_attempt(AttemptJob(setup=COUNTER))
    assert [value.elements[0] for value in outcome_of(found).results] == [4, 5, 6]


def test_a_step_that_raises_has_a_reason_and_a_line() -> None:
    found = run_attempt(AttemptJob(setup=FAILS))
    assert found.outcome is None
    assert found.reason == "ValueError: no more data"
    assert found.where == "<string>:3, in step"


def test_the_user_s_alternative_is_loaded_in_place_of_the_step() -> None:
    other = COUNTER.replace("+= 1", "+= 2")
    found = run_attempt(AttemptJob(setup=COUNTER, against=other))
    assert [value.elements[0] for value in outcome_of(found).results] == [8, 10, 12]


def test_two_steps_that_are_timed_in_turn_share_no_state() -> None:
    jobs = [AttemptJob(setup=COUNTER), AttemptJob(setup=COUNTER, against=COUNTER)]
    step, other = steps_of(msgspec.json.encode(jobs).decode())
    assert (step(), step(), other()) == (7, 8, 7)


def test_a_step_that_cannot_be_made_raises_the_reason_when_it_is_called() -> None:
    jobs = [AttemptJob(setup=COUNTER), AttemptJob(setup=COUNTER, against=FAILS)]
    step, other = steps_of(msgspec.json.encode(jobs).decode())
    assert step() == 7
    with pytest.raises(RuntimeError, match="ValueError: no more data"):
        other()


class Capture:
    name, label, captures, compiles = "capture", "measured", True, False

    def why_not(self) -> Any:
        return ""

    def make(self, step: Any) -> Any:
        return step


def test_state_on_the_host_forbids_a_capture(monkeypatch: Any) -> None:
    monkeypatch.setitem(ALTERNATIVES, "capture", Capture())
    with pytest.raises(NotPossible, match=r"state on the host that changes with every step: count\.0"):
        prepared(AttemptJob(setup=COUNTER, alternative="capture"))


def test_an_optimiser_that_counts_on_the_host_has_a_remedy(monkeypatch: Any) -> None:
    monkeypatch.setitem(ALTERNATIVES, "capture", Capture())
    setup = COUNTER.replace("count[0]", "count['state']['p']['step']").replace("[0]", "{'state': {'p': {'step': 0}}}")
    with pytest.raises(NotPossible, match=r"count\.state\.p\.step; capturable=True keeps the counters"):
        prepared(AttemptJob(setup=setup, alternative="capture"))
    own_counter = COUNTER.replace("count[0]", "count['step']").replace("[0]", "{'step': 0}")
    with pytest.raises(NotPossible, match=r"count\.step$"):
        prepared(AttemptJob(setup=own_counter, alternative="capture"))


def test_without_pytorch_nothing_is_captured() -> None:
    found = attempted([AttemptJob(setup=COUNTER, alternative="CUDA graph")], limit_s=60)[0]
    assert found.refused
    assert "PyTorch" in found.reason


def test_a_child_answers_with_the_same_outcome() -> None:
    found = attempted([AttemptJob(setup=COUNTER)], limit_s=60)[0]
    assert differences(outcome_of(found).results, outcome_of(run_attempt(AttemptJob(setup=COUNTER))).results) == []


def test_a_crash_of_the_child_is_a_reason() -> None:
    found = attempted([AttemptJob(setup="import os\ndef step():\n    os._exit(7)")], limit_s=60)[0]
    assert "exit code 7" in found.reason


@pytest.mark.slow
def test_torch_compile_computes_the_same_and_a_dropped_term_is_found() -> None:
    pytest.importorskip("torch")
    text = """
import torch
weight = torch.full((8, 8), 0.1)
x = torch.ones(8)
def step() -> Any:
    x.copy_(weight @ x + 0.01)
    return x
"""
    plain = attempted([AttemptJob(setup=text)], limit_s=300)[0]
    compiled = attempted([AttemptJob(setup=text, alternative="torch.compile")], limit_s=300)[0]
    assert differences(outcome_of(plain).results, outcome_of(compiled).results) == []
    mutant = attempted([AttemptJob(setup=text, against=text.replace(" + 0.01", ""))], limit_s=300)[0]
    assert differences(outcome_of(plain).results, outcome_of(mutant).results)


@pytest.mark.needs("torch")
def test_a_step_of_another_library_does_not_start_cuda(monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Stream", None)
    attempt = run_attempt(AttemptJob(setup="def step():\n    return 1", alternative="CUDA graph"))
    assert (attempt.refused, attempt.reason) == (True, "the step does not use PyTorch on CUDA")
