"""The softmax of each row."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, each
from overhead.decode.lowering.operation import Operation, threads_along


@dataclasses.dataclass(frozen=True, kw_only=True)
class Softmax(Operation):
    """``output = exp(x - max) / sum of exp(x - max)`` for each row, which is what the last dimension spans."""

    label = "softmax"
    x: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        inner = self.x.shape[-1]
        threads = threads_along(inner)

        def x(k: str) -> str:
            return self.in_row(self.x, "group", k)

        def along(statement: Callable[[str], str]) -> str:
            return each(inner, statement, threads=threads)

        body = f"""\
f32 found = -3.4e38;
{along(lambda k: f"found = max(found, {x(k)});")}
part[lane] = found;
{combined("part", "max(x, y)", threads)}
f32 highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
{along(lambda k: f"sum += exp({x(k)} - highest);")}
part[lane] = sum;
{combined("part", "x + y", threads)}
{along(lambda k: f"{self.in_row(self.output, 'group', k)} = exp({x(k)} - highest) / part[0];")}"""
        return self.compose(body, self.x.count // inner, threads=threads, shared=(("part", threads),))
