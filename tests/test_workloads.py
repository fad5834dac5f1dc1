"""Every workload on every arm that can run here, verified; what computes something else is found out."""

from __future__ import annotations

import copy
import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from overhead import workloads as registered
from overhead.probes import registry
from overhead.probes._work_chain import WorkChain, verified
from overhead.probes._work_numpy import NumpyWork
from overhead.probes.base import Unsupported, Unverified
from overhead.results import Case, Scalar, Target
from overhead.runner.schedule import Choice
from overhead.workloads import sources, workloads
from overhead.workloads.base import Workload
from tests import fake_kernels
from tests.fake_cuda_driver import install

NAMES = tuple(workloads())
ALL = tuple(" ".join([name, *map(str, v.values())]) for name, w in workloads().items() for v in w.variants)
"""Every workload in every variant: ``rmsnorm 896 float16``."""
KERNELS = tuple(name for name in ALL if "product" not in name)
"""Those that have kernels of their own."""
PLAIN = tuple(name for name in KERNELS if "rmsnorm" not in name)
"""Those whose kernels are made from bodies: a thread an element."""


def elements_of(name: str) -> int:
    """Not a multiple of a group: the last group is partly idle. Of RMSNorm two rows, a group each."""
    return 2 if "rmsnorm" in name else 100


def case(name: str, pattern: Any, **params: Scalar) -> Case:
    kind, *values = name.split()
    variant = next(v for v in workloads()[kind].variants if list(map(str, v.values())) == values)
    own: dict[str, Scalar] = {**variant, "elements": elements_of(name)}
    return Case(pattern=pattern, unit="step", workload=kind, params={**own, **params})


