"""Operations with one group of threads for each row: sums, means, norms, and the column of the
largest number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Literal

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, loop, reduction
from overhead.decode.lowering.operation import Operation, threads_along

_ARGMAX_THREADS = 256
"""Threads of a group: as many as every WebGPU device offers."""
_ARGMAX_LOADS = 16
"""Loads of a thread that do not wait for each other."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RowOperation(Operation):
    """An operation on the rows of ``x``, each of which a group of threads computes. A row is what
    the last dimension spans.
    """

    x: TensorView

    @property
    def inner(self) -> int:
        """The numbers of a row."""
        return self.x.shape[-1]

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self.x.count // self.inner

    def along(self, statement: Callable[[str], str]) -> str:
        """Statements that run ``statement(k)`` for each number ``k`` of the row, shared by the
        threads.
        """
        return loop(self.inner, statement, threads=threads_along(self.inner))

    def reduction(self, variable: str, combined: str) -> str:
        """Statements after which ``part[0]`` has the combination of the variable of all threads.

        ``combined``: what two numbers ``x`` and ``y`` become, such as ``x + y``.
        """
        reduced = reduction("part", combined, threads_along(self.inner))
        return f"part[lane] = {variable};\n{reduced}"

    def rows(self, body: str) -> Kernel:
        """The kernel that runs this for each row."""
        threads = threads_along(self.inner)
        shared = (("part", threads),)
        return self.compose(body, self.row_count, threads=threads, shared=shared)


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowReduction(_RowOperation):
    """The sum, mean or maximum of each row. ``output`` has one element for each row."""

    kind: Literal["sum", "mean", "max"]
    output: TensorView

    @property
    def label(self) -> str:
        """``row_sum``, ``row_mean`` or ``row_max``."""
        return f"row_{self.kind}"

    def kernel(self) -> Kernel:
        """The kernel: a group combines the numbers of one row. Each thread first combines some of
        them into ``found``, and then the threads combine what each has found.
        """
        # ``start``: what ``found`` begins with. ``added``: what it becomes with one more number.
        # ``combined``: what two threads' numbers x and y become.
        mean = ""
        if self.kind == "max":
            start, added, combined = "-3.4e38", "max(found, {})", "max(x, y)"
        else:
            start, added, combined = "0.0", "found + {}", "x + y"
        if self.kind == "mean":
            mean = f" / {float(self.inner)!r}"

        def take(k: str) -> str:
            return f"found = {added.format(self.row_element(self.x, 'group', k))};"

        # ``along`` shares the numbers of the row among the threads; ``reduction`` combines what
        # they found into ``part[0]``; ``rows`` makes a group for each row.
        return self.rows(f"""\
f32 found = {start};
{self.along(take)}
{self.reduction("found", combined)}
if (lane == 0u) {{ {self.flat_element(self.output, "group")} = part[0]{mean}; }}""")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Norm(_RowOperation):
    """The norm of each row: ``output = x / sqrt(mean of x^2 + epsilon) * weight + bias``. With
    ``centred`` (LayerNorm) the mean of x is subtracted first; without (RMSNorm) not. With
    ``residual`` this tensor is added to x before, and the sum is also written to ``total``.
    """

    written = ("output", "total")
    residual: TensorView | None = None
    weight: TensorView | None
    bias: TensorView | None
    epsilon: float
    centred: bool
    output: TensorView
    total: TensorView | None = None

    @property
    def label(self) -> str:
        """``rms_norm`` or ``layer_norm``, after ``residual_`` if two inputs are added first."""
        norm = "layer_norm" if self.centred else "rms_norm"
        return f"residual_{norm}" if self.residual else norm

    def kernel(self) -> Kernel:
        """The kernel: a group normalises one row. It goes over the row up to four times: to add the
        residual, to find the mean (``middle``), to find the mean square, and to write the output.
        """
        count = repr(float(self.inner))
        # What is subtracted from each number: the mean of the row, or nothing.
        middle = "middle" if self.centred else "0.0"
        lines: list[str] = []
        if self.residual is not None:
            lines.append(self._added(self.residual))
        if self.centred:
            lines += [
                "f32 sum = 0.0;",
                self.along(lambda k: f"sum += {self._number(k)};"),
                self.reduction("sum", "x + y"),
                f"f32 middle = part[0] / {count};",
                # All threads must have read ``part[0]`` before it is used for the squares.
                "workgroupBarrier();",
            ]

        # ``_number(k)``: number ``k`` of the row, which with a residual is read from ``total``.
        def add_square(k: str) -> str:
            distance = f"({self._number(k)} - {middle})"
            return f"squares += {distance} * {distance};"

        def scale(k: str) -> str:
            weight = f" * {self.element(self.weight, k)}" if self.weight else ""
            bias = f" + {self.element(self.bias, k)}" if self.bias else ""
            output = self.row_element(self.output, "group", k)
            return f"{output} = ({self._number(k)} - {middle}) * factor{weight}{bias};"

        lines.append(f"""\
f32 squares = 0.0;
{self.along(add_square)}
{self.reduction("squares", "x + y")}
f32 factor = inverseSqrt(part[0] / {count} + {self.epsilon!r});
{self.along(scale)}""")
        return self.rows("\n".join(lines))

    def _number(self, k: str) -> str:
        """Number ``k`` of the row that is normalised: of the sum, if there is a residual."""
        return self.row_element(self.total or self.x, "group", k)

    def _added(self, residual: TensorView) -> str:
        """Source text that writes the sum of the row and its residual into ``total``, from which
        the rest of the kernel reads the row.

        Each thread reads back only what it wrote itself, so no barrier is needed.
        """

        def add(k: str) -> str:
            x = self.row_element(self.x, "group", k)
            return f"{self._number(k)} = {x} + {self.row_element(residual, 'group', k)};"

        return self.along(add)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Argmax(_RowOperation):
    """The column of the largest number of each row, as i32; of equal numbers the first one."""

    label = "argmax"
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a group finds the column of one row. Each thread looks at every 256th number,
        and then the threads compare what they found.
        """
        # The shared arrays are f32. A float32 holds every integer up to 2^24, so a column is exact.
        threads = _ARGMAX_THREADS
        # One turn of the loop: each thread loads 16 numbers that do not wait for each other.
        step = threads * _ARGMAX_LOADS
        whole = self.inner - self.inner % step
        loads: list[str] = []
        larger: list[str] = []
        for i in range(_ARGMAX_LOADS):
            column = f"k + {i * threads}u"
            loads.append(f"f32 x{i} = {self.row_element(self.x, 'group', f'({column})')};")
            larger.append(f"if (x{i} > highest) {{ highest = x{i}; column = {column}; }}")

        # First whole steps with many loads, then the rest of the row. At last the threads compare
        # what they found; of equal numbers the earlier column wins, as in PyTorch.
        body = f"""\
f32 highest = -3.4e38;
u32 column = 0u;
for (u32 k = lane; k < {whole}u; k += {step}u) {{
  {" ".join(loads)}
  {" ".join(larger)}
}}
for (u32 k = lane + {whole}u; k < {self.inner}u; k += {threads}u) {{
  f32 x = {self.row_element(self.x, "group", "k")};
  if (x > highest) {{
    highest = x;
    column = k;
  }}
}}
values[lane] = highest;
columns[lane] = f32(column);
for (u32 apart = {threads // 2}u; apart > 0u; apart = apart / 2u) {{
  workgroupBarrier();
  if (lane < apart) {{
    bool larger = values[lane + apart] > values[lane];
    bool earlier = values[lane + apart] == values[lane] && columns[lane + apart] < columns[lane];
    if (larger || earlier) {{
      values[lane] = values[lane + apart];
      columns[lane] = columns[lane + apart];
    }}
  }}
}}
workgroupBarrier();
if (lane == 0u) {{ {self.flat_element(self.output, "group")} = i32(columns[0]); }}"""
        shared = (("values", threads), ("columns", threads))
        return self.compose(body, self.row_count, threads=threads, shared=shared)
