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

_ARGMAX_THREADS, _ARGMAX_LOADS = 256, 16
"""Threads of a group, and loads of a thread that do not wait for each other."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _RowOperation(Operation):
    """An operation on the rows of ``x``. A row is what the last dimension spans."""

    x: TensorView

    @property
    def inner(self) -> int:
        """The numbers of a row."""
        return self.x.shape[-1]

    def along(self, statement: Callable[[str], str]) -> str:
        """Statements that run ``statement(k)`` for each number ``k`` of the row, shared by the
        threads.
        """
        return loop(self.inner, statement, threads=threads_along(self.inner))

    def reduction(self, own: str, how: str) -> str:
        """Statements after which ``part[0]`` has the combination of ``own`` of all threads."""
        return f"part[lane] = {own};\n{reduction('part', how, threads_along(self.inner))}"

    def rows(self, body: str) -> Kernel:
        """The kernel that runs this for each row."""
        threads = threads_along(self.inner)
        return self.compose(
            body, self.x.count // self.inner, threads=threads, shared=(("part", threads),)
        )


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
        """The kernel: the threads of a group combine the numbers of one row."""
        largest = self.kind == "max"
        start, taken = ("-3.4e38", "max(found, {})") if largest else ("0.0", "found + {}")
        mean = f" / {float(self.inner)!r}" * (self.kind == "mean")
        return self.rows(f"""\
f32 found = {start};
{self.along(lambda k: f"found = {taken.format(self.in_row(self.x, 'group', k))};")}
{self.reduction("found", "max(x, y)" if largest else "x + y")}
if (lane == 0u) {{ {self.flat(self.output, "group")} = part[0]{mean}; }}""")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Norm(_RowOperation):
    """``output = x / sqrt(mean of x^2 + epsilon) * weight + bias`` of each row.

    With ``centred``, the mean of x is subtracted first. With ``residual``, x is the sum of both,
    and the sum is written to ``total``.
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
        return ("residual_" if self.residual else "") + (
            "layer_norm" if self.centred else "rms_norm"
        )

    def kernel(self) -> Kernel:
        """The kernel: a group normalises one row."""
        source, residual, count = self.total or self.x, self.residual, repr(float(self.inner))

        def x(k: str) -> str:
            return self.in_row(source, "group", k)

        lines, middle = [], "0.0"
        if residual is not None:
            # Each thread reads back only what it wrote itself, so no barrier is needed.
            added = residual
            lines.append(
                self.along(
                    lambda k: (
                        f"{x(k)} = {self.in_row(self.x, 'group', k)} +"
                        f" {self.in_row(added, 'group', k)};"
                    )
                )
            )
        if self.centred:
            lines += [
                "f32 sum = 0.0;",
                self.along(lambda k: f"sum += {x(k)};"),
                self.reduction("sum", "x + y"),
            ]
            lines += [f"f32 middle = part[0] / {count};", "workgroupBarrier();"]
            middle = "middle"

        def scaled(k: str) -> str:
            weight = f" * {self.element(self.weight, k)}" if self.weight else ""
            bias = f" + {self.element(self.bias, k)}" if self.bias else ""
            return (
                f"{self.in_row(self.output, 'group', k)} = ({x(k)} - {middle}) *"
                f" factor{weight}{bias};"
            )

        lines.append(f"""\
f32 squares = 0.0;
{self.along(lambda k: f"squares += ({x(k)} - {middle}) * ({x(k)} - {middle});")}
{self.reduction("squares", "x + y")}
f32 factor = inverseSqrt(part[0] / {count} + {self.epsilon!r});
{self.along(scaled)}""")
        return self.rows("\n".join(lines))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Argmax(_RowOperation):
    """The first column with the largest number of each row, as i32."""

    label = "argmax"
    output: TensorView

    def kernel(self) -> Kernel:
        """The kernel: a group finds the column of one row."""
        # The shared arrays are f32. A float32 holds every integer up to 2^24, so a column is exact.
        threads, step = _ARGMAX_THREADS, _ARGMAX_THREADS * _ARGMAX_LOADS
        whole = self.inner - self.inner % step
        places = [f"k + {i * threads}u" for i in range(_ARGMAX_LOADS)]
        loads = [
            f"f32 x{i} = {self.in_row(self.x, 'group', f'({at})')};" for i, at in enumerate(places)
        ]
        larger = [
            f"if (x{i} > highest) {{ highest = x{i}; column = {at}; }}"
            for i, at in enumerate(places)
        ]
        body = f"""\
f32 highest = -3.4e38;
u32 column = 0u;
for (u32 k = lane; k < {whole}u; k += {step}u) {{
  {" ".join(loads)}
  {" ".join(larger)}
}}
for (u32 k = lane + {whole}u; k < {self.inner}u; k += {threads}u) {{
  f32 x = {self.in_row(self.x, "group", "k")};
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
if (lane == 0u) {{ {self.flat(self.output, "group")} = i32(columns[0]); }}"""
        shared = (("values", threads), ("columns", threads))
        return self.compose(body, self.x.count // self.inner, threads=threads, shared=shared)
