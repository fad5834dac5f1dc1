"""Matrices times each row of the input, with bias; and the first half of a gated MLP.

With one row, the threads of a group share a column: four numbers are one vector where the memory
allows it, and the loads of a thread do not wait for each other. With several rows, such as the
sequences of a batch, a group computes a few columns of all rows. This is no tuned matrix
multiplication.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, loop, reduction, sum_text
from overhead.decode.lowering.operation import GROUP_THREADS, Operation, threads_along

_MOST_ROWS = 16
_MOST_COLUMNS = 4
"""The most rows of a tile, and the most columns of a group."""
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
    """The views for products of one row ``x`` with the columns of matrices. A group of threads
    shares a column.

    ``fours``: memory is read four numbers at a time, so the elements of the views are vectors of
    four numbers, and the row has a quarter as many.
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
    """How a kernel reads the row ``x`` and these matrices of its operation: as vectors of four
    numbers if all of them can be read so, else as numbers.
    """
    views = (x, *matrices)
    others = {view.buffer for view in (*operation.reads, *operation.writes) if view not in views}
    for view in views:
        # A buffer has one type in a kernel, so no other view of it may be read as numbers.
        if view.buffer in others or not _aligned(view):
            return _OneRow(x, matrices, fours=False)
    # ``_divided``: the same memory in vectors of four, so a quarter as many elements in a row.
    in_fours = tuple(_divided(matrix) for matrix in matrices)
    return _OneRow(_divided(x), in_fours, fours=True)


def _aligned(view: TensorView) -> bool:
    """Whether the view can be read as vectors of four neighbouring numbers: each of its rows begins
    at a multiple of four in its buffer, and has a multiple of four numbers.
    """
    if view.number != "f32" or view.strides[-1] != 1:
        return False
    # Each of these must be a multiple of four. With one row the stride to the next means nothing.
    starts = [view.offset, view.shape[-1]]
    for size, stride in zip(view.shape[:-1], view.strides, strict=False):
        if size > 1:
            starts.append(stride)
    return all(start % 4 == 0 for start in starts)


