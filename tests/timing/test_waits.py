"""Which wait belongs to which library: found from what a statement uses, on fake modules and on
JAX.
"""

from __future__ import annotations

import contextlib
import os
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from overhead.errors import UsageError
from overhead.results import about, because
from overhead.timing.waits import (
    NOTHING,
    Wait,
    find_waits,
    has_cuda_context,
    libraries_seen,
    wait_named,
)
from tests.fakes import cuda_driver

with contextlib.suppress(ImportError):
    import overhead.probes.torch.chains  # noqa: F401  or a test would load it with the fake torch below, for all others


class Tensor:
    def __init__(self, kind: str) -> None:
        self.device = SimpleNamespace(type=kind)


class Module:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    def parameters(self) -> list[Tensor]:
        return [Tensor(self.kind)]


def fake_torch(*, started: bool = False, there: bool = True) -> Any:
    """A torch with a CUDA device, without other accelerators; ``calls`` counts the waits."""
    torch: Any = ModuleType("torch")
    torch.__version__, torch.calls = "2.13.0", []
    torch.Tensor, torch.nn = Tensor, SimpleNamespace(Module=Module)
    torch.version = SimpleNamespace(hip=None)
    torch.backends = SimpleNamespace(mps=SimpleNamespace(is_available=lambda: False))
    torch.cuda = SimpleNamespace(
        is_initialized=lambda: started,
        is_available=lambda: there,
        get_device_name=lambda: "NVIDIA H200",
        synchronize=lambda: torch.calls.append("synchronize"),
    )
    return torch


@pytest.fixture(autouse=True)
def _no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "cupy", "jax", "mlx.core", "numba.cuda", "wgpu", "wgpudawn"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_a_statement_without_a_gpu_library_needs_no_wait() -> None:
    assert find_waits({"x": [1, 2]}, [3]) == [NOTHING]


@pytest.mark.parametrize(
    ("names", "results"),
    [
        ({"x": Tensor("cuda")}, []),
        ({"batch": {"x": [Tensor("cpu"), Tensor("cuda")]}}, []),
        ({"model": Module("cuda")}, []),
        ({}, [Tensor("cuda")]),
        ({}, [(Tensor("cpu"), Tensor("cuda"))]),
    ],
)
def test_a_statement_with_a_tensor_or_module_on_cuda_waits_for_torch(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, Any], results: list[Any]
) -> None:
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    (wait,) = find_waits(names, results)
    assert wait.name == "torch"
    assert wait.said == "torch.cuda.synchronize()"
    assert wait.api == "CUDA"
    assert wait.adapter == "NVIDIA H200"
    wait.make(names, results)()
    assert torch.calls == ["synchronize"]


def test_a_statement_with_torch_on_the_processor_needs_no_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    assert find_waits({"x": Tensor("cpu"), "m": Module("cpu")}, [Tensor("cpu")]) == [NOTHING]


def test_a_statement_in_a_process_where_torch_has_started_cuda_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(started=True))
    assert [wait.name for wait in find_waits({}, [])] == ["torch"]


@pytest.mark.needs("cxx")
def test_a_statement_whose_values_show_no_cuda_device_waits_for_it_if_it_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from overhead.probes.cuda import api

    cuda_driver.install(monkeypatch)
    driver = api.driver()
    while has_cuda_context():  # other tests may have left one
        driver.call("cuDevicePrimaryCtxRelease_v2", 0)
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    assert find_waits({}, []) == [NOTHING], "the process has not started the device"
    driver.call_for_handle(
        "cuDevicePrimaryCtxRetain", 0
    )  # as the first kernel of an extension does
    try:
        (wait,) = find_waits({}, [])
        assert wait.name == "torch"
        assert wait.api == "CUDA"
        assert wait.adapter == "NVIDIA H200"
        for torch in (fake_torch(there=False), None):
            monkeypatch.setitem(sys.modules, "torch", torch)
            (wait,) = find_waits({}, [])
            assert wait.name == "cuda", "there is no torch with a device, so the driver waits"
            assert wait.api == "CUDA"
            assert wait.adapter == "Fake GPU"
        wait.make({}, [])()
        driver.call("cuDevicePrimaryCtxRelease_v2", 0)  # what the wait holds
    finally:
        driver.call("cuDevicePrimaryCtxRelease_v2", 0)


def test_a_statement_with_two_cuda_libraries_waits_once_for_the_whole_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cupy: Any = ModuleType("cupy")
    device = SimpleNamespace(id=0, synchronize=lambda: None)
    cupy.cuda = SimpleNamespace(
        Device=lambda: device,
        runtime=SimpleNamespace(getDeviceProperties=lambda number: {"name": b"NVIDIA H200"}),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    (wait,) = find_waits({}, [])
    assert wait.name == "cupy"
    assert wait.adapter == "NVIDIA H200"
    assert wait.spins
    monkeypatch.setitem(sys.modules, "torch", fake_torch(started=True))
    assert [wait.name for wait in find_waits({}, [])] == ["torch"]


def test_a_wait_for_a_missing_library_or_device_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch(there=False))
    with pytest.raises(UsageError) as refused:
        wait_named("torch", {}, [])
    without = because("torch-without-device", version="2.13.0", kind="cuda")
    assert refused.value.why == about("--wait torch", without)
    with pytest.raises(UsageError, match=r"'cuppy'.*'cupy'"):
        wait_named("cuppy", {}, [])


