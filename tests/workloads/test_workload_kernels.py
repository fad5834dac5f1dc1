"""Every workload is verified in CUDA C, Triton and WGSL, and wrong kernels are detected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from overhead.probes import registry
from overhead.probes.base import Unsupported, Unverified
from overhead.probes.common.array_workload import NumpyWork
from overhead.results import Scalar, Target
from overhead.workloads import sources, workloads
from tests.fakes import cupy as fake_cupy, kernels as fake_kernels
from tests.fakes.cuda_driver import install_compiling
from tests.workloads.workload_arms import ALL, PLAIN, case, counts, elements_of, plant


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    return install_compiling(monkeypatch)


CUDA: list[tuple[str, str, dict[str, Scalar]]] = [
    (name, pattern, {}) for name in PLAIN for pattern in ("per-submit", "replay", "fused")
] + [
    ("rmsnorm 896 float32", "per-submit", {"body": "separate"}),
    ("rmsnorm 1536 float16", "replay", {"body": "separate"}),
    ("rmsnorm 896 float16", "fused", {"body": "one"}),
]


@pytest.mark.slow
@pytest.mark.needs("cxx")
@pytest.mark.parametrize(("name", "pattern", "params"), CUDA)
def test_each_workload_in_cuda_agrees_with_numpy(
    name: str, pattern: str, params: dict[str, Scalar], cuda: Any
) -> None:
    from overhead.probes.cuda import workload as _work_cuda

    chain = _work_cuda.open_case(cuda, 0, case(name, pattern, **params))
    assert chain.device(4) is not None
    assert set(chain.kernels()) == {f"{name.split()[0]}.cu"}
    assert chain.window().get("launches_a_unit") == (
        6 if params.get("body") == "separate" else None
    )
    counts(chain)


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("name", ["recurrence", "rmsnorm 896 float16"])
def test_the_check_finds_a_wrong_constant_in_cuda(
    name: str, cuda: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.probes.cuda import workload as _work_cuda

    plant(monkeypatch, name)
    with pytest.raises(Unverified, match="differs-from-reference"):
        _work_cuda.open_case(cuda, 0, case(name, "fused"))


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("name", ALL)
def test_cupy_is_verified(name: str) -> None:
    from overhead.probes.cuda import cupy

    counts(cupy.open_case(fake_cupy.module(), case(name, "per-submit")))


@pytest.mark.parametrize("body", ["one", "fused"])
@pytest.mark.parametrize(
    "name", [name for name in ALL if "triton" not in workloads()[name.split()[0]].missing]
)
def test_every_workload_in_triton_agrees_with_numpy(
    name: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernels run on a fake of Triton that uses NumPy."""
    fake_kernels.fake_triton(monkeypatch)
    chain, elements = NumpyWork(case(name, "per-submit")), elements_of(name)
    workload = chain.workload
    made = sources.kernels_of(workload, "triton", elements)
    assert made is not None
    (entry,) = made.entries[body]
    scope: dict[str, Any] = {}
    exec(compile(made.text, "<triton>", "exec"), scope)
    start = workload.fresh(elements, chain.rng)
    state, counters = sources.pack_state(workload, start, elements), np.zeros(elements, np.int32)
    inputs = sources.pack_inputs(workload, chain.inputs)
    scope[entry.name][(entry.groups,)](state, counters, inputs, 1, BLOCK=entry.threads, num_warps=4)
    expected = workload.step(np, start, chain.inputs, np.array([0]))
    assert (counters == 1).all()
    close = 1e-5 if workload.precision == "float32" else 5e-3
    for field, values in sources.unpack_state(workload, state, elements).items():
        np.testing.assert_allclose(values, expected[field], rtol=close, atol=close)


def lavapipe() -> Target:
    return next(t for t in registry()["wgpu-native"].targets() if t.api == "Vulkan")


WGSL: list[tuple[str, str, dict[str, Scalar]]] = [
    (name, pattern, {}) for name in PLAIN for pattern in ("one-pass", "fused")
] + [
    ("rmsnorm 896 float32", "one-pass", {"body": "separate"}),
    ("rmsnorm 1536 float32", "per-submit", {"body": "separate"}),
    ("rmsnorm 896 float16", "per-submit", {"body": "one"}),
    ("rmsnorm 1536 float16", "one-pass", {"body": "separate"}),
    ("rmsnorm 896 float16", "fused", {"body": "one"}),
]


@pytest.mark.needs("wgpu", "lavapipe")
@pytest.mark.parametrize(("name", "pattern", "params"), WGSL)
def test_every_workload_in_wgsl_agrees_with_numpy(
    name: str, pattern: str, params: dict[str, Scalar]
) -> None:
    from overhead.probes.webgpu import workload as _work_webgpu
    from overhead.probes.webgpu.library import library
    from overhead.probes.webgpu.targets import adapter

    target = lavapipe()
    chosen = case(name, pattern, **params)
    if "float16" in name and "shader-f16" not in adapter(library("wgpu-native"), target).features:
        with pytest.raises(Unsupported, match="adapter-has-no-f16"):
            _work_webgpu.open_case(target, chosen)
        return
    chain = _work_webgpu.open_case(target, chosen)
    assert set(chain.kernels()) == {f"{name.split()[0]}.wgsl"}
    if params.get("body") == "separate":
        assert chain.window()["submits"] == ("6 per unit" if pattern == "per-submit" else "1")
        assert chain.window()["dispatches"] == "6 per unit"
    counts(chain)


@pytest.mark.needs("wgpu", "lavapipe")
@pytest.mark.parametrize("name", ["recurrence", "rmsnorm 896 float32"])
def test_the_check_finds_a_wrong_constant_in_wgsl(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.probes.webgpu import workload as _work_webgpu

    plant(monkeypatch, name)
    with pytest.raises(Unverified, match="differs-from-reference"):
        _work_webgpu.open_case(lavapipe(), case(name, "fused"))


def test_a_workload_without_the_language_or_kernels_of_a_case_is_unsupported() -> None:
    from overhead.probes.workload_chain import kernels_of

    with pytest.raises(
        Unsupported, match=r"no-kernel-in-language .*language-has-no-tanh.*language=triton"
    ):
        kernels_of(NumpyWork(case("acrobot", "per-submit")), "triton")
    with pytest.raises(Unsupported, match=r"no-body-in-language .*body=separate, language=triton"):
        kernels_of(NumpyWork(case("rmsnorm 896 float32", "per-submit", body="separate")), "triton")
    with pytest.raises(Unsupported, match=r"no-such-variant .*'dance'"):
        NumpyWork(case("hybrid elementwise", "per-submit", work="dance"))
