"""How the threads of a group go along a row in fours: vectors of four numbers, which one load reads."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.lowering.buffers import TensorView
from overhead.lowering.operation import GROUP_THREADS, Operation

_MOST_THREADS = 256
"""Threads of a group that every WebGPU device offers."""
_LOADS = 4
"""Loads of a thread along a row, at most, unless the group has ``_MOST_THREADS``."""
_WRITTEN_OUT = 16
"""Loads of a thread that are written out, so that they do not wait for each other; more are a loop."""


def in_fours(operation: Operation, *views: TensorView) -> tuple[TensorView, ...] | None:
    """The views with vectors of four f32 as elements.

    None if four numbers of a row are not one aligned vector, or if the operation uses a buffer otherwise too.
    """
    others = {view.buffer for view in (*operation.reads, *operation.writes) if view not in views}
    if any(view.buffer in others or not _aligned(view) for view in views):
        return None
    return tuple(_divided(view) for view in views)


def _aligned(view: TensorView) -> bool:
    steps = [stride for size, stride in zip(view.shape[:-1], view.strides, strict=False) if size > 1]
    whole = not any(number % 4 for number in (view.shape[-1], view.offset, *steps))
    return view.number == "f32" and view.strides[-1] == 1 and whole


def _divided(view: TensorView) -> TensorView:
    shape, strides = (*view.shape[:-1], view.shape[-1] // 4), (*(s // 4 for s in view.strides[:-1]), 1)
    return dataclasses.replace(view, shape=shape, strides=strides, offset=view.offset // 4)


def threads_along(count: int) -> int:
    """The threads of a group for a row of this many vectors."""
    threads = GROUP_THREADS
    while threads < _MOST_THREADS and count > threads * _LOADS:
        threads *= 2
    return threads


def along(count: int, threads: int, term: Callable[[str], str]) -> str:
    """Statements that run ``term(k)`` for each k below ``count``, each in one of the threads."""
    whole, rest = divmod(count, threads)
    if whole <= _WRITTEN_OUT:
        lines = [term(f"lane + {i * threads}u" if i else "lane") for i in range(whole)]
    else:
        lines = [f"for (u32 k = lane; k < {whole * threads}u; k += {threads}u) {{ {term('k')} }}"]
    if rest:
        at = f"lane + {whole * threads}u" if whole else "lane"
        lines.append(f"if (lane < {rest}u) {{ {term(at)} }}")
    return "\n".join(lines)
