"""The C calls that record and submit command buffers, for the Python loop and the compiled loop,
and two waits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from overhead.probes.base import Unverified
from overhead.probes.common.native_loop import Cycle, NativeCall
from overhead.probes.common.step import GROUPS
from overhead.probes.vulkan.adapters import as_word, result_name, structure
from overhead.probes.vulkan.gpu import Pipeline, VulkanGpu
from overhead.results import because

VULKAN_WAITS = {
    "idle": "vkQueueWaitIdle",
    "fence": "an empty vkQueueSubmit with a fence, vkWaitForFences, vkResetFences",
}
"""The ways to wait for the queue, the cheapest first."""
WAIT_NS = 20_000_000_000
"""A wait that takes longer has failed; ns."""


class Commands:
    """Makes ``NativeCall`` objects for a device and a pipeline. They are run later, by a loop.

    ``cb``: a command buffer. An argument is a cffi value, a number, or a ``Cycle``, which has a
    value for each unit.
    """

    def __init__(self, gpu: VulkanGpu, pipeline: Pipeline) -> None:
        """Make what the calls share: the flag ``once`` of a command buffer that is submitted once,
        and the barrier by which a dispatch sees what earlier ones wrote.
        """
        vk = gpu.vk
        self._gpu = gpu
        self._pipeline = pipeline
        self._null = gpu.ffi.NULL
        self._compute = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
        self._kept: list[Any] = []  # see ``_keep``
        self.once = vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        # Of all memory: what shaders wrote before is seen by the reads and writes after.
        self._memory = structure(
            "MemoryBarrier",
            srcAccessMask=vk.VK_ACCESS_SHADER_WRITE_BIT,
            dstAccessMask=vk.VK_ACCESS_SHADER_READ_BIT | vk.VK_ACCESS_SHADER_WRITE_BIT,
        )

    def call(self, name: str, *args: Any, stage: str) -> NativeCall:
        """A call of a device function by name, for a loop that makes it later. If the function
        returns a ``VkResult``, the loop remembers a failure.

        The arguments are kept in two forms: as integers for the compiled loop, and as cffi values
        for the Python loop. ``stage``: the name under which the duration of the call is reported.
        """
        function = self._gpu.function(name)
        words: list[int | Cycle] = []
        for argument in args:
            # A value for each unit in turn. ``as_word``: a handle, pointer or number as an integer.
            if isinstance(argument, Cycle):
                words.append(Cycle(tuple(map(as_word, argument.values))))
            else:
                words.append(as_word(argument))
        returns_result = self._gpu.ffi.typeof(function).result.kind == "enum"  # VkResult
        return NativeCall(
            name,
            function,
            as_word(function),
            tuple(words),
            stage=stage,
            ffi_args=args,
            checked=returns_result,
        )

    def begin(self, cb: Any, flags: int) -> NativeCall:
        """A call that begins a new recording. ``flags``: ``once``, or 0 if it will be submitted
        several times.
        """
        info = self._keep(structure("CommandBufferBeginInfo", flags=flags))
        return self.call("vkBeginCommandBuffer", cb, info, stage="begin")

    def pipeline(self, cb: Any) -> NativeCall:
        """A call that binds the compute pipeline."""
        point = self._gpu.vk.VK_PIPELINE_BIND_POINT_COMPUTE
        return self.call("vkCmdBindPipeline", cb, point, self._pipeline.handle, stage="pipeline")

    def bind(self, cb: Any, sets: Any) -> NativeCall:
        """A call that binds a descriptor set, through which the kernel finds its buffer. If
        ``sets`` is a ``Cycle``, each unit binds the next set of it.
        """
        pointer: Any
        if isinstance(sets, Cycle):
            # ``_pointer_to_set``: a pointer, as the call wants it, which this object keeps alive.
            pointer = Cycle(tuple(map(self._pointer_to_set, sets.values)))
        else:
            pointer = self._pointer_to_set(sets)
        # After the layout: the number of the first set, one set, and no dynamic offsets.
        return self.call(
            "vkCmdBindDescriptorSets",
            cb,
            self._gpu.vk.VK_PIPELINE_BIND_POINT_COMPUTE,
            self._pipeline.layout,
            0,
            1,
            pointer,
            0,
            self._null,
            stage="bind",
        )

    def _pointer_to_set(self, descriptor_set: Any) -> Any:
        return self._keep(self._gpu.ffi.new("VkDescriptorSet *", descriptor_set))

    def barrier(self, cb: Any) -> NativeCall:
        """A call that makes a dispatch see the writes of earlier ones. WebGPU implies this
        barrier.
        """
        # Both sides are compute shaders: the dispatches before, and those after. ``_memory``: the
        # writes of the former, the reads and writes of the latter.
        stage, null = self._compute, self._null
        # One barrier for all memory, none for single buffers or images.
        return self.call(
            "vkCmdPipelineBarrier",
            cb,
            stage,
            stage,
            0,
            1,
            self._memory,
            0,
            null,
            0,
            null,
            stage="barrier",
        )

    def push(self, cb: Any, pointer: Any) -> NativeCall:
        """A call that passes 4 bytes to the kernel. It reads them from the pointer each time."""
        stage = self._gpu.vk.VK_SHADER_STAGE_COMPUTE_BIT
        return self.call(
            "vkCmdPushConstants", cb, self._pipeline.layout, stage, 0, 4, pointer, stage="push"
        )

    def dispatch(self, cb: Any) -> NativeCall:
        """A call that records one dispatch of the kernel."""
        return self.call("vkCmdDispatch", cb, GROUPS, 1, 1, stage="dispatch")

    def fused_dispatch(self, cb: Any, descriptors: Any, steps: Any) -> tuple[NativeCall, ...]:
        """The calls for one dispatch whose loop runs n times. ``descriptors``: the descriptor set
        of its buffer. ``steps`` points to n.
        """
        return (
            self.pipeline(cb),
            self.bind(cb, descriptors),
            self.barrier(cb),
            # Gives the kernel n as a push constant.
            self.push(cb, steps),
            self.dispatch(cb),
        )

    def end(self, cb: Any) -> NativeCall:
        """A call that ends the recording."""
        return self.call("vkEndCommandBuffer", cb, stage="end")

    def submit(self, info: Any, fence: Any = None) -> NativeCall:
        """A call that submits the work of ``info`` (see ``submit_info``). ``fence``: signalled when
        it is done.
        """
        fence = self._null if fence is None else fence
        return self.call("vkQueueSubmit", self._gpu.queue, 1, info, fence, stage="submit")

    def idle(self) -> NativeCall:
        """A call that waits until the queue is empty."""
        return self.call("vkQueueWaitIdle", self._gpu.queue, stage="wait")

    def wait_fence(self, fence: Any) -> tuple[NativeCall, NativeCall]:
        """A call that waits for a fence, and one that resets it."""
        # ``_keep``: the calls have only its address, so this object keeps it alive.
        pointer = self._keep(self._gpu.ffi.new("VkFence *", fence))
        device = self._gpu.device
        # One fence; the second 1: wait for all of them, at most ``WAIT_NS``. Both calls are one
        # stage, so their times are reported as one.
        return (
            self.call("vkWaitForFences", device, 1, pointer, 1, WAIT_NS, stage="wait"),
            self.call("vkResetFences", device, 1, pointer, stage="wait"),
        )

    def submit_info(self, cb: Any) -> Any:
        """A ``VkSubmitInfo`` for one command buffer. It lives as long as this object."""
        pointer = self._keep(self._gpu.ffi.new("VkCommandBuffer *", cb))
        return self._keep(structure("SubmitInfo", commandBufferCount=1, pCommandBuffers=pointer))

    def _keep(self, value: Any) -> Any:
        """The value, which is C memory. cffi frees the memory when Python drops the value, so this
        object holds it as long as its calls may run.
        """
        self._kept.append(value)
        return value


class VulkanWait:
    """A wait for the queue, of a kind of ``VULKAN_WAITS``. Calling it waits.

    ``words``: the C calls that it makes. ``failed``: the first nonzero result, in 32 bits; 0 if
    there was none.
    """

    def __init__(self, gpu: VulkanGpu, kind: str) -> None:
        """Bind the functions now, so that a call of this object only waits."""
        self.kind = kind
        # What the record says of this wait, and the first result of a wait that failed (0: none).
        self.words = VULKAN_WAITS[kind]
        self.failed = 0
        self._gpu = gpu
        self._fence: Any = None
        self._loop: Callable[[], int]
        if kind == "fence":
            self._fence = gpu.create("Fence")
            self._loop = self._fence_loop()
        else:
            # ``vkQueueWaitIdle`` needs no fence.
            self._loop = functools.partial(gpu.function("vkQueueWaitIdle"), gpu.queue)

    def __call__(self) -> None:
        result = self._loop()
        if result:
            self.failed = self.failed or result & 0xFFFFFFFF

    def close(self) -> None:
        """Destroy the fence, if there is one."""
        if self._fence is not None:
            self._gpu.destroy("Fence", self._fence)

    def _fence_loop(self) -> Callable[[], int]:
        """A function that submits nothing with the fence, waits for the fence and resets it. It
        returns the first result that is not 0, which is a failure.
        """
        gpu = self._gpu
        submit = gpu.function("vkQueueSubmit")
        wait = gpu.function("vkWaitForFences")
        reset = gpu.function("vkResetFences")
        device = gpu.device
        queue = gpu.queue
        null = gpu.ffi.NULL
        fence = self._fence
        # Made once. ``WAIT_NS``: a wait that takes longer, 20 s, has failed. The loop submits 0
        # pieces of work; its wait is for one fence, and (the second 1) for all given ones.
        pointer = gpu.ffi.new("VkFence *", fence)

        def loop() -> int:
            return (
                submit(queue, 0, null, fence)
                or wait(device, 1, pointer, 1, WAIT_NS)
                or reset(device, 1, pointer)
            )

        return loop


def raise_failures(failures: Iterable[int]) -> None:
    """Raise ``Unverified`` if a C call failed. Each of ``failures`` sums up the results of some
    calls, as the bitwise or of their low 32 bits; 0: none failed.

    The message names the result. Of several different ones that were joined, it may name none.
    """
    for failure in failures:
        if failure:
            # A result is a signed integer: the highest bit of the 32 is its sign.
            is_negative = failure >> 31 & 1
            signed = failure - (1 << 32) if is_negative else failure
            raise Unverified(because("vulkan-call-failed", result=result_name(signed)))
