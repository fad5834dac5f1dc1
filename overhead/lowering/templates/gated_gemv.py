"""The first half of a gated MLP in one dispatch: ``act(gate x) * (up x)``."""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import TensorView
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import GROUP_THREADS, Operation
from overhead.lowering.templates.gemv import split
from overhead.lowering.templates.row_sums import along, in_fours, threads_along


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedGemv(Operation):
    """``activation``: an expression of ``x0``, the product with the gate. Without biases."""

    x: TensorView
    gate: TensorView
    up: TensorView
    activation: str
    output: TensorView

    @property
    def label(self) -> str:
        return "gated_gemv"

    @property
    def reads(self) -> tuple[TensorView, ...]:
        return (self.x, self.gate, self.up)

    @property
    def writes(self) -> tuple[TensorView, ...]:
        return (self.output,)

    def kernel(self) -> Kernel:
        rows, inner, columns = self.x.count // self.x.shape[-1], self.x.shape[-1], self.gate.shape[0]
        start, row = split(rows, columns)
        fours = in_fours(self, self.x, self.gate, self.up) if rows == 1 else None
        threads = threads_along(inner // 4) if fours else GROUP_THREADS
        x, gate, up = fours or (self.x, self.gate, self.up)
        number, product = ("vec4f", "dot(x, {})") if fours else ("f32", "x * {}")

        def term(k: str) -> str:
            gated, raised = (product.format(self.element(matrix, "column", k)) for matrix in (gate, up))
            return f"{{ {number} x = {self.in_row(x, row, k)}; gated += {gated}; raised += {raised}; }}"

        looped = f"for (u32 k = lane; k < {inner}u; k += {GROUP_THREADS}u) {term('k')}"
        sums = along(inner // 4, threads, term) if fours else looped
        body = f"""\
{chr(10).join(start)}
f32 gated = 0.0;
f32 raised = 0.0;
{sums}
gates[lane] = gated;
{combined("gates", "x + y", threads)}
ups[lane] = raised;
{combined("ups", "x + y", threads)}
if (lane == 0u) {{
  f32 x0 = gates[0];
  {self.in_row(self.output, row, "column")} = ({self.activation}) * ups[0];
}}"""
        shared = (("gates", threads), ("ups", threads))
        return self.compose(body, rows * columns, threads=threads, shared=shared, fours=fours or ())
