"""Look-ups in time: which range holds a moment, and what starts within a time."""

from __future__ import annotations

import bisect
import operator
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Generic, NamedTuple, TypeVar

_Value = TypeVar("_Value")
start_of = operator.attrgetter("start")
"""The start of an event, call, operation or piece of device work, ns: to sort and to search by."""
_DEEPEST = 8
"""A moment is looked for in so many ranges that begin before it: ranges of marks and of outermost
operations do not nest deeper. Chosen, not measured; a larger number costs time in long traces.
"""


class Span(NamedTuple, Generic[_Value]):
    """A time of one thread, ns, and what holds it."""

    thread: str
    start: float
    end: float
    value: _Value


class Spans(Generic[_Value]):
    """Times of threads (spans), each with a value such as an operation or a line. Finds the span of
    a thread that holds a moment.
    """

    def __init__(self, spans: Iterable[Span[_Value]]) -> None:
        self._by_thread: dict[str, list[Span[_Value]]] = defaultdict(list)
        for span in sorted(spans, key=start_of):
            self._by_thread[span.thread].append(span)
        self._starts: dict[str, list[float]] = {}
        for thread, of_thread in self._by_thread.items():
            self._starts[thread] = [span.start for span in of_thread]

    def around(self, thread: str, moment: float) -> _Value | None:
        """The value of the innermost span that holds this moment; None if none does."""
        spans = self._by_thread.get(thread)
        if spans is None:
            return None
        after = bisect.bisect_right(self._starts[thread], moment)
        # Of nested spans that hold the moment, the innermost began last. Spans nest at most
        # ``_DEEPEST`` deep, so no earlier one is looked at.
        for index in range(after - 1, max(0, after - _DEEPEST) - 1, -1):
            if spans[index].end > moment:
                return spans[index].value
        return None

    def within(self, thread: str, start: float, end: float) -> _Value | None:
        """The value of the first span of this thread that begins in this time, else of the
        innermost one that holds its start; None if there is neither.
        """
        spans = self._by_thread.get(thread)
        if spans is None:
            return None
        first = bisect.bisect_left(self._starts[thread], start)
        if first < len(spans) and spans[first].start < end:
            return spans[first].value
        return self.around(thread, start)


def started_between(ordered: Sequence[_Value], start: float, end: float) -> Sequence[_Value]:
    """The elements that start from ``start`` on and before ``end``. ``ordered``: by start."""
    first = bisect.bisect_left(ordered, start, key=start_of)
    after = bisect.bisect_left(ordered, end, key=start_of)
    return ordered[first:after]
