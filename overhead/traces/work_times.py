"""When the device works, and for how long until a moment."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterable

from overhead.traces.trace import TimeRange, union_of_spans


class WorkTimes:
    """The times in which at least one of several pieces of work runs; ns."""

    def __init__(self, times: Iterable[TimeRange]) -> None:
        ranges = list(times)
        self._ends = sorted(end for _, end in ranges)
        self._busy = union_of_spans(ranges)
        self._worked_before = [0.0]  # how long the device has worked before each busy range
        for start, end in self._busy:
            self._worked_before.append(self._worked_before[-1] + end - start)

    def last_end(self, at: float) -> float:
        """When the last work ended of all that has ended by the time ``at``; minus infinity if none
        has.
        """
        ended = bisect.bisect_right(self._ends, at)
        return self._ends[ended - 1] if ended else -math.inf

    def busy_until(self, at: float) -> float:
        """How long the device has worked until then, ns."""
        begun = bisect.bisect_right(self._busy, at, key=_begin)
        if not begun:
            return 0.0
        start, end = self._busy[begun - 1]
        return self._worked_before[begun - 1] + min(at, end) - start

    def busy_between(self, start: float, end: float) -> float:
        """How long the device works in this time, ns."""
        return self.busy_until(end) - self.busy_until(start)

    def busy_share(self, start: float, end: float) -> float:
        """In which share of this time the device works."""
        if end <= start:
            return 0.0
        return self.busy_between(start, end) / (end - start)


def _begin(time_range: TimeRange) -> float:
    return time_range[0]
