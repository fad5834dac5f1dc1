"""Raw Vulkan on the software drivers of Mesa and Chromium: every offered case runs exactly the
issued units.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from typing import Any

import msgspec
import pytest

from overhead.probes.base import Unavailable, Unsupported, Unverified
from overhead.probes.vulkan import adapters
from overhead.probes.vulkan.vulkan import Vulkan
from overhead.results import Case, Target
from tests.fakes.chains import run

NEEDS = pytest.mark.needs("vulkan", "lavapipe", "numba")
PROBE = Vulkan()
BASE = Case(pattern="per-submit", caller="native")
STAR = list(PROBE.space(Target(stack="vulkan", api="Vulkan", adapter="any")).star())


@pytest.fixture(scope="module")
def target() -> Target:
    (llvmpipe,) = [target for target in PROBE.targets() if "llvmpipe" in target.adapter]
    return llvmpipe


@NEEDS
@pytest.mark.parametrize(
    "case",
    [BASE, Case(pattern="per-k", caller="native", params={"k": 64})],
    ids=lambda case: case.key,
)
def test_vulkan_runs_every_unit_of_more_batches_than_can_be_pending(
    target: Target, case: Case
) -> None:
    from overhead.probes.vulkan.chains import BATCH_UNITS, BATCHES

    # A batch of submissions of 64 units has twice as many units.
    more_than_all_batches = (BATCHES + 2) * 2 * BATCH_UNITS + 5
    with closing(PROBE.open(target, case)) as chain:
        issued = run(chain, more_than_all_batches, BATCH_UNITS, BATCH_UNITS - 1, 1)
        assert chain.executed() == issued


@NEEDS
def test_a_vulkan_dispatch_with_too_few_workgroups_is_unverified(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.probes.vulkan import commands

    monkeypatch.setattr(commands, "GROUPS", 3)
    with closing(PROBE.open(target, Case(pattern="one-pass", caller="ffi"))) as chain:
        run(chain, 4)
        with pytest.raises(Unverified, match="values-disagree"):
            chain.executed()


@NEEDS
def test_a_clock_that_gives_the_blocker_next_to_no_time_ends_the_measurement(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the blocker would be made longer without end."""
    from overhead.probes.vulkan import device_time, gpu

    monkeypatch.setattr(device_time.Timer, "span_of", lambda self, record: 20.0)
    timer = device_time.Timer(gpu.gpu(adapters.adapters()[0].index))
    with pytest.raises(Unsupported, match=r"device-timestamps-wrong \(span_ns=20\.0"):
        _ = timer.step_ns


@NEEDS
@pytest.mark.parametrize("caller", ["ffi", "native"])
def test_a_vulkan_chain_with_a_failed_c_call_is_unverified(target: Target, caller: str) -> None:
    from overhead.probes.common.native_loop import NativeProgram

    opened: Any = PROBE.open(target, Case(pattern="per-submit", caller=caller))  # type: ignore[arg-type]
    with closing(opened) as chain:
        gpu = chain._gpu
        never_signalled = gpu.ffi.new("VkFence *", chain._fence())
        wait = chain._commands.call(
            "vkWaitForFences", gpu.device, 1, never_signalled, 1, 0, stage="wait"
        )
        loop = chain._compile(NativeProgram(body=(wait,)))
        loop(1)
        with pytest.raises(Unverified, match="VK_TIMEOUT"):
            chain.executed()


@NEEDS
def test_close_destroys_all_objects_of_a_vulkan_chain(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.probes.vulkan.gpu import VulkanGpu

    PROBE.open(target, BASE).close()  # creates the objects that all chains share
    PROBE.open(target, Case(pattern="fused", caller="ffi")).close()
    alive: Counter[str] = Counter()
    create = VulkanGpu.create
    destroy = VulkanGpu.destroy

    def creating(gpu: VulkanGpu, what: str, **fields: Any) -> Any:
        alive[what] += 1
        return create(gpu, what, **fields)

    def destroying(gpu: VulkanGpu, what: str, handle: Any) -> None:
        alive[what] -= 1
        destroy(gpu, what, handle)

    monkeypatch.setattr(VulkanGpu, "create", creating)
    monkeypatch.setattr(VulkanGpu, "destroy", destroying)
    for case in STAR:
        PROBE.open(target, case).close()
    memory = alive.pop("Memory")  # each buffer allocates its memory with a separate call
    assert memory == -9 * len(STAR)
    assert set(alive.values()) == {0}


@NEEDS
def test_a_vulkan_chain_that_fails_to_open_destroys_its_objects(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    from overhead.probes.common import native_loop
    from overhead.probes.vulkan import chains
    from overhead.probes.vulkan.gpu import VulkanGpu

    def raise_failures(program: native_loop.NativeProgram) -> native_loop.NativeLoop:
        raise native_loop.NativeUnavailable("no numba today")

    gone: list[str] = []
    destroy = VulkanGpu.destroy

    def destroying(gpu: VulkanGpu, what: str, handle: Any) -> None:
        gone.append(what)
        destroy(gpu, what, handle)

    monkeypatch.setattr(VulkanGpu, "destroy", destroying)
    monkeypatch.setattr(chains, "compile_native", raise_failures)
    with pytest.raises(Unavailable, match="no numba today"):
        PROBE.open(target, BASE)
    assert {"CommandPool", "DescriptorPool", "Buffer", "Memory", "Fence"} <= set(gone)


@NEEDS
def test_opening_a_case_on_a_vulkan_adapter_that_is_gone_raises_unavailable(target: Target) -> None:
    other = msgspec.structs.replace(target, adapter="a GPU that was unplugged")
    with pytest.raises(Unavailable, match=r"adapter-is-another-now .*a GPU that was unplugged"):
        PROBE.open(other, BASE)


_SCRIPT = """
import json
from overhead.probes.base import Unavailable
from overhead.probes.vulkan.vulkan import Vulkan
probe = Vulkan()
try:
    targets = probe.targets()
except Unavailable as error:
    print(json.dumps({"reason": str(error.reason), "mend": error.mend}))
    raise SystemExit
found = {}
for case in probe.space(targets[0]).star():
    chain = probe.open(targets[0], case)
    for n in (1, 20, 300):
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
    found[case.key] = chain.executed()
    chain.close()
target = targets[0]
print(json.dumps({"adapter": target.adapter, "software": target.software, "executed": found}))
"""


def in_a_process(manifest: str) -> Any:
    environment = {**os.environ, **dict.fromkeys(adapters.DRIVER_VARIABLES, manifest)}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.needs("vulkan", "swiftshader", "numba")
def test_vulkan_runs_every_case_on_swiftshader() -> None:
    found = in_a_process(str(adapters.swiftshader_manifest()))
    assert "SwiftShader" in found["adapter"]
    assert found["software"]
    assert set(found["executed"].values()) == {321}
    assert len([key for key in found["executed"] if key.startswith("step ")]) == len(STAR)


@pytest.mark.needs("vulkan", "vulkan-loader")
def test_vulkan_without_drivers_is_unavailable(tmp_path: Any) -> None:
    found = in_a_process(str(tmp_path / "absent.json"))
    assert "vulkan-loader-finds-no-driver" in found["reason"]
    assert found["mend"]
