"""The steps in docs/examples/steps run, and change as their text says."""

import sys
from pathlib import Path

import pytest

from overhead.explaining.outcome import differences, result_values
from overhead.timing.steps import find_step

FOLDER = Path(__file__).parents[2] / "docs/examples/steps"
EXAMPLES = [
    ("qwen2_decode.py", "decode", {"size": "qwen2.5-tiny"}, "torch"),
    ("qwen2_decode.py", "greedy", {"size": "qwen2.5-tiny"}, "torch"),
    ("training_step.py", "training", {}, "torch"),
    ("training_step.py", "training_quiet", {}, "torch"),
    ("simulation.py", "Particles", {"count": 64}, "torch"),
    ("jax_step.py", "update", {}, "jax"),
]


@pytest.mark.parametrize(
    ("file", "function", "arguments"),
    [
        pytest.param(*one[:3], marks=pytest.mark.needs(one[3]), id=f"{one[0]}:{one[1]}")
        for one in EXAMPLES
    ],
)
def test_each_example_program_gives_a_step_that_runs_several_times(
    monkeypatch: pytest.MonkeyPatch, file: str, function: str, arguments: dict[str, object]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    step = find_step(str(FOLDER / file), function, arguments).call
    first, _ = result_values("step", step())
    step()
    step()
    fourth, _ = result_values("step", step())
    assert first
    assert differences(first, fourth)


@pytest.mark.needs("torch")
def test_the_training_example_gives_the_same_loss_whether_it_is_read_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    read = find_step(str(FOLDER / "training_step.py"), "training", {}).call
    quiet = find_step(str(FOLDER / "training_step.py"), "training_quiet", {}).call
    for _ in range(3):
        read_loss, _ = result_values("step", read())
        quiet_loss, _ = result_values("step", quiet())
        assert differences(read_loss, quiet_loss) == []
