"""The first half of a gated MLP in one dispatch: ``act(gate x) * (up x)``."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, plus
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.templates.row_sums import one_row
from overhead.decode.lowering.templates.row_tiles import RowTiles


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedGemv(Operation):
    """``activation``: an expression of ``x0``, the product with the gate. Without biases."""

    label = "gated_gemv"
    x: TensorView
    gate: TensorView
    up: TensorView
    activation: str
    output: TensorView

    def kernel(self) -> Kernel:
        rows, inner, columns = self.x.count // self.x.shape[-1], self.x.shape[-1], self.gate.shape[0]
        if rows > 1:
            tiles, matrices = RowTiles(rows, inner, [columns], ("gate", "up")), {"gate": self.gate, "up": self.up}
            sums = tiles.sums(
                lambda row: self.in_row(self.x, row, "k"),
                lambda array, offset: self.element(matrices[array], plus("column", offset), "k"),
            )

            def end(offset: int) -> str:
                output = self.in_row(self.output, "row", plus("column", offset))
                return f"f32 x0 = gate_sum;\n{output} = ({self.activation}) * up_sum;"

            return self.compose(tiles.body(sums, end), tiles.groups, shared=tiles.shared)
        row = one_row(self, self.x, self.gate, self.up)

        def term(k: str) -> str:
            gated, raised = (row.product("x", self.element(matrix, "column", k)) for matrix in row.matrices)
            return f"{{ {row.number} x = {self.in_row(row.x, '0u', k)}; gated += {gated}; raised += {raised}; }}"

        body = f"""\
u32 column = group;
f32 gated = 0.0;
f32 raised = 0.0;
{row.statements(term)}
gates[lane] = gated;
{combined("gates", "x + y", row.threads)}
ups[lane] = raised;
{combined("ups", "x + y", row.threads)}
if (lane == 0u) {{
  f32 x0 = gates[0];
  {self.in_row(self.output, "0u", "column")} = ({self.activation}) * ups[0];
}}"""
        shared = (("gates", row.threads), ("ups", row.threads))
        return self.compose(body, columns, threads=row.threads, shared=shared, fours=row.vectors)
