"""What the harness adds to a window, on this machine's clock: the same sampler around a loop that does nothing."""

from __future__ import annotations

import gc
import statistics
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from overhead.measure.fitting.line import robust_line
from overhead.measure.sampling.clock import SystemClock, clock_facts
from overhead.measure.sampling.window import sample
from overhead.probes import registry
from overhead.probes.base import Chain

NS = (0, 1, 100, 250, 500, 1000, 2000)
PASSES = 100


class Nothing(Chain):
    """The loop of the cheapest real case, NumPy's, without NumPy in it."""

    synchronous = True

    def issue(self, n: int) -> None:
        for _ in repeat(None, n):
            pass

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return 0


@dataclass(frozen=True)
class Harness:
    """ns. ``window_ns``: a whole window with nothing in it; ``loop_ns``: a turn of the loop with nothing in it;
    ``real_ns``: a unit of the cheapest real case, and ``longest_ns`` its longest sample."""

    resolution_ns: int
    clock_ns: float
    cpu_clock_ns: float
    window_ns: float
    loop_ns: float
    real_name: str
    real_ns: float
    longest_ns: float

    @property
    def unit_share(self) -> float:
        """Of a unit's figure: the loop, and the window spread over the longest sample."""
        return self.loop_ns / self.real_ns

    @property
    def window_share(self) -> float:
        """Of the longest sample: what every window holds besides."""
        return self.window_ns / self.longest_ns


def measure_harness() -> Harness:
    """Nothing and NumPy's in-place add in alternation, 100 passes each. Takes about a second."""
    clock = SystemClock()
    facts = clock_facts(clock)
    probe = registry()["numpy"]
    target = probe.targets()[0]
    case = probe.space(target).base
    real, nothing = probe.open(target, case), Nothing()
    rows: dict[bool, list[list[int]]] = {False: [], True: []}
    gc.collect()
    gc.disable()
    try:
        for _ in range(PASSES):
            for is_real in rows:
                rows[is_real] += sample(real if is_real else nothing, NS, clock)
    finally:
        gc.enable()
        real.close()
    return Harness(
        resolution_ns=facts.resolution_ns,
        clock_ns=facts.cost_ns,
        cpu_clock_ns=facts.cpu_cost_ns,
        window_ns=statistics.median(row[2] for row in rows[False] if row[0] == 0),
        loop_ns=_slope(rows[False]),
        real_name=f"{target.key} {case.key}",
        real_ns=_slope(rows[True]),
        longest_ns=statistics.median(row[2] for row in rows[True] if row[0] == NS[-1]),
    )


def _slope(rows: list[list[int]]) -> float:
    n, _, total = np.array([row for row in rows if row[0]], dtype=np.float64).T
    line = robust_line(n, total)
    assert line is not None
    return line.slope
