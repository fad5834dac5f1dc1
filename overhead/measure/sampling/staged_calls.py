"""The calls of a chain timed one by one, in each round between two chains of the same length without such a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from overhead.measure.fitting.data import UNSTAGED
from overhead.measure.sampling.calibrate import Ladder
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.clock import Clock
from overhead.measure.sampling.window import sample

_MOST_UNITS = 256
_LONGEST_NS = 2e6


def length(ladder: Ladder) -> int:
    """The units of one staged chain: within the ladder, at most 256 and about 2 ms."""
    return max(1, min(_MOST_UNITS, ladder.ns[-1], int(_LONGEST_NS / ladder.unit_ns)))


def time_stages(chain: Chain, n: int, clock: Clock) -> tuple[dict[str, float], int]:
    """By stage ns per unit, with ``unstaged`` (``issue`` of the same chain before and after, over n); and the number of
    units issued. No stages if the chain has none.

    A stage is the sum of its durations less the clock readings inside them, over n. The cost of a reading is the
    trimmed mean of readings with nothing between them; their median would be a multiple of the clock's step.
    """
    before = sample(chain, [n], clock)
    chain.prepare(1)
    chain.issue(1)
    chain.wait()
    found = chain.stages(n)
    if not found:
        return {}, chain.units([n]) + 1
    chain.wait()
    after = sample(chain, [n], clock)
    plain = [row[1] for row in (*before, *after)]
    parts = _parts(found, n) | {UNSTAGED: sum(plain) / len(plain) / n}
    return parts, 2 * chain.units([n]) + 1 + n


def _parts(found: Mapping[str, Sequence[int]], n: int) -> dict[str, float]:
    durations = {name: np.asarray(values, np.float64) for name, values in found.items()}
    readings = np.sort(durations.pop("clock"))
    tenth = readings.size // 10
    cost = float(readings[tenth : readings.size - tenth].mean())
    parts = {f"stage:{name}": float(own.sum() - own.size * cost) / n for name, own in durations.items()}
    return parts | {"stage_clock": cost}
