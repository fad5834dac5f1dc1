"""The softmax of each row."""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import TensorView
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Softmax(Operation):
    """``output = exp(x - max) / sum of exp(x - max)`` for each row, which is what the last dimension spans."""

    x: TensorView
    output: TensorView

    @property
    def label(self) -> str:
        return "softmax"

    @property
    def reads(self) -> tuple[TensorView, ...]:
        return (self.x,)

    @property
    def writes(self) -> tuple[TensorView, ...]:
        return (self.output,)

    def kernel(self) -> Kernel:
        loop = f"for (u32 k = lane; k < {self.x.shape[-1]}u; k += {GROUP_THREADS}u)"
        x = self.in_row(self.x, "group", "k")
        body = f"""\
f32 found = -3.4e38;
{loop} {{ found = max(found, {x}); }}
part[lane] = found;
{combined("part", "max(x, y)", GROUP_THREADS)}
f32 highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
{loop} {{ sum += exp({x} - highest); }}
part[lane] = sum;
{combined("part", "x + y", GROUP_THREADS)}
{loop} {{ {self.in_row(self.output, "group", "k")} = exp({x} - highest) / part[0]; }}"""
        return self.compose(body, self.x.count // self.x.shape[-1], shared=(("part", GROUP_THREADS),))
