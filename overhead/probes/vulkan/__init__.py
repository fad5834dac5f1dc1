"""Raw Vulkan through numba: devices, buffers, commands, device time."""

REGISTERS = ("vulkan",)
