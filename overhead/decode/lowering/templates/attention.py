"""Scaled dot-product attention: one group of threads for each query."""

from __future__ import annotations

import dataclasses
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, combined, each
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(Operation):
    """``softmax(query key^T * scale + mask) value``. Shapes: (batch, heads, rows, width).

    Keys and values may have fewer heads than queries; neighbouring heads then share them. ``mask``: truth values (u32:
    0 hides a key) or numbers (f32) to add, broadcast to (batch, heads, queries, keys). ``causal``: hide later keys.
    """

    label = "attention"
    query: TensorView
    key: TensorView
    value: TensorView
    mask: TensorView | None
    scale: float
    causal: bool
    output: TensorView

    def kernel(self) -> Kernel:
        batch, heads, queries, width = self.query.shape
        keys, deep = self.key.shape[2], self.value.shape[3]
        start, item, head, _ = self.place_of_group()
        row = "row" if queries > 1 else "0u"
        score = self.masked(f"sum * {self.scale!r}", (batch, heads, queries, keys), item, row)

        def product(d: str) -> str:
            return f"{self.element(self.query, item, 'head', row, d)} * {self.element(self.key, item, head, 'j', d)}"

        body = f"""\
{start}
f32 highest = -3.4e38;
for (u32 j = lane; j < {keys}u; j += {GROUP_THREADS}u) {{
  f32 sum = 0.0;
{indent(each(width, lambda d: f"sum += {product(d)};"), "  ")}
  f32 score = {score};
  scores[j] = score;
  highest = max(highest, score);
}}
{self.weigh(keys)}
for (u32 d = lane; d < {deep}u; d += {GROUP_THREADS}u) {{
  f32 mixed = 0.0;
{indent(each(keys, lambda j: f"mixed += scores[{j}] * {self.element(self.value, item, head, j, 'd')};"), "  ")}
  {self.element(self.output, item, "head", row, "d")} = mixed / part[0];
}}"""
        return self.compose(body, batch * heads * queries, shared=(("part", GROUP_THREADS), ("scores", keys)))

    def place_of_group(self) -> tuple[str, str, str, int]:
        """The place of a group: statements that find it, the batch and the head of the keys as text, and query heads
        for each head of keys.
        """
        batch, heads, queries, _ = self.query.shape
        shared_by = heads // self.key.shape[1]
        lines = [f"u32 head = group / {queries}u % {heads}u;" if queries * batch > 1 else "u32 head = group;"]
        lines += [f"u32 row = group % {queries}u;"] * (queries > 1)
        lines += [f"u32 item = group / {queries * heads}u;"] * (batch > 1)
        head = f"head / {shared_by}u" if shared_by > 1 else "head"
        return "\n".join(lines), "item" if batch > 1 else "0u", head, shared_by

    def weigh(self, keys: int) -> str:
        """Statements that turn ``scores`` into unnormalised weights, and leave their sum in ``part[0]``."""
        return f"""\
part[lane] = highest;
{combined("part", "max(x, y)", GROUP_THREADS)}
highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
for (u32 j = lane; j < {keys}u; j += {GROUP_THREADS}u) {{
  f32 weight = exp(scores[j] - highest);
  scores[j] = weight;
  sum += weight;
}}
part[lane] = sum;
{combined("part", "x + y", GROUP_THREADS)}"""

    def masked(self, score: str, shape: tuple[int, ...], item: str, row: str) -> str:
        """The expression of a score after the mask. ``shape``: (batch, heads, queries, keys)."""
        if self.causal:
            score = f"select(-3.4e38, {score}, j <= {row})"
        if self.mask is None:
            return score
        mask = self.element(self.mask.broadcast(shape), item, "head", row, "j")
        return f"select(-3.4e38, {score}, {mask} != 0u)" if self.mask.number == "u32" else f"{score} + {mask}"
