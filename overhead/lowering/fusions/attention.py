"""Attention takes over what stands between it and the cache.

That is: the writes of the new key and value, and copies that repeat the heads of keys and values for the queries.
"""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import TensorView, packed
from overhead.lowering.operation import Operation
from overhead.lowering.rewriting import DataFlow, Replacement
from overhead.lowering.templates.attention import Attention
from overhead.lowering.templates.cached_attention import CachedAttention
from overhead.lowering.templates.elementwise import Elementwise
from overhead.lowering.templates.index_write import IndexWrite


def match(flow: DataFlow, position: int) -> Replacement | None:
    """The attention at this position with the copies and writes before it."""
    attention = flow.operations[position]
    if not isinstance(attention, Attention) or isinstance(attention, CachedAttention):
        return None
    key, key_copy = _before_copy(flow, attention.key, position)
    value, value_copy = _before_copy(flow, attention.value, position)
    removed = {position} | {i for i in (key_copy, value_copy) if i is not None}
    new: Operation = dataclasses.replace(attention, key=key, value=value)
    write_key, write_value = _write(flow, key, position), _write(flow, value, position)
    if write_key is not None and write_value is not None and write_key[1].index == write_value[1].index:
        removed |= {write_key[0], write_value[0]}
        new = CachedAttention(
            query=attention.query,
            key=key,
            value=value,
            mask=attention.mask,
            scale=attention.scale,
            causal=attention.causal,
            output=attention.output,
            new_key=write_key[1].source,
            new_value=write_value[1].source,
            index=write_key[1].index,
            place=attention.place,
        )
    return Replacement(frozenset(removed), new, position) if len(removed) > 1 else None


def _before_copy(flow: DataFlow, view: TensorView, reader: int) -> tuple[TensorView, int | None]:
    """The view whose heads were repeated to make this one, and the position of the copy; or else this view."""
    found = flow.writer(view)
    copy = flow.operations[found] if found is not None else None
    if not isinstance(copy, Elementwise) or copy.kind != "copy" or flow.only_reader(view) != reader:
        return view, None
    source = copy.inputs[0]
    if len(source.shape) != 5 or source.strides[2] != 0 or view != packed(view.buffer, view.number, view.shape):
        return view, None
    batch, heads, repeats, rows, width = source.shape
    if view.shape != (batch, heads * repeats, rows, width) or copy.output.count != view.count:
        return view, None
    strides = (*source.strides[:2], *source.strides[3:])
    return dataclasses.replace(source, shape=(batch, heads, rows, width), strides=strides), found


def _write(flow: DataFlow, cache: TensorView, before: int) -> tuple[int, IndexWrite] | None:
    """The position of the only write of one row into this cache, if it comes before the attention; and the write."""
    writers = flow.writers(cache)
    write = flow.operations[writers[0]] if len(writers) == 1 and writers[0] < before else None
    if not isinstance(write, IndexWrite) or write.target != cache or write.dimension != 2 or write.source.shape[2] != 1:
        return None
    return writers[0], write