@pytest.mark.needs("jax")
def test_jax_waits_for_each_kept_result_that_was_not_donated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import jax

    monkeypatch.setitem(sys.modules, "jax", jax)
    waited = []

    class Result(jax.Array):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self, given_away: bool) -> None:
            self.given_away = given_away

        def is_deleted(self) -> bool:
            return self.given_away

        def block_until_ready(self) -> None:
            assert not self.given_away
            waited.append(self)

    Result.__abstractmethods__ = frozenset()
    kept = [Result(given_away=False), Result(given_away=True), Result(given_away=False)]
    results: list[Any] = [*kept]
    wait = wait_named("jax", {}, [])
    assert wait is not None
    assert wait.keeps
    wait.make({}, results)()
    assert waited == [kept[0], kept[2]]


class FakeArray:
    """An array of a fake JAX."""

    def __init__(self, waited: list[FakeArray]) -> None:
        self.waited = waited

    def devices(self) -> list[Any]:
        return [SimpleNamespace(platform="cpu", device_kind="cpu")]

    def is_deleted(self) -> bool:
        return False

    def block_until_ready(self) -> None:
        self.waited.append(self)


def fake_jax(live: list[FakeArray], barriers: list[str]) -> Any:
    """A JAX that keeps these arrays alive; ``barriers`` gets a text for each barrier."""
    jax: Any = ModuleType("jax")
    jax.Array = FakeArray
    jax.tree_util = SimpleNamespace(tree_leaves=list)
    jax.live_arrays = lambda: list(live)
    jax.effects_barrier = lambda: barriers.append("effects")
    return jax


def wait_of(name: str, names: dict[str, Any], results: list[Any]) -> Wait:
    """The wait of this library. On a machine with a GPU, libraries that other tests loaded have one
    too.
    """
    return next(wait for wait in find_waits(names, results) if wait.name == name)


def test_a_jax_call_that_returns_no_array_waits_for_all_that_are_kept_and_says_what_it_misses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[FakeArray] = []
    barriers: list[str] = []
    live = [FakeArray(waited), FakeArray(waited)]
    monkeypatch.setitem(sys.modules, "jax", fake_jax(live, barriers))
    names, results = {"x": live[0]}, [None]
    wait = wait_of("jax", names, results)
    wait.make(names, results)()
    assert waited == live
    assert barriers == ["effects"]
    assert wait.said == because("waits-for-kept-arrays-of-jax")


def test_a_jax_call_that_returns_an_array_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[FakeArray] = []
    live = [FakeArray(waited), FakeArray(waited)]
    monkeypatch.setitem(sys.modules, "jax", fake_jax(live, barriers=[]))
    names = {"x": live[0]}
    results: list[Any] = [FakeArray(waited)]
    wait = wait_of("jax", names, results)
    wait.make(names, results)()
    assert waited == results
    assert wait.said == because("waits-for-results-of-jax")


def test_a_function_that_uses_a_global_array_is_seen_to_use_its_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch())
    scope: dict[str, Any] = {"x": Tensor("cuda")}
    exec("def step(): return x", scope)
    assert [wait.name for wait in find_waits({"step": scope["step"]}, [])] == ["torch"]


def test_a_statement_with_mlx_waits_for_what_was_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    core: Any = ModuleType("mlx.core")
    core.cpu = "cpu"
    core.Device = lambda kind, index: (kind, index)
    core.default_device = lambda: ("cpu", 0)
    core.synchronize = lambda: calls.append("synchronize")
    monkeypatch.setitem(sys.modules, "mlx.core", core)
    wait = wait_of("mlx", {}, [])
    wait.make({}, [])()
    assert wait.api == "CPU"
    assert calls == ["synchronize"]


def test_the_libraries_of_a_statement_are_those_whose_objects_it_uses() -> None:
    import msgspec.json
    import numpy as np
    import psutil

    seen = libraries_seen(
        {"p": psutil, "m": msgspec.json, "text": "numpy", "os": sys}, [np.zeros(3)]
    )
    assert list(seen) == ["numpy", "psutil"]
    assert seen["numpy"] == np.__version__
    assert libraries_seen({"x": [1, 2]}, [3]) == {}


@pytest.mark.parametrize("name", ["__main__", "__mp_main__", "__overhead_script__"])
def test_the_program_itself_is_no_library(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ModuleType(name)
    program.__file__ = f"{os.sep}site-packages{os.sep}program.py"
    monkeypatch.setitem(sys.modules, name, program)
    assert libraries_seen({"own": program}, []) == {}
