"""Rows written into a tensor at positions that another tensor holds, such as the new key of a token."""

from __future__ import annotations

import dataclasses

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexWrite(Operation):
    """``target[..., index[j], ...] = source[..., j, ...]`` along ``dimension``.

    An index out of range writes nothing.
    """

    label = "index_write"
    written = ("target",)
    target: TensorView
    dimension: int
    index: TensorView
    source: TensorView

    def kernel(self) -> Kernel:
        sizes = self.source.shape
        indices, inner = [], 1
        for size in reversed(sizes):
            indices.append(f"i / {inner}u % {size}u" if size > 1 else "0u")
            inner *= size
        indices.reverse()
        which = indices[self.dimension]
        indices[self.dimension] = "at"
        body = f"""\
u32 i = group * {GROUP_THREADS}u + lane;
if (i < {self.source.count}u) {{
  u32 at = u32({self.flat(self.index, which)});
  if (at < {self.target.shape[self.dimension]}u) {{
    {self.element(self.target, *indices)} = {self.flat(self.source, "i")};
  }}
}}"""
        return self.compose(body, -(-self.source.count // GROUP_THREADS))
