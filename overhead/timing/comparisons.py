"""The ratio of a user's own calls, which ``overhead time`` prints."""

from __future__ import annotations

from overhead.named_comparisons import NamedComparison, register_comparison

register_comparison(
    NamedComparison(
        "call-ratio",
        "complete",
        of={"stack": "call"},
        against={"stack": "call", "position": 0},
        differs=frozenset({"position"}),
    )
)
