"""What receives the buffers and the dispatches that an operation of PyTorch becomes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from overhead.decode.lowering.buffers import NumberType, TensorView
from overhead.decode.lowering.operation import Operation, UnsupportedOperation


class Sink(Protocol):
    """The reader of the graph. ``place``: the submodule whose forward is being read."""

    place: str

    def view(self, value: Any) -> TensorView:
        """The value as a view. Raises ``UnsupportedOperation`` if it is no tensor."""

    def temporary(self, number: NumberType, shape: Iterable[int]) -> TensorView:
        """A new temporary buffer in row-major order."""

    def dispatch(self, operation: Operation) -> None:
        """Append a dispatch."""


def refused(sink: Sink, name: str, why: str) -> UnsupportedOperation:
    """The error that names an operation and its place in the module."""
    return UnsupportedOperation(f"{sink.place}: the operation aten.{name} {why}")
