"""Products of a matrix with several rows, such as the sequences of a batch: a group computes a few columns of all rows.

A group goes over the rows in tiles, so it reads its rows of the matrix from memory once, and from a cache afterwards.
Each group reads all of the input again: the more columns it computes, the less often the input is read. This is no
tuned matrix multiplication.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from textwrap import indent

from overhead.decode.lowering.operation import GROUP_THREADS

_MOST_ROWS, _MOST_COLUMNS = 16, 4
_MOST_SUMS = 64
"""The most numbers that a thread sums at once. They are to stay in registers."""
_LEAST_GROUPS = 1_024
"""With fewer groups a large device has nothing to do while they wait for memory."""
_APART = GROUP_THREADS + 1
"""Numbers from one row to the next in shared memory; odd, so that the threads do not read from the same bank."""


@dataclasses.dataclass(frozen=True)
class RowTiles:
    """Products with ``rows`` rows of ``inner`` numbers. ``arrays``: the shared array of each product.

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
        most = min(_MOST_COLUMNS, _MOST_SUMS // (self.size * len(self.arrays)), sum(self.counts) // _LEAST_GROUPS)
        return max(wide for wide in range(1, max(1, most) + 1) if all(count % wide == 0 for count in self.counts))

    @property
    def groups(self) -> int:
        """The number of groups."""
        return sum(self.counts) // self.columns

    @property
    def shared(self) -> tuple[tuple[str, int], ...]:
        return tuple((array, self.size * _APART) for array in self.arrays)

    def sums(self, x: Callable[[str], str], factor: Callable[[str, int], str]) -> str:
        """Statements in which a thread adds up its share of ``x * factor`` for each row of the tile and each column.

        ``x``: the text for number ``k`` of a row. ``factor``: the text for number ``k`` of the matrix of an array, in a
        column of the group.
        """
        both = [(array, column) for array in self.arrays for column in range(self.columns)]
        lines = [f"for (u32 k = lane; k < {self.inner}u; k += {GROUP_THREADS}u) {{"]
        lines += [f"  f32 {array}_factor{column} = {factor(array, column)};" for array, column in both]
        for row in range(self.size):
            lines.append(f"  f32 x{row} = {x(f'first + {row}u')};")
            lines += [f"  {array}{column}_{row} += x{row} * {array}_factor{column};" for array, column in both]
        return "\n".join([*lines, "}"])

    def body(self, sums: str, end: Callable[[int], str]) -> str:
        """The statements of the kernel, in which ``column`` is the first column of the group.

        ``end``: what a thread does with the sums of ``row`` in a column of the group. They have the names of the arrays
        with ``_sum``.
        """
        each = [(array, c, row) for array in self.arrays for c in range(self.columns) for row in range(self.size)]
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
            f"f32 {array}_sum = 0.0;\n"
            f"for (u32 j = 0u; j < {GROUP_THREADS}u; j += 1u) {{ {array}_sum += {array}[lane * {_APART}u + j]; }}"
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
