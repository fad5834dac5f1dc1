"""Who takes the CPU time, in words."""

from __future__ import annotations


def title(device: str) -> str:
    """The title of the table of layers. ``device``: the one that all cases ran on, or ''."""
    return "Who takes the host's time" + (f", {device}" if device else "")
