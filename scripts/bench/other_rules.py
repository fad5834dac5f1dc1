"""What other rules would say of one dispatch on the same fake stack, to print beside the truth. All in ns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from overhead.measure.fitting.data import Process
from overhead.measure.fitting.one_process import wall_rows
from tests.fakes.machine import FakeClock, FastFakeChain

MIN_RUN_NS = 0.2e9


def naive(process: Process, chain: FastFakeChain, clock: FakeClock) -> float:
    """T(1)."""
    return float(np.median(process.values("naive")))


def divided(process: Process, chain: FastFakeChain, clock: FakeClock) -> float:
    """T(100) / 100."""
    return float(np.median([row[2] for row in chain.sample([100] * 5, False)])) / 100


def origin(process: Process, chain: FastFakeChain, clock: FakeClock) -> float:
    """The least-squares slope of a line through the origin, over the same samples as ours."""
    wall = wall_rows(process.rounds)
    return float((wall[:, 0] * wall[:, 2]).sum() / (wall[:, 0] ** 2).sum())


def least_squares(process: Process, chain: FastFakeChain, clock: FakeClock) -> float:
    """The least-squares slope with an intercept, over the same samples as ours."""
    wall = wall_rows(process.rounds)
    return float(np.polyfit(wall[:, 0], wall[:, 2], 1)[0])


def torch_rule(process: Process, chain: FastFakeChain, clock: FakeClock) -> float:
    """``torch.utils.benchmark.Timer.blocked_autorange()``: T(n) / n, its median over blocks for 0.2 s.

    n grows tenfold until T(0) is at most a ten-thousandth of T(n) and T(n) at least 0.2 ms, or T(n) passes 0.2 s.
    """
    empty = float(np.median([row[2] for row in chain.sample([0] * 5, False)]))
    number = 1
    while True:
        taken = max(1, chain.sample([number], False)[0][2])
        if (empty / taken <= 1e-4 and taken >= MIN_RUN_NS / 1000) or taken > MIN_RUN_NS or number * 10 > 2**31 - 1:
            break
        number *= 10
    blocks: list[float] = []
    while sum(blocks) < MIN_RUN_NS:
        blocks.append(float(chain.sample([number], False)[0][2]))
    return float(np.median(blocks)) / number


Rule = Callable[[Process, FastFakeChain, FakeClock], float]
RULES: dict[str, Rule] = {
    "T(1)": naive,
    "T(100)/100": divided,
    "through origin": origin,
    "least squares": least_squares,
    "torch Timer": torch_rule,
}
