"""An expression computed for each element: arithmetic, comparison, conversion, copy. Inputs are broadcast."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Elementwise(Operation):
    """``output = expression``, where ``x0``, ``x1``, ... in the expression are the inputs.

    ``kind``: the name of the operation. ``scalars``: numbers that the expression contains, for those who compare.
    """

    kind: str
    expression: str
    inputs: tuple[TensorView, ...]
    output: TensorView
    scalars: tuple[float, ...] = ()

    @property
    def label(self) -> str:
        return self.kind

    def kernel(self) -> Kernel:
        loads = [
            f"  {view.number} x{i} = {self.flat(view.broadcast(self.output.shape), 'i')};"
            for i, view in enumerate(self.inputs)
        ]
        count = self.output.count
        body = [
            f"u32 i = group * {GROUP_THREADS}u + lane;",
            f"if (i < {count}u) {{",
            *loads,
            f"  {self.flat(self.output, 'i')} = {self.expression};",
            "}",
        ]
        return self.compose("\n".join(body), -(-count // GROUP_THREADS))
