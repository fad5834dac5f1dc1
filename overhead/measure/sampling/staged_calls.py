"""The calls of a chain timed one by one, in each round between two chains of the same length without a clock inside."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from overhead.measure.fitting.data import UNSTAGED
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import Chain, sample, units

MOST, LONGEST_NS = 256, 2e6
"""Units, and ns, of one staged chain."""


def length(ladder: Ladder) -> int:
    """How many units a staged chain has: within the ladder, and short."""
    return max(1, min(MOST, ladder.ns[-1], int(LONGEST_NS / ladder.unit_ns)))


def staged(chain: Chain, n: int, clock: Clock) -> tuple[dict[str, float], int]:
    """ns a unit by stage, and ``unstaged``: the same chain's ``issue`` before and after, over n; and the units issued.

    A stage is the sum of its durations less the clock readings that they hold, over n. The clock's cost is the trimmed
    mean of readings with nothing between them; its median would be quantised. Empty where the chain has no stages.
    """
    before = sample(chain, [n], clock)
    chain.prepare(1)
    chain.issue(1)
    chain.wait()
    found = chain.stages(n)
    if not found:
        return {}, units(chain, [n]) + 1
    chain.wait()
    after = sample(chain, [n], clock)
    plain = [row[1] for row in (*before, *after)]
    parts = _parts(found, n) | {UNSTAGED: sum(plain) / len(plain) / n}
    return parts, 2 * units(chain, [n]) + 1 + n


def _parts(found: Mapping[str, object], n: int) -> dict[str, float]:
    durations = {name: np.asarray(values, np.float64) for name, values in found.items()}
    readings = np.sort(durations.pop("clock"))
    tenth = readings.size // 10
    cost = float(readings[tenth : readings.size - tenth].mean())
    parts = {f"stage:{name}": float(own.sum() - own.size * cost) / n for name, own in durations.items()}
    return parts | {"stage_clock": cost}
