"""Fifteen operations: their cases, and values that tell a right call from a wrong one."""

from __future__ import annotations

import dataclasses

import pytest

from overhead.probes.base import Unverified
from overhead.probes.torch.operations import TORCH_OPERATIONS
from overhead.probes.torch.torch import TorchProbe
from overhead.results import Target

CPU = Target(stack="torch", api="CPU", adapter="CPU", options={"device": "cpu"})


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", TORCH_OPERATIONS)
def test_an_operation_counts_its_calls_and_its_values_are_right(name: str) -> None:
    (case,) = (c for c in TorchProbe().space(CPU).star() if c.params.get("operation") == name)
    chain = TorchProbe().open(CPU, case)
    assert chain.executed() == 0
    for n in (1, 0, 5):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
    assert chain.executed() == 6
    assert chain.window()["operation"] == TORCH_OPERATIONS[name].call
    assert chain.device(4) is None


@pytest.mark.needs("torch")
@pytest.mark.parametrize(
    ("name", "wrong"), [("softmax", "z = torch.softmax(m, 0)"), ("add-in-place", "x.add_(2)"), ("item", "z = 0.5")]
)
def test_a_call_that_does_something_else_is_found(monkeypatch: pytest.MonkeyPatch, name: str, wrong: str) -> None:
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
