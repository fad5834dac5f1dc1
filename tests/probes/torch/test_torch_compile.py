"""The torch.compile stack: the cases on a GPU, and the requirements on the CPU."""

from __future__ import annotations

import shutil

import pytest

from overhead.probes.base import Unavailable
from overhead.probes.torch.torch_compile import TorchCompileProbe
from overhead.results import Target
from tests.fakes.of_step import of_step

PROBE = TorchCompileProbe()
CPU = Target(stack="torch-compile", api="CPU", adapter="CPU", options={"device": "cpu"})
CUDA = Target(stack="torch-compile", api="CUDA", adapter="a GPU", options={"device": "cuda:0"})
CASES = {case.key: case for case in of_step(PROBE.space(CPU).star())}


def test_a_gpu_gets_every_mode_with_one_and_five_operations() -> None:
    found = {(case.params["mode"], case.params["ops"]) for case in of_step(PROBE.space(CUDA).star())}
    modes = ("default", "reduce-overhead", "eager", "eager-graph")
    assert found == {(mode, ops) for mode in modes for ops in (1, 5)}


@pytest.mark.needs("torch")
def test_without_a_compiler_the_cpu_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=r"needs a C\+\+ compiler"):
        PROBE.targets()
