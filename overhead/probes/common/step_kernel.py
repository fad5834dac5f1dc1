"""The size of the step on Vulkan and WebGPU: words per dispatch, and number of buffers that are used in turn."""

GROUPS = 4
"""Workgroups per dispatch, 64 invocations each."""
WORDS = 64 * GROUPS
"""32-bit words per buffer, one for each invocation."""
RING = 8
"""Number of buffers or bind groups that are used in turn. Must be a power of two: loops index with a mask."""
