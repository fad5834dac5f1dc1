"""The answer of a tool, and how long each tool is asked."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

INTERVAL = 0.01
"""The relative width that tools measure to, where they can be asked."""
TRIM = 0.1
"""The share of values left out at either end of a trimmed mean, against interrupted values."""
PATIENCE_S = float(os.environ.get("OVERHEAD_BENCH_PATIENCE", "20"))
"""The longest time per tool; ``OVERHEAD_BENCH_PATIENCE`` sets it where GPU time is short."""


@dataclass(frozen=True)
class ToolAnswer:
    """The value of one quantity by one tool, ns, or the reason why there is none."""

    tool: str
    subject: str
    quantity: str
    value: float | None = None
    reason: str = ""


def repeat_until(
    once: Callable[[], Sequence[float]], width: float, patience: float, now: Callable[[], float] = time.perf_counter
) -> list[float]:
    """All values of a tool that is repeated until its quartiles lie within ``width`` of the median.

    It ends after ``patience`` seconds all the same.
    """
    start, values = now(), list[float]()
    while now() - start < patience:
        values += once()
        if len(values) >= 4:
            low, middle, high = statistics.quantiles(values, n=4)
            if middle > 0 and (high - low) <= width * middle:
                break
    return values


@dataclass
class Seen:
    """The events of a measurement: the raw rounds, and the one-off values."""

    rounds: dict[str, list[Any]] = field(default_factory=dict)
    one_off: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, str] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        """Keep one event of ``measure_cases``."""
        from overhead.measure.sampling.events import Dropped, OneOffMeasured, RoundMeasured

        if isinstance(event, RoundMeasured):
            self.rounds.setdefault(event.case, []).append(event.round)
        elif isinstance(event, OneOffMeasured):
            self.one_off.setdefault(event.case, {})[event.name] = event.one_off
        elif isinstance(event, Dropped):
            self.dropped[event.case] = f"{event.status}: {event.reason}"

    def process(self, case: str) -> Any:
        """The ``Process`` of one case, for the estimator."""
        from overhead.measure.fitting.data import Process

        return Process(self.rounds.get(case, []), self.one_off.get(case, {}))
