"""The projections to the new key and to the new value become one dispatch, with their biases."""

from __future__ import annotations

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.rewriting import DataFlow, Replacement, require
from overhead.decode.lowering.templates.attention import Attention
from overhead.decode.lowering.templates.gemv import Gemv


def match_projections(flow: DataFlow, position: int) -> Replacement:
    """The projections of the attention at this position."""
    attention = flow.at(position, Attention)
    found = {_projection(flow, view, position) for view in (attention.key, attention.value)}
    require(len(found) == 2)
    key, value = (flow.at(i, Gemv) for i in sorted(found))
    require(key.x == value.x and len(key.products) == len(value.products) == 1)
    new = Gemv(x=key.x, products=(*key.products, *value.products), place=key.place)
    return Replacement(frozenset(found), new, min(found))


def _projection(flow: DataFlow, view: TensorView, before: int) -> int:
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
    require(bool(products))
    return max(products)
