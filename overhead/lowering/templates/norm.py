"""RMSNorm or LayerNorm of each row, with weight and bias, and with a residual added before."""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import TensorView
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Norm(Operation):
    """``output = x / sqrt(mean of x^2 + epsilon) * weight + bias``.

    With ``centred``, the mean of x is subtracted first. With ``residual``, x is the sum of both, and the sum is
    written to ``total``.
    """

    x: TensorView
    weight: TensorView | None
    bias: TensorView | None
    epsilon: float
    centred: bool
    output: TensorView
    residual: TensorView | None = None
    total: TensorView | None = None

    @property
    def label(self) -> str:
        return ("residual_" if self.residual else "") + ("layer_norm" if self.centred else "rms_norm")

    @property
    def reads(self) -> tuple[TensorView, ...]:
        return tuple(view for view in (self.x, self.residual, self.weight, self.bias) if view is not None)

    @property
    def writes(self) -> tuple[TensorView, ...]:
        return (self.output,) if self.total is None else (self.output, self.total)

    def kernel(self) -> Kernel:
        inner = self.x.shape[-1]
        loop, x = f"for (u32 k = lane; k < {inner}u; k += {GROUP_THREADS}u)", self.in_row(self.x, "group", "k")
        lines = []
        if self.residual is not None and self.total is not None:
            # Each thread reads back only what it wrote itself, so no barrier is needed.
            total = self.in_row(self.total, "group", "k")
            lines.append(f"{loop} {{ {total} = {x} + {self.in_row(self.residual, 'group', 'k')}; }}")
            x = total
        middle = "0.0"
        if self.centred:
            lines += ["f32 sum = 0.0;", f"{loop} {{ sum += {x}; }}", "part[lane] = sum;"]
            lines += [combined("part", "x + y", GROUP_THREADS), f"f32 middle = part[0] / {float(inner)!r};"]
            lines.append("workgroupBarrier();")
            middle = "middle"
        weight = f" * {self.element(self.weight, 'k')}" if self.weight else ""
        bias = f" + {self.element(self.bias, 'k')}" if self.bias else ""
        lines.append(f"""\
f32 squares = 0.0;
{loop} {{ squares += ({x} - {middle}) * ({x} - {middle}); }}
part[lane] = squares;
{combined("part", "x + y", GROUP_THREADS)}
f32 factor = inverseSqrt(part[0] / {float(inner)!r} + {self.epsilon!r});
{loop} {{ {self.in_row(self.output, "group", "k")} = ({x} - {middle}) * factor{weight}{bias}; }}""")
        return self.compose("\n".join(lines), self.x.count // inner, shared=(("part", GROUP_THREADS),))
