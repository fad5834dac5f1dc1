"""Scaled dot-product attention: one group of threads for each query."""

from __future__ import annotations

import dataclasses
from textwrap import indent
from typing import NamedTuple

from overhead.decode.lowering.buffers import TensorView
from overhead.decode.lowering.kernel import Kernel, loop, reduction
from overhead.decode.lowering.operation import GROUP_THREADS, Operation


class CacheStatements(NamedTuple):
    """The statements that an attention which also writes its cache adds to the kernel: at the
    start, before each score, and before each sum of values.
    """

    at_start: list[str]
    before_score: list[str]
    before_sum: list[str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention(Operation):
    """Attention as one dispatch: ``softmax(query key^T * scale + mask) value``. Shapes are (batch,
    heads, rows, width). Keys and values may have fewer heads than queries; neighbouring heads of
    queries then share them.

    ``mask``: truth values (u32: 0 hides a key) or numbers (f32) to add, broadcast to (batch, heads,
    queries, keys). ``causal``: hide later keys.
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
        """The kernel: a group of threads computes one row of the output, for one query of a head.

        First each thread computes the scores of some keys into ``scores``, which the group shares.
        Then the scores become weights. At last each thread computes some numbers of the output:
        the sums of the values, times their weights.
        """
        batch, heads, queries, width = self.query.shape
        keys = self.key.shape[2]
        value_width = self.value.shape[3]
        # Source text of the index in the batch and of the query; a single one has the index 0.
        item = "item" if batch > 1 else "0u"
        row = "row" if queries > 1 else "0u"
        # Statements that only an attention which writes its cache adds; here none.
        cache = self._cache_statements(item)
        score = self._masked(f"sum * {self.scale!r}", item, row)

        def add_to_score(d: str) -> str:
            query = self.element(self.query, item, "head", row, d)
            return f"sum += {query} * {self._key_at(item, d)};"

        def add_to_mixed(j: str) -> str:
            return f"mixed += scores[{j}] * {self._value_at(item, j)};"

        each_key = f"for (u32 j = lane; j < {keys}u; j += {GROUP_THREADS}u) {{"
        lines = [
            # ``head``, and where there are several ``row`` and ``item``, from the number of the
            # group.
            *self._index_statements(),
            *cache.at_start,
            # About the lowest f32, since WGSL has no infinity.
            "f32 highest = -3.4e38;",
            each_key,
            *cache.before_score,
            "  f32 sum = 0.0;",
            indent(loop(width, add_to_score), "  "),
        ]
        # The highest score is subtracted before ``exp``, so that no weight overflows.
        lines.append(f"""\
  f32 score = {score};
  scores[j] = score;
  highest = max(highest, score);
}}
part[lane] = highest;
{reduction("part", "max(x, y)", GROUP_THREADS)}
highest = part[0];
workgroupBarrier();
f32 sum = 0.0;
{each_key}
  f32 weight = exp(scores[j] - highest);
  scores[j] = weight;
  sum += weight;
}}
part[lane] = sum;
{reduction("part", "x + y", GROUP_THREADS)}
for (u32 d = lane; d < {value_width}u; d += {GROUP_THREADS}u) {{""")
        lines += [
            *cache.before_sum,
            "  f32 mixed = 0.0;",
            indent(loop(keys, add_to_mixed), "  "),
            f"  {self.element(self.output, item, 'head', row, 'd')} = mixed / part[0];\n}}",
        ]
        # ``part``: a number of each thread, to be combined into ``part[0]``.
        shared = (("part", GROUP_THREADS), ("scores", keys))
        return self.compose("\n".join(lines), batch * heads * queries, shared=shared)

    def _index_statements(self) -> list[str]:
        """Statements by which a group finds what it computes: ``head``, ``row`` (the query) and
        ``item`` (the sequence of the batch), from the number of the group. Those of which there is
        only one are not declared.
        """
        batch, heads, queries, _ = self.query.shape
        if queries * batch == 1:
            return ["u32 head = group;"]
        # Groups are counted query after query, then head after head, then sequence after sequence.
        statements = [f"u32 head = group / {queries}u % {heads}u;"]
        if queries > 1:
            statements.append(f"u32 row = group % {queries}u;")
        if batch > 1:
            statements.append(f"u32 item = group / {queries * heads}u;")
        return statements

    def _cache_statements(self, item: str) -> CacheStatements:
        """Further statements of an attention that writes its cache; here none."""
        return CacheStatements([], [], [])

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

    def _masked(self, score: str, item: str, row: str) -> str:
        """The expression of a score in which the keys that a query may not see are hidden: they get
        the lowest f32, so their weight is zero.

        ``score``: the expression without the mask. ``item``, ``row``: the texts of the indices of
        the sequence and of the query.
        """
        # ``select(a, b, condition)`` is b where the condition holds, else a. ``j``: the number of
        # the key. ``causal``: a query sees no later key.
        if self.causal:
            score = f"select(-3.4e38, {score}, j <= {row})"
        if self.mask is None:
            return score
        batch, heads, queries, _ = self.query.shape
        scores_shape = (batch, heads, queries, self.key.shape[2])
        mask = self.element(self.mask.broadcast(scores_shape), item, "head", row, "j")
        # A mask of truth values says which keys are seen; one of numbers is added.
        if self.mask.number == "u32":
            return f"select(-3.4e38, {score}, {mask} != 0u)"
        return f"{score} + {mask}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CachedAttention(Attention):
    """Attention of one new token, which first writes its key and value into the cache. ``key`` and
    ``value`` are the cache. ``new_key`` and ``new_value``, each one row, replace its row ``index``,
    which has one element; out of range, it replaces nothing.
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

    def _cache_statements(self, item: str) -> CacheStatements:
        """Statements that copy the new row into row ``at`` of the cache, and statements by which no
        thread reads that row from the cache.

        One group for each head of keys copies, while the others compute already and cannot wait for
        it. So all groups take the new row from where it was computed. In place of row ``at`` they
        read another row of the cache (``other``, ``safe``), and drop what they read.
        """
        # ``select(a, b, condition)`` is b where the condition holds, else a. ``j``: the row that a
        # thread would read.
        # ``other`` is row 1 if ``at`` is row 0, else row 0; a cache of one row has only that.
        # Of the heads of queries that share a head of keys the first one copies.
        keys = self.key.shape[2]
        at_start = [
            f"u32 at = u32({self.flat_element(self.index, '0u')});",
            f"if (head % {self._shared_by}u == 0u && at < {keys}u) {{",
            self._copy_statement(self.key, self.new_key, item),
            self._copy_statement(self.value, self.new_value, item),
            "}",
            f"u32 other = select(0u, {min(1, keys - 1)}u, at == 0u);",
        ]
        safe = "  u32 safe = select(j, other, j == at);"
        newest = f"  f32 newest = {self._in_head(self.new_value, item, '0u')};"
        return CacheStatements(at_start, before_score=[safe], before_sum=[newest])

    def _copy_statement(self, cache: TensorView, new: TensorView, item: str) -> str:
        """A loop that copies the new row into row ``at`` of the cache."""
        copied = f"{self._in_head(cache, item, 'at')} = {self._in_head(new, item, '0u')};"
        width = new.shape[3]
        return f"  for (u32 d = lane; d < {width}u; d += {GROUP_THREADS}u) {{ {copied} }}"

    def _key_at(self, item: str, d: str) -> str:
        """Number ``d`` of key ``j``: of the new key where that is in this row."""
        cached = self._in_head(self.key, item, "safe", d)
        new = self._in_head(self.new_key, item, "0u", d)
        return f"select({cached}, {new}, j == at)"

    def _value_at(self, item: str, j: str) -> str:
        """Number ``d`` of a value: of the new value where that is in this row."""
        cached = self._in_head(self.value, item, f"select({j}, other, {j} == at)")
        return f"select({cached}, newest, {j} == at)"
