"""Adapters that compute on the CPU: their names, and the longest loop that their kernels may run."""

from __future__ import annotations

import re

from overhead.probes.kernels import LLVMPIPE_TURNS

_RENDERERS = re.compile(r"llvmpipe|lavapipe|softpipe|swiftshader|basic render|warp\b", re.IGNORECASE)


def names_software_renderer(*texts: str) -> bool:
    """Whether one of the texts (an adapter's name, its driver) names a renderer that runs on the CPU."""
    return any(_RENDERERS.search(text) for text in texts)


def longest_fused_chain(adapter: str, turns: int = 1) -> int:
    """Most units in one fused dispatch on the adapter with this name, if a unit takes ``turns`` loop iterations."""
    return LLVMPIPE_TURNS // turns if "llvmpipe" in adapter else 1 << 26
