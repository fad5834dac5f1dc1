"""torch.compile on the CPU for real; which cases a GPU gets."""

from __future__ import annotations

import shutil

import pytest

from overhead.probes.base import Unavailable
from overhead.probes.torch_compile import TorchCompileProbe
from overhead.results import Target
from tests.fakes.of_step import of_step

PROBE = TorchCompileProbe()
CPU = Target(stack="torch-compile", api="CPU", adapter="CPU", options={"device": "cpu"})
CUDA = Target(stack="torch-compile", api="CUDA", adapter="a GPU", options={"device": "cuda:0"})
CASES = {case.key: case for case in of_step(PROBE.space(CPU).star())}


@pytest.mark.slow
@pytest.mark.needs("torch", "cxx")
@pytest.mark.parametrize("key", CASES)
def test_every_step_is_counted(key: str) -> None:
    case = CASES[key]
    chain = PROBE.open(CPU, case)
    try:
        done = 0
        for n in (0, 1, 10):
            chain.prepare(n)
            chain.issue(n)
            chain.wait()
            done += n
            assert chain.executed() == done
        assert chain.window()["ops"] == case.params["ops"]
    finally:
        chain.close()


def test_graphs_and_fusion_can_be_told_apart_on_a_gpu() -> None:
    found = {(case.params["mode"], case.params["ops"]) for case in of_step(PROBE.space(CUDA).star())}
    modes = ("default", "reduce-overhead", "eager", "eager-graph")
    assert found == {(mode, ops) for mode in modes for ops in (1, 5)}


@pytest.mark.needs("torch")
def test_without_a_compiler_the_cpu_has_nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match=r"needs a C\+\+ compiler"):
        PROBE.targets()
