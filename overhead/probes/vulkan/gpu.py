"""A logical device with one queue: its functions, buffers, pipelines and command buffers.

Addresses of device functions come from ``vkGetDeviceProcAddr``, so calls go directly to the driver,
without the trampolines of the loader.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from overhead.probes import kernels
from overhead.probes.base import Unavailable
from overhead.probes.vulkan.adapters import (
    VulkanAdapter,
    VulkanError,
    adapters,
    c_strings,
    check,
    instance,
    load,
    structure,
)
from overhead.results import because


@dataclass(frozen=True)
class VulkanBuffer:
    """A buffer of ``size`` bytes and its memory. ``mapped``: the memory's host address; NULL if it
    has none.
    """

    handle: Any
    memory: Any
    size: int
    mapped: Any


@dataclass(frozen=True)
class Pipeline:
    """A compute pipeline over one storage buffer (set 0, binding 0), with 4 bytes of push
    constants.
    """

    handle: Any
    layout: Any
    set_layout: Any


class VulkanGpu:
    """A logical device and its queue. All chains share it, so it lives as long as the process."""

    def __init__(self, adapter: VulkanAdapter) -> None:
        """Open the device, and ask for its queue and for its kinds of memory."""
        self.adapter = adapter
        # ``ffi`` makes C data; ``vk`` has the functions and constants of the loader.
        self.ffi, self.vk = load()
        self.instance = instance()
        self.device = self._create()
        out = self.ffi.new("VkQueue *")
        # Queue 0 of the family, a group of equal queues: the only one that ``_create`` asks for.
        self.device_call("vkGetDeviceQueue", adapter.family, 0, out)
        self.queue = out[0]
        self._memory = self.ffi.new("VkPhysicalDeviceMemoryProperties *")
        self.vk.vkGetPhysicalDeviceMemoryProperties(adapter.handle, self._memory)

    def _create(self) -> Any:
        """A new logical device with one queue of the adapter's family."""
        # A driver that is not complete, such as MoltenVK, must be asked for this extension.
        required = {"VK_KHR_portability_subset"} & self.adapter.extensions
        # ``names``: an array of C strings. ``kept``: the strings, which must live as long as it.
        names, kept = c_strings(sorted(required))
        # The highest priority; there is no other queue that it could matter for.
        priority = self.ffi.new("float *", 1.0)
        queue = structure(
            "DeviceQueueCreateInfo",
            queueFamilyIndex=self.adapter.family,
            queueCount=1,
            pQueuePriorities=priority,
        )
        info = structure(
            "DeviceCreateInfo",
            queueCreateInfoCount=1,
            pQueueCreateInfos=queue,
            enabledExtensionCount=len(kept),
            ppEnabledExtensionNames=names,
        )
        out = self.ffi.new("VkDevice *")
        result = self.vk.vkCreateDevice(self.adapter.handle, info, self.ffi.NULL, out)
        check(result, "vkCreateDevice")
        return out[0]

    @functools.cache  # noqa: B019 - a VulkanGpu lives as long as the process
    def function(self, name: str) -> Any:
        """A device function as a cffi callable, from the driver itself, so that a call does not
        pass through the loader. Raises ``Unavailable`` if the driver lacks the function.
        """
        address = self.vk.vkGetDeviceProcAddr(self.device, name.encode())
        if address == self.ffi.NULL:
            raise Unavailable(because("driver-has-no-function", function=name))
        return self.ffi.cast(f"PFN_{name}", address)

    def device_call(self, name: str, *args: Any) -> None:
        """Call a function whose first argument is the device. Raises ``VulkanError`` for a negative
        result.
        """
        self.call(name, self.device, *args)

    def call(self, name: str, *args: Any) -> None:
        """Call a function. Raises ``VulkanError`` if it returns a negative result."""
        result = self.function(name)(*args)
        if isinstance(result, int):
            check(result, name)

    def create(self, what: str, **fields: Any) -> Any:
        """A new object: ``create("Fence", flags=0)`` is ``vkCreateFence`` with a
        ``VkFenceCreateInfo``. The result is its handle.
        """
        # Vulkan writes the handle to ``out``; NULL stands for its own allocator of memory.
        out = self.ffi.new(f"Vk{what} *")
        info = structure(f"{what}CreateInfo", **fields)
        self.device_call(f"vkCreate{what}", info, self.ffi.NULL, out)
        return out[0]

    def destroy(self, what: str, handle: Any) -> None:
        """Destroy an object of ``create``, or free memory: ``destroy("Fence", handle)`` is
        ``vkDestroyFence``.
        """
        verb = "Free" if what == "Memory" else "Destroy"
        self.device_call(f"vk{verb}{what}", handle, self.ffi.NULL)

    def drain(self) -> None:
        """Wait until the queue is empty."""
        self.call("vkQueueWaitIdle", self.queue)

    def buffer(self, size: int, usage: int, host: bool = False) -> VulkanBuffer:
        """A new buffer of ``size`` bytes with its own memory, which the host can access if
        ``host``.
        """
        vk = self.vk
        ffi = self.ffi
        handle = self.create("Buffer", size=size, usage=usage)
        # The driver tells how much memory the buffer needs, and of which kinds it may be.
        needs = ffi.new("VkMemoryRequirements *")
        self.device_call("vkGetBufferMemoryRequirements", handle, needs)
        # ``wanted``: what the kind of memory must be. Without ``host`` it is near the device.
        wanted = vk.VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT
        if host:  # coherent: what one side writes, the other sees without a flush
            coherent = vk.VK_MEMORY_PROPERTY_HOST_COHERENT_BIT
            wanted = vk.VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | coherent
        kind = self._memory_type(needs.memoryTypeBits, wanted)
        memory = ffi.new("VkDeviceMemory *")
        info = structure("MemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=kind)
        self.device_call("vkAllocateMemory", info, ffi.NULL, memory)
        self.device_call("vkBindBufferMemory", handle, memory[0], 0)
        mapped = ffi.new("void **")
        if host:
            self.device_call("vkMapMemory", memory[0], 0, size, 0, mapped)
        # ``mapped``: the address at which the host sees the buffer; NULL without ``host``.
        return VulkanBuffer(handle, memory[0], size, mapped[0])

    def release(self, buffer: VulkanBuffer) -> None:
        """Destroy a buffer and free its memory."""
        self.destroy("Buffer", buffer.handle)
        self.destroy("Memory", buffer.memory)

    def _memory_type(self, allowed: int, flags: int) -> int:
        """The index of the first kind of memory that a buffer can use and that has all properties
        of ``flags``. Bit i of ``allowed`` is set if the buffer can use kind i. Raises
        ``VulkanError`` if there is none.
        """
        for index in range(self._memory.memoryTypeCount):
            properties = self._memory.memoryTypes[index].propertyFlags
            is_allowed = allowed >> index & 1
            if is_allowed and properties & flags == flags:
                return index
        raise VulkanError(
            because("no-memory-type", allowed=f"{allowed:#x}", properties=f"{flags:#x}")
        )

    @functools.cache  # noqa: B019
    def kernel(self, name: str) -> Pipeline:
        """The compute pipeline of the kernel ``<name>.spv``, which is part of the package as
        compiled SPIR-V. Made once for each name.
        """
        vk = self.vk
        ffi = self.ffi
        # The second result is a hash of the file, which is not needed here.
        code, _ = kernels.binary(f"{name}.spv")
        set_layout = self._set_layout()
        layout = self._pipeline_layout(set_layout)

        # The SPIR-V, which is words of 32 bits, becomes a module, and that a pipeline.
        words = ffi.new("uint32_t[]", len(code) // 4)
        ffi.buffer(words)[:] = code
        module = self.create("ShaderModule", codeSize=len(code), pCode=words)
        entry = ffi.new("char[]", b"main")
        info = structure("ComputePipelineCreateInfo", layout=layout)
        info.stage.sType = vk.VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO
        info.stage.stage = vk.VK_SHADER_STAGE_COMPUTE_BIT
        info.stage.module = module
        info.stage.pName = entry
        out = ffi.new("VkPipeline *")
        self.device_call("vkCreateComputePipelines", ffi.NULL, 1, info, ffi.NULL, out)
        # The pipeline does not need it any more.
        self.destroy("ShaderModule", module)
        return Pipeline(out[0], layout, set_layout)

    def _set_layout(self) -> Any:
        """The layout of a descriptor set with one storage buffer at binding 0."""
        binding = {
            "descriptorType": self.vk.VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            "descriptorCount": 1,
            "stageFlags": self.vk.VK_SHADER_STAGE_COMPUTE_BIT,
        }
        bindings = self.ffi.new("VkDescriptorSetLayoutBinding *", binding)
        return self.create("DescriptorSetLayout", bindingCount=1, pBindings=bindings)

    def _pipeline_layout(self, set_layout: Any) -> Any:
        """The layout of a pipeline with one descriptor set and 4 bytes of push constants. Push
        constants are words that a command buffer hands to a kernel: here the number of steps of the
        fused kernel.
        """
        range_of_4_bytes = {"stageFlags": self.vk.VK_SHADER_STAGE_COMPUTE_BIT, "size": 4}
        push = self.ffi.new("VkPushConstantRange *", range_of_4_bytes)
        set_layouts = self.ffi.new("VkDescriptorSetLayout *", set_layout)
        return self.create(
            "PipelineLayout",
            setLayoutCount=1,
            pSetLayouts=set_layouts,
            pushConstantRangeCount=1,
            pPushConstantRanges=push,
        )

    def command_buffers(self, pool: Any, count: int) -> list[Any]:
        """``count`` new primary command buffers from a pool."""
        info = structure("CommandBufferAllocateInfo", commandPool=pool, commandBufferCount=count)
        out = self.ffi.new("VkCommandBuffer[]", count)
        self.device_call("vkAllocateCommandBuffers", info, out)
        return list(out)

    def command_pool(self) -> Any:
        """A new command pool, whose command buffers ``vkBeginCommandBuffer`` resets."""
        flags = self.vk.VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT
        return self.create("CommandPool", flags=flags, queueFamilyIndex=self.adapter.family)


@functools.cache
def gpu(index: int) -> VulkanGpu:
    """The device of the adapter with this index. The process opens each device only once."""
    by_index = {adapter.index: adapter for adapter in adapters()}
    return VulkanGpu(by_index[index])
