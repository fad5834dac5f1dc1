"""The torch stack on the CPU: additions from Python and from a compiled loop, autograd modes, fifteen operations."""

from __future__ import annotations

import dataclasses

import pytest

from overhead.probes.base import Chain, Unverified, vary
from overhead.probes.torch.operations import TORCH_OPERATIONS
from overhead.probes.torch.torch import TorchProbe
from overhead.results import Target
from tests.fakes.of_step import of_step

PROBE = TorchProbe()
CPU = Target(stack="torch", api="CPU", adapter="CPU", options={"device": "cpu"})
CASES = {case.key: case for case in of_step(PROBE.space(CPU).star())}
needs_torch = pytest.mark.needs("torch")


@needs_torch
@pytest.mark.needs("numba")
def test_the_python_loop_and_the_compiled_loop_run_the_same_torch_operation() -> None:
    import torch

    def operators(chain: Chain) -> list[str]:
        """What the dispatcher sees of three units, in order."""
        chain.prepare(3)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            chain.issue(3)
        return [event.name for event in seen.events()]

    pairs = [case for case in CASES.values() if case.params.get("operand") == "tensor"]
    assert {case.caller for case in pairs} == {"binding", "native"}
    for case in pairs:
        if case.caller == "native":
            native = PROBE.open(CPU, case)
            binding = PROBE.open(CPU, vary(case, "caller", "binding"))
            assert {**native.window(), "entry": ""} == {**binding.window(), "entry": ""}
            assert native.window()["entry"] != binding.window()["entry"]
            assert operators(native) == operators(binding) == [operators(binding)[0]] * 3
            native.close()


@needs_torch
def test_torch_steps_of_different_autograd_modes_can_run_in_turn() -> None:
    import torch

    from overhead.probes.torch.bodies import AddOne, NetworkStep, set_autograd_mode

    device = torch.device("cpu")
    add, graphed = AddOne(device), AddOne(device, mode="no_grad")
    train = NetworkStep(device, train=True, varying=False)
    for _ in range(2):
        for body in (add, train, graphed):
            set_autograd_mode(body.mode)
            body.loop()(1)
            assert torch.is_inference_mode_enabled() == (body.mode == "inference")
    assert (add.executed(), train.executed(), graphed.executed()) == (2, 2, 2)


@needs_torch
@pytest.mark.parametrize("name", TORCH_OPERATIONS)
def test_each_torch_operation_counts_its_calls_and_computes_the_expected_values(name: str) -> None:
    (case,) = (c for c in PROBE.space(CPU).star() if c.params.get("operation") == name)
    chain = PROBE.open(CPU, case)
    assert chain.executed() == 0
    for n in (1, 0, 5):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
    assert chain.executed() == 6
    assert chain.window()["operation"] == TORCH_OPERATIONS[name].call
    assert chain.device(4) is None


@needs_torch
@pytest.mark.parametrize(
    ("name", "wrong"), [("softmax", "z = torch.softmax(m, 0)"), ("add-in-place", "x.add_(2)"), ("item", "z = 0.5")]
)
def test_an_operation_with_wrong_values_raises_unverified(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: str
) -> None:
    import torch

    from overhead.probes.torch.bodies import OperationBody

    body = OperationBody(torch.device("cpu"), name)
    right = TORCH_OPERATIONS[name]
    monkeypatch.setitem(TORCH_OPERATIONS, name, dataclasses.replace(right, call=wrong))
    broken = OperationBody(torch.device("cpu"), name)
    broken._operation = right
    for each in (body, broken):
        each.loop()(3)
    assert body.executed() == 3
    with pytest.raises(Unverified, match="the last values are off by"):
        broken.executed()
