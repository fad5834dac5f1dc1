"""Scaled dot-product attention: one group of threads for each query."""

from __future__ import annotations

import dataclasses

from overhead.lowering.buffers import View
from overhead.lowering.kernel import Kernel, combined
from overhead.lowering.operation import THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(Operation):
    """``softmax(query key^T * scale + mask) value``. Shapes: (batch, heads, rows, width).

    Keys and values may have fewer heads than queries; neighbouring heads then share them. ``mask``: truth values (u32:
    0 hides a key) or numbers (f32) to add, broadcast to (batch, heads, queries, keys). ``causal``: hide later keys.
    """

    query: View
    key: View
    value: View
    mask: View | None
    scale: float
    causal: bool
    output: View

    @property
    def label(self) -> str:
        return "attention"

    @property
    def reads(self) -> tuple[View, ...]:
        return tuple(view for view in (self.query, self.key, self.value, self.mask) if view is not None)

    @property
    def writes(self) -> tuple[View, ...]:
        return (self.output,)

    def kernel(self) -> Kernel:
        batch, heads, queries, width = self.query.shape
        keys, deep = self.key.shape[2], self.value.shape[3]
        shared_by = heads // self.key.shape[1]
        head = f"head / {shared_by}u" if shared_by > 1 else "head"
        row = "row" if queries > 1 else "0u"
        item = "item" if batch > 1 else "0u"
        start = [f"u32 head = group / {queries}u % {heads}u;" if queries * batch > 1 else "u32 head = group;"]
        start += [f"u32 row = group % {queries}u;"] * (queries > 1)
        start += [f"u32 item = group / {queries * heads}u;"] * (batch > 1)
        key = self.element(self.key, item, head, "j", "d")
        query = self.element(self.query, item, "head", row, "d")
        value = self.element(self.value, item, head, "j", "d")
        score = self._masked(f"sum * {self.scale!r}", (batch, heads, queries, keys), item, row)
        body = f"""\
{chr(10).join(start)}
f32 highest = -3.4e38;
for (u32 j = lane; j < {keys}u; j += {THREADS}u) {{
  f32 sum = 0.0;
  for (u32 d = 0u; d < {width}u; d += 1u) {{ sum += {query} * {key}; }}
  f32 score = {score};
  scores[j] = score;
  highest = max(highest, score);
}}
part[lane] = highest;
{combined("part", "max(x, y)", THREADS)}
highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
for (u32 j = lane; j < {keys}u; j += {THREADS}u) {{
  f32 weight = exp(scores[j] - highest);
  scores[j] = weight;
  sum += weight;
}}
part[lane] = sum;
{combined("part", "x + y", THREADS)}
for (u32 d = lane; d < {deep}u; d += {THREADS}u) {{
  f32 mixed = 0.0;
  for (u32 j = 0u; j < {keys}u; j += 1u) {{ mixed += scores[j] * {value}; }}
  {self.element(self.output, item, "head", row, "d")} = mixed / part[0];
}}"""
        return self.compose(body, batch * heads * queries, shared=(("part", THREADS), ("scores", keys)))

    def _masked(self, score: str, shape: tuple[int, ...], item: str, row: str) -> str:
        if self.causal:
            score = f"select(-3.4e38, {score}, j <= {row})"
        if self.mask is None:
            return score
        mask = self.element(self.mask.broadcast(shape), item, "head", row, "j")
        return f"select(-3.4e38, {score}, {mask} != 0u)" if self.mask.number == "u32" else f"{score} + {mask}"
