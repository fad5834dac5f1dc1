"""An attempt in a real child process, and the parts of it in this one."""

from typing import Any

import msgspec
import pytest

from overhead.explaining.alternatives import ALTERNATIVES, StepChange
from overhead.explaining.attempts import (
    Attempt,
    AttemptJob,
    NotPossible,
    attempt_apart,
    load_steps,
    prepare_step,
    run_attempt,
)
from overhead.explaining.outcome import StepOutcome, compare_outcomes, differences
from overhead.results import because

COUNTER = """
count = [0]
def step() -> Any:
    count[0] += 1
    return count[0]
"""


def outcome_of(found: Attempt) -> StepOutcome:
    assert found.outcome is not None, found.reason
    return found.outcome


def test_an_attempt_returns_the_results_of_the_steps_after_the_warm_up() -> None:
    found = run_attempt(AttemptJob(setup=COUNTER))
    # After three steps of warm-up.
    assert [value.elements()[0] for value in outcome_of(found).results] == [4, 5, 6]


def test_an_attempt_runs_the_alternative_of_the_user_instead_of_the_step() -> None:
    other = COUNTER.replace("+= 1", "+= 2")
    found = run_attempt(AttemptJob(setup=COUNTER, against=other))
    assert [value.elements()[0] for value in outcome_of(found).results] == [8, 10, 12]


def test_two_steps_that_are_timed_in_one_process_do_not_share_state() -> None:
    jobs = [AttemptJob(setup=COUNTER), AttemptJob(setup=COUNTER, against=COUNTER)]
    step, other = load_steps(msgspec.json.encode(jobs).decode())
    # Both have been called six times to warm up.
    assert (step(), step(), other()) == (7, 8, 7)


CAPTURE = StepChange(lambda step: step, str, captures=True)


def test_a_step_that_changes_host_values_is_refused_as_a_cuda_graph(monkeypatch: Any) -> None:
    monkeypatch.setitem(ALTERNATIVES, "capture", CAPTURE)
    with pytest.raises(NotPossible) as refused:
        prepare_step(AttemptJob(setup=COUNTER, alternative="capture"))
    assert refused.value.reason == because("step-not-capturable", names="count.0", more=0)


def counting_in(place: str, start: str) -> str:
    """The counter, kept in this place of ``count``, which starts as this."""
    return COUNTER.replace("count[0]", f"count{place}").replace("[0]", start)


def test_an_optimiser_that_counts_on_the_host_is_refused_with_the_hint_capturable(
    monkeypatch: Any,
) -> None:
    monkeypatch.setitem(ALTERNATIVES, "capture", CAPTURE)
    as_an_optimiser = counting_in("['state']['p']['step']", start="{'state': {'p': {'step': 0}}}")
    with pytest.raises(NotPossible) as refused:
        prepare_step(AttemptJob(setup=as_an_optimiser, alternative="capture"))
    assert refused.value.reason == because(
        "optimiser-not-capturable", names="count.state.p.step", more=0
    )


def test_a_counter_of_ones_own_that_is_called_step_is_not_taken_for_an_optimiser(
    monkeypatch: Any,
) -> None:
    monkeypatch.setitem(ALTERNATIVES, "capture", CAPTURE)
    own_counter = counting_in("['step']", start="{'step': 0}")
    with pytest.raises(NotPossible) as refused:
        prepare_step(AttemptJob(setup=own_counter, alternative="capture"))
    assert refused.value.reason == because("step-not-capturable", names="count.step", more=0)


def test_an_attempt_in_a_child_process_returns_what_it_returns_in_this_one() -> None:
    text = COUNTER.replace(
        "return count[0]", "return [1e-300 * count[0], bytes(9), large * count[0]]"
    )
    job = AttemptJob(setup=f"import numpy\nlarge = numpy.arange(1 << 20)\n{text}")
    found, here = attempt_apart(job, limit_s=60), run_attempt(job)
    same = compare_outcomes(outcome_of(found), outcome_of(here))
    assert same.differences == []
    # Of each of three steps a number, bytes and the array; and the array as the state.
    assert same.count == 3 * (2 + (1 << 20)) + (1 << 20)
    assert same.left_out == {}