def _divided(view: TensorView) -> TensorView:
    """The same memory as a view of vectors of four numbers."""
    shape = (*view.shape[:-1], view.shape[-1] // 4)
    strides = (*(stride // 4 for stride in view.strides[:-1]), 1)
    return dataclasses.replace(view, shape=shape, strides=strides, offset=view.offset // 4)


@dataclasses.dataclass(frozen=True)
class _RowTiles:
    """How groups of threads share the products of matrices with several rows: each group computes a
    few columns of the output for all rows, a tile (a few rows) at a time. ``arrays`` names the
    products that are computed at once; each has an array in the memory that a group shares.

    The input has ``rows`` rows of ``inner`` numbers. ``counts``: the columns of each part of the
    output; all columns of a group are in one part.

    So a group reads its part of the matrix from memory for the first tile, and from a cache
    afterwards. Each group reads all of the input again: the more columns it computes, the less
    often the input is read.
    """

    rows: int
    inner: int
    counts: Sequence[int]
    arrays: Sequence[str] = ("part",)

    @property
    def size(self) -> int:
        """The rows of a tile: as many as a thread can sum at once and as divide the rows evenly."""
        size = _MOST_ROWS
        while self.rows % size:
            size -= 1
        return size

    @property
    def columns(self) -> int:
        """The columns of a group: at most 4, and no more than a thread can sum at once and than
        leave enough groups to keep the device busy. Each part of the output is a whole number of
        groups.
        """
        # A thread keeps a sum for each row of a tile, column and array.
        by_sums = _MOST_SUMS // (self.size * len(self.arrays))
        by_groups = sum(self.counts) // _LEAST_GROUPS
        columns = max(1, min(_MOST_COLUMNS, by_sums, by_groups))
        while any(count % columns for count in self.counts):
            columns -= 1
        return columns

    @property
    def groups(self) -> int:
        """The number of groups."""
        return sum(self.counts) // self.columns

    @property
    def shared(self) -> tuple[tuple[str, int], ...]:
        """Names and lengths of the shared arrays."""
        return tuple((array, self.size * _APART) for array in self.arrays)

    def sums(self, x: Callable[[str], str], factor: Callable[[str, int], str]) -> str:
        """Source text in which each thread adds up its share of the products for a tile: the
        products of every 64th number of a row with the matrix, for each row of the tile and each
        column of the group.

        ``x``: gives the text for number ``k`` of a row. ``factor``: gives the text for number ``k``
        of the matrix, for an array and a column of the group.
        """
        # ``first``: the first row of the tile. A factor is loaded once for all rows of the tile.
        lines = [f"for (u32 k = lane; k < {self.inner}u; k += {GROUP_THREADS}u) {{"]
        for array, column in self._arrays_and_columns:
            lines.append(f"  f32 {array}_factor{column} = {factor(array, column)};")
        for row in range(self.size):
            lines.append(f"  f32 x{row} = {x(f'first + {row}u')};")
            for array, column in self._arrays_and_columns:
                lines.append(f"  {array}{column}_{row} += x{row} * {array}_factor{column};")
        return "\n".join([*lines, "}"])

    @property
    def _arrays_and_columns(self) -> list[tuple[str, int]]:
        """Each array with each column of a group."""
        return list(itertools.product(self.arrays, range(self.columns)))

    def body(self, sums: str, end: Callable[[int], str]) -> str:
        """Source text of the whole kernel: a loop over the tiles, and in it three parts. Set the
        sums of a thread to zero; add up its share (``sums``); combine the shares of all threads and
        use the result (``end``).

        ``end``: gives the text of what one thread does with the sums of ``row`` in a column of the
        group. There they are named as the arrays are, with ``_sum``. ``column`` is the first column
        of the group.
        """
        start_lines = []
        for array, column in self._arrays_and_columns:
            for row in range(self.size):
                start_lines.append(f"f32 {array}{column}_{row} = 0.0;")
        starts = "\n".join(start_lines)
        end_texts = [self._of_column(column, end(column)) for column in range(self.columns)]
        ends = "\n".join(end_texts)
        return f"""\
u32 column = group * {self.columns}u;
for (u32 first = 0u; first < {self.rows}u; first += {self.size}u) {{
{indent(starts, "  ")}
{indent(sums, "  ")}
{indent(ends, "  ")}
}}"""

    def _of_column(self, column: int, end: str) -> str:
        """Source text that adds up, for one column of the group, the shares of all threads through
        shared memory, and then runs ``end`` in one thread for each row of the tile.
        """
        kept_lines = []
        total_lines = []
        for array in self.arrays:
            # Thread ``lane`` keeps its share of each row at place ``lane`` of that row. Rows are
            # ``_APART`` numbers apart, which is odd: then threads read from different banks.
            for row in range(self.size):
                kept_lines.append(f"{array}[{row * _APART}u + lane] = {array}{column}_{row};")
            # Then thread ``lane`` adds up the shares of row ``lane`` of the tile.
            total_lines.append(f"f32 {array}_sum = 0.0;")
            added = f"{array}_sum += {array}[lane * {_APART}u + j];"
            total_lines.append(f"for (u32 j = 0u; j < {GROUP_THREADS}u; j += 1u) {{ {added} }}")
        kept = "\n".join(kept_lines)
        totals = "\n".join(total_lines)
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
    """One or more matrix products with the same input ``x``, one after another in one dispatch. A
    group of threads computes one column of an output, or a few columns if x has several rows.
    """

    x: TensorView
    products: tuple[MatrixProduct, ...]

    @property
    def label(self) -> str:
        """``gemv`` for one product, ``gemv_2`` for two."""
        return "gemv" if len(self.products) == 1 else f"gemv_{len(self.products)}"

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """The input, then each matrix and its bias."""
        views = [self.x]
        for product in self.products:
            views.append(product.matrix)
            if product.bias is not None:
                views.append(product.bias)
        return tuple(views)

    @property
    def writes(self) -> tuple[TensorView, ...]:
        """The output of each product."""
        return tuple(product.output for product in self.products)

    def kernel(self) -> Kernel:
        """The kernel: a group computes one column, or a few columns of several rows."""
        if self.x.count == self.x.shape[-1]:
            return self._of_one_row()
        return self._of_several_rows()

    @property
    def _columns(self) -> list[int]:
        """The columns of each product."""
        return [product.matrix.shape[0] for product in self.products]

    @property
    def _own_columns(self) -> list[str]:
        """For each product the text of the column of its own matrix. In a kernel ``column`` counts
        the columns of all products, one product after another, so those before are subtracted.
        """
        texts = []
        before = 0
        for count in self._columns:
            texts.append(f"column - {before}u" if before else "column")
            before += count
        return texts

    def _of_several_rows(self) -> Kernel:
        """The kernel for several rows, such as the sequences of a batch: a group computes a few
        columns of one of the products, for all rows. ``_RowTiles`` says how.
        """
        inner = self.x.shape[-1]
        tiles = _RowTiles(self.x.count // inner, inner, self._columns)

        def x(row: str) -> str:
            return self.row_element(self.x, row, "k")

        # What becomes of a finished sum: the product to which the column belongs writes it.
        def end(offset: int) -> str:
            own_columns = [sum_text(column, offset) for column in self._own_columns]
            ends = self._ends(own_columns, "row", "part_sum")
            return "\n".join(_by_column(ends, self._columns))

        # One text for each product; ``_by_column`` runs that of the product of the group's columns.
        sums = []
        for product, column in zip(self.products, self._own_columns, strict=True):
            factor = functools.partial(self._factor, product.matrix, column)
            sums.append(tiles.sums(x, factor))
        body = "\n".join(_by_column(sums, self._columns))
        return self.compose(tiles.body(body, end), tiles.groups, shared=tiles.shared)

    def _factor(self, matrix: TensorView, column: str, array: str, offset: int) -> str:
        """Number ``k`` of the matrix, in the column that is ``offset`` columns after this one. The
        shared array is the same for all products, so ``array`` is not needed.
        """
        return self.element(matrix, sum_text(column, offset), "k")

    def _of_one_row(self) -> Kernel:
        """The kernel for one row: a group computes one column of one of the products. Each thread
        adds up a share of it, and the shares are combined in the shared array ``part``.
        """
        # Where the memory allows it, ``k`` counts vectors of four numbers: ``row.product`` is then
        # a dot product, and ``row.statements`` shares the ``k`` of the row among the threads.
        row = _one_row(self, self.x, *(product.matrix for product in self.products))

        def sums(matrix: TensorView, column: str) -> str:
            def term(k: str) -> str:
                x = self.row_element(row.x, "0u", k)
                return f"sum += {row.product(x, self.element(matrix, column, k))};"

            return row.statements(term)

        # For each product the statements in which a thread adds up its share.
        sums_of_products = list(map(sums, row.matrices, self._own_columns))
        ends = self._ends(self._own_columns, "0u", "part[0]")
        # Each thread adds up, then the group combines the sums, then one thread writes the result.
        lines = [
            "u32 column = group;",
            "f32 sum = 0.0;",
            *_by_column(sums_of_products, self._columns),
            "part[lane] = sum;",
            reduction("part", "x + y", row.threads),
            "if (lane == 0u) {",
            indent("\n".join(_by_column(ends, self._columns)), "  "),
            "}",
        ]
        return self.compose(
            "\n".join(lines),
            sum(self._columns),
            threads=row.threads,
            shared=(("part", row.threads),),
            fours=row.vectors,
        )

    def _ends(self, columns: list[str], row: str, result: str) -> list[str]:
        """For each product the statement at the end of its kernel, which adds the bias to the sum
        and writes it into the output.

        ``columns``: for each product the text of the column of its output. ``row`` and ``result``:
        the texts of the row and of the finished sum.
        """
        ends = []
        for product, column in zip(self.products, columns, strict=True):
            bias = f" + {self.element(product.bias, column)}" if product.bias else ""
            ends.append(f"{self.row_element(product.output, row, column)} = {result}{bias};")
        return ends


@dataclasses.dataclass(frozen=True, kw_only=True)
class GatedGemv(Operation):
    """The first half of a gated MLP in one dispatch: ``output = act(gate x) * (up x)``, where
    ``gate`` and ``up`` are matrices. ``activation``: the text of act, an expression of ``x0``,
    which is the product with the gate.
    """

    label = "gated_gemv"
    x: TensorView
    gate: TensorView
    up: TensorView
    activation: str
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a group computes one column, or a few columns of several rows."""
        if self.x.count == self.x.shape[-1]:
            return self._of_one_row()
        return self._of_several_rows()

    def _of_several_rows(self) -> Kernel:
        """The kernel for several rows, such as the sequences of a batch: a group computes a few
        columns of both products, for all rows. ``_RowTiles`` says how.
        """
        inner = self.x.shape[-1]
        columns = self.gate.shape[0]
        tiles = _RowTiles(self.x.count // inner, inner, [columns], ("gate", "up"))
        matrices = {"gate": self.gate, "up": self.up}

        def x(row: str) -> str:
            return self.row_element(self.x, row, "k")

        def factor(array: str, offset: int) -> str:
            return self.element(matrices[array], sum_text("column", offset), "k")

        # ``x0`` is the name of the product with the gate in the text of the activation.
        def end(offset: int) -> str:
            output = self.row_element(self.output, "row", sum_text("column", offset))
            return f"f32 x0 = gate_sum;\n{output} = ({self.activation}) * up_sum;"

        body = tiles.body(tiles.sums(x, factor), end)
        return self.compose(body, tiles.groups, shared=tiles.shared)

    def _of_one_row(self) -> Kernel:
        """The kernel for one row: a group computes one column of both products. Each thread adds up
        a share of each (``gated``, ``raised``), and the shares are combined in shared arrays.
        """
        # Where the memory allows it, an element is a vector of four numbers (``row.number``), and
        # ``row.product`` a dot product. ``row.statements`` shares the row among the threads.
        row = _one_row(self, self.x, self.gate, self.up)
        gate, up = row.matrices

        # For element ``k`` of the row its products with both matrices, so that it is loaded once.
        def term(k: str) -> str:
            gated = row.product("x", self.element(gate, "column", k))
            raised = row.product("x", self.element(up, "column", k))
            x = self.row_element(row.x, "0u", k)
            return f"{{ {row.number} x = {x}; gated += {gated}; raised += {raised}; }}"

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
  {self.row_element(self.output, "0u", "column")} = ({self.activation}) * ups[0];
}}"""
        return self.compose(
            body,
            self.gate.shape[0],
            threads=row.threads,
            shared=(("gates", row.threads), ("ups", row.threads)),
            fours=row.vectors,
        )


def _by_column(statements: list[str], columns: list[int]) -> list[str]:
    """Source text that runs one of these statements, those of the product to which ``column``
    belongs. The columns of all products are counted one product after another; ``columns`` says how
    many each has.
    """
    if len(statements) == 1:
        return statements
    lines: list[str] = []
    limit = 0
    # ``limit``: the column after the last one of this product.
    for statement, count in zip(statements, columns, strict=True):
        limit += count
        start = "} else if" if lines else "if"
        lines += [f"{start} (column < {limit}u) {{", indent(statement, "  ")]
    return [*lines, "}"]
