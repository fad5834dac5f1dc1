"""Products of one row with the rows of matrices: how the threads of a group share them.

Four numbers are one vector where the memory allows it, and the loads of a thread do not wait for each other.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import each
from overhead.decode.lowering.operation import Operation, threads_along


@dataclasses.dataclass(frozen=True)
class OneRow:
    """The row ``x`` and the matrices. ``fours``: the elements of the views are vectors of four numbers, not numbers."""

    x: TensorView
    matrices: tuple[TensorView, ...]
    fours: bool

    @property
    def number(self) -> str:
        """The type of an element."""
        return "vec4f" if self.fours else "f32"

    @property
    def threads(self) -> int:
        """The threads of a group."""
        return threads_along(self.x.shape[-1])

    @property
    def vectors(self) -> tuple[TensorView, ...]:
        """The views that the kernel reads as vectors."""
        return (self.x, *self.matrices) if self.fours else ()

    def product(self, x: str, y: str) -> str:
        """The text of the product of two elements, a number."""
        return f"dot({x}, {y})" if self.fours else f"{x} * {y}"

    def statements(self, term: Callable[[str], str]) -> str:
        """Statements that run ``term(k)`` for each element ``k`` of the row, each in one of the threads."""
        return each(self.x.shape[-1], term, threads=self.threads)


def one_row(operation: Operation, x: TensorView, *matrices: TensorView) -> OneRow:
    """The row and the matrices of an operation, in vectors if they are aligned and alone in their buffers."""
    views = (x, *matrices)
    others = {view.buffer for view in (*operation.reads, *operation.writes) if view not in views}
    if any(view.buffer in others or not _aligned(view) for view in views):
        return OneRow(x, matrices, fours=False)
    return OneRow(_divided(x), tuple(map(_divided, matrices)), fours=True)


def _aligned(view: TensorView) -> bool:
    steps = [stride for size, stride in zip(view.shape[:-1], view.strides, strict=False) if size > 1]
    whole = not any(number % 4 for number in (view.shape[-1], view.offset, *steps))
    return view.number == "f32" and view.strides[-1] == 1 and whole


def _divided(view: TensorView) -> TensorView:
    shape, strides = (*view.shape[:-1], view.shape[-1] // 4), (*(s // 4 for s in view.strides[:-1]), 1)
    return dataclasses.replace(view, shape=shape, strides=strides, offset=view.offset // 4)
