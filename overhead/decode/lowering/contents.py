"""The numbers that a buffer of a program holds at the start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.lowering.buffers import Buffer, TensorView

DTYPES = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}
"""The types of numbers in NumPy."""


def contents(buffer: Buffer, given: NDArray[Any] | None) -> NDArray[Any] | None:
    """The numbers as an array of one dimension; None if the buffer starts with zeros.

    ``given``: contents from outside, in any numeric type. Raises ``ValueError`` if they are missing or too few.
    """
    if given is None and not buffer.values:
        if buffer.role == "weight":
            raise ValueError(f"the weight {buffer.name} has no values")
        return None
    data = np.asarray(buffer.values if given is None else given).astype(DTYPES[buffer.number], copy=False).ravel()
    if data.size != buffer.count:
        raise ValueError(f"{buffer.name} has {buffer.count} numbers, not {data.size}")
    return data


def viewed(numbers: NDArray[Any], view: TensorView) -> NDArray[Any]:
    """The tensor of a view, without a copy. ``numbers``: those of its buffer."""
    strides = [stride * numbers.itemsize for stride in view.strides]
    return np.lib.stride_tricks.as_strided(numbers[view.offset :], view.shape, strides)
