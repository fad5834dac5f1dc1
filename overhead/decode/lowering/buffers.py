"""Buffers of a program with their first numbers, and views: which numbers of a buffer a kernel
reads or writes.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

NumberType = Literal["f32", "i32", "u32"]
"""The type of the numbers in a buffer. Truth values are u32, 0 or 1. Each number has four bytes."""
DTYPES = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}
"""The types of numbers in NumPy."""
Role = Literal["weight", "state", "input", "constant", "temporary"]
"""``weight``: a parameter. ``state``: kept from step to step. ``input``: written before each step.
``constant``: has ``values``. ``temporary``: written and read inside one step. An output of the step
may have any role.
"""


@dataclasses.dataclass(frozen=True)
class Buffer:
    """A named piece of device memory that holds numbers of one type.

    ``name``: for weights and state, the name of the tensor in the module. ``count``: how many
    numbers it holds. ``values``: the numbers of a constant.
    """

    name: str
    number: NumberType
    count: int
    role: Role
    values: tuple[float | int, ...] = ()

    @property
    def bytes(self) -> int:
        """The size in bytes; at least four, because no binding may be empty."""
        return 4 * max(self.count, 1)


@dataclasses.dataclass(frozen=True)
class TensorView:
    """A tensor as a part of a buffer: element (i, j) is the number at ``offset + i * strides[0] +
    j * strides[1]`` of the buffer, as in PyTorch. A broadcast dimension, one whose elements are all
    the same number, has stride 0.

    Its methods write source text of WGSL and CUDA C, in which ``5u`` is the unsigned number 5.
    """

    buffer: str
    number: NumberType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def count(self) -> int:
        """The number of elements, which is more than the numbers read if a dimension is
        broadcast.
        """
        return math.prod(self.shape)

    def broadcast(self, shape: tuple[int, ...]) -> TensorView:
        """This view as if repeated to a larger shape, by the rules of PyTorch: dimensions in front
        are new, and a dimension of size 1 is repeated.
        """
        new = len(shape) - len(self.shape)
        strides = [0] * new
        for size, stride, wanted in zip(self.shape, self.strides, shape[new:], strict=True):
            # With stride 0 each index of a repeated dimension leads to the same number.
            strides.append(stride if size == wanted else 0)
        return dataclasses.replace(self, shape=shape, strides=tuple(strides))

    def row_index(self, row: str, column: str) -> str:
        """The position in the buffer of an element that is given by its row and its column, as
        source text. A row is what the last dimension spans.

        ``row``: the text of the number of the row, counted in row-major order over all dimensions
        but the last. ``column``: the text of the index in the row.
        """
        # The sum of where the row starts and of how far the column is from there.
        starts = dataclasses.replace(self, shape=self.shape[:-1], strides=self.strides[:-1])
        one_row = dataclasses.replace(
            self, shape=self.shape[-1:], strides=self.strides[-1:], offset=0
        )
        return _sum_of([starts.flat_index(row), one_row.element_index(column)])

    def flat_index(self, index: str) -> str:
        """The position in the buffer of the element with this number in row-major order, as source
        text.

        ``index``: an expression of type u32 for the number.
        """
        terms = [f"{self.offset}u"]
        # Number 0 is at the offset.
        if index != "0u":
            # From the last dimension to the first: the number divided by the sizes of all later
            # dimensions, modulo the size of this one, is the index in this dimension.
            inner = 1
            # Neighbouring dimensions without a gap between them count as one (``_merged``).
            for size, stride in reversed(self._merged()):
                place = _in_parentheses(index)
                if inner > 1:
                    place = f"({place} / {inner}u)"
                inner *= size
                # The first dimension needs no modulo, because the number is below the count.
                if inner < self.count:
                    place = f"({place} % {size}u)"
                if stride:
                    terms.append(_times(place, stride))
        return _sum_of(terms)

    def element_index(self, *indices: str) -> str:
        """The position in the buffer of the element with these indices, as source text.

        ``indices``: the text of an index for each dimension.
        """
        terms = [f"{self.offset}u"]
        for index, size, stride in zip(indices, self.shape, self.strides, strict=True):
            # A term that is always zero is left out.
            if stride and size > 1 and index != "0u":
                terms.append(_times(_in_parentheses(index), stride))
        return _sum_of(terms)

    def _merged(self) -> list[tuple[int, int]]:
        """(size, stride) of as few dimensions as have the same elements in the same order.

        Dimensions of size 1 are left out. Two neighbours become one where the next element of the
        outer one follows the last element of the inner one. So the text of an index gets shorter.
        """
        merged: list[tuple[int, int]] = []
        for size, stride in zip(self.shape, self.strides, strict=True):
            if size == 1:
                continue
            # A step in the outer dimension skips just the whole inner one.
            if merged and merged[-1][1] == stride * size:
                outer_size, _ = merged.pop()
                merged.append((outer_size * size, stride))
            else:
                merged.append((size, stride))
        return merged


def _in_parentheses(index: str) -> str:
    """The expression, in parentheses unless it is a name, so that it may stand beside operators."""
    return index if index.isidentifier() else f"({index})"


def _times(place: str, stride: int) -> str:
    return place if stride == 1 else f"{place} * {stride}u"


def _sum_of(terms: list[str]) -> str:
    """The sum of these expressions as source text, without those that are zero."""
    return " + ".join(term for term in terms if term != "0u") or "0u"


def packed_view(buffer: str, number: NumberType, shape: tuple[int, ...]) -> TensorView:
    """A view of a whole buffer as a tensor of this shape in row-major order, without gaps."""
    strides: list[int] = []
    # How many numbers one step in the current dimension skips: all of the later dimensions.
    inner = 1
    for size in reversed(shape):
        strides.append(inner)
        inner *= size
    return TensorView(buffer, number, shape, tuple(reversed(strides)))


def first_numbers(buffer: Buffer, given: NDArray[Any] | None) -> NDArray[Any] | None:
    """What a new buffer must contain before the first step, as an array of one dimension and of the
    buffer's type. None if it starts with zeros.

    ``given``: contents from outside, such as the weights of a module, in any numeric type; without
    them a constant has its own ``values``. Raises ``ValueError`` if a weight has no contents, or if
    there are too few or too many numbers.
    """
    if given is None and not buffer.values:
        if buffer.role == "weight":
            raise ValueError(f"the weight {buffer.name} has no values")
        return None
    numbers = np.asarray(buffer.values if given is None else given)
    numbers = numbers.astype(DTYPES[buffer.number], copy=False).ravel()
    if numbers.size != buffer.count:
        raise ValueError(f"{buffer.name} has {buffer.count} numbers, not {numbers.size}")
    return numbers


def as_tensor(numbers: NDArray[Any], view: TensorView) -> NDArray[Any]:
    """The tensor of a view, without a copy. ``numbers``: those of its buffer."""
    strides = [stride * numbers.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(numbers[view.offset :], view.shape, strides)
