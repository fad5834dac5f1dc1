"""The torch stack on the CPU: additions from Python and from a compiled loop, autograd modes."""

from __future__ import annotations

import pytest

from overhead.probes.base import Chain, vary
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
    for body in (add, train, graphed):
        assert body.executed() == 2
