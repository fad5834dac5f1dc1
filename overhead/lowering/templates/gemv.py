"""A matrix times each row of the input, with bias; or two matrices times the same row in one dispatch."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.lowering.buffers import TensorView
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import GROUP_THREADS, Operation
from overhead.lowering.templates.row_sums import along, in_fours, threads_along


@dataclasses.dataclass(frozen=True)
class MatrixProduct:
    """``output[r, c] = sum over k of x[r, k] * matrix[c, k] + bias[c]`` for an ``x`` that is given elsewhere."""

    matrix: TensorView
    bias: TensorView | None
    output: TensorView


@dataclasses.dataclass(frozen=True, kw_only=True)
class Gemv(Operation):
    """One or more products of the same input. A group of threads computes one number.

    One row is read in vectors of four where the memory allows it, with several loads of each thread under way.
    """

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
        fours = in_fours(self, self.x, *(p.matrix for p in self.products)) if rows == 1 else None
        threads = threads_along(inner // 4) if fours else GROUP_THREADS
        body, row = split(rows, sum(columns))
        body.append("f32 sum = 0.0;")
        sums, ends, first = [], [], 0
        for i, (product, count) in enumerate(zip(self.products, columns, strict=True)):
            own = f"column - {first}u" if first else "column"
            bias = f" + {self.element(product.bias, own)}" if product.bias else ""
            if fours:
                sums.append(along(inner // 4, threads, self._dot(fours[0], fours[i + 1], own)))
            else:
                term = f"{self.in_row(self.x, row, 'k')} * {self.element(product.matrix, own, 'k')}"
                sums.append(f"for (u32 k = lane; k < {inner}u; k += {GROUP_THREADS}u) {{ sum += {term}; }}")
            ends.append(f"{self.in_row(product.output, row, own)} = part[0]{bias};")
            first += count
        body += [*chosen(sums, columns), "part[lane] = sum;", combined("part", "x + y", threads)]
        body += ["if (lane == 0u) {", *(f"  {line}" for line in chosen(ends, columns)), "}"]
        shared, groups = (("part", threads),), rows * sum(columns)
        return self.compose("\n".join(body), groups, threads=threads, shared=shared, fours=fours or ())

    def _dot(self, x: TensorView, matrix: TensorView, column: str) -> Callable[[str], str]:
        return lambda k: f"sum += dot({self.in_row(x, '0u', k)}, {self.element(matrix, column, k)});"


def split(rows: int, columns: int) -> tuple[list[str], str]:
    """Statements that find the row and the column of a group of threads, and the text that stands for the row."""
    if rows == 1:
        return ["u32 column = group;"], "0u"
    return [f"u32 row = group / {columns}u;", f"u32 column = group % {columns}u;"], "row"


def chosen(statements: list[str], columns: list[int]) -> list[str]:
    """Statements that run one of these, by the range of columns in which ``column`` lies."""
    if len(statements) == 1:
        return statements
    lines: list[str] = []
    limit = 0
    for statement, count in zip(statements, columns, strict=True):
        limit += count
        start = "} else if" if lines else "if"
        lines += [f"{start} (column < {limit}u) {{", *(f"  {line}" for line in statement.splitlines())]
    return [*lines, "}"]
