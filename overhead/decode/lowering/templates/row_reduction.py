"""The sum, mean or maximum of each row."""

from __future__ import annotations

import dataclasses
from typing import Literal

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, each
from overhead.decode.lowering.operation import Operation, threads_along

_HOW = {"sum": "x + y", "mean": "x + y", "max": "max(x, y)"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RowReduction(Operation):
    """One number for each row. A row is what the last dimension spans. ``output`` has one element for each row."""

    kind: Literal["sum", "mean", "max"]
    x: TensorView
    output: TensorView

    @property
    def label(self) -> str:
        return f"row_{self.kind}"

    def kernel(self) -> Kernel:
        inner = self.x.shape[-1]
        threads = threads_along(inner)
        start, taken = ("-3.4e38", "max(found, {})") if self.kind == "max" else ("0.0", "found + {}")
        body = f"""\
f32 found = {start};
{each(inner, lambda k: f"found = {taken.format(self.in_row(self.x, 'group', k))};", threads=threads)}
part[lane] = found;
{combined("part", _HOW[self.kind], threads)}
if (lane == 0u) {{ {self.flat(self.output, "group")} = part[0]{f" / {float(inner)!r}" * (self.kind == "mean")}; }}"""
        return self.compose(body, self.x.count // inner, threads=threads, shared=(("part", threads),))
