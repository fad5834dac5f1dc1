"""Tensors of PyTorch as views of buffers. Shapes and strides come from PyTorch itself, by tensors without data."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch

from overhead.decode.lowering.buffers import NumberType, TensorView
from overhead.decode.lowering.operation import UnsupportedOperation

_NUMBERS: dict[Any, NumberType] = {
    torch.float32: "f32",
    torch.int64: "i32",
    torch.int32: "i32",
    torch.bool: "u32",
}


def number_of(dtype: Any, place: str) -> NumberType:
    """The type of the numbers of a tensor on the device. Integers are kept as 32 bits."""
    if dtype not in _NUMBERS:
        raise UnsupportedOperation(f"{place}: tensors of {dtype} cannot be lowered; float32, int64 and bool can")
    return _NUMBERS[dtype]


def viewed(view: TensorView, change: Callable[[Any], Any]) -> TensorView | list[TensorView] | None:
    """What an operation of PyTorch that returns views makes of this view; None if it would have to copy."""
    last = view.offset + sum((size - 1) * stride for size, stride in zip(view.shape, view.strides, strict=True))
    base = torch.empty(max(last + 1, 1), device="meta")
    changed = change(base.as_strided(view.shape, view.strides, view.offset))
    parts = list(changed) if isinstance(changed, list | tuple) else [changed]
    if any(part.untyped_storage()._cdata != base.untyped_storage()._cdata for part in parts):
        return None
    views = [
        dataclasses.replace(view, shape=tuple(p.shape), strides=tuple(p.stride()), offset=p.storage_offset())
        for p in parts
    ]
    return views if isinstance(changed, list | tuple) else views[0]


def row_last(view: TensorView, dimension: int) -> TensorView:
    """The view with this dimension moved to the end, so that it spans the rows."""
    order = [i for i in range(len(view.shape)) if i != dimension % len(view.shape)] + [dimension % len(view.shape)]
    shape, strides = (tuple(values[i] for i in order) for values in (view.shape, view.strides))
    return dataclasses.replace(view, shape=shape, strides=strides)
