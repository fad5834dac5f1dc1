"""Read what ``nsys export --type sqlite`` writes: the events of one process. The file is not trusted."""

from __future__ import annotations

import contextlib
import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from overhead.errors import BadFile
from overhead.explain.chrome_trace import TraceEvent, TraceEvents

FIRST_BYTES = b"SQLite format 3\0"
_MOST_ROWS, _MOST_SECONDS = 2_000_000, 60.0
"""Most rows of a table, and the longest time for the whole file."""
_LONGEST_VALUE, _LONGEST_NAME = 1 << 20, 1000
_TEXTS = frozenset({"value", "text", "name"})
_COPIES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_MEMORY = {0: "Pageable", 1: "Pinned", 2: "Device"}
"""CUPTI's numbers of kinds of copies and of memory."""
_WAITS = {1: "cudaEventSynchronize", 3: "cudaStreamSynchronize", 4: "cudaDeviceSynchronize"}
_STEP_NAME = re.compile(r"(?:step|iter|iteration|batch|token)[ _#:=-]*\d+\s*", re.I)
_ADDED = re.compile(r"_v\d{4,}$|, (?:op_id|seq|sizes) = .*")
"""Nsight Systems adds CUDA's version to a call (``cudaLaunchKernel_v7000``), PyTorch a number to an operation."""
_TABLE = "CUPTI_ACTIVITY_KIND_"
_PLACE = ("start", "end", "globalPid", "correlationId", "deviceId", "streamId")


def nsys_events(path: Path) -> TraceEvents:
    """The events of the process with most device work. Ranges of NVTX are its steps and operations.

    Steps are the ranges like ``step 3`` or ``iteration: 3`` that take longest together. Raises ``BadFile``.
    """
    try:
        with contextlib.closing(_Export(path)) as export:
            return export.events()
    except (sqlite3.Error, OSError, ValueError, TypeError, OverflowError) as error:
        raise BadFile(f"{path}: not an export of Nsight Systems: {' '.join(str(error).split())[:200]}") from None


class _Export:
    def __init__(self, path: Path) -> None:
        address = f"file:{quote(str(path.resolve()))}?mode=ro&immutable=1"
        self._base = sqlite3.connect(address, uri=True)
        stop = time.monotonic() + _MOST_SECONDS
        self._base.set_progress_handler(lambda: time.monotonic() > stop, 1000)
        self._base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        self._base.execute("PRAGMA trusted_schema = OFF")
        self._found = TraceEvents()
        self._names = {number: str(text) for number, text in self._rows("StringIds", "id", "value")}
        self.close = self._base.close

    def _rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of a table: None for a column that it lacks. No rows of a view, or if there is no such table."""
        stored = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?"
        if not self._base.execute(stored, (table,)).fetchone():
            return []
        present = {row[1] for row in self._base.execute(f'PRAGMA table_info("{table}")')}
        chosen = [
            "NULL"
            if name not in present
            else f'substr("{name}", 1, {_LONGEST_NAME})'
            if name in _TEXTS
            else f'"{name}"'
            for name in columns
        ]
        rows = self._base.execute(f'SELECT {", ".join(chosen)} FROM "{table}" LIMIT {_MOST_ROWS + 1}').fetchall()
        if len(rows) > _MOST_ROWS:
            raise ValueError(f"{table} has more than {_MOST_ROWS:,} rows")
        return rows

    def events(self) -> TraceEvents:
        kernels = self._rows(f"{_TABLE}KERNEL", *_PLACE, "demangledName", "shortName")
        work: list[tuple[Sequence[Any], str]] = [
            (place, self._names.get(long) or self._names.get(short) or "kernel") for *place, long, short in kernels
        ]
        work += [(place, "CUDA graph") for place in self._rows(f"{_TABLE}GRAPH_TRACE", *_PLACE)]
        work += [(place, "Memset") for place in self._rows(f"{_TABLE}MEMSET", *_PLACE)]
        for *place, kind, source, target in self._rows(f"{_TABLE}MEMCPY", *_PLACE, "copyKind", "srcKind", "dstKind"):
            ends = f"{_MEMORY.get(source, 'Device')} -> {_MEMORY.get(target, 'Device')}"
            work.append((place, f"Memcpy {_COPIES.get(kind, '')} ({ends})"))
        pids = Counter(_process(place[2]) for place, _ in work)
        own = max(pids, key=lambda pid: pids[pid], default=0)
        for (start, end, pid, correlation, device, stream), name in work:
            if _process(pid) == own:
                self._add("work", name, (start, end), correlation, stream=f"{device}:{stream}")
        self._add_calls(own)
        self._add_ranges(own)
        device = self._rows("TARGET_INFO_GPU", "name")
        self._found.device = str(device[0][0] or "")[:200] if device else ""
        self._found.other_processes = len(pids) - 1 if pids else 0
        return self._found

    def _add(
        self, kind: str, name: str, times: Sequence[Any], correlation: Any = 0, thread: Any = "", stream: str = ""
    ) -> None:
        start, end = map(float, times)
        self._found.add(kind, TraceEvent(_ADDED.sub("", name), start, end, str(thread), stream, int(correlation or 0)))

    def _add_calls(self, own: int) -> None:
        seen = set()
        for *times, thread, correlation, name in self._rows(
            f"{_TABLE}RUNTIME", "start", "end", "globalTid", "correlationId", "nameId"
        ):
            if _process(thread) == own:
                seen.add(correlation)
                self._add("calls", self._names.get(name, ""), times, correlation, thread)
        for *times, pid, correlation, kind in self._rows(
            f"{_TABLE}SYNCHRONIZATION", "start", "end", "globalPid", "correlationId", "syncType"
        ):
            if _process(pid) == own and correlation not in seen and kind in _WAITS:
                self._add("calls", _WAITS[kind], times, correlation, pid)

    def _add_ranges(self, own: int) -> None:
        ranges = [
            (str(text or self._names.get(number) or ""), (start, end), thread)
            for start, end, text, number, thread in self._rows(
                "NVTX_EVENTS", "start", "end", "text", "textId", "globalTid"
            )
            if end is not None and _process(thread) == own
        ]
        length: Counter[str] = Counter()
        for name, (start, end), _ in ranges:
            if _STEP_NAME.search(name):
                length[_STEP_NAME.sub("", name)] += int(end) - int(start)
        chosen = max(length, key=lambda name: length[name], default=None)
        steps = {each for each in ranges if _STEP_NAME.search(each[0]) and _STEP_NAME.sub("", each[0]) == chosen}
        longest = max((end - start for _, (start, end), _ in steps), default=math.inf)
        for each in ranges:
            if each in steps or each[1][1] - each[1][0] <= longest:  # a longer one, such as an epoch, holds steps
                self._add("steps" if each in steps else "operations", *each[:2], thread=each[2])


def _process(number: Any) -> int:
    """The process in a global number of a process or thread, whose lowest 24 bits are the thread."""
    return int(number or 0) >> 24
