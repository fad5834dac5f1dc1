"""CuPy and torch's graphs without a GPU, with a fake of CuPy and captures on the fake driver."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import pytest

from overhead.probes.cuda.cupy import CupyChain, CupyProbe
from overhead.results import Case, Target
from tests.fakes import cupy
from tests.fakes.cuda_driver import install
from tests.fakes.of_step import of_step

TARGET = Target(stack="cupy", api="CUDA", adapter="Fake GPU", options={"ordinal": 0})
CASES: dict[str, Case] = {case.key: case for case in of_step(CupyProbe().space(TARGET).cross())}


@pytest.mark.parametrize("key", CASES)
def test_cupy_measures_device_time_only_for_cases_without_waits_or_reads(key: str) -> None:
    case = CASES[key]
    chain = CupyChain(cupy.module(), case)
    found = chain.device(100)
    assert chain.executed() == 0
    assert bool(chain.kernels()) == (case.params["operation"] == "raw-kernel")
    assert (found is None) == (case.pattern != "per-submit")
    if found is not None:
        assert (found.n, found.busy, found.span) == (100, True, 1e6 * cupy.ELAPSED_MS)


@pytest.mark.needs("cxx", "numba", "torch")
def test_a_graph_capture_keeps_removes_or_forbids_a_wait_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.probes.cuda import api
    from overhead.probes.cuda.session import CudaSession, step_arguments
    from overhead.probes.torch import graphs

    install(monkeypatch)
    driver = api.driver()
    session = CudaSession(driver, 0, own_stream=True)
    values = step_arguments(session)
    kernel, grid = session.kernel("step.cu", "step1"), (4, 1, 1, 64, 1, 1, 0)
    launch = functools.partial(
        driver.call, "cuLaunchKernel", kernel, *grid, session.stream, values.address, None
    )
    synchronize = functools.partial(driver.call, "cuStreamSynchronize", session.stream)
    stream = SimpleNamespace(cuda_stream=session.stream, synchronize=synchronize)
    body: Any = SimpleNamespace(step=launch)
    found = [
        graphs._verdict(driver, stream, body, action)
        for action in (launch, lambda: None, synchronize)
    ]
    assert found[:2] == ["kept as 1 node", "removed"]
    assert found[2].startswith("forbidden: CudaError: cuStreamSynchronize returned 900")
    session.close()
