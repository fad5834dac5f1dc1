"""The step on Vulkan and WebGPU: its size, and the contents of its timed window."""

from __future__ import annotations

from overhead.results import Scalar

GROUPS = 4
"""Workgroups per dispatch, 64 invocations each."""
WORDS = 64 * GROUPS
"""32-bit words per buffer, one for each invocation."""
RING = 8
"""Number of buffers or bind groups that are used in turn. Must be a power of two: loops index with a mask."""


def webgpu_window(pattern: str, per: int, bindgroup: str, wait: str, **more: Scalar) -> dict[str, Scalar]:
    """The contents of the timed window of the step on WebGPU. ``per``: units in a submission; 0: all of them."""
    submits = {1: "1 per unit", 0: "1"}.get(per, f"1 per {per} units")
    return {
        "submits": submits,
        "passes": "1 per unit" if pattern == "per-pass" else submits,
        "bind_changes": "1 per unit" if bindgroup != "once" or pattern == "per-pass" else submits,
        "bindgroup": bindgroup,
        "bindings": 1,
        "argument": "none",
        "indirect": False,
        "wait": wait,
        "recording": "inside",
        "validation": "on",
        "checks": "on",
        "precision": "u32",
        "workgroups": GROUPS,
        **more,
    }
