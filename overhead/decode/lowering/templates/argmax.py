"""The column of the largest number in each row."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import Operation

_THREADS = 256
_LOADS = 16
"""Loads of a thread that do not wait for each other."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Argmax(Operation):
    """The first column with the largest number. A row is what the last dimension spans. The output is i32."""

    label = "argmax"
    x: TensorView
    output: TensorView

    def kernel(self) -> Kernel:
        # The shared arrays are f32. A float32 holds every integer up to 2^24, so a column is exact.
        inner = self.x.shape[-1]
        whole = inner - inner % (_THREADS * _LOADS)
        places = [f"k + {i * _THREADS}u" for i in range(_LOADS)]
        loads = [f"f32 x{i} = {self.in_row(self.x, 'group', f'({at})')};" for i, at in enumerate(places)]
        larger = [f"if (x{i} > highest) {{ highest = x{i}; column = {at}; }}" for i, at in enumerate(places)]
        body = f"""\
f32 highest = -3.4e38;
u32 column = 0u;
for (u32 k = lane; k < {whole}u; k += {_THREADS * _LOADS}u) {{
  {" ".join(loads)}
  {" ".join(larger)}
}}
for (u32 k = lane + {whole}u; k < {inner}u; k += {_THREADS}u) {{
  f32 x = {self.in_row(self.x, "group", "k")};
  if (x > highest) {{
    highest = x;
    column = k;
  }}
}}
values[lane] = highest;
columns[lane] = f32(column);
for (u32 apart = {_THREADS // 2}u; apart > 0u; apart = apart / 2u) {{
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
        shared = (("values", _THREADS), ("columns", _THREADS))
        return self.compose(body, self.x.count // inner, threads=_THREADS, shared=shared)
