"""Storage buffers with descriptor sets: upload, download, and counting the steps from the
values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from overhead.probes.common.step import RING, WORDS
from overhead.probes.kernels import lcg
from overhead.probes.vulkan.adapters import structure
from overhead.probes.vulkan.gpu import VulkanBuffer, VulkanGpu


class StepBuffers:
    """The storage buffers on which the step (the kernel that each unit runs) works, and descriptor
    sets, through which a kernel finds its buffer.

    ``own[i]``: a set of buffer i. ``shared[i]``: one more set of buffer 0, for units that bind
    another set each time but all work on that buffer.
    """

    def __init__(self, gpu: VulkanGpu, set_layout: Any) -> None:
        """Make the buffers and their descriptor sets, and upload a different seed for each word.

        The host reaches the buffers only through a staging buffer, because they lie in the memory
        of the device.
        """
        vk = gpu.vk
        self._gpu = gpu
        self._size = 4 * WORDS  # bytes of one buffer
        # Records commands by a Python function, runs them, and waits.
        self._record = OneTimeCommands(gpu)
        transfer = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
        usage = transfer | vk.VK_BUFFER_USAGE_STORAGE_BUFFER_BIT
        # Several (``RING``), which independent units use in turn.
        self._buffers = [gpu.buffer(self._size, usage) for _ in range(RING)]
        self._staging = gpu.buffer(RING * self._size, transfer, host=True)
        mapped = gpu.ffi.buffer(self._staging.mapped, self._staging.size)
        # The staging buffer as an array: a row for each buffer. What is written here is in it at
        # once.
        self._mapped = np.frombuffer(mapped, np.uint32).reshape(RING, WORDS)
        sets = 2 * RING  # ``own`` and ``shared``, see below
        room = {"type": vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, "descriptorCount": sets}
        size = gpu.ffi.new("VkDescriptorPoolSize *", room)
        self._pool = gpu.create("DescriptorPool", maxSets=sets, poolSizeCount=1, pPoolSizes=size)
        # ``own``: a set for each buffer. ``shared``: as many sets, all of buffer 0.
        self.own = self._sets(set_layout, list(range(RING)))
        self.shared = self._sets(set_layout, [0] * RING)
        # What the buffers contained when their steps were last counted, and the steps until then.
        self._last = lcg.seeds(RING * WORDS).reshape(RING, WORDS)
        self._steps = 0
        self._upload(self._last)

    def close(self) -> None:
        """Destroy the buffers, the descriptor sets and the command buffer for copies."""
        self._record.close()
        self._gpu.destroy("DescriptorPool", self._pool)
        for buffer in (*self._buffers, self._staging):
            self._gpu.release(buffer)

    def _sets(self, layout: Any, buffers: list[int]) -> tuple[Any, ...]:
        """One new descriptor set for each buffer index. A kernel finds its buffer through a set."""
        gpu = self._gpu
        ffi = gpu.ffi
        count = len(buffers)
        # First allocate the sets, all of one layout, which says what kinds of buffers a set has:
        # here one storage buffer.
        layouts = ffi.new("VkDescriptorSetLayout[]", [layout] * count)
        info = structure(
            "DescriptorSetAllocateInfo",
            descriptorPool=self._pool,
            descriptorSetCount=count,
            pSetLayouts=layouts,
        )
        sets = ffi.new("VkDescriptorSet[]", count)
        gpu.device_call("vkAllocateDescriptorSets", info, sets)
        # Then let each refer to its buffer.
        for descriptor_set, index in zip(sets, buffers, strict=True):
            whole_buffer = {"buffer": self._buffers[index].handle, "range": self._size}
            buffer_info = ffi.new("VkDescriptorBufferInfo *", whole_buffer)
            write = structure(
                "WriteDescriptorSet",
                dstSet=descriptor_set,
                descriptorCount=1,
                descriptorType=gpu.vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                pBufferInfo=buffer_info,
            )
            gpu.device_call("vkUpdateDescriptorSets", 1, write, 0, ffi.NULL)
        return tuple(sets)

    def steps(self) -> int:
        """The total number of steps that the device has run on all buffers. Raises ``Unverified``
        if values disagree.

        A step replaces each word of a buffer by the next number of a random generator. So the words
        of the previous call and those of now tell how many steps ran between. The generator
        repeats itself after 2^32 numbers, so each buffer must have run fewer steps than that.
        """
        now = self._download()
        # ``distance``: how many steps lead from the first words to the second.
        for before, after in zip(self._last, now, strict=True):
            self._steps += lcg.distance(before, after)
        self._last = now
        return self._steps

    def _upload(self, words: lcg.Words) -> None:
        """Copy one row of ``words`` to each buffer, and wait for the copies. A barrier makes
        kernels that run later see what the copies wrote.
        """
        self._mapped[:] = words
        vk = self._gpu.vk
        shader_access = vk.VK_ACCESS_SHADER_READ_BIT | vk.VK_ACCESS_SHADER_WRITE_BIT
        # ``_Access``: which stage of the device accesses memory, and how.
        copies = _Access(vk.VK_PIPELINE_STAGE_TRANSFER_BIT, vk.VK_ACCESS_TRANSFER_WRITE_BIT)
        kernels = _Access(vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, shader_access)

        def record(cb: Any) -> None:
            for index, buffer in enumerate(self._buffers):
                row = index * self._size
                self._copy(cb, self._staging, row, buffer, 0)
            self._barrier(cb, copies, kernels)

        self._record(record)

    def _download(self) -> lcg.Words:
        """Wait for all work, then return the contents of the buffers, one row per buffer.

        The copies run between two barriers: they see what the kernels wrote, and the host sees what
        the copies wrote.
        """
        vk = self._gpu.vk
        transfer = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
        kernels = _Access(vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, vk.VK_ACCESS_SHADER_WRITE_BIT)
        copies_read = _Access(transfer, vk.VK_ACCESS_TRANSFER_READ_BIT)
        copies_write = _Access(transfer, vk.VK_ACCESS_TRANSFER_WRITE_BIT)
        host = _Access(vk.VK_PIPELINE_STAGE_HOST_BIT, vk.VK_ACCESS_HOST_READ_BIT)

        def record(cb: Any) -> None:
            self._barrier(cb, kernels, copies_read)
            for index, buffer in enumerate(self._buffers):
                row = index * self._size
                self._copy(cb, buffer, 0, self._staging, row)
            self._barrier(cb, copies_write, host)

        # Returns when the copies are done.
        self._record(record)
        return self._mapped.copy()

    def _copy(
        self,
        cb: Any,
        source: VulkanBuffer,
        source_offset: int,
        destination: VulkanBuffer,
        destination_offset: int,
    ) -> None:
        """Record, into the command buffer ``cb``, a copy of as many bytes as a buffer of the step
        has. Offsets are in bytes.
        """
        place = {
            "srcOffset": source_offset,
            "dstOffset": destination_offset,
            "size": self._size,
        }
        region = self._gpu.ffi.new("VkBufferCopy *", place)
        copy = self._gpu.function("vkCmdCopyBuffer")
        copy(cb, source.handle, destination.handle, 1, region)

    def _barrier(self, cb: Any, before: _Access, after: _Access) -> None:
        """Record a barrier: what was accessed ``before`` is complete and seen ``after``."""
        gpu = self._gpu
        memory = structure("MemoryBarrier", srcAccessMask=before.mask, dstAccessMask=after.mask)
        null = gpu.ffi.NULL
        barrier = gpu.function("vkCmdPipelineBarrier")
        barrier(cb, before.stage, after.stage, 0, 1, memory, 0, null, 0, null)


class _Access(NamedTuple):
    """Who accesses memory (a stage of the pipeline), and how: flags of Vulkan."""

    stage: int
    mask: int


class OneTimeCommands:
    """A command buffer for work outside the timed window. A Python function records it, then it
    runs once.
    """

    def __init__(self, gpu: VulkanGpu) -> None:
        """Make the command buffer, and the structures that record and submit it each time."""
        self._gpu = gpu
        self._pool = gpu.command_pool()
        self.cb = gpu.command_buffers(self._pool, 1)[0]
        self._begin = structure(
            "CommandBufferBeginInfo", flags=gpu.vk.VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT
        )
        # Kept as an attribute, because ``_submit`` has only its address.
        self._list = gpu.ffi.new("VkCommandBuffer *", self.cb)
        self._submit = structure("SubmitInfo", commandBufferCount=1, pCommandBuffers=self._list)

    def __call__(self, record: Callable[[Any], None]) -> None:
        """Wait for pending work, then record, run and wait. ``record(cb)`` puts commands into the
        command buffer.
        """
        self._gpu.drain()
        self.start(record, self._gpu.ffi.NULL)
        self._gpu.drain()

    def start(self, record: Callable[[Any], None], fence: Any) -> None:
        """Record and submit without waiting. ``fence``: signalled when the work is done, or NULL.

        The command buffer must not be pending, that is, submitted and not yet done.
        """
        gpu = self._gpu
        gpu.call("vkBeginCommandBuffer", self.cb, self._begin)
        record(self.cb)
        gpu.call("vkEndCommandBuffer", self.cb)
        gpu.call("vkQueueSubmit", gpu.queue, 1, self._submit, fence)

    def close(self) -> None:
        """Destroy the pool with the command buffer."""
        self._gpu.destroy("CommandPool", self._pool)
