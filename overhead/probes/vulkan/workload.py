"""Workloads in committed SPIR-V on raw Vulkan: n dispatches recorded before the window, or one that loops."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from overhead.probes import kernels
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.software_adapters import longest_fused_chain
from overhead.probes.common.workload_arms import IN_SPIRV
from overhead.probes.vulkan.buffers import StorageBuffers
from overhead.probes.vulkan.chains import VulkanParts
from overhead.probes.vulkan.commands import VULKAN_WAITS, raise_failures
from overhead.probes.vulkan.device_time import time_one_submission
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


class VulkanWork(VulkanParts, WorkChain):
    """A workload with one submission and one wait.

    One buffer contains the fields of the state, then the inputs, then the counters.
    """

    language = "spirv"
    overlap = "serial"
    recorded = True
    launches = 0

    def __init__(self, gpu: VulkanGpu, case: Case) -> None:
        WorkChain.__init__(self, case)
        self._fused = case.pattern == "fused"
        self._name = f"{case.workload}_{'fused' if self._fused else 'once'}"
        self.max_n = longest_fused_chain(gpu.adapter.name) if self._fused else 1 << 16
        self._inputs = sources.inputs(self.workload, self.inputs).view(np.uint32)
        self._words = self.elements * sum(f.width for f in self.workload.state)
        with contextlib.ExitStack() as cleanup:
            pipeline = gpu.kernel(self._name)
            self._acquire(gpu, pipeline, next(iter(VULKAN_WAITS)), cleanup)
            self._buffers = StorageBuffers(gpu, 1, self._words + len(self._inputs) + self.elements, 1)
            cleanup.callback(self._buffers.close)
            (self._set,) = self._buffers.sets(pipeline.set_layout, [0])
            self._info = self._commands.info(self._cb)
            self._steps = gpu.ffi.new("uint32_t *")
            self._cleanup = cleanup.pop_all()
        self._failed = 0
        self._submit = gpu.function("vkQueueSubmit")

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
        self._record(self._recorder(self._cb), n)

    def _recorder(self, cb: Any) -> Callable[[int], None]:
        c, groups = self._commands, -(-self.elements // sources._GROUP_SIZE)
        head, step = (c.pipeline(cb), c.bind(cb, self._set)), (c.barrier(cb), c.dispatch(cb, groups))
        loop = c.fused(cb, self._set, self._steps, groups)

        def record(n: int) -> None:
            self._steps[0] = n
            self._call_now(loop if self._fused else itertools.chain(head, *itertools.repeat(step, n)))

        return record

    def issue(self, n: int) -> None:
        self._failed |= self._submit(self._gpu.queue, 1, self._info, self._gpu.ffi.NULL) & 0xFFFFFFFF

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
