"""Attention takes over what stands between it and the cache.

That is: the writes of the new key and value, and copies that repeat the heads of keys and values for the queries.
"""

from __future__ import annotations

import contextlib
import dataclasses

from overhead.decode.lowering.buffers import TensorView, packed
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.rewriting import DataFlow, NoMatch, Replacement, require
from overhead.decode.lowering.templates.attention import Attention
from overhead.decode.lowering.templates.cached_attention import CachedAttention
from overhead.decode.lowering.templates.elementwise import Elementwise
from overhead.decode.lowering.templates.index_write import IndexWrite


def match_attention(flow: DataFlow, position: int) -> Replacement:
    """The attention at this position with the copies and writes before it."""
    attention = flow.at(position, Attention)
    require(not isinstance(attention, CachedAttention))
    key, key_copy = _before_copy(flow, attention.key, position)
    value, value_copy = _before_copy(flow, attention.value, position)
    removed = {position} | key_copy | value_copy
    new: Operation = dataclasses.replace(attention, key=key, value=value)
    with contextlib.suppress(NoMatch):
        at_key, write_key = _write(flow, key, position)
        at_value, write_value = _write(flow, value, position)
        require(write_key.index == write_value.index)
        removed |= {at_key, at_value}
        new = CachedAttention(
            query=attention.query,
            key=key,
            value=value,
            mask=attention.mask,
            scale=attention.scale,
            causal=attention.causal,
            output=attention.output,
            new_key=write_key.source,
            new_value=write_value.source,
            index=write_key.index,
            place=attention.place,
        )
    require(len(removed) > 1)
    return Replacement(frozenset(removed), new, position)


def _before_copy(flow: DataFlow, view: TensorView, reader: int) -> tuple[TensorView, set[int]]:
    """The view whose heads were repeated to make this one, and the position of the copy; or else this view alone."""
    with contextlib.suppress(NoMatch):
        found = flow.writer(view)
        copy = flow.at(found, Elementwise)
        require(copy.kind == "copy" and len(copy.inputs) == 1 and flow.only_reader(view) == reader)
        source = copy.inputs[0]
        require(len(source.shape) == 5 and source.strides[2] == 0 and copy.output.count == view.count)
        batch, heads, repeats, rows, width = source.shape
        require(view == packed(view.buffer, view.number, (batch, heads * repeats, rows, width)))
        strides = (*source.strides[:2], *source.strides[3:])
        return dataclasses.replace(source, shape=(batch, heads, rows, width), strides=strides), {found}
    return view, set()


def _write(flow: DataFlow, cache: TensorView, before: int) -> tuple[int, IndexWrite]:
    """The position of the only write of one row into this cache, if it comes before the attention; and the write."""
    writers = flow.writers(cache)
    require(len(writers) == 1 and writers[0] < before)
    write = flow.at(writers[0], IndexWrite)
    require(write.target == cache and write.dimension == 2 and write.source.shape[2] == 1)
    return writers[0], write
