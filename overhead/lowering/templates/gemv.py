"""A matrix times each row of the input, with bias; or two matrices times the same rows in one dispatch."""

from __future__ import annotations

import dataclasses
from textwrap import indent

from overhead.lowering.buffers import TensorView
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import GROUP_THREADS, Operation
from overhead.lowering.templates.row_tiles import RowTiles


@dataclasses.dataclass(frozen=True)
class MatrixProduct:
    """``output[r, c] = sum over k of x[r, k] * matrix[c, k] + bias[c]`` for an ``x`` that is given elsewhere."""

    matrix: TensorView
    bias: TensorView | None
    output: TensorView


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gemv(Operation):
    """One or more products of the same input. A group of threads computes one column."""

    x: TensorView
    products: tuple[MatrixProduct, ...]

    @property
    def label(self) -> str:
        return "gemv" if len(self.products) == 1 else f"gemv_{len(self.products)}"

    @property
    def reads(self) -> tuple[TensorView, ...]:
        views = ((p.matrix, p.bias) for p in self.products)
        return (self.x, *(view for pair in views for view in pair if view is not None))

    @property
    def writes(self) -> tuple[TensorView, ...]:
        return tuple(p.output for p in self.products)

    def kernel(self) -> Kernel:
        rows, inner = self.x.count // self.x.shape[-1], self.x.shape[-1]
        columns = [p.matrix.shape[0] for p in self.products]
        tiles, one = RowTiles(rows, inner), rows == 1
        sums, ends, first = [], [], 0
        for product, count in zip(self.products, columns, strict=True):
            own = f"column - {first}u" if first else "column"
            bias = f" + {self.element(product.bias, own)}" if product.bias else ""
            weight = self.element(product.matrix, own, "k")
            term = f"{self.in_row(self.x, '0u', 'k')} * {weight}"
            loop = f"for (u32 k = lane; k < {inner}u; k += {GROUP_THREADS}u) {{ sum += {term}; }}"
            sums.append(loop if one else tiles.sums(lambda row: self.in_row(self.x, row, "k"), [weight]))
            output = self.in_row(product.output, "0u" if one else "row", own)
            ends.append(f"{output} = {'part[0]' if one else 'part_sum'}{bias};")
            first += count
        if not one:
            body = tiles.body("\n".join(chosen(sums, columns)), "\n".join(chosen(ends, columns)))
            return self.compose(body, sum(columns), shared=tiles.shared)
        lines = ["u32 column = group;", "f32 sum = 0.0;", *chosen(sums, columns), "part[lane] = sum;"]
        lines += [combined("part", "x + y", GROUP_THREADS), "if (lane == 0u) {"]
        lines += [*(f"  {line}" for line in chosen(ends, columns)), "}"]
        return self.compose("\n".join(lines), sum(columns), shared=(("part", GROUP_THREADS),))


def chosen(statements: list[str], columns: list[int]) -> list[str]:
    """Statements that run one of these, by the range of columns in which ``column`` lies."""
    if len(statements) == 1:
        return statements
    lines: list[str] = []
    limit = 0
    for statement, count in zip(statements, columns, strict=True):
        limit += count
        start = "} else if" if lines else "if"
        lines += [f"{start} (column < {limit}u) {{", indent(statement, "  ")]
    return [*lines, "}"]
