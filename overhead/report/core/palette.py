"""The colour of each stack, the same in all figures. Every mark has a label too, so colour is never the only key."""

from __future__ import annotations

import hashlib

STACK_COLOURS = {
    "wgpu-native": "#0173b2",
    "dawn": "#d55e00",
    "vulkan": "#029e73",
    "torch": "#cc78bc",
    "numpy": "#949494",
    "chromium": "#3e8ede",
    "firefox": "#de8f05",
    "safari": "#44a099",
    "cuda-driver": "#117733",
    "cuda-graph": "#999933",
    "torch-compile": "#aa4499",
    "triton": "#7570b3",
    "cupy": "#cc6677",
    "jax": "#b8860b",
    "floor": "#6f7a86",
    "fake": "#a6761d",
}
"""Known stacks. Each colour stands at least 2.5:1 from white and from the dark page."""
_OTHERS = ("#8c6bb1", "#a6761d", "#d0679d", "#5f8fb0", "#7c8f2f", "#b5651d")

LAYER_COLOURS = {
    "binding": "#0173b2", "interpreter": "#56a0d3", "framework": "#cc78bc", "api": "#de8f05", "driver": "#029e73",
    "python": "#7570b3", "library": "#cc6677", "api and driver": "#999933", "leaf": "#949494", "rest": "#949494",
}  # fmt: skip
"""Colours of the layers of host time, which are labelled in the bar as well."""

CALL_COLOURS = {"python": "#b5432a", "compiled": "#264653", "browser": "#6b4fa0", "batched": "#1b7268"}
"""Colours of the ways to call a stack in the headline figure: at least 4.5:1 on white. A dark page replaces them."""


def colour(stack: str) -> str:
    """The colour of a stack as ``#rrggbb``. A plugin's stack has the same colour on every machine."""
    if stack in STACK_COLOURS:
        return STACK_COLOURS[stack]
    return _OTHERS[hashlib.sha256(stack.encode()).digest()[0] % len(_OTHERS)]
