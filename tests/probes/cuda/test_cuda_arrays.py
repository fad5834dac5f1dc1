"""CuPy and torch's graphs without a GPU: a module that does what CuPy would, and captures on the fake driver."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from overhead.probes.base import Unavailable
from overhead.probes.cupy import CupyChain, CupyProbe
from overhead.probes.kernels import lcg
from overhead.probes.triton import import_triton
from overhead.results import Case, Target
from tests.fakes.cuda_driver import install
from tests.fakes.of_step import of_step

TARGET = Target(stack="cupy", api="CUDA", adapter="Fake GPU", options={"ordinal": 0})
CASES: dict[str, Case] = {case.key: case for case in of_step(CupyProbe().space(TARGET).cross())}


class Event:
    done = False

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        self.recorded = 0

    def record(self) -> None:
        self.recorded += 1

    def synchronize(self) -> None:
        assert self.recorded


class RawKernel:
    def __init__(self, code: str, name: str) -> None:
        assert f"void {name}(" in code
        self.name = name

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any]) -> None:
        if self.name == "step1":
            assert (grid, block) == ((4,), (64,))
            arguments[0][:] = lcg.advance(arguments[0], 1)


def cupy() -> Any:
    stream = SimpleNamespace(synchronize=lambda: None)
    cuda = SimpleNamespace(
        Event=Event,
        Device=lambda: stream,
        get_current_stream=lambda: stream,
        get_elapsed_time=lambda start, end: 0.25,
    )
    return SimpleNamespace(asarray=np.array, asnumpy=np.asarray, add=np.add, RawKernel=RawKernel, cuda=cuda)


@pytest.mark.parametrize("key", CASES)
def test_every_launch_is_counted(key: str) -> None:
    case = CASES[key]
    chain = CupyChain(cupy(), case)
    for n in (0, 1, 9):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
    found = chain.device(100)
    assert chain.executed() == 10
    assert bool(chain.kernels()) == (case.params["operation"] == "raw-kernel")
    assert (found is None) == (case.pattern != "per-submit")
    if found is not None:
        assert (found.n, found.busy, found.span) == (100, True, 250_000)


def test_an_import_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes.cupy import import_cupy

    for name, load in (("cupy", import_cupy), ("triton", import_triton)):
        monkeypatch.setitem(__import__("sys").modules, name, None)
        with pytest.raises(Unavailable, match=f"{name} does not import") as caught:
            load("pip install it")
        assert caught.value.mend == "pip install it"


@pytest.mark.needs("cxx", "numba", "torch")
def test_what_a_graph_makes_of_a_synchronisation(monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes._support.cuda import api
    from overhead.probes._support.cuda.session import CudaSession, step_arguments
    from overhead.probes._support.torch import graphs

    install(monkeypatch)
    driver = api.driver()
    session = CudaSession(driver, 0, own_stream=True)
    values = step_arguments(session, 1)
    kernel, grid = session.kernel("step.cu", "step1"), (4, 1, 1, 64, 1, 1, 0)
    launch = functools.partial(driver.call, "cuLaunchKernel", kernel, *grid, session.stream, values.address, None)
    synchronize = functools.partial(driver.call, "cuStreamSynchronize", session.stream)
    stream = SimpleNamespace(cuda_stream=session.stream, synchronize=synchronize)
    body: Any = SimpleNamespace(step=launch)
    told = [graphs._verdict(driver, stream, body, action) for action in (launch, lambda: None, synchronize)]
    assert told[:2] == ["kept as 1 node", "removed"]
    assert told[2].startswith("forbidden: CudaError: cuStreamSynchronize returned 900")
    session.close()
