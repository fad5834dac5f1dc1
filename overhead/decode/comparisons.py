"""What a case of tokens says besides what was timed."""

from __future__ import annotations

from overhead.named_comparisons import register_check

register_check("logits")
"""What the comparison with float64 found."""
