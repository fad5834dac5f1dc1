"""Rotary embedding of queries or keys in one dispatch."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rotary(Operation):
    """``x * cos + turned * sin``, where ``turned`` is the second half of each row, negated, and then the first half."""

    label = "rotary"
    x: TensorView
    cos: TensorView
    sin: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        shape = self.output.shape
        width, half = shape[-1], shape[-1] // 2
        body = f"""\
u32 i = group * {GROUP_THREADS}u + lane;
if (i < {self.output.count}u) {{
  bool first = i % {width}u < {half}u;
  u32 other = select(i - {half}u, i + {half}u, first);
  f32 turned = {self.flat(self.x, "other")} * select(1.0, -1.0, first);
  f32 straight = {self.flat(self.x, "i")} * {self.flat(self.cos.broadcast(shape), "i")};
  {self.flat(self.output, "i")} = straight + turned * {self.flat(self.sin.broadcast(shape), "i")};
}}"""
        return self.compose(body, -(-self.output.count // GROUP_THREADS))
