"""Contention: what a dispatch costs while several processes or threads do the same. See docs/contention.md."""

STACKS = ("torch", "cuda-driver", "cuda-graph", "cupy", "triton", "vulkan", "dawn", "wgpu-native", "numpy")
"""The stacks that are measured unless others are named, in this order."""
NODE_STACKS = ("torch", "cuda-driver", "cuda-graph", "numpy")
