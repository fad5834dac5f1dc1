"""What each tool answers, and how long it is asked."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

INTERVAL = 0.01
"""The relative width that each tool is timed to, by its own account."""


TRIM = 0.1
"""The share left out at either end of rounds' slopes, here and where tools take turns: what was preempted."""


PATIENCE_S = float(os.environ.get("OVERHEAD_BENCH_PATIENCE", "20"))
"""Of each tool, to that interval; ``OVERHEAD_BENCH_PATIENCE`` sets it where GPU time is short."""


TO = " to 1 %"
"""Ends the name of our quantity whose answer is the seconds to that interval."""


@dataclass(frozen=True)
class ToolAnswer:
    """What a tool says of one quantity, ns; ``reason`` why it says nothing. ``seconds``: to its own 1 % interval,
    None where it did not get there in ``PATIENCE_S``, with ``rule``: what it calls its interval."""

    tool: str
    subject: str
    quantity: str
    value: float | None = None
    reason: str = ""
    seconds: float | None = None
    rule: str = ""


def narrow(values: Sequence[float], width: float) -> bool:
    """Whether the 95 % interval of their trimmed mean has this relative half-width, from six values on.

    K. K. Yuen, The two-sample trimmed t for unequal population variances, Biometrika 61 (1974) 165: Student's t on the
    winsorized variance; ``scipy.stats.mstats.trimmed_mean_ci``.
    """
    from scipy.stats.mstats import trimmed_mean_ci

    if len(values) < 6:
        return False
    low, high = map(float, trimmed_mean_ci(values, (TRIM, TRIM)))
    return low > 0 and high - low <= width * (high + low)


def repeat_until(
    once: Callable[[], Sequence[float]], width: float, patience: float, now: Callable[[], float] = time.perf_counter
) -> tuple[float | None, list[float]]:
    """Repeat a tool, keeping all its values, until the quartiles of all lie within ``width`` of the median.

    Seconds that it took, None where ``patience`` seconds did not do, and the values.
    """
    start, values = now(), list[float]()
    while now() - start < patience:
        values += once()
        if len(values) >= 4:
            low, middle, high = statistics.quantiles(values, n=4)
            if middle > 0 and (high - low) <= width * middle:
                return now() - start, values
    return None, values


@dataclass
class Seen:
    """A measurement as it went: the raw rounds, and what was taken once."""

    rounds: dict[str, list[Any]] = field(default_factory=dict)
    one_off: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        """Sort one event of ``measure_cases``."""
        from overhead.measure.sampling.events import Dropped, OneOffMeasured, RoundMeasured

        if isinstance(event, RoundMeasured):
            self.rounds.setdefault(event.case, []).append(event.round)
        elif isinstance(event, OneOffMeasured):
            self.one_off.setdefault(event.case, {})[event.name] = event.one_off
        elif isinstance(event, Dropped):
            self.dropped[event.case] = f"{event.status}: {event.reason}"

    def process(self, case: str) -> Any:
        """One case's process, as the estimator takes it."""
        from overhead.measure.fitting.data import Process

        return Process(self.rounds.get(case, []), self.one_off.get(case, {}))
