"""The step in Triton, in place: 256 words as int32, 4 programs of 64. Imported only when Triton is measured."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def step(x):  # type: ignore[no-untyped-def]
    """One step. int32 overflows in the same way as the unsigned words of other stacks."""
    at = x + tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(at, tl.load(at) * 1664525 + 1013904223)
