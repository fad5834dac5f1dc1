"""Attention that also writes the new key and value into the cache."""

from __future__ import annotations

import dataclasses
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, each
from overhead.decode.lowering.operation import GROUP_THREADS
from overhead.decode.lowering.templates.attention import Attention


@dataclasses.dataclass(frozen=True, kw_only=True)
class CachedAttention(Attention):
    """Attention of one query row. ``key`` and ``value`` are the cache; row ``index`` of both is replaced first.

    ``new_key`` and ``new_value`` have one row. ``index`` has one element; out of range, it replaces nothing.
    """

    label = "cached_attention"
    written = ("output", "key", "value")
    new_key: TensorView
    new_value: TensorView
    index: TensorView

    @property
    def reads(self) -> tuple[TensorView, ...]:
        given = (self.query, self.new_key, self.new_value, self.index, self.mask)
        return tuple(view for view in given if view is not None)

    def kernel(self) -> Kernel:
        batch, heads, _, width = self.query.shape
        keys, deep = self.key.shape[2], self.value.shape[3]
        start, item, head, shared_by = self.place_of_group()
        score = self.masked(f"sum * {self.scale!r}", (batch, heads, 1, keys), item, "0u")

        def at(view: TensorView, row: str, d: str = "d") -> str:
            return self.element(view, item, head, row, d)

        # All groups take the new row from where it was computed, because one of them is writing it into the cache.
        # They do not read the row that is being written, but another one, and drop what they read.
        def key(d: str) -> str:
            query = self.element(self.query, item, "head", "0u", d)
            return f"sum += {query} * select({at(self.key, 'safe', d)}, {at(self.new_key, '0u', d)}, j == at);"

        def value(j: str) -> str:
            cached = at(self.value, f"select({j}, other, {j} == at)")
            return f"mixed += scores[{j}] * select({cached}, newest, {j} == at);"

        body = f"""\
{start}
u32 at = u32({self.flat(self.index, "0u")});
if (head % {shared_by}u == 0u && at < {keys}u) {{
  for (u32 d = lane; d < {width}u; d += {GROUP_THREADS}u) {{ {at(self.key, "at")} = {at(self.new_key, "0u")}; }}
  for (u32 d = lane; d < {deep}u; d += {GROUP_THREADS}u) {{ {at(self.value, "at")} = {at(self.new_value, "0u")}; }}
}}
u32 other = select(0u, {min(1, keys - 1)}u, at == 0u);
f32 highest = -3.4e38;
for (u32 j = lane; j < {keys}u; j += {GROUP_THREADS}u) {{
  u32 safe = select(j, other, j == at);
  f32 sum = 0.0;
{indent(each(width, key), "  ")}
  f32 score = {score};
  scores[j] = score;
  highest = max(highest, score);
}}
{self.weigh(keys)}
for (u32 d = lane; d < {deep}u; d += {GROUP_THREADS}u) {{
  f32 newest = {at(self.new_value, "0u")};
  f32 mixed = 0.0;
{indent(each(keys, value), "  ")}
  {self.element(self.output, item, "head", "0u", "d")} = mixed / part[0];
}}"""
        return self.compose(body, batch * heads, shared=(("part", GROUP_THREADS), ("scores", keys)))
