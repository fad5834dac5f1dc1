"""Read what ``nsys export --type sqlite`` writes. The file is not trusted."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections import Counter
from pathlib import Path

from overhead.errors import BadFile
from overhead.explain.chrome_trace import EventArguments, TraceEvent, steps_of
from overhead.explain.trace import Trace

_MOST_ROWS, _MOST_SECONDS = 4_000_000, 60.0
_ADDED = re.compile(r"_v\d{4,}$|, (?:op_id|seq|sizes) = .*")
"""Nsight Systems adds CUDA's version to a call (``cudaLaunchKernel_v7000``), PyTorch a number to an operation."""
_TEXT = "(SELECT substr(value, 1, 1000) FROM StringIds WHERE id = {})"
_COPY = """'Memcpy ' || CASE copyKind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' ELSE '' END
    || CASE dstKind WHEN 0 THEN ' -> Pageable' ELSE '' END"""
_WORK = {"KERNEL": _TEXT.format("demangledName"), "GRAPH_TRACE": "'CUDA graph'", "MEMSET": "'Memset'", "MEMCPY": _COPY}
"""The names of device work, by table. CUPTI numbers the kinds of copies and of memory."""
_SELECTS = {
    f"CUPTI_ACTIVITY_KIND_{table}": f"""globalPid >> 24, 'kernel', {name}, start, end, deviceId, streamId,
    correlationId FROM CUPTI_ACTIVITY_KIND_{table}"""
    for table, name in _WORK.items()
} | {
    "CUPTI_ACTIVITY_KIND_RUNTIME": f"""globalTid >> 24, 'cuda_runtime', {_TEXT.format("nameId")}, start, end,
    0, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME""",
    "NVTX_EVENTS": f"""globalTid >> 24, 'cpu_op', coalesce(substr(text, 1, 1000), {_TEXT.format("textId")}), start,
    end, 0, globalTid, 0 FROM NVTX_EVENTS WHERE end IS NOT NULL""",
}
"""By table: the process, category, name, times in ns, device, thread or stream, correlation.

The lowest 24 bits of a global number are a thread.
"""


def read_nsys_export(path: Path) -> Trace:
    """The steps of the process with most device work; ranges of NVTX are its steps and operations. ``BadFile``."""
    if not path.is_file():
        raise BadFile(f"{path}: no such file")
    stop = time.monotonic() + _MOST_SECONDS
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as base:
            base.set_progress_handler(lambda: time.monotonic() > stop, 1000)
            base.execute("PRAGMA trusted_schema = OFF")
            stored = base.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0").fetchall()
            rows = [
                row
                for table, select in _SELECTS.items()
                if (table,) in stored
                for row in base.execute(f"SELECT {select} LIMIT {_MOST_ROWS + 1}")
            ]
            gpu = base.execute("SELECT name FROM TARGET_INFO_GPU").fetchone()
        if len(rows) > _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS:,} rows")
        processes = Counter(row[0] for row in rows if row[1] == "kernel")
        own = max(processes, key=processes.__getitem__, default=None)
        events = [
            TraceEvent(start / 1e3, "X", kind, str(name or ""), (end - start) / 1e3, pid, tid, EventArguments(number))
            for process, kind, name, start, end, pid, tid, number in rows
            if process == own
        ]
        for event in events:
            event.name = _ADDED.sub("", event.name)
        return Trace(steps_of(events), str(gpu[0])[:200] if gpu else "", processes=len(processes))
    except (sqlite3.Error, TypeError, ValueError) as error:
        raise BadFile(f"{path}: not an export of Nsight Systems: {' '.join(str(error).split())[:200]}") from None
