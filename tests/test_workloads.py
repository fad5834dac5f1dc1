"""Every workload on every arm that can run here, verified; what computes something else is found out."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

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
KERNELS = tuple(name for name in NAMES if workloads()[name].cuda)
"""Workloads that have kernels of their own."""
ELEMENTS = 100
"""Not a multiple of a group: the last group is partly idle."""


def case(name: str, pattern: Any, **params: Scalar) -> Case:
    return Case(pattern=pattern, unit="step", workload=name, params={"elements": ELEMENTS, **params})


def counts(chain: WorkChain) -> None:
    """Run a little; every step is counted."""
    issued = 0
    for n in (0, 1, 7):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
        issued += n
    assert chain.executed() == issued
    assert chain.window()["precision"] == "float32"
    chain.close()


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Make every kernel of a workload, and its array body, run with one constant 5 % off; the reference stays."""

    def plant(name: str) -> None:
        right = workloads()[name]
        wrong = copy.copy(right)
        constant = {"recurrence": "C", "simulation": "SHARE", "acrobot": "GRAVITY", "rastrigin": "RATE"}[name]
        wrong.constants = {**right.constants, constant: right.constants[constant] * 1.05}  # type: ignore[misc]
        for language in ("wgsl", "cuda", "triton"):
            make = getattr(sources, language)
            monkeypatch.setattr(sources, language, lambda w, elements, make=make: make(wrong, elements))
        monkeypatch.setattr("overhead.probes._work_chain.step_of", None)
        monkeypatch.setattr("overhead.probes._work_numpy.step_of", _stepping(wrong))

    return plant


