"""A matrix times each row of the input, with bias; or two matrices times the same rows in one dispatch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, plus
from overhead.decode.lowering.operation import Operation
from overhead.decode.lowering.templates.row_sums import OneRow, one_row
from overhead.decode.lowering.templates.row_tiles import RowTiles


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
        own = [f"column - {sum(columns[:i])}u" if i else "column" for i in range(len(columns))]
        if rows == 1:
            return self._of_one_row(columns, own)
        tiles = RowTiles(rows, inner, columns)

        def sums(product: MatrixProduct, column: str) -> str:
            return tiles.sums(
                lambda row: self.in_row(self.x, row, "k"),
                lambda _, offset: self.element(product.matrix, plus(column, offset), "k"),
            )

        def end(offset: int) -> str:
            ends = self._ends([plus(column, offset) for column in own], "row", "part_sum")
            return "\n".join(chosen(ends, columns))

        all_sums = [sums(product, column) for product, column in zip(self.products, own, strict=True)]
        return self.compose(tiles.body("\n".join(chosen(all_sums, columns)), end), tiles.groups, shared=tiles.shared)

    def _of_one_row(self, columns: list[int], own: list[str]) -> Kernel:
        row = one_row(self, self.x, *(p.matrix for p in self.products))
        sums = [row.statements(self._term(row, i, column)) for i, column in enumerate(own)]
        lines = ["u32 column = group;", "f32 sum = 0.0;", *chosen(sums, columns), "part[lane] = sum;"]
        lines += [combined("part", "x + y", row.threads), "if (lane == 0u) {"]
        lines += [indent("\n".join(chosen(self._ends(own, "0u", "part[0]"), columns)), "  "), "}"]
        shared = (("part", row.threads),)
        return self.compose("\n".join(lines), sum(columns), threads=row.threads, shared=shared, fours=row.vectors)

    def _term(self, row: OneRow, i: int, column: str) -> Callable[[str], str]:
        def term(k: str) -> str:
            product = row.product(self.in_row(row.x, "0u", k), self.element(row.matrices[i], column, k))
            return f"sum += {product};"

        return term

    def _ends(self, own: list[str], row: str, result: str) -> list[str]:
        """For each product the statement that writes the result, with the bias."""
        ends = []
        for product, column in zip(self.products, own, strict=True):
            bias = f" + {self.element(product.bias, column)}" if product.bias else ""
            ends.append(f"{self.in_row(product.output, row, column)} = {result}{bias};")
        return ends


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