def counts(chain: WorkChain) -> None:
    """Run a little; every step is counted."""
    issued = 0
    for n in (0, 1, 7):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
        issued += n
    assert chain.executed() == issued
    assert chain.window()["precision"] == chain.case.params.get("precision", "float32")
    chain.close()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make every kernel of a workload, and its array body, run with one constant 5 % off; the reference stays."""

    def plant(name: str) -> None:
        constant = {
            "recurrence": "C", "simulation": "SHARE", "acrobot": "GRAVITY", "rastrigin": "RATE", "rmsnorm": "COLUMNS",
            "hybrid": "KEPT",
        }[name.split()[0]]  # fmt: skip

        def off(right: Workload) -> Workload:
            wrong = copy.copy(right)
            wrong.constants = {**right.constants, constant: 1.05 * right.constants[constant]}  # type: ignore[misc]
            return wrong

        make = sources.kernels
        monkeypatch.setattr(sources, "kernels", lambda w, language, elements: make(off(w), language, elements))
        monkeypatch.setattr("overhead.probes._work_chain.step_of", None)
        monkeypatch.setattr("overhead.probes._work_numpy.step_of", lambda c, xp, f: _stepping(off(c.workload), xp, f))

    return plant


def _stepping(workload: Workload, xp: Any, fixed: dict[str, Any]) -> Any:
    return lambda s: {**workload.step(xp, s, fixed, s["steps"][:1]), "steps": s["steps"] + 1}


@pytest.mark.parametrize("name", ALL)
def test_numpy_is_verified_and_counts(name: str) -> None:
    counts(verified(NumpyWork(case(name, "per-submit"))))


def long_run(chain: WorkChain) -> None:
    """Far more steps than the state lasts: all are counted, and no number is ever subnormal."""
    assert 0 < chain.workload.lasts < 3000
    pieces = (700, 1, 900, 600, 1, 900, 1500)
    for n in pieces:
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
        small = [np.abs(v[v != 0]).min() for v in chain.fetch()[0].values()]
        assert min(small) >= np.finfo(np.float32).tiny
    assert chain.executed() == sum(pieces)
    chain.close()


def test_a_host_starts_over_before_numbers_are_subnormal(monkeypatch: pytest.MonkeyPatch) -> None:
    long_run(verified(NumpyWork(case("recurrence", "per-submit"))))
    monkeypatch.setattr(NumpyWork, "on_host", False)
    with pytest.raises(AssertionError):
        long_run(verified(NumpyWork(case("recurrence", "per-submit"))))


@pytest.mark.parametrize("name", PLAIN)
def test_a_wrong_constant_is_found(name: str, planted: Callable[[str], None]) -> None:
    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        verified(NumpyWork(case(name, "per-submit")))


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_a_wrong_rmsnorm_is_found(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The published one that was not the same: its mean was over the first 256 columns."""

    def short(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        def run(s: dict[str, Any]) -> dict[str, Any]:
            y = s["x"] + fixed["residual"]
            root = xp.sqrt((y[:, :256] ** 2).mean(1))
            return {"x": y / root[:, None] * fixed["weight"], "steps": s["steps"] + 1}

        return run

    monkeypatch.setattr("overhead.probes._work_numpy.step_of", short)
    with pytest.raises(Unverified, match="differs from the reference"):
        verified(NumpyWork(case(f"rmsnorm 896 {precision}", "per-submit")))


def test_both_kinds_of_check_are_tried() -> None:
    assert {w.contracts for w in workloads().values()} == {True, False}


def test_a_wrong_step_late_in_a_chaotic_run_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong only beyond the prefix: the steps redone find it, not the prefix."""
    acrobot = workloads()["acrobot"]

    def late(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        def run(s: dict[str, Any]) -> dict[str, Any]:
            after = {**acrobot.step(xp, s, fixed, s["steps"][:1]), "steps": s["steps"] + 1}
            if s["steps"][0] > 60:
                after["omega1"] = after["omega1"] * np.float32(1.01)
            return after

        return run

    monkeypatch.setattr("overhead.probes._work_numpy.step_of", late)
    with pytest.raises(Unverified, match="redone"):
        verified(NumpyWork(case("acrobot", "per-submit")))


def test_a_step_too_few_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    issue = NumpyWork.issue
    monkeypatch.setattr(NumpyWork, "issue", lambda self, n: issue(self, n - 1))
    with pytest.raises(Unverified, match="2 steps by the counters, 3 asked for"):
        verified(NumpyWork(case("recurrence", "per-submit")))


def test_elements_that_disagree_are_found() -> None:
    chain = verified(NumpyWork(case("recurrence", "per-submit")))
    chain.values["steps"][-1] += 1
    with pytest.raises(Unverified, match="elements disagree"):
        chain.executed()


@pytest.mark.parametrize("name", ALL)
def test_packing_is_undone(name: str) -> None:
    chain, elements = NumpyWork(case(name, "per-submit")), elements_of(name)
    state = chain.workload.start(elements, chain.rng)
    buffer = sources.state(chain.workload, state, elements)
    assert buffer.dtype == chain.workload.precision
    assert len(buffer) == elements * (chain.workload.scratch + sum(f.width for f in chain.workload.state))
    back = sources.unpack(chain.workload, buffer, elements)
    for field in chain.workload.state:
        np.testing.assert_allclose(back[field.name], state[field.name], rtol=1e-3)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fake driver, running generated CUDA C that g++ compiled."""
    from overhead.probes import _cuda_api, _work_cuda
    from tests.fake_cuda_driver import bindings

    install(monkeypatch)
    monkeypatch.setattr(_work_cuda, "bindings", bindings)
    monkeypatch.setattr(_work_cuda, "machine_code_of", fake_kernels.machine_code_of)
    return _cuda_api.driver()


CUDA: list[tuple[str, str, dict[str, Scalar]]] = [
    (name, pattern, {}) for name in PLAIN for pattern in ("per-submit", "replay", "fused")
] + [
    ("rmsnorm 896 float32", "per-submit", {"body": "separate"}),
    ("rmsnorm 1536 float16", "replay", {"body": "separate"}),
    ("rmsnorm 896 float16", "fused", {"body": "one"}),
]


@pytest.mark.needs("cxx")
@pytest.mark.parametrize(("name", "pattern", "params"), CUDA)
def test_cuda_by_the_driver(name: str, pattern: str, params: dict[str, Scalar], cuda: Any) -> None:
    from overhead.probes import _work_cuda

    chain = _work_cuda.open_case(cuda, 0, case(name, pattern, **params))
    assert chain.device(4) is not None
    assert set(chain.kernels()) == {f"{name.split()[0]}.cu"}
    assert chain.window().get("launches_a_unit") == (6 if params.get("body") == "separate" else None)
    counts(chain)


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("name", [*PLAIN, "rmsnorm 896 float16"])
def test_a_wrong_constant_in_cuda_is_found(name: str, cuda: Any, planted: Callable[[str], None]) -> None:
    from overhead.probes import _work_cuda

    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        _work_cuda.open_case(cuda, 0, case(name, "fused"))


@pytest.mark.needs("cxx")
def test_a_missing_operation_is_found(cuda: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its root's kernel, the rows would be divided by the last step's root."""
    from overhead.probes import _work_cuda

    make = sources.kernels

    def without(*arguments: Any) -> Any:
        found = make(*arguments)
        assert found is not None
        once = [*found.entries["separate"], *(e for e in found.entries["separate"] if e.name != "root")]
        return dataclasses.replace(found, entries={"separate": tuple(once)})

    monkeypatch.setattr(sources, "kernels", without)
    advance = WorkChain.advance
    monkeypatch.setattr(WorkChain, "advance", lambda self, steps: advance(self, 2))
    monkeypatch.setattr("overhead.workloads.equivalence._count", lambda found, expected: None)
    with pytest.raises(Unverified, match="after 3 steps off by"):
        _work_cuda.open_case(cuda, 0, case("rmsnorm 896 float32", "per-submit", body="separate"))


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("pattern", ["fused", "per-submit"])
@pytest.mark.parametrize("name", ALL)
def test_cupy(name: str, pattern: str) -> None:
    from overhead.probes import _work_cupy

    if pattern == "fused" and name not in KERNELS:
        with pytest.raises(Unsupported, match="hybrid has no cuda: a product's speed is its kernel's"):
            _work_cupy.open_case(fake_kernels.fake_cupy(), case(name, pattern))
        return
    if pattern == "fused" and name in ("rmsnorm 896 float32", "rmsnorm 1536 float16"):
        return  # by the driver
    counts(_work_cupy.open_case(fake_kernels.fake_cupy(), case(name, pattern)))


@pytest.mark.parametrize("body", ["one", "fused"])
@pytest.mark.parametrize("name", [name for name in KERNELS if name.split()[0] in ("recurrence", "hybrid", "rmsnorm")])
def test_triton_text(name: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels, run on NumPy, take the same steps as the array body."""
    fake_kernels.fake_triton(monkeypatch)
    chain, elements = NumpyWork(case(name, "per-submit")), elements_of(name)
    workload = chain.workload
    made = sources.kernels(workload, "triton", elements)
    assert made is not None
    (entry,) = made.entries[body]
    scope: dict[str, Any] = {}
    exec(compile(made.text, "<triton>", "exec"), scope)
    start = {k: v.astype(workload.dtype) for k, v in workload.start(elements, chain.rng).items()}
    state, counters = sources.state(workload, start, elements), np.zeros(elements, np.int32)
    inputs = sources.inputs(workload, chain.inputs)
    scope[entry.name][(entry.groups,)](state, counters, inputs, 1, BLOCK=entry.threads, num_warps=4)
    expected = workload.step(np, start, chain.inputs, np.array([0]))
    assert (counters == 1).all()
    close = 1e-5 if workload.precision == "float32" else 5e-3
    for field, values in sources.unpack(workload, state, elements).items():
        np.testing.assert_allclose(values, expected[field], rtol=close, atol=close)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", ALL)
def test_torch(name: str) -> None:
    from overhead.probes import _work_torch

    counts(_work_torch.open_eager("cpu", case(name, "per-submit")))


@pytest.mark.needs("torch")
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_torch_by_its_own_norm(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from overhead.probes import _work_torch

    counts(_work_torch.open_eager("cpu", case(f"rmsnorm 896 {precision}", "per-submit", body="library")))
    own = torch.nn.functional.rms_norm
    wrong = lambda x, shape, weight, eps: own(x, shape, weight, 0.2)  # noqa: E731
    monkeypatch.setattr(torch.nn.functional, "rms_norm", wrong)
    with pytest.raises(Unverified, match="differs from the reference"):
        _work_torch.open_eager("cpu", case(f"rmsnorm 896 {precision}", "per-submit", body="library"))


@pytest.mark.needs("torch")
def test_torch_on_one_thread_and_on_all() -> None:
    """Threads that start while this one is bound to a processor have all of them nevertheless."""
    import torch

    from overhead.probes import _work_torch

    every = _work_torch.PROCESSORS
    chains = [_work_torch.open_eager("cpu", case("hybrid elementwise", "hybrid", **extra))
              for extra in ({"threads": "all"}, {})]  # fmt: skip
    if sys.platform == "linux":
        os.sched_setaffinity(0, {min(every)})
    try:
        for chain, threads in zip(chains, (len(every), 1), strict=True):
            chain.prepare(1)
            assert torch.get_num_threads() == chain.window()["threads"] == threads
            counts(chain)
        if sys.platform == "linux":
            assert os.sched_getaffinity(0) == {min(every)}
            free = [task for task in os.listdir("/proc/self/task") if os.sched_getaffinity(int(task)) == every]
            assert len(free) >= len(every) - 1
    finally:
        if sys.platform == "linux":
            os.sched_setaffinity(0, every)


def test_one_sample_on_the_host_is_no_longer_than_the_numbers_last() -> None:
    chain = verified(NumpyWork(case("recurrence", "per-submit")))
    assert chain.max_n == chain.workload.lasts
    chain.prepare(1999)
    chain.verify()


@pytest.mark.needs("torch")
@pytest.mark.parametrize("pattern", ["per-submit", "hybrid"])
def test_torch_on_the_host_starts_over_too(pattern: str) -> None:
    from overhead.probes import _work_torch

    long_run(_work_torch.open_eager("cpu", case("recurrence", pattern)))


@pytest.mark.needs("torch")
def test_torch_in_turn_with_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other step is the host's."""
    from overhead.probes import _work_torch

    made = _work_torch.open_eager("cpu", case("acrobot", "hybrid"))
    assert isinstance(made, _work_torch.HybridWork)
    seen: list[str] = []

    def noting(place: str, step: Any) -> Any:
        def noted(state: dict[str, Any]) -> Any:
            seen.append(place)
            return step(state)

        return noted

    monkeypatch.setattr(made, "step", noting("device", made.step))
    monkeypatch.setattr(made, "_host_step", noting("host", made._host_step))
    counts(made)
    assert seen == ["device", "host"] * 4


@pytest.mark.needs("torch", "cxx")
def test_torch_compiled() -> None:
    from overhead.probes import _work_torch

    counts(_work_torch.open_compiled("cpu", case("recurrence", "per-submit", mode="default")))


@pytest.mark.needs("jax")
@pytest.mark.parametrize("loop", ["scan", "fori", ""])
@pytest.mark.parametrize("name", [name for name in ALL if "1536" not in name])
def test_jax(name: str, loop: str) -> None:
    import jax

    from overhead.probes import _work_jax

    chosen = case(name, "fused", loop=loop) if loop else case(name, "per-submit")
    counts(_work_jax.open_case(jax.devices("cpu")[0], chosen))


def _wgsl(stack: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Target:
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    return next(t for t in registry()[stack].targets() if t.api == "Vulkan")


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
def test_wgsl(name: str, pattern: str, params: dict[str, Scalar], monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes import _work_webgpu
    from overhead.probes._webgpu_library import library
    from overhead.probes._webgpu_targets import adapter

    target = _wgsl("wgpu-native", {}, monkeypatch)
    chosen = case(name, pattern, **params)
    if "float16" in name and "shader-f16" not in adapter(library("wgpu-native"), target).features:
        with pytest.raises(Unsupported, match="the adapter has no shader-f16"):
            _work_webgpu.open_case(target, chosen)
        return
    chain = _work_webgpu.open_case(target, chosen)
    assert set(chain.kernels()) == {f"{name.split()[0]}.wgsl"}
    if params.get("body") == "separate":
        assert chain.window()["submits"] == ("6 per unit" if pattern == "per-submit" else "1")
        assert chain.window()["dispatches"] == "6 per unit"
    counts(chain)


@pytest.mark.needs("wgpu", "lavapipe")
@pytest.mark.parametrize("name", ["recurrence", "acrobot", "hybrid elementwise", "rmsnorm 896 float32"])
def test_a_wrong_constant_in_wgsl_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, planted: Callable[[str], None]
) -> None:
    from overhead.probes import _work_webgpu

    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        _work_webgpu.open_case(_wgsl("wgpu-native", {}, monkeypatch), case(name, "fused"))


@pytest.mark.needs("vulkan", "lavapipe")
@pytest.mark.parametrize("pattern", ["replay", "fused"])
def test_spirv(pattern: Any) -> None:
    chosen = case("recurrence", pattern)
    probe = registry()["vulkan"]
    target = next(t for t in probe.targets() if "llvmpipe" in t.adapter)
    chain = probe.open(target, chosen)
    assert isinstance(chain, WorkChain)
    assert chain.kernels().keys() == {f"recurrence_{'once' if pattern == 'replay' else 'fused'}.spv"}
    assert any(c.params == chosen.params | {"elements": 4096} for c in probe.space(target).star())
    device = chain.device(200)
    assert device is not None
    assert device.busy
    counts(chain)


@pytest.mark.needs("vulkan", "lavapipe")
@pytest.mark.parametrize("pattern", ["replay", "fused"])
def test_a_wrong_constant_in_spirv_is_found(pattern: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes import kernels
    from overhead.probes._vulkan_gpu import Gpu

    right, wrong = (np.float32(value).tobytes() for value in (0.4, 0.42))
    binary = kernels.binary

    def off(name: str) -> tuple[bytes, str]:
        code, digest = binary(name)
        assert code.count(right) == 1 or "recurrence" not in name
        return code.replace(right, wrong), digest

    monkeypatch.setattr(kernels, "binary", off)
    Gpu.kernel.cache_clear()
    probe = registry()["vulkan"]
    target = next(t for t in probe.targets() if "llvmpipe" in t.adapter)
    try:
        with pytest.raises(Unverified, match="differs from the reference"):
            probe.open(target, case("recurrence", pattern))
    finally:
        Gpu.kernel.cache_clear()


def test_what_has_no_spirv_is_said() -> None:
    from overhead.probes import _work_vulkan

    with pytest.raises(Unsupported, match="acrobot has no committed SPIR-V"):
        _work_vulkan.open_case(cast(Any, None), case("acrobot", "replay"))


def test_a_language_that_is_missing_is_said() -> None:
    from overhead.probes._work_chain import kernels_of

    with pytest.raises(Unsupported, match="acrobot has no triton: its blocks hold one number an element"):
        kernels_of(NumpyWork(case("acrobot", "per-submit")), "triton")
    with pytest.raises(Unsupported, match="rmsnorm has no body separate in triton"):
        kernels_of(NumpyWork(case("rmsnorm 896 float32", "per-submit", body="separate")), "triton")
    with pytest.raises(Unsupported, match="hybrid has no such variant: 'dance'"):
        NumpyWork(case("hybrid product", "per-submit", work="dance"))


def test_groups_stay_within_what_webgpu_launches() -> None:
    for elements in (65_535 * 64, 65_535 * 64 + 1, 1 << 22):
        made = sources.kernels(workloads()["recurrence"], "wgsl", elements)
        assert made is not None
        (entry,) = made.entries["one"]
        assert entry.groups <= 65_535
        assert entry.groups * entry.threads >= elements
        assert f"@workgroup_size({entry.threads})" in made.text


@pytest.mark.parametrize("stack", ["numpy", "torch", "jax", "wgpu-native", "cuda-graph", "cuda-driver", "triton"])
def test_stacks_offer_workloads_early_and_late(stack: str) -> None:
    target = Target(stack=stack, api="CPU" if stack == "numpy" else "CUDA", adapter="x", options={"platform": "cuda"})
    star = list(registry()[stack].space(target).star())
    assert "recurrence" in {c.workload for c in star[:5]}
    assert {c.workload for c in star} >= set(NAMES)
    heavy = [c for c in star if c.workload in workloads() and workloads()[c.workload].heavy]
    assert all(not Choice().takes(c) for c in heavy)
    assert all(Choice(full=True).takes(c) for c in heavy)
    assert {c.workload for c in star if Choice(workloads=frozenset({"acrobot"})).takes(c)} == {"acrobot"}


def test_names_are_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registered, "_workloads", dict(workloads()))
    kind = type(workloads()["acrobot"])
    assert registered.register(kind) is kind
    with pytest.raises(ValueError, match="is taken"):
        registered.register(type("Other", (kind,), {"name": "acrobot"}))
    with pytest.raises(ValueError, match="no workload name"):
        registered.register(type("Step", (kind,), {"name": "step"}))
