"""Colours of stacks and of layers, the same in all figures. No stack shares a colour with a layer.

Each colour has a contrast of at least 4.5:1 with the light page, and its twin of a dark page with the dark one: no
single colour reaches that on both. Every mark has a label too, so colour is never the only key.
"""

from __future__ import annotations

import functools
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
    "floor": "#4d5b68",
    "fake": "#7a4a1e",
}
_OTHERS = ("#8a4fb8", "#5f6b1f", "#c02c7c", "#2b6f8f", "#4f7a4a", "#a3502f")
"""For stacks of plugins."""
LAYER_COLOURS = {
    "binding": "#4326b0",
    "interpreter": "#7f5fd0",
    "python": "#5a2fd6",
    "api and driver": "#24425c",
    "library": "#59402e",
    "driver": "#1d4d3a",
    "rest": "#6a4a5e",
}
"""Colours of the layers of host time: violet for Python, dark for what is below it."""
CALL_COLOURS = {"python": "#b5432a", "compiled": "#264653", "browser": "#6b4fa0", "batched": "#1b7268"}
"""Colours of the ways to call a stack in the headline figure."""
DARK_PAPER = "#14171a"
"""The background of the dark page, as in ``page.css``."""
LEAST_CONTRAST = 4.5
"""Of a mark or a text with the page (WCAG AA for text)."""
_DARK_CONTRAST = 5.5
"""What the twins of a dark page are lightened to: the least contrast leaves them dull."""


def colour(stack: str) -> str:
    """The colour of a stack on a light page as ``#rrggbb``. A plugin's stack has the same colour on every machine."""
    if stack in STACK_COLOURS:
        return STACK_COLOURS[stack]
    return _OTHERS[hashlib.sha256(stack.encode()).digest()[0] % len(_OTHERS)]


def every_colour() -> list[str]:
    """All colours of a light page, each once."""
    every = [*STACK_COLOURS.values(), *_OTHERS, *LAYER_COLOURS.values(), *CALL_COLOURS.values()]
    return list(dict.fromkeys(every))


def themed(light: str) -> str:
    """The colour as CSS for the page, which has a twin for dark pages: ``var(--c-0067a5)``."""
    return f"var(--c-{light.removeprefix('#')})"


@functools.cache
def theme_css() -> str:
    """Style rules that define every colour of ``themed``, for light pages, dark pages and paper."""
    light = " ".join(f"--c-{c[1:]}: {c};" for c in every_colour())
    dark = " ".join(f"--c-{c[1:]}: {on_dark(c)};" for c in every_colour())
    return f":root {{ {light} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"


def on_dark(light: str) -> str:
    """The colour mixed with as little white as gives it contrast with the dark page."""
    steps = (_mixed(light, share / 100) for share in range(101))
    return next(c for c in steps if contrast(c, DARK_PAPER) >= _DARK_CONTRAST)


def contrast(one: str, other: str) -> float:
    """The contrast ratio of two colours, 1 to 21 (WCAG 2)."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _channels(colour_: str) -> list[int]:
    return [int(colour_[at : at + 2], 16) for at in (1, 3, 5)]


def _mixed(colour_: str, white: float) -> str:
    return "#" + "".join(f"{round(c + (255 - c) * white):02x}" for c in _channels(colour_))


def _luminance(colour_: str) -> float:
    shares = [c / 255 for c in _channels(colour_)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
