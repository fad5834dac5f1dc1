"""Add trivial dispatches to a program, to find what a dispatch costs in a real program."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import Buffer, TensorView, packed
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.program import Program

PADDING = "padding"
"""The state that counts the added dispatches."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pad(Operation):
    """Adds 1 to ``counter``, and rewrites one number of ``after``, so that it depends on the operation before it."""

    label = "pad"
    written = ("counter", "after")
    counter: TensorView
    after: TensorView

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """What it writes: it reads each number before it writes it."""
        return self.writes

    def kernel(self) -> Kernel:
        counter, number = self.flat(self.counter, "0u"), self.flat(self.after, "0u")
        return self.compose(f"if (lane == 0u) {{\n  {counter} = {counter} + 1;\n  {number} = {number};\n}}", 1)


def padded(program: Program, count: int) -> Program:
    """The program with ``count`` more dispatches, spread evenly. Each depends on the dispatch before it."""
    counter = packed(PADDING, "i32", (1,))
    total, operations, added = len(program.operations), list[Operation](), 0
    for i, operation in enumerate(program.operations):
        operations.append(operation)
        while added < count * (i + 1) // total:
            operations.append(Pad(counter=counter, after=operation.writes[0], place=PADDING))
            added += 1
    buffers = {**program.buffers, PADDING: Buffer(PADDING, "i32", 1, "state")}
    return dataclasses.replace(program, buffers=buffers).with_operations(tuple(operations))
