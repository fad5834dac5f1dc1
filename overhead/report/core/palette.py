"""Colours of layers and callers, the same in all figures. Those of stacks are in
``results/stack_facts.toml``.

No stack shares a colour with a layer.

Each colour has a contrast of at least 4.5:1 with the light page; on a dark page a filter turns the
lightness round. Every mark has a label too, so colour is never the only key.
"""

from __future__ import annotations

LAYER_COLOURS = {"Python": "#5a2fd6", "library, driver": "#24425c"}
"""Colours of the layers of host time: violet for Python, dark for what is below it."""
CALL_COLOURS = {
    "python": "#b5432a",
    "compiled": "#264653",
    "browser": "#6b4fa0",
    "batched": "#1b7268",
}
"""Colours of the ways to call a stack in the headline figure."""
