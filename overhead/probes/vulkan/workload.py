"""Workloads in committed SPIR-V on raw Vulkan: n dispatches recorded before the window, or one that loops."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from overhead.probes import kernels
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.native_loop import NativeCall
from overhead.probes.common.software_adapters import longest_fused_chain
from overhead.probes.common.workload_arms import IN_SPIRV
from overhead.probes.vulkan.buffers import StorageBuffers
from overhead.probes.vulkan.commands import VULKAN_WAITS, Commands, VulkanWait, raise_failures
from overhead.probes.vulkan.device_time import time_one_submission, wait_spins
from overhead.probes.vulkan.gpu import VulkanGpu
from overhead.probes.workload_chain import WorkChain, verified
from overhead.results import Case, Scalar
from overhead.workloads import sources
from overhead.workloads.base import Array


def open_case(gpu: VulkanGpu, case: Case) -> WorkChain:
    """The chain of a workload case. Raises ``Unsupported`` if it has no SPIR-V or the pattern does not exist."""
    if case.workload not in IN_SPIRV:
        raise Unsupported(f"{case.workload} has no committed SPIR-V")
    if case.pattern not in ("replay", "fused"):
        raise Unsupported(f"a workload's SPIR-V runs as replay or fused, not {case.pattern}")
    return verified(VulkanWork(gpu, case))


class VulkanWork(WorkChain):
    """A workload with one submission and one wait.

    One buffer contains the fields of the state, then the inputs, then the counters.
    """

    language = "spirv"
    overlap = "serial"
    recorded = True
    launches = 0

    def __init__(self, gpu: VulkanGpu, case: Case) -> None:
        super().__init__(case)
        self._gpu, self._fused = gpu, case.pattern == "fused"
        self._name = f"{case.workload}_{'fused' if self._fused else 'once'}"
        self.max_n = longest_fused_chain(gpu.adapter.name) if self._fused else 1 << 16
        self._inputs = sources.inputs(self.workload, self.inputs).view(np.uint32)
        self._words = self.elements * sum(f.width for f in self.workload.state)
        self._cleanup = contextlib.ExitStack()
        try:
            pipeline = gpu.kernel(self._name)
            self._commands, self._wait = Commands(gpu, pipeline), VulkanWait(gpu, next(iter(VULKAN_WAITS)))
            self._cleanup.callback(self._wait.close)
            self._buffers = StorageBuffers(gpu, 1, self._words + len(self._inputs) + self.elements, 1)
            self._cleanup.callback(self._buffers.close)
            (self._set,) = self._buffers.sets(pipeline.set_layout, [0])
            pool = gpu.command_pool()
            self._cleanup.callback(gpu.destroy, "CommandPool", pool)
            (self._cb,) = gpu.command_buffers(pool, 1)
            self._info = self._commands.info(self._cb)
            self._steps = gpu.ffi.new("uint32_t *")
            self.wait_spins = wait_spins(gpu, self._wait.kind)
        except BaseException:
            self._cleanup.close()
            raise
        self._recorded_n, self._failed = -1, 0
        self._submit = gpu.function("vkQueueSubmit")
        self._submission = (gpu.queue, 1, self._info, gpu.ffi.NULL)

    def put(self, state: dict[str, Array]) -> None:
        words = sources.state(self.workload, state, self.elements).view(np.uint32)
        self._buffers.upload(np.concatenate([words, self._inputs, np.zeros(self.elements, np.uint32)])[None])

    def fetch(self) -> tuple[dict[str, Array], Array]:
        raise_failures([self._wait.failed, self._failed])
        (words,) = self._buffers.download()
        state = words[: self._words].view(np.float32)
        return sources.unpack(self.workload, state, self.elements), words[-self.elements :]

    def prepare(self, n: int) -> None:
        self._gpu.drain()
        if n != self._recorded_n:
            c, cb = self._commands, self._cb
            self._call_now(c.begin(cb, 0))
            self._recorder(cb)(n)
            self._call_now(c.end(cb))
            self._recorded_n = n

    def _recorder(self, cb: Any) -> Callable[[int], None]:
        c, groups = self._commands, -(-self.elements // sources._GROUP_SIZE)
        head = (c.pipeline(cb), c.bind(cb, self._set))
        push, step = c.push(cb, self._steps), (c.barrier(cb), c.dispatch(cb, groups))

        def record(n: int) -> None:
            self._call_now(*head)
            if self._fused:
                self._steps[0] = n
                self._call_now(push)
            for _ in range(1 if self._fused else n):
                self._call_now(*step)

        return record

    def _call_now(self, *calls: NativeCall) -> None:
        for call in calls:
            self._gpu.call(call.name, *call.ffi_args)

    def issue(self, n: int) -> None:
        self._failed |= self._submit(*self._submission) & 0xFFFFFFFF

    def wait(self) -> None:
        self._wait()

    def device(self, n: int) -> DeviceTime | None:
        n = min(n, self.held_n)
        before = self.get()[1]
        try:
            return time_one_submission(self._gpu, n, self._recorder)
        finally:
            self.aside += (self.get()[1] - before) % (1 << 32)

    def kernels(self) -> dict[str, str]:
        return {f"{self._name}.spv": kernels.binary(f"{self._name}.spv")[1]}

    def window(self) -> dict[str, Scalar]:
        return {
            **super().window(),
            "submits": "1",
            "call": "vkQueueSubmit",
            "recording": "outside",
            "barrier": "before each dispatch",
            "wait": self._wait.words,
        }

    def close(self) -> None:
        self._gpu.drain()
        self._cleanup.close()