def _stepping(workload: Workload) -> Any:
    def step_of(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        return lambda s: {**workload.step(xp, s, fixed, s["steps"][:1]), "steps": s["steps"] + 1}

    return step_of


@pytest.mark.parametrize("name", NAMES)
def test_numpy_is_verified_and_counts(name: str) -> None:
    counts(verified(NumpyWork(case(name, "per-submit"))))


@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_constant_is_found(name: str, planted: Callable[[str], None]) -> None:
    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        verified(NumpyWork(case(name, "per-submit")))


def test_a_wrong_rmsnorm_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The published one that was not the same: its mean was over the first 256 columns."""

    def short(chain: WorkChain, xp: Any, fixed: dict[str, Any]) -> Any:
        def run(s: dict[str, Any]) -> dict[str, Any]:
            y = s["x"] + fixed["residual"]
            root = xp.sqrt((y[:, :256] ** 2).mean(1))
            return {"x": y / root[:, None] * fixed["weight"], "steps": s["steps"] + 1}

        return run

    monkeypatch.setattr("overhead.probes._work_numpy.step_of", short)
    with pytest.raises(Unverified, match="differs from the reference"):
        verified(NumpyWork(case("rmsnorm-896", "per-submit")))


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
    with pytest.raises(Unverified, match="47 steps by the counters, 48 asked for"):
        verified(NumpyWork(case("recurrence", "per-submit")))


def test_elements_that_disagree_are_found() -> None:
    chain = verified(NumpyWork(case("recurrence", "per-submit")))
    chain.values["steps"][-1] += 1
    with pytest.raises(Unverified, match="elements disagree"):
        chain.executed()


@pytest.mark.parametrize("name", NAMES)
def test_packing_is_undone(name: str) -> None:
    workload = workloads()[name]
    state = workload.start(ELEMENTS, np.random.default_rng(1))
    back = sources.unpack(workload.state, sources.pack(workload.state, state), ELEMENTS)
    for field in workload.state:
        np.testing.assert_allclose(back[field.name], state[field.name], rtol=1e-6)


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The fake driver, running generated CUDA C that g++ compiled."""
    from overhead.probes import _cuda_api, _work_cuda
    from tests.fake_cuda_driver import bindings

    install(monkeypatch)
    monkeypatch.setattr(_work_cuda, "bindings", bindings)
    monkeypatch.setattr(_work_cuda, "machine_code_of", fake_kernels.machine_code_of)
    return _cuda_api.driver()


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("pattern", ["per-submit", "replay", "fused"])
@pytest.mark.parametrize("name", KERNELS)
def test_cuda_by_the_driver(name: str, pattern: str, cuda: Any) -> None:
    from overhead.probes import _work_cuda

    chain = _work_cuda.open_case(cuda, 0, case(name, pattern))
    assert chain.device(4) is not None
    assert set(chain.kernels()) == {f"{name}.cu"}
    counts(chain)


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("name", KERNELS)
def test_a_wrong_constant_in_cuda_is_found(name: str, cuda: Any, planted: Callable[[str], None]) -> None:
    from overhead.probes import _work_cuda

    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        _work_cuda.open_case(cuda, 0, case(name, "fused"))


@pytest.mark.needs("cxx")
@pytest.mark.parametrize("pattern", ["fused", "per-submit"])
@pytest.mark.parametrize("name", NAMES)
def test_cupy(name: str, pattern: str) -> None:
    from overhead.probes import _work_cupy

    if pattern == "fused" and name not in KERNELS:
        with pytest.raises(Unsupported, match="has no cuda: a row of its own needs a group"):
            _work_cupy.open_case(fake_kernels.fake_cupy(), case(name, pattern))
        return
    counts(_work_cupy.open_case(fake_kernels.fake_cupy(), case(name, pattern)))


@pytest.mark.parametrize("pattern", ["once", "fused"])
@pytest.mark.parametrize("name", [name for name in NAMES if workloads()[name].triton])
def test_triton_text(name: str, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kernels, run on NumPy, take the same steps as the array body."""
    fake_kernels.fake_triton(monkeypatch)
    workload, rng = workloads()[name], np.random.default_rng(1)
    scope: dict[str, Any] = {}
    exec(compile(sources.triton(workload, ELEMENTS), "<triton>", "exec"), scope)
    made = {k: v.astype(np.float32) for k, v in workload.start(ELEMENTS, rng).items()}
    fixed = {k: v.astype(np.float32) for k, v in workload.inputs(ELEMENTS, rng).items()}
    state, counters = sources.pack(workload.state, made), np.zeros(ELEMENTS, np.int32)
    scope[pattern][(1,)](state, counters, sources.pack(workload.fixed, fixed), 1, BLOCK=128, num_warps=4)
    expected = workload.step(np, made, fixed, np.array([0]))
    assert (counters == 1).all()
    for field, values in sources.unpack(workload.state, state, ELEMENTS).items():
        np.testing.assert_allclose(values, expected[field], rtol=1e-5, atol=1e-6)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("name", NAMES)
def test_torch(name: str) -> None:
    from overhead.probes import _work_torch

    counts(_work_torch.open_eager("cpu", case(name, "per-submit")))


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
@pytest.mark.parametrize("name", NAMES)
def test_jax(name: str, loop: str) -> None:
    import jax

    from overhead.probes import _work_jax

    chosen = case(name, "fused", loop=loop) if loop else case(name, "per-submit")
    counts(_work_jax.open_case(jax.devices("cpu")[0], chosen))


def _wgsl(stack: str, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Target:
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    return next(t for t in registry()[stack].targets() if t.api == "Vulkan")


@pytest.mark.needs("wgpu", "lavapipe")
@pytest.mark.parametrize("pattern", ["one-pass", "fused"])
@pytest.mark.parametrize("name", KERNELS)
def test_wgsl(name: str, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from overhead.probes import _work_webgpu

    target = _wgsl("wgpu-native", {}, monkeypatch)
    chain = _work_webgpu.open_case(target, case(name, pattern))
    assert set(chain.kernels()) == {f"{name}.wgsl"}
    counts(chain)


@pytest.mark.needs("wgpu", "lavapipe")
@pytest.mark.parametrize("name", ["recurrence", "acrobot"])
def test_a_wrong_constant_in_wgsl_is_found(
    name: str, monkeypatch: pytest.MonkeyPatch, planted: Callable[[str], None]
) -> None:
    from overhead.probes import _work_webgpu

    planted(name)
    with pytest.raises(Unverified, match="differs from the reference"):
        _work_webgpu.open_case(_wgsl("wgpu-native", {}, monkeypatch), case(name, "fused"))


def test_a_language_that_is_missing_is_said() -> None:
    from overhead.probes._work_chain import body

    with pytest.raises(Unsupported, match="acrobot has no triton: its blocks hold one number an element"):
        body(NumpyWork(case("acrobot", "per-submit")), "triton")


@pytest.mark.parametrize("stack", ["numpy", "torch", "jax", "wgpu-native", "cuda-graph", "cuda-driver", "triton"])
def test_stacks_offer_workloads_early_and_late(stack: str) -> None:
    target = Target(stack=stack, api="CPU" if stack == "numpy" else "CUDA", adapter="x", options={"platform": "cuda"})
    star = list(registry()[stack].space(target).star())
    assert star[1].workload == "recurrence"
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
