"""Scaled dot-product attention: one group of threads for each query."""

from __future__ import annotations

import dataclasses
from textwrap import indent

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, loop, reduction
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(Operation):
    """``softmax(query key^T * scale + mask) value``. Shapes: (batch, heads, rows, width).

    Keys and values may have fewer heads than queries; neighbouring heads then share them. ``mask``:
    truth values (u32: 0 hides a key) or numbers (f32) to add, broadcast to (batch, heads, queries,
    keys). ``causal``: hide later keys.
    """

    label = "attention"
    query: TensorView
    key: TensorView
    value: TensorView
    mask: TensorView | None
    scale: float
    causal: bool
    output: TensorView

    @property
    def _shared_by(self) -> int:
        """Heads of queries for each head of keys."""
        return self.query.shape[1] // self.key.shape[1]

    def kernel(self) -> Kernel:
        """The kernel: a group of threads computes the output of one head and query row."""
        batch, heads, queries, width = self.query.shape
        keys, deep = self.key.shape[2], self.value.shape[3]
        item, row = "item" if batch > 1 else "0u", "row" if queries > 1 else "0u"
        first = [
            (
                f"u32 head = group / {queries}u % {heads}u;"
                if queries * batch > 1
                else "u32 head = group;"
            )
        ]
        first += [f"u32 row = group % {queries}u;"] * (queries > 1)
        first += [f"u32 item = group / {queries * heads}u;"] * (batch > 1)
        before, before_score, before_sum = self._with_cache(item)

        def key(d: str) -> str:
            return (
                f"sum += {self.element(self.query, item, 'head', row, d)} *"
                f" {self._key_at(item, d)};"
            )

        def value(j: str) -> str:
            return f"mixed += scores[{j}] * {self._value_at(item, j)};"

        turns = f"for (u32 j = lane; j < {keys}u; j += {GROUP_THREADS}u) {{"
        lines = [*first, *before, "f32 highest = -3.4e38;", turns]
        lines += [*before_score, "  f32 sum = 0.0;", indent(loop(width, key), "  ")]
        lines.append(f"""\
  f32 score = {self._masked(f"sum * {self.scale!r}", (batch, heads, queries, keys), item, row)};
  scores[j] = score;
  highest = max(highest, score);
}}
part[lane] = highest;
{reduction("part", "max(x, y)", GROUP_THREADS)}
highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
{turns}
  f32 weight = exp(scores[j] - highest);
  scores[j] = weight;
  sum += weight;
}}
part[lane] = sum;
{reduction("part", "x + y", GROUP_THREADS)}
for (u32 d = lane; d < {deep}u; d += {GROUP_THREADS}u) {{""")
        lines += [*before_sum, "  f32 mixed = 0.0;", indent(loop(keys, value), "  ")]
        lines.append(
            f"  {self.element(self.output, item, 'head', row, 'd')} = mixed / part[0];\n}}"
        )
        shared = (("part", GROUP_THREADS), ("scores", keys))
        return self.compose("\n".join(lines), batch * heads * queries, shared=shared)

    def _with_cache(self, item: str) -> tuple[list[str], list[str], list[str]]:
        """Further statements: at the start, before each score, and before each sum of values."""
        return [], [], []

    def _key_at(self, item: str, d: str) -> str:
        """Number ``d`` of key ``j``."""
        return self._in_head(self.key, item, "j", d)

    def _value_at(self, item: str, j: str) -> str:
        """Number ``d`` of a value."""
        return self._in_head(self.value, item, j)

    def _in_head(self, view: TensorView, item: str, row: str, d: str = "d") -> str:
        """A number of a tensor of keys or values, in the head of the group."""
        head = f"head / {self._shared_by}u" if self._shared_by > 1 else "head"
        return self.element(view, item, head, row, d)

    def _masked(self, score: str, shape: tuple[int, ...], item: str, row: str) -> str:
        """The expression of a score after the mask. ``shape``: (batch, heads, queries, keys)."""
        if self.causal:
            score = f"select(-3.4e38, {score}, j <= {row})"
        if self.mask is None:
            return score
        mask = self.element(self.mask.broadcast(shape), item, "head", row, "j")
        return (
            f"select(-3.4e38, {score}, {mask} != 0u)"
            if self.mask.number == "u32"
            else f"{score} + {mask}"
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CachedAttention(Attention):
    """Attention of one query row. ``key`` and ``value`` are the cache; row ``index`` of both is
    replaced first.

    ``new_key`` and ``new_value`` have one row. ``index`` has one element; out of range, it replaces
    nothing.
    """

    label = "cached_attention"
    written = ("output", "key", "value")
    new_key: TensorView
    new_value: TensorView
    index: TensorView

    @property
    def reads(self) -> tuple[TensorView, ...]:
        """The query, the new row, the index and the mask; the cache counts as written."""
        given = (self.query, self.new_key, self.new_value, self.index, self.mask)
        return tuple(view for view in given if view is not None)

    # All groups take the new row from where it was computed, because one of them is writing it into
    # the cache. They do not read the row that is being written, but another one, and drop what they
    # read.
    def _with_cache(self, item: str) -> tuple[list[str], list[str], list[str]]:
        keys = self.key.shape[2]
        copies = [
            f"  for (u32 d = lane; d < {new.shape[3]}u; d += {GROUP_THREADS}u) "
            f"{{ {self._in_head(cache, item, 'at')} = {self._in_head(new, item, '0u')}; }}"
            for cache, new in ((self.key, self.new_key), (self.value, self.new_value))
        ]
        at = f"u32 at = u32({self.flat(self.index, '0u')});"
        owner = f"if (head % {self._shared_by}u == 0u && at < {keys}u) {{"
        other = f"u32 other = select(0u, {min(1, keys - 1)}u, at == 0u);"
        newest = f"  f32 newest = {self._in_head(self.new_value, item, '0u')};"
        return (
            [at, owner, *copies, "}", other],
            ["  u32 safe = select(j, other, j == at);"],
            [newest],
        )

    def _key_at(self, item: str, d: str) -> str:
        cached, new = (
            self._in_head(self.key, item, "safe", d),
            self._in_head(self.new_key, item, "0u", d),
        )
        return f"select({cached}, {new}, j == at)"

    def _value_at(self, item: str, j: str) -> str:
        return (
            f"select({self._in_head(self.value, item, f'select({j}, other, {j} == at)')}, newest,"
            f" {j} == at)"
        )
