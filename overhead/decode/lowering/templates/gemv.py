"""Matrices times each row of the input, with bias; and the first half of a gated MLP.

With one row, the threads of a group share a column: four numbers are one vector where the memory
allows it, and the loads of a thread do not wait for each other. With several rows, such as the
sequences of a batch, a group computes a few columns of all rows. This is no tuned matrix
multiplication.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, loop, reduction, sum_text
from overhead.decode.lowering.operation import GROUP_THREADS, Operation, threads_along

_MOST_ROWS, _MOST_COLUMNS = 16, 4
_MOST_SUMS = 64
"""The most numbers that a thread sums at once. They are to stay in registers."""
_LEAST_GROUPS = 1_024
"""With fewer groups a large device has nothing to do while they wait for memory."""
_APART = GROUP_THREADS + 1
"""Numbers from one row to the next in shared memory; odd, so that the threads do not read from the
same bank.
"""


@dataclasses.dataclass(frozen=True)
class _OneRow:
    """The row ``x`` and its matrices. ``fours``: the elements of the views are vectors of four
    numbers, not numbers.
    """

    x: TensorView
    matrices: tuple[TensorView, ...]
    fours: bool

    @property
    def number(self) -> str:
        """The type of an element."""
        return "vec4f" if self.fours else "f32"

    @property
    def threads(self) -> int:
        """The threads of a group."""
        return threads_along(self.x.shape[-1])

    @property
    def vectors(self) -> tuple[TensorView, ...]:
        """The views that the kernel reads as vectors."""
        return (self.x, *self.matrices) if self.fours else ()

    def product(self, x: str, y: str) -> str:
        """The text of the product of two elements, a number."""
        return f"dot({x}, {y})" if self.fours else f"{x} * {y}"

    def statements(self, term: Callable[[str], str]) -> str:
        """Statements that run ``term(k)`` for each element ``k`` of the row, each in one of the
        threads.
        """
        return loop(self.x.shape[-1], term, threads=self.threads)


def _one_row(operation: Operation, x: TensorView, *matrices: TensorView) -> _OneRow:
    """The row and the matrices of an operation, in vectors if they are aligned and alone in their
    buffers.
    """
    views = (x, *matrices)
    others = {view.buffer for view in (*operation.reads, *operation.writes) if view not in views}
    if any(view.buffer in others or not _aligned(view) for view in views):
        return _OneRow(x, matrices, fours=False)
    return _OneRow(_divided(x), tuple(map(_divided, matrices)), fours=True)


def _aligned(view: TensorView) -> bool:
    steps = [
        stride for size, stride in zip(view.shape[:-1], view.strides, strict=False) if size > 1
    ]
    whole = not any(number % 4 for number in (view.shape[-1], view.offset, *steps))
    return view.number == "f32" and view.strides[-1] == 1 and whole


def _divided(view: TensorView) -> TensorView:
    shape, strides = (
        (*view.shape[:-1], view.shape[-1] // 4),
        (*(s // 4 for s in view.strides[:-1]), 1),
    )
    return dataclasses.replace(view, shape=shape, strides=strides, offset=view.offset // 4)


@dataclasses.dataclass(frozen=True)
class _RowTiles:
    """Products with ``rows`` rows of ``inner`` numbers. ``arrays``: the shared array of each
    product.

    A group goes over the rows in tiles, so it reads its rows of the matrix from memory once, and
    from a cache afterwards. Each group reads all of the input again: the more columns it computes,
    the less often the input is read.

    ``counts``: the columns of each part of the output; all columns of a group are in one part.
    """

    rows: int
    inner: int
    counts: Sequence[int]
    arrays: Sequence[str] = ("part",)

    @property
    def size(self) -> int:
        """The rows of a tile: as many as a thread can sum at once and as divide the rows evenly."""
        return max(size for size in range(1, _MOST_ROWS + 1) if self.rows % size == 0)

    @property
    def columns(self) -> int:
        """The columns of a group."""
        most = min(
            _MOST_COLUMNS,
            _MOST_SUMS // (self.size * len(self.arrays)),
            sum(self.counts) // _LEAST_GROUPS,
        )
        return max(
            wide
            for wide in range(1, max(1, most) + 1)
            if all(count % wide == 0 for count in self.counts)
        )

    @property
    def groups(self) -> int:
        """The number of groups."""
        return sum(self.counts) // self.columns

    @property
    def shared(self) -> tuple[tuple[str, int], ...]:
        """Names and lengths of the shared arrays."""
        return tuple((array, self.size * _APART) for array in self.arrays)

    def sums(self, x: Callable[[str], str], factor: Callable[[str, int], str]) -> str:
        """Statements in which a thread adds up its share of ``x * factor`` for each row of the tile
        and each column.

        ``x``: the text for number ``k`` of a row. ``factor``: the text for number ``k`` of the
        matrix of an array, in a column of the group.
        """
        both = [(array, column) for array in self.arrays for column in range(self.columns)]
        lines = [f"for (u32 k = lane; k < {self.inner}u; k += {GROUP_THREADS}u) {{"]
        lines += [
            f"  f32 {array}_factor{column} = {factor(array, column)};" for array, column in both
        ]
        for row in range(self.size):
            lines.append(f"  f32 x{row} = {x(f'first + {row}u')};")
            lines += [
                f"  {array}{column}_{row} += x{row} * {array}_factor{column};"
                for array, column in both
            ]
        return "\n".join([*lines, "}"])

    def body(self, sums: str, end: Callable[[int], str]) -> str:
        """The statements of the kernel, in which ``column`` is the first column of the group.

        ``end``: what a thread does with the sums of ``row`` in a column of the group. They have the
        names of the arrays with ``_sum``.
        """
        each = [
            (array, c, row)
            for array in self.arrays
            for c in range(self.columns)
            for row in range(self.size)
        ]
        starts = "\n".join(f"f32 {array}{column}_{row} = 0.0;" for array, column, row in each)
        ends = "\n".join(self._of_column(column, end(column)) for column in range(self.columns))
        return f"""\
