"""Warp, PyOpenCL and MLX: what they offer on a GPU, and what is said where the library or a device
is missing.
"""

from __future__ import annotations

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from overhead.errors import Unavailable, Unsupported
from overhead.probes import registry
from overhead.probes.base import Chain
from overhead.results import Case, Reason, Target
from tests.fakes import warp
from tests.fakes.of_step import of_step
from tests.workloads.workload_arms import ALL, case, counts, long_run


def opened(stack: str, target: Target, pattern: str, **params: Any) -> Chain:
    """The chain of the stack's first case with this pattern and these parameters."""
    probe = registry()[stack]
    for one in of_step(probe.space(target).star()):
        if one.pattern == pattern and params.items() <= one.params.items():
            return probe.open(target, one)
    raise AssertionError(f"{stack} has no case {pattern} {params}")


def target(stack: str) -> Target:
    return registry()[stack].targets()[0]


def opencl_processor() -> Target:
    """The processor among OpenCL's devices, before which a GPU may come."""
    software = [target for target in registry()["pyopencl"].targets() if target.software]
    return software[0]


@pytest.mark.parametrize(
    ("stack", "module", "extra"),
    [("warp", "warp", "warp"), ("pyopencl", "pyopencl", "opencl"), ("mlx", "mlx.core", "mlx")],
)
def test_without_its_library_a_stack_names_it_and_the_extra_that_adds_it(
    stack: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        Unavailable, match=rf"^package-does-not-import \(package={module}"
    ) as raised:
        target(stack)
    assert isinstance(raised.value.mend, Reason)
    assert raised.value.mend.values["extras"] == extra


def test_opencl_without_a_platform_is_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> list[Any]:
        raise OSError("PLATFORM_NOT_FOUND_KHR")

    monkeypatch.setitem(sys.modules, "pyopencl", SimpleNamespace(Error=OSError, get_platforms=none))
    with pytest.raises(
        Unavailable, match=r"^opencl-finds-no-device .*PLATFORM_NOT_FOUND_KHR"
    ) as raised:
        target("pyopencl")
    assert raised.value.mend


@pytest.mark.needs("pyopencl")
def test_an_opencl_device_that_has_another_name_than_before_is_not_measured() -> None:
    processor = opencl_processor()
    renamed = msgspec.structs.replace(processor, adapter="NVIDIA H100")
    gone = msgspec.structs.replace(processor, device="99")
    for changed in (renamed, gone):
        with pytest.raises(Unavailable):
            opened("pyopencl", changed, "per-submit")


@pytest.mark.needs("pyopencl")
@pytest.mark.parametrize("entry", ["enqueue", "call"])
def test_opencl_times_launches_that_were_all_queued_behind_a_kernel(entry: str) -> None:
    with contextlib.closing(
        opened("pyopencl", opencl_processor(), "per-submit", entry=entry)
    ) as chain:
        most = chain.held_n
        attempts = [chain.device(most) for _ in range(5)]
        held = [attempt for attempt in attempts if attempt is not None and attempt.busy]
        assert held
        assert {attempt.n for attempt in held} == {most}
        assert max(attempt.span for attempt in held) > 0
        assert chain.executed() == 0
        assert chain.aside == 5 * most + 1  # and one launch to warm up


@pytest.mark.parametrize("entry", ["launch", "recorded"])
def test_warp_times_launches_on_a_gpu_with_its_events_behind_a_kernel(
    entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = warp.install(monkeypatch)
    chain = opened("warp", target("warp"), "per-submit", entry=entry)
    device_time = chain.device(3)
    assert device_time is not None
    assert device_time.n == 3
    assert device_time.span == warp.ELAPSED_MS * 1e6
    assert device_time.busy
    assert device.launched[-4:] == ["spin", "step1", "step1", "step1"]
    assert opened("warp", target("warp"), "wait-each").device(3) is None


def test_warp_names_a_gpu_as_other_stacks_do(monkeypatch: pytest.MonkeyPatch) -> None:
    warp.install(monkeypatch)
    gpu = target("warp")
    assert gpu.api == "CUDA"
    assert gpu.adapter == "Fake GPU"
    assert len(gpu.device) == 12
    patterns = {case.pattern for case in registry()["warp"].space(gpu).star()}
    assert patterns >= {"wait-each", "read-each", "replay"}


@pytest.mark.needs("warp")
def test_graphs_of_warp_run_on_the_cpu_and_a_capture_runs_nothing() -> None:
    chain = opened("warp", target("warp"), "launches", nodes=100)
    chain.prepare(3)
    assert chain.executed() == 0
    chain.issue(3)
    assert chain.executed() == 3
    assert chain.synchronous
    replay = opened("warp", target("warp"), "replay")
    replay.prepare(50)
    assert replay.executed() == 0
    replay.issue(50)
    assert replay.executed() == 50


@pytest.mark.parametrize(("metal", "api"), [(True, "Metal"), (False, "CUDA")])
def test_mlx_lists_its_gpu_after_the_cpu(
    metal: bool, api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mx = SimpleNamespace(
        __version__="0.0",
        cpu="cpu",
        gpu="gpu",
        metal=SimpleNamespace(is_available=lambda: metal),
        is_available=lambda kind: True,
        device_count=lambda kind: 1,
        Device=lambda kind, index: (kind, index),
        device_info=lambda device: {"device_name": f"Fake {device[0]} {device[1]}"},
    )
    monkeypatch.setitem(sys.modules, "mlx.core", mx)
    cpu, graphics = registry()["mlx"].targets()
    assert cpu.api == "CPU"
    assert cpu.adapter == "CPU"
    assert graphics.api == api
    assert graphics.adapter == "Fake gpu 0"


@pytest.mark.needs("mlx")
def test_mlx_runs_noted_additions_only_when_they_are_waited_for() -> None:
    import mlx.core as mx

    chain = opened("mlx", target("mlx"), "one-pass")
    result_bytes = 1024
    before = mx.get_active_memory()
    chain.issue(5)
    assert mx.get_active_memory() - before < result_bytes
    chain.wait()
    assert chain.executed() == 5


@pytest.mark.needs("mlx")
def test_mlx_refuses_a_pattern_that_it_does_not_have() -> None:
    with pytest.raises(Unsupported, match="fused"):
        registry()["mlx"].open(target("mlx"), Case(pattern="fused"))


@pytest.mark.needs("mlx")
@pytest.mark.parametrize("name", [name for name in ALL if "1536" not in name])
def test_every_workload_in_mlx_agrees_with_numpy(name: str) -> None:
    import mlx.core as mx

    from overhead.probes.mlx import MlxWork
    from overhead.probes.workload_chain import verified

    counts(verified(MlxWork(mx, case(name, "per-submit"))))


@pytest.mark.needs("mlx")
def test_mlx_on_the_cpu_restarts_a_workload_before_numbers_become_subnormal() -> None:
    chain = registry()["mlx"].open(target("mlx"), case("recurrence", "per-submit"))
    long_run(chain)  # type: ignore[arg-type]
