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
    """Write a replayed step; the same step runs before it. Raises ``CannotWrite``."""
    spans = replayed_spans(trace, host)
    tracks: dict[str, int] = {}
    for span in spans:
        tracks.setdefault(span.track, len(tracks) + 1)
    events: list[dict[str, object]] = []
    for span in spans:
        times = {"ts": span.start / 1e3, "dur": (span.end - span.start) / 1e3}
        events.append(
            {
                "ph": "X",
                "pid": 1,
                "tid": tracks[span.track],
                "name": plain(sentence(span.name)),
                **times,
            }
        )
    for at, depth in _queue_depths(spans):
        events.append(
            {"ph": "C", "pid": 1, "name": "queue", "ts": at / 1e3, "args": {"pieces": depth}}
        )
    for track, number in tracks.items():
        named = {"name": plain(track)}
        events.append({"ph": "M", "pid": 1, "tid": number, "name": "thread_name", "args": named})
    save_file(
        path, msgspec.json.encode({"madeBy": "overhead explain --chrome", "traceEvents": events})
    )


def _queue_depths(spans: Sequence[ReplayedSpan]) -> list[tuple[float, int]]:
    """When the number of pieces in the queue changes, ns, and how many there are then."""
    changes = []
    for span in spans:
        if span.issued is not None:
            changes += [(span.issued, 1), (span.end, -1)]
    found, depth = [], 0
    for at, change in sorted(changes):
        depth += change
        found.append((at, depth))
    return found
