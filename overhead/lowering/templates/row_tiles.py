"""Products of a matrix with several rows, such as the sequences of a batch: a group computes one column of all rows.

A group goes over the rows in tiles, so it reads its row of the matrix from memory once, and from a cache afterwards.
This is no tuned matrix multiplication: every group reads all of the input again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from textwrap import indent

from overhead.lowering.operation import GROUP_THREADS

_MOST_ROWS = 16
_APART = GROUP_THREADS + 1
"""Numbers from one row to the next in shared memory; odd, so that the threads do not read from the same bank."""


@dataclasses.dataclass(frozen=True)
class RowTiles:
    """Products with ``rows`` rows of ``inner`` numbers. ``arrays``: the shared array of each product."""

    rows: int
    inner: int
    arrays: Sequence[str] = ("part",)

    @property
    def size(self) -> int:
        """The rows of a tile: as many as a thread can sum at once and as divide the rows evenly."""
        return max(size for size in range(1, _MOST_ROWS + 1) if self.rows % size == 0)

    @property
    def shared(self) -> tuple[tuple[str, int], ...]:
        return tuple((array, self.size * _APART) for array in self.arrays)

    def sums(self, x: Callable[[str], str], factors: Sequence[str]) -> str:
        """Statements in which a thread adds up its share of ``x * factor`` for each row of the tile.

        ``x``: the text for number ``k`` of a row. ``factors``: the text for number ``k`` of each matrix.
        """
        lines = [f"for (u32 k = lane; k < {self.inner}u; k += {GROUP_THREADS}u) {{"]
        lines += [f"  f32 {array}_factor = {factor};" for array, factor in zip(self.arrays, factors, strict=True)]
        for row in range(self.size):
            lines.append(f"  f32 x{row} = {x(f'first + {row}u')};")
            lines += [f"  {array}{row} += x{row} * {array}_factor;" for array in self.arrays]
        return "\n".join([*lines, "}"])

    def body(self, sums: str, end: str) -> str:
        """The statements of the kernel. ``end``: what a thread does with the sums of ``row``, which have the names of
        the arrays with ``_sum``.
        """
        both = [(array, row) for array in self.arrays for row in range(self.size)]
        starts = "\n".join(f"f32 {array}{row} = 0.0;" for array, row in both)
        kept = "\n".join(f"{array}[{row * _APART}u + lane] = {array}{row};" for array, row in both)
        totals = "\n".join(
            f"f32 {array}_sum = 0.0;\n"
            f"for (u32 j = 0u; j < {GROUP_THREADS}u; j += 1u) {{ {array}_sum += {array}[lane * {_APART}u + j]; }}"
            for array in self.arrays
        )
        return f"""\
u32 column = group;
for (u32 first = 0u; first < {self.rows}u; first += {self.size}u) {{
{indent(starts, "  ")}
{indent(sums, "  ")}
{indent(kept, "  ")}
  workgroupBarrier();
  if (lane < {self.size}u) {{
    u32 row = first + lane;
{indent(totals, "    ")}
{indent(end, "    ")}
  }}
  workgroupBarrier();
}}"""
