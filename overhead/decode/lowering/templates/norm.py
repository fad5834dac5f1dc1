"""RMSNorm or LayerNorm of each row, with weight and bias, and with a residual added before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, each
from overhead.decode.lowering.operation import Operation, threads_along


@dataclasses.dataclass(frozen=True, kw_only=True)
class Norm(Operation):
    """``output = x / sqrt(mean of x^2 + epsilon) * weight + bias``.

    With ``centred``, the mean of x is subtracted first. With ``residual``, x is the sum of both, and the sum is
    written to ``total``.
    """

    written = ("output", "total")
    x: TensorView
    residual: TensorView | None = None
    weight: TensorView | None
    bias: TensorView | None
    epsilon: float
    centred: bool
    output: TensorView
    total: TensorView | None = None

    @property
    def label(self) -> str:
        return ("residual_" if self.residual else "") + ("layer_norm" if self.centred else "rms_norm")

    def kernel(self) -> Kernel:
        inner = self.x.shape[-1]
        threads = threads_along(inner)
        residual, total = self.residual, self.total

        def x(k: str) -> str:
            return self.in_row(self.x if total is None else total, "group", k)

        def along(statement: Callable[[str], str]) -> str:
            return each(inner, statement, threads=threads)

        lines = []
        if residual is not None and total is not None:
            # Each thread reads back only what it wrote itself, so no barrier is needed.
            lines.append(
                along(lambda k: f"{x(k)} = {self.in_row(self.x, 'group', k)} + {self.in_row(residual, 'group', k)};")
            )
        middle = "0.0"
        if self.centred:
            lines += ["f32 sum = 0.0;", along(lambda k: f"sum += {x(k)};"), "part[lane] = sum;"]
            lines += [combined("part", "x + y", threads), f"f32 middle = part[0] / {float(inner)!r};"]
            lines.append("workgroupBarrier();")
            middle = "middle"

        def scaled(k: str) -> str:
            weight = f" * {self.element(self.weight, k)}" if self.weight else ""
            bias = f" + {self.element(self.bias, k)}" if self.bias else ""
            return f"{self.in_row(self.output, 'group', k)} = ({x(k)} - {middle}) * factor{weight}{bias};"

        lines.append(f"""\
f32 squares = 0.0;
{along(lambda k: f"squares += ({x(k)} - {middle}) * ({x(k)} - {middle});")}
part[lane] = squares;
{combined("part", "x + y", threads)}
f32 factor = inverseSqrt(part[0] / {float(inner)!r} + {self.epsilon!r});
{along(scaled)}""")
        return self.compose("\n".join(lines), self.x.count // inner, threads=threads, shared=(("part", threads),))