TRAINING = """
import torch
model = torch.nn.Linear(4, 3)
optimiser = torch.optim.Adam(model.parameters(), lr=LR)
x, steps = torch.ones(2, 4), torch.zeros(1)
def step():
    optimiser.zero_grad()
    model(x).pow(2).sum().backward()
    optimiser.step()
    steps.add_(1)
"""


@pytest.mark.slow
@pytest.mark.needs("torch")
def test_a_step_that_imports_pytorch_gets_the_same_random_values_in_each_process() -> None:
    step = AttemptJob(
        setup="import torch\nx = torch.rand(3)\ndef step():\n    return x", torch=True
    )
    first, second = (attempt_apart(step, limit_s=120) for _ in range(2))
    assert compare_outcomes(outcome_of(first), outcome_of(second)).differences == []


@pytest.mark.needs("torch")
def test_a_training_step_that_returns_nothing_is_compared_by_its_state() -> None:
    step = TRAINING.replace("LR", "0.1")
    different_steps = {
        "another learning rate": TRAINING.replace("LR", "0.11"),
        "no count of steps": step.replace("steps.add_(1)", "steps.add_(0)"),
        "nothing": "def step():\n    pass",
        "no change": "import torch\nx = torch.ones(2, 4)\ndef step():\n    x + 1",
    }

    def outcome(setup: str) -> StepOutcome:
        return outcome_of(run_attempt(AttemptJob(setup=setup, torch=True)))

    ours = outcome(step)
    same = compare_outcomes(ours, outcome(step), own=True)
    assert same.differences == []
    # Parameters (12 weights and 3 biases), gradients and two moments; Adam's counters; steps.
    assert same.count == 4 * (12 + 3) + 2 + 1
    for name, other in different_steps.items():
        assert compare_outcomes(ours, outcome(other), own=True).differences, name


@pytest.mark.slow
def test_torch_compile_gives_the_same_results_and_a_step_without_one_term_differs() -> None:
    pytest.importorskip("torch")
    text = """
import torch
weight = torch.full((8, 8), 0.1)
x = torch.ones(8)
def step() -> Any:
    x.copy_(weight @ x + 0.01)
    return x
"""
    plain = attempt_apart(AttemptJob(setup=text), limit_s=300)
    compiled = attempt_apart(AttemptJob(setup=text, alternative="torch.compile"), limit_s=300)
    assert differences(outcome_of(plain).results, outcome_of(compiled).results) == []
    mutant = attempt_apart(AttemptJob(setup=text, against=text.replace(" + 0.01", "")), limit_s=300)
    assert differences(outcome_of(plain).results, outcome_of(mutant).results)


@pytest.mark.needs("torch")
def test_a_step_of_another_library_does_not_start_cuda(monkeypatch: Any) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Stream", None)
    attempt = run_attempt(AttemptJob(setup="def step():\n    return 1", alternative="CUDA graph"))
    assert attempt.refused is True
    assert attempt.reason == because("step-without-torch-on-cuda")


FIXED_INPUT = """
import numpy as np
x = np.linspace(1, 2, 64)
calls = []
def step():
    calls.append(1)
    BODY
"""
IN_PLACE = FIXED_INPUT.replace("x = ", "out = np.zeros(64)\nx = ")


@pytest.mark.parametrize(
    ("original", "alternative", "same"),
    [
        # The step is called with other inputs too, and more than ten times.
        ("return float(x @ x)", "return float((x * x).sum())", True),
        ("return float(x @ x)", "return float(x @ x) if len(calls) < 10 else kept", None),
        ("return float(x @ x)", "return kept", None),
        ("out[:] = 2 * x", "out[:] = x + x", None),
        ("out[:] = out + x", "out[:] = x + out", True),
        ("out[:] = out + x", "if len(calls) < 10: out[:] = out + x", None),
    ],
)
def test_an_alternative_that_returns_earlier_results_is_not_called_the_same(
    original: str, alternative: str, same: bool | None
) -> None:
    """``same``: None where that cannot be told."""
    text = IN_PLACE if "out" in original else FIXED_INPUT + "kept = float(x @ x)\n"
    step = AttemptJob(setup=text.replace("BODY", original), vary=True)
    other = AttemptJob(setup=text.replace("BODY", alternative), vary=True)
    found = compare_outcomes(
        outcome_of(run_attempt(step)), outcome_of(run_attempt(other)), own=True
    )
    assert found.differences == []
    assert (not found.unknown or None) == same
    assert found.remark == ""


