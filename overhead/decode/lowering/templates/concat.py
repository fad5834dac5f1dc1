"""Tensors joined along one dimension."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Concat(Operation):
    """``output`` is the inputs one after another along ``dimension`` (not negative)."""

    label = "concat"
    inputs: tuple[TensorView, ...]
    dimension: int
    output: TensorView

    def kernel(self) -> Kernel:
        body, start = [f"u32 i = group * {GROUP_THREADS}u + lane;"], 0
        for view in self.inputs:
            strides, size = self.output.strides, view.shape[self.dimension]
            offset = self.output.offset + start * strides[self.dimension]
            part = dataclasses.replace(self.output, shape=view.shape, offset=offset)
            body.append(f"if (i < {view.count}u) {{ {self.flat(part, 'i')} = {self.flat(view, 'i')}; }}")
            start += size
        return self.compose("\n".join(body), -(-max(view.count for view in self.inputs) // GROUP_THREADS))
