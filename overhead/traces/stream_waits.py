"""For what each call waits, where the recording tells it. Pure.

Most recordings do not. CUPTI can record it: PyTorch's profiler writes it as ``cuda_sync``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from overhead.traces.events import TraceEvent


class StreamWait(NamedTuple):
    """What a call waits for. ``awaits``: the stream whose work is waited for; ``device:`` for all
    streams of a device. ``holds``: the stream that is told to wait; empty where the host waits.

    ``record``: the number of the call that recorded an event in that stream: only the work before
    it is waited for. 0 for all work before the call.
    """

    awaits: str
    holds: str = ""
    record: int = 0

    def covers(self, stream: str) -> bool:
        """Whether work of this stream is waited for."""
        if self.awaits.endswith(":"):
            return stream.startswith(self.awaits)
        return stream == self.awaits


def stream_waits(events: Iterable[TraceEvent]) -> dict[int, StreamWait]:
    """By the number of a call what it waits for. ``events``: of the kind ``SYNC``."""
    waits = {}
    for event in events:
        # An event of another process, or one recorded before the recording, has no known stream.
        if event.correlation and event.awaits:
            waits[event.correlation] = StreamWait(event.awaits, event.stream, event.record)
    return waits
