"""The projections to the new key and to the new value become one dispatch, with their biases."""

from __future__ import annotations

from overhead.lowering.buffers import TensorView
from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.attention import Attention
from overhead.lowering.templates.gemv import Gemv


def match(flow: DataFlow, position: int) -> Replacement | None:
    """The projections of the attention at this position."""
    attention = flow.operations[position]
    if not isinstance(attention, Attention):
        return None
    found = _projection(flow, attention.key, position), _projection(flow, attention.value, position)
    if found[0] is None or found[1] is None or found[0] == found[1]:
        return None
    key, value = (flow.operations[i] for i in sorted(i for i in found if i is not None))
    assert isinstance(key, Gemv)
    assert isinstance(value, Gemv)
    if key.x != value.x or len(key.products) != 1 or len(value.products) != 1:
        return None
    new = Gemv(x=key.x, products=(*key.products, *value.products), place=key.place)
    removed = frozenset(i for i in found if i is not None)
    return Replacement(removed, new, min(removed))


def _projection(flow: DataFlow, view: TensorView, before: int) -> int | None:
    """The position of the last product that contributes to this view; found by going back from writer to writer."""
    waiting, seen = [view], set[str]()
    products: list[int] = []
    while waiting:
        current = waiting.pop()
        if current.buffer in seen:
            continue
        seen.add(current.buffer)
        for i in flow.writers(current):
            if i < before and isinstance(flow.operations[i], Gemv):
                products.append(i)
            elif i < before:
                waiting += flow.operations[i].reads
    return max(products, default=None)