def test_a_step_of_which_nothing_can_be_varied_is_not_compared() -> None:
    job = AttemptJob(setup="x = 3\ndef step():\n    return x", vary=True)
    first = outcome_of(run_attempt(job))
    second = outcome_of(run_attempt(job))
    found = compare_outcomes(first, second, own=True)
    assert found.differences == []
    assert found.unknown


KINDS_OF_INPUT = {
    "integers": ("x = np.arange(64) % 7", "int((x * x).sum())"),
    "a list": ("x = np.linspace(1, 2, 64).tolist()", "sum(v * v for v in x)"),
    "a list of integers": ("x = [n % 7 for n in range(64)]", "sum(v * v for v in x)"),
    "a number": ("x = 1.5", "x * x"),
    "floats": ("x = np.linspace(1, 2, 64)", "float((x * x).sum())"),
}
CHEATS = {
    "cached": "if 'r' not in kept:\n        kept['r'] = WORK\n    return kept['r']",
    "keyed by the first element": (
        "key = np.ravel(x)[0]\n    kept.setdefault(key, WORK)\n    return kept[key]"
    ),
    "stops after 80 steps": "if len(calls) <= 80:\n        kept['r'] = WORK\n    return kept['r']",
}


@pytest.mark.parametrize("kind", KINDS_OF_INPUT)
@pytest.mark.parametrize("cheat", ["", *CHEATS], ids=["no cheat", *CHEATS])
def test_kept_results_of_each_kind_of_input_are_not_called_the_same(kind: str, cheat: str) -> None:
    is_number = kind == "a number"
    if is_number and cheat == "keyed by the first element":
        pytest.skip("one number has no other element")
    given, work = KINDS_OF_INPUT[kind]
    start = f"import numpy as np\n{given}\nkept, calls = {{}}, []\n"
    step = f"def step():\n    calls.append(1)\n    return {work}"
    honest_body = "return WORK"
    body = CHEATS.get(cheat, honest_body).replace("WORK", work)
    honest = AttemptJob(setup=start + step, vary=True, later_s=0.05)
    other_step = step.replace(f"return {work}", body)
    other = AttemptJob(setup=start + other_step, vary=True, later_s=0.05)
    ours = outcome_of(run_attempt(honest))
    theirs = outcome_of(run_attempt(other))
    found = compare_outcomes(ours, theirs, own=True)
    assert found.differences == []
    assert bool(found.unknown) is bool(cheat)


def test_a_step_that_ends_its_process_with_other_values_keeps_its_results() -> None:
    text = (
        "import os, numpy as np\nx = np.ones(8)\ndef step():\n    return float(x.sum()) if x[4] =="
        " 1 else os._exit(3)"
    )
    made = attempt_apart(AttemptJob(setup=text, vary=True, later_s=0.05), limit_s=60)
    assert outcome_of(made).later is None
    # Each sums eight ones; with another value the step ends its process.
    assert [value.elements()[0] for value in outcome_of(made).results] == [8, 8, 8]


@pytest.mark.needs("torch")
def test_a_model_with_a_fixed_input_responds_to_other_weights() -> None:
    text = """
import torch
model = torch.nn.Linear(8, 8).eval()
x = torch.ones(2, 8)
kept = []
@torch.no_grad()
def step():
    kept.append(model(x).sum().item())
    return kept[RETURNED]
"""
    returns_last = text.replace("RETURNED", "-1")
    returns_first = text.replace("RETURNED", "0")
    honest = outcome_of(run_attempt(AttemptJob(setup=returns_last, torch=True, vary=True)))
    cached = outcome_of(run_attempt(AttemptJob(setup=returns_first, torch=True, vary=True)))
    assert honest.responds
    assert compare_outcomes(honest, cached, own=True).unknown
    untried = outcome_of(run_attempt(AttemptJob(setup=returns_first, torch=True)))
    assert untried.responds is None
