"""The torch stack on the CPU, and the cases of other devices, which need not exist here."""

from __future__ import annotations

import subprocess
import sys

import pytest

from overhead.probes.base import Unverified, vary
from overhead.probes.torch.torch import TorchProbe
from overhead.results import Api, Target
from tests.fakes.of_step import of_step

PROBE = TorchProbe()
CPU = Target(stack="torch", api="CPU", adapter="CPU", options={"device": "cpu"})
CASES = {case.key: case for case in of_step(PROBE.space(CPU).star())}
needs_torch = pytest.mark.needs("torch")


def target(api: Api) -> Target:
    return Target(stack="torch", api=api, adapter="a GPU", options={"device": "none"})


@needs_torch
@pytest.mark.needs("numba")
def test_python_and_native_run_the_same_operation() -> None:
    pairs = [case for case in CASES.values() if case.params.get("operand") == "tensor"]
    assert {case.caller for case in pairs} == {"binding", "native"}
    for case in pairs:
        if case.caller == "native":
            native = PROBE.open(CPU, case)
            binding = PROBE.open(CPU, vary(case, "caller", "binding"))
            assert {**native.window(), "entry": ""} == {**binding.window(), "entry": ""}
            assert native.window()["entry"] != binding.window()["entry"]
            native.close()


@needs_torch
def test_chains_of_different_autograd_modes_can_alternate() -> None:
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
@pytest.mark.parametrize(("train", "name"), [(True, "h2d"), (True, "item"), (False, "h2d"), (False, "branch")])
def test_an_action_after_a_network_step_uses_the_same_autograd_mode(train: bool, name: str) -> None:
    import torch

    from overhead.probes.torch import waits
    from overhead.probes.torch.bodies import AddOne, NetworkStep
    from overhead.probes.torch.chains import Acting

    cpu = torch.device("cpu")
    network = NetworkStep(cpu, train=train, varying=False)
    act = waits.copy(cpu, name) if name == "h2d" else waits.action(cpu, name, network.reading)
    chain = Acting(cpu, network, lambda: None, spins=False, action=act, every=2, waits=True)
    beside = Acting(cpu, AddOne(cpu), lambda: None, spins=False, action=act, every=1, waits=True)
    for one in (chain, beside, chain):
        one.prepare(1)
        one.issue(1)
    assert chain.executed() == 2
    assert beside.executed() == 1


@needs_torch
@pytest.mark.parametrize("varying", [False, True])
def test_the_forward_pass_is_counted_by_its_losses(varying: bool) -> None:
    import torch

    from overhead.probes.torch.bodies import NetworkStep, set_autograd_mode

    network = NetworkStep(torch.device("cpu"), train=False, varying=varying)
    set_autograd_mode(network.mode)
    done = 0
    for n in (1, 5, 2):
        network.loop()(n)
        done += n
        assert network.executed() == done
    network._sum.add_(0.4 * network._sums[0])
    with pytest.raises(Unverified, match="losses add up"):
        network.executed()


@pytest.mark.parametrize("api", ["CPU", "CUDA", "HIP", "LevelZero", "MPS"])
def test_the_name_of_the_unit_contains_the_number_of_launches_or_steps(api: Api) -> None:
    for case in of_step(PROBE.space(target(api)).cross()):
        every = case.params.get("every", 1)
        one = "launch" if case.workload == "step" else "step"
        many = "launches" if case.workload == "step" else "steps"
        assert case.unit == (one if every == 1 else f"{every} {many}")
        if "sync" in case.params:
            assert (case.pattern in ("wait-each", "read-each")) == (case.params["sync"] != "h2d-pinned")


def test_a_space_loads_no_torch() -> None:
    code = (
        "import sys; from overhead.probes.torch.torch import TorchProbe; from overhead.results import Target;"
        "t = Target(stack='torch', api='CUDA', adapter='x', options={'device': 'cuda:0'});"
        "print(len(list(TorchProbe().space(t).star())), 'torch' in sys.modules, 'numba' in sys.modules)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert int(printed[0]) > 40
    assert printed[1:] == ["False", "False"]
