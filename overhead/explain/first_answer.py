"""A first answer on the cost of a call: the slope of T(n) between two sizes of n, in one process, within seconds."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from overhead.results import Figure

_SHORT_NS = 1_000_000
_LONG_CALL_NS = 50_000_000
"""Of a longer call, the sizes are 1 and 2."""
_FEWEST_PAIRS = 3
_BLOCKS = 8


def first_answer(issue: Callable[[int], None], wait: Callable[[], object], one_ns: float, seconds: float) -> Figure:
    """The cost of one more call with its work done, ns, with the 95 % interval of this one process.

    Two sizes of n alternate. The interval is that of the medians of blocks of pairs, because neighbours are alike.
    """
    import numpy as np
    from scipy.special import stdtrit

    few = max(1, round(_SHORT_NS / one_ns))
    many = few * (2 if one_ns > _LONG_CALL_NS else 4)

    def total(n: int) -> int:
        began = time.perf_counter_ns()
        issue(n)
        wait()
        return time.perf_counter_ns() - began

    slopes: list[float] = []
    collects, end_s = gc.isenabled(), time.monotonic() + seconds
    gc.disable()
    try:
        while len(slopes) < _FEWEST_PAIRS or time.monotonic() < end_s:
            sizes = (few, many) if len(slopes) % 2 else (many, few)
            took = {n: total(n) for n in sizes}
            slopes.append((took[many] - took[few]) / (many - few))
    finally:
        if collects:
            gc.enable()
    blocks = [float(np.median(block)) for block in np.array_split(slopes, min(_BLOCKS, len(slopes)))]
    value = float(np.median(slopes))
    half = float(stdtrit(len(blocks) - 1, 0.975) * np.std(blocks, ddof=1) / len(blocks) ** 0.5)
    reason = f"a first answer, from one process: the slope between n = {few} and {many}"
    return Figure(
        name="complete", value=value, low=value - half, high=value + half, status="noisy", reason=reason, processes=1
    )