u32 column = group * {self.columns}u;
for (u32 first = 0u; first < {self.rows}u; first += {self.size}u) {{
{indent(starts, "  ")}
{indent(sums, "  ")}
{indent(ends, "  ")}
}}"""

    def _of_column(self, column: int, end: str) -> str:
        kept = "\n".join(
            f"{array}[{row * _APART}u + lane] = {array}{column}_{row};"
            for array in self.arrays
            for row in range(self.size)
        )
        totals = "\n".join(
            f"f32 {array}_sum = 0.0;\nfor (u32 j = 0u; j < {GROUP_THREADS}u; j += 1u) {{"
            f" {array}_sum += {array}[lane * {_APART}u + j]; }}"
            for array in self.arrays
        )
        return f"""\
{kept}
workgroupBarrier();
if (lane < {self.size}u) {{
  u32 row = first + lane;
{indent(totals, "  ")}
{indent(end, "  ")}
}}
workgroupBarrier();"""


@dataclasses.dataclass(frozen=True)
class MatrixProduct:
    """``output[r, c] = sum over k of x[r, k] * matrix[c, k] + bias[c]`` for an ``x`` that is given
    elsewhere.
    """

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
        """``gemv`` for one product, ``gemv_2`` for two."""
        return "gemv" if len(self.products) == 1 else f"gemv_{len(self.products)}"

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """The input, then each matrix and its bias."""
        views = ((p.matrix, p.bias) for p in self.products)
        return (self.x, *(view for pair in views for view in pair if view is not None))

    @property
    def writes(self) -> tuple[TensorView, ...]:
        """The output of each product."""
        return tuple(p.output for p in self.products)

    def kernel(self) -> Kernel:
        """The kernel: a group computes one column, or a few columns of several rows."""
        rows, inner = self.x.count // self.x.shape[-1], self.x.shape[-1]
        columns = [p.matrix.shape[0] for p in self.products]
        own = [f"column - {sum(columns[:i])}u" if i else "column" for i in range(len(columns))]
        if rows == 1:
            return self._of_one_row(columns, own)
        tiles = _RowTiles(rows, inner, columns)

        def sums(product: MatrixProduct, column: str) -> str:
            return tiles.sums(
                lambda row: self.in_row(self.x, row, "k"),
                lambda _, offset: self.element(product.matrix, sum_text(column, offset), "k"),
            )

        def end(offset: int) -> str:
            ends = self._ends([sum_text(column, offset) for column in own], "row", "part_sum")
            return "\n".join(_by_column(ends, columns))

        body = "\n".join(_by_column([*map(sums, self.products, own)], columns))
        return self.compose(tiles.body(body, end), tiles.groups, shared=tiles.shared)

    def _of_one_row(self, columns: list[int], own: list[str]) -> Kernel:
        row = _one_row(self, self.x, *(p.matrix for p in self.products))

        def sums(matrix: TensorView, column: str) -> str:
            def term(k: str) -> str:
                return (
                    "sum +="
                    f" {row.product(self.in_row(row.x, '0u', k), self.element(matrix, column, k))};"
                )

            return row.statements(term)

        lines = [
            "u32 column = group;",
            "f32 sum = 0.0;",
            *_by_column([*map(sums, row.matrices, own)], columns),
        ]
        lines += ["part[lane] = sum;", reduction("part", "x + y", row.threads), "if (lane == 0u) {"]
        lines += [
            indent("\n".join(_by_column(self._ends(own, "0u", "part[0]"), columns)), "  "),
            "}",
        ]
        shared = (("part", row.threads),)
        return self.compose(
            "\n".join(lines), sum(columns), threads=row.threads, shared=shared, fours=row.vectors
        )

    def _ends(self, own: list[str], row: str, result: str) -> list[str]:
        """For each product the statement that writes the result, with the bias."""
        ends = []
        for product, column in zip(self.products, own, strict=True):
            bias = f" + {self.element(product.bias, column)}" if product.bias else ""
            ends.append(f"{self.in_row(product.output, row, column)} = {result}{bias};")
        return ends


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedGemv(Operation):
    """``output = act(gate x) * (up x)``. ``activation``: an expression of ``x0``, the product with
    the gate.
    """

    label = "gated_gemv"
    x: TensorView
    gate: TensorView
    up: TensorView
    activation: str
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a group computes one column, or a few columns of several rows."""
        rows, inner, columns = (
            self.x.count // self.x.shape[-1],
            self.x.shape[-1],
            self.gate.shape[0],
        )
        if rows > 1:
            tiles, matrices = (
                _RowTiles(rows, inner, [columns], ("gate", "up")),
                {"gate": self.gate, "up": self.up},
            )
            sums = tiles.sums(
                lambda row: self.in_row(self.x, row, "k"),
                lambda array, offset: self.element(
                    matrices[array], sum_text("column", offset), "k"
                ),
            )

            def end(offset: int) -> str:
                output = self.in_row(self.output, "row", sum_text("column", offset))
                return f"f32 x0 = gate_sum;\n{output} = ({self.activation}) * up_sum;"

            return self.compose(tiles.body(sums, end), tiles.groups, shared=tiles.shared)
        row = _one_row(self, self.x, self.gate, self.up)

        def term(k: str) -> str:
            gated, raised = (
                row.product("x", self.element(matrix, "column", k)) for matrix in row.matrices
            )
            return (
                f"{{ {row.number} x = {self.in_row(row.x, '0u', k)}; gated += {gated}; raised +="
                f" {raised}; }}"
            )

        body = f"""\
u32 column = group;
f32 gated = 0.0;
f32 raised = 0.0;
{row.statements(term)}
gates[lane] = gated;
{reduction("gates", "x + y", row.threads)}
ups[lane] = raised;
{reduction("ups", "x + y", row.threads)}
if (lane == 0u) {{
  f32 x0 = gates[0];
  {self.in_row(self.output, "0u", "column")} = ({self.activation}) * ups[0];
}}"""
        shared = (("gates", row.threads), ("ups", row.threads))
        return self.compose(body, columns, threads=row.threads, shared=shared, fours=row.vectors)


def _by_column(statements: list[str], columns: list[int]) -> list[str]:
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
