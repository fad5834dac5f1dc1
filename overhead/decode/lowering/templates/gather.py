"""Rows of a table looked up by index: an embedding."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gather(Operation):
    """``output[j, ...] = table[index[j], ...]``. The output is packed."""

    label = "embedding"
    table: TensorView
    index: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        row = dataclasses.replace(self.table, shape=self.table.shape[1:], strides=self.table.strides[1:], offset=0)
        start = self.table.element("at", *["0u"] * len(row.shape))
        body = f"""\
u32 i = group * {GROUP_THREADS}u + lane;
if (i < {self.output.count}u) {{
  u32 at = u32({self.flat(self.index, f"i / {row.count}u")});
  u32 column = i % {row.count}u;
  {self.flat(self.output, "i")} = {self.name(self.table)}[{start} + {row.at("column")}];
}}"""
        return self.compose(body, -(-self.output.count // GROUP_THREADS))
