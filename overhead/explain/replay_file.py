"""The file of a replayed step for Perfetto, in Chrome's JSON."""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from overhead.explain.host_work import HostTimes
from overhead.explain.replay import HOST_TRACK, WAIT_TRACK, queue_model, replayed_spans
from overhead.explain.trace import Trace
from overhead.loading.files import save_file
from overhead.reading.format import plain


def save_replay(path: Path, trace: Trace, host: HostTimes) -> None:
    """Write the replayed step of median length for Perfetto, in Chrome's JSON. Raises ``CannotWrite``."""
    order = sorted(range(len(trace.steps)), key=lambda at: trace.steps[at].end - trace.steps[at].start)
    spans = replayed_spans(queue_model(trace, host), order[len(order) // 2])
    begin = spans[0].start
    tracks = {HOST_TRACK: 1, WAIT_TRACK: 2}
    events: list[dict[str, object]] = []
    pieces: list[tuple[float, int]] = []
    for span in spans:
        track = tracks.setdefault(span.track, len(tracks) + 2)
        times = {"ts": (span.start - begin) / 1e3, "dur": (span.end - span.start) / 1e3}
        events.append({"ph": "X", "pid": 1, "tid": track, "name": plain(span.name) or "step", **times})
        if track > 2:
            events[-1]["args"] = {"launch delay, us": (span.start - span.issued) / 1e3, "queued, us": span.queued / 1e3}
            pieces += [(span.issued, 1), (span.end, -1)]
    depths = itertools.accumulate(change for _, change in sorted(pieces))
    for (at, _), depth in zip(sorted(pieces), depths, strict=True):
        events.append({"ph": "C", "pid": 1, "name": "queue", "ts": (at - begin) / 1e3, "args": {"pieces": depth}})
    for name, track in tracks.items():
        named = plain(name) if track < 3 else f"stream {plain(name)}"
        events.append({"ph": "M", "pid": 1, "tid": track, "name": "thread_name", "args": {"name": named}})
    save_file(path, msgspec.json.encode({"traceEvents": events}))
