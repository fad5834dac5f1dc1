"""The answer of a tool, and the time limits of tools."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from overhead.results import Why

INTERVAL = 0.01
"""The relative width at which tools stop measuring, if it can be set. Chosen, not measured."""
TRIM = 0.1
"""The share of values that a trimmed mean leaves out at each end, to remove interrupted values.
Chosen, not measured.
"""
_LEAST_VALUES = 4
"""Fewer values have no quartiles to judge by. Chosen, not measured."""
PATIENCE_S = float(os.environ.get("OVERHEAD_BENCH_PATIENCE", "20"))
"""The longest time per tool, s. ``OVERHEAD_BENCH_PATIENCE`` can reduce it to save GPU time."""


@dataclass(frozen=True)
class ToolAnswer:
    """The value of one quantity from one tool, ns, or the reason why there is none."""

    tool: str
    subject: str
    quantity: str
    value: float | None = None
    reason: Why = ""


def repeat_until(
    once: Callable[[], Sequence[float]],
    width: float,
    patience: float,
    now: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Repeat a tool until its quartiles lie within ``width`` of the median, and return all its
    values.

    Stops after ``patience`` seconds in any case.
    """
    start = now()
    values: list[float] = []
    while now() - start < patience:
        values += once()
        if len(values) < _LEAST_VALUES:
            continue
        low, middle, high = statistics.quantiles(values, n=4)
        if middle > 0 and high - low <= width * middle:
            break
    return values


@dataclass
class Seen:
    """Collects the events of a measurement: the raw rounds and the one-off values."""

    rounds: dict[str, list[Any]] = field(default_factory=dict)
    one_off: dict[str, dict[str, Any]] = field(default_factory=dict)
    dropped: dict[str, Why] = field(default_factory=dict)

    def take(self, event: Any) -> None:
        """Store one event of ``measure_cases``."""
        from overhead.results import FailedEntry, OneOffEntry, RoundEntry, about

        if isinstance(event, RoundEntry):
            self.rounds.setdefault(event.case, []).append(event)
        elif isinstance(event, OneOffEntry):
            self.one_off.setdefault(event.case, {})[event.name] = event
        elif isinstance(event, FailedEntry):
            self.dropped[event.case] = about(event.status, event.reason)

    def process(self, case: str) -> Any:
        """The values of one case as a ``Process`` for the estimator."""
        from overhead.measure.fitting.one_process import Process

        return Process(self.rounds.get(case, []), self.one_off.get(case, {}))
