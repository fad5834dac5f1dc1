"""The size of the step on Vulkan and WebGPU: how many words a dispatch works on, and how many buffers take turns."""

GROUPS = 4
"""Workgroups of a dispatch, 64 invocations each."""
WORDS = 64 * GROUPS
"""32-bit words of a buffer, one for each invocation."""
RING = 8
"""Buffers or bind groups that take turns. A power of two: the loops index them with a mask."""
