"""A replayed step for Perfetto, in Chrome's JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from overhead.explaining.host_work import HostTimes
from overhead.explaining.replay import ReplayedSpan, replayed_spans
from overhead.loading.files import save_file
from overhead.reading.plain_text import plain
from overhead.traces.trace import Trace
from overhead.words.reasons import sentence


def save_replay(path: Path, trace: Trace, host: HostTimes) -> None:
    """Write one replayed step, as it is computed from a profile, as events of a Chrome trace, which
    Perfetto shows as a timeline: the host, its waits, the streams of the device, and how many
    pieces of work are queued. Raises ``CannotWrite``.

    ``trace``: the profiled steps. ``host``: how long the host works in them.
    """
    spans = replayed_spans(trace, host)
    # A track is a line of the timeline, such as a stream; the format wants a number for each.
    numbers: dict[str, int] = {}
    for span in spans:
        numbers.setdefault(span.track, len(numbers) + 1)
    # Chrome's times are microseconds. "X" is a span, "C" a counter, "M" the name of a track.
    events: list[dict[str, object]] = []
    for span in spans:
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": numbers[span.track],
                "name": plain(sentence(span.name)),
                "ts": span.start / 1e3,
                "dur": (span.end - span.start) / 1e3,
            }
        )
    for at_ns, depth in _queue_depths(spans):
        pieces = {"pieces": depth}
        events.append({"ph": "C", "pid": 1, "name": "queue", "ts": at_ns / 1e3, "args": pieces})
    for track, number in numbers.items():
        named = {"name": plain(track)}
        events.append({"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": named})
    written = {"madeBy": "overhead explain --chrome", "traceEvents": events}
    save_file(path, msgspec.json.encode(written))


def _queue_depths(spans: Sequence[ReplayedSpan]) -> list[tuple[float, int]]:
    """When the number of pieces of work in the device's queue changes, ns, and how many there are
    then. A piece is in the queue from the call that issues it until it ends.
    """
    # One more where a piece is issued, one less where it ends. At one time, ends sort before
    # issues.
    changes = []
    for span in spans:
        if span.issued is not None:
            changes.append((span.issued, 1))
            changes.append((span.end, -1))
    depths = []
    depth = 0
    for at_ns, change in sorted(changes):
        depth += change
        depths.append((at_ns, depth))
    return depths
