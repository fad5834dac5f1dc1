"""The writes of the new key and value into the cache become part of the attention that reads them."""

from __future__ import annotations

from overhead.lowering.rewriting import DataFlow, Replacement


def match(flow: DataFlow, position: int) -> Replacement | None:
    """The attention at this position with the writes before it."""
    return None
