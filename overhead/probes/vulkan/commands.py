"""The C calls that record and submit command buffers, for the Python loop and the compiled loop, and the waits."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from overhead.probes.base import Unverified
from overhead.probes.common.native_loop import Cycle, NativeCall
from overhead.probes.common.step_kernel import GROUPS
from overhead.probes.vulkan.adapters import result_name, structure, word
from overhead.probes.vulkan.gpu import Pipeline, VulkanGpu

VULKAN_WAITS = {
    "idle": "vkQueueWaitIdle",
    "fence": "an empty vkQueueSubmit with a fence, vkWaitForFences, vkResetFences",
}
"""The ways to wait for the queue, the cheapest first."""
WAIT_NS = 20_000_000_000
"""A wait that takes longer has failed."""


class Commands:
    """Makes ``NativeCall`` objects.

    An argument is a cffi value, a number, or a ``Cycle``, which has a value for each unit.
    """

    def __init__(self, gpu: VulkanGpu, pipeline: Pipeline) -> None:
        vk = gpu.vk
        self._gpu, self._pipeline, self._null = gpu, pipeline, gpu.ffi.NULL
        self._compute = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
        self._kept: list[Any] = []
        self.once = vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        self._memory = structure(
            "MemoryBarrier",
            srcAccessMask=vk.VK_ACCESS_SHADER_WRITE_BIT,
            dstAccessMask=vk.VK_ACCESS_SHADER_READ_BIT | vk.VK_ACCESS_SHADER_WRITE_BIT,
        )

    def call(self, name: str, *args: Any, stage: str) -> NativeCall:
        """A call of any device function. If the function returns a ``VkResult``, the loop remembers a failure."""
        function = self._gpu.function(name)
        words = tuple(Cycle(tuple(map(word, a.values))) if isinstance(a, Cycle) else word(a) for a in args)
        checked = self._gpu.ffi.typeof(function).result.kind == "enum"
        return NativeCall(name, function, word(function), words, stage=stage, ffi_args=args, checked=checked)

    def begin(self, cb: Any, flags: int) -> NativeCall:
        info = self._keep(structure("CommandBufferBeginInfo", flags=flags))
        return self.call("vkBeginCommandBuffer", cb, info, stage="begin")

    def pipeline(self, cb: Any) -> NativeCall:
        point = self._gpu.vk.VK_PIPELINE_BIND_POINT_COMPUTE
        return self.call("vkCmdBindPipeline", cb, point, self._pipeline.handle, stage="pipeline")

    def bind(self, cb: Any, sets: Any) -> NativeCall:
        """Bind a descriptor set; if ``sets`` is a ``Cycle``, bind the set of the unit."""
        rotating = isinstance(sets, Cycle)
        handles = sets.values if rotating else [sets]
        pointers = [self._keep(self._gpu.ffi.new("VkDescriptorSet *", each)) for each in handles]
        point = self._gpu.vk.VK_PIPELINE_BIND_POINT_COMPUTE
        pointer = Cycle(tuple(pointers)) if rotating else pointers[0]
        return self.call(
            "vkCmdBindDescriptorSets", cb, point, self._pipeline.layout, 0, 1, pointer, 0, self._null, stage="bind"
        )

    def barrier(self, cb: Any) -> NativeCall:
        """The barrier that WebGPU implies between dispatches, so that a dispatch sees the writes of earlier ones."""
        stage, null = self._compute, self._null
        return self.call(
            "vkCmdPipelineBarrier", cb, stage, stage, 0, 1, self._memory, 0, null, 0, null, stage="barrier"
        )

    def push(self, cb: Any, pointer: Any) -> NativeCall:
        """Push 4 bytes. They are read from the pointer each time the loop makes the call."""
        stage = self._gpu.vk.VK_SHADER_STAGE_COMPUTE_BIT
        return self.call("vkCmdPushConstants", cb, self._pipeline.layout, stage, 0, 4, pointer, stage="push")

    def dispatch(self, cb: Any) -> NativeCall:
        return self.call("vkCmdDispatch", cb, GROUPS, 1, 1, stage="dispatch")

    def fused(self, cb: Any, descriptors: Any, steps: Any) -> tuple[NativeCall, ...]:
        """One dispatch that loops as many times as ``steps`` points to."""
        bound = (self.pipeline(cb), self.bind(cb, descriptors), self.barrier(cb))
        return (*bound, self.push(cb, steps), self.dispatch(cb))

    def end(self, cb: Any) -> NativeCall:
        return self.call("vkEndCommandBuffer", cb, stage="end")

    def submit(self, info: Any, fence: Any = None) -> NativeCall:
        fence = self._null if fence is None else fence
        return self.call("vkQueueSubmit", self._gpu.queue, 1, info, fence, stage="submit")

    def idle(self) -> NativeCall:
        return self.call("vkQueueWaitIdle", self._gpu.queue, stage="wait")

    def wait_fence(self, fence: Any) -> tuple[NativeCall, NativeCall]:
        """Wait for a fence, then reset it."""
        pointer = self._keep(self._gpu.ffi.new("VkFence *", fence))
        device = self._gpu.device
        return (
            self.call("vkWaitForFences", device, 1, pointer, 1, WAIT_NS, stage="wait"),
            self.call("vkResetFences", device, 1, pointer, stage="wait"),
        )

    def info(self, cb: Any) -> Any:
        """A submission of one command buffer."""
        pointer = self._keep(self._gpu.ffi.new("VkCommandBuffer *", cb))
        return self._keep(structure("SubmitInfo", commandBufferCount=1, pCommandBuffers=pointer))

    def _keep(self, value: Any) -> Any:
        self._kept.append(value)
        return value


class VulkanWait:
    """A wait for the queue, of one of two kinds. ``failed`` keeps the first failure, for ``executed``."""

    def __init__(self, gpu: VulkanGpu, kind: str) -> None:
        self.kind, self.words = kind, VULKAN_WAITS[kind]
        self.failed = 0
        self._gpu = gpu
        self._fences: list[Any] = []
        self._loop: Callable[[], int] = self._fence() if kind == "fence" else self._idle()

    def __call__(self) -> None:
        result = self._loop()
        if result:
            self.failed = self.failed or result & 0xFFFFFFFF

    def close(self) -> None:
        for fence in self._fences:
            self._gpu.destroy("Fence", fence)

    def _idle(self) -> Callable[[], int]:
        return functools.partial(self._gpu.function("vkQueueWaitIdle"), self._gpu.queue)

    def _fence(self) -> Callable[[], int]:
        gpu, device, queue, null = self._gpu, self._gpu.device, self._gpu.queue, self._gpu.ffi.NULL
        fence = gpu.create("Fence")
        self._fences.append(fence)
        submit, wait, reset = map(gpu.function, ("vkQueueSubmit", "vkWaitForFences", "vkResetFences"))
        pointer = gpu.ffi.new("VkFence *", fence)

        def loop() -> int:
            return submit(queue, 0, null, fence) or wait(device, 1, pointer, 1, WAIT_NS) or reset(device, 1, pointer)

        return loop


def raise_failures(failures: Iterable[int]) -> None:
    """Raise ``Unverified`` for the first nonzero number.

    Each number is the bitwise or of the low 32 bits of several results.
    """
    for failure in filter(None, failures):
        signed = failure - (1 << 32) if failure >> 31 & 1 else failure
        raise Unverified(f"a Vulkan call did not succeed: {result_name(signed)}")
