"""CuPy and torch's graphs without a GPU, with a fake of CuPy and captures on the fake driver."""

from __future__ import annotations

import functools
from collections.abc import Callable
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
    device_time = chain.device(100)
    assert chain.executed() == 0
    assert bool(chain.kernels()) == (case.params["operation"] == "raw-kernel")
    if case.pattern != "per-submit":
        assert device_time is None
        return
    assert device_time is not None
    assert device_time.n == 100
    assert device_time.busy
    assert device_time.span == 1e6 * cupy.ELAPSED_MS


@pytest.mark.needs("cxx", "numba", "torch")
def test_a_graph_capture_keeps_removes_or_forbids_a_wait_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.probes.cuda import api
    from overhead.probes.cuda.launch import LAUNCH_DIMENSIONS
    from overhead.probes.cuda.session import CudaSession, step_arguments
    from overhead.probes.torch import graphs

    install(monkeypatch)
    driver = api.driver()
    session = CudaSession(driver, 0, own_stream=True)
    arguments = step_arguments(session)
    kernel = session.kernel("step.cu", "step1")
    given = (kernel, *LAUNCH_DIMENSIONS, session.stream, arguments.address, None)
    launch = functools.partial(driver.call, "cuLaunchKernel", *given)
    synchronize = functools.partial(driver.call, "cuStreamSynchronize", session.stream)
    stream = SimpleNamespace(cuda_stream=session.stream, synchronize=synchronize)
    body: Any = SimpleNamespace(step=launch)

    def outcome(action: Callable[[], object]) -> str:
        return graphs.outcome_of_capture(driver, stream, body, action)

    assert outcome(launch) == "kept as 1 node"
    assert outcome(lambda: None) == "removed"
    forbidden = "forbidden: CudaError: cuStreamSynchronize returned 900"
    assert outcome(synchronize).startswith(forbidden)
    session.close()
