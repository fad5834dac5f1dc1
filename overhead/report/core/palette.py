"""Colours of stacks and of layers, the same in all figures. No stack shares a colour with a layer.

Each colour has a contrast of at least 4.5:1 with the light page; on a dark page a filter turns the lightness round.
Every mark has a label too, so colour is never the only key.
"""

from __future__ import annotations

import hashlib

STACK_COLOURS = {
    "wgpu-native": "#0067a5",
    "dawn": "#b84a00",
    "vulkan": "#00785a",
    "torch": "#a63d9c",
    "numpy": "#6b6b6b",
    "chromium": "#2f62d9",
    "firefox": "#94600a",
    "safari": "#157a80",
    "cuda-driver": "#3d7a0b",
    "cuda-graph": "#6e6d00",
    "torch-compile": "#7d1f7d",
    "triton": "#5b50b5",
    "cupy": "#b5304f",
    "jax": "#7a5c00",
    "mlx": "#c41fd6",
    "cuda-core": "#5f1c3d",
    "numba-cuda": "#1c1ce0",
    "warp": "#2b3e1e",
    "cute-dsl": "#770303",
    "pyopencl": "#d1122f",
    "floor": "#4d5b68",
    "fake": "#7a4a1e",
}
_OTHERS = ("#8a4fb8", "#5f6b1f", "#c02c7c", "#2b6f8f", "#4f7a4a", "#a3502f")
"""For stacks of plugins."""
LAYER_COLOURS = {"Python": "#5a2fd6", "library, driver": "#24425c"}
"""Colours of the layers of host time: violet for Python, dark for what is below it."""
CALL_COLOURS = {"python": "#b5432a", "compiled": "#264653", "browser": "#6b4fa0", "batched": "#1b7268"}
"""Colours of the ways to call a stack in the headline figure."""


def colour(stack: str) -> str:
    """The colour of a stack as ``#rrggbb``. A plugin's stack has the same colour on every machine."""
    if stack in STACK_COLOURS:
        return STACK_COLOURS[stack]
    return _OTHERS[hashlib.sha256(stack.encode()).digest()[0] % len(_OTHERS)]
