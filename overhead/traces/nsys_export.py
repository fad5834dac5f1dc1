"""Read what ``nsys export --type sqlite`` writes. The file is not trusted."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

from overhead.errors import BadFile
from overhead.traces.chrome_trace import EventArguments, TraceEvent, steps_of
from overhead.traces.nsys_queries import GPU_NAME, SELECTS, TABLES
from overhead.traces.trace import Trace

_MOST_ROWS, _MOST_SECONDS = 4_000_000, 60.0
_MOST_TEXT, _MOST_NAMES = 10_000_000, 100_000_000
"""Most bytes of a value, also of one that the database computes, and most characters of all
different names.
"""
_ADDED = re.compile(r"_v\d{4,}$|, (?:op_id|seq|sizes) = .*")
"""Nsight Systems adds CUDA's version to a call (``cudaLaunchKernel_v7000``), PyTorch a number to an
operation.
"""


def read_nsys_export(path: Path) -> Trace:
    """The steps of the process with most device work; ranges of NVTX are its steps and operations.
    ``BadFile``.
    """
    if not path.is_file():
        raise BadFile("no such file", path)
    _check_whole(path)
    stop = time.monotonic() + _MOST_SECONDS
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as base:
            base.set_progress_handler(lambda: time.monotonic() > stop, 1000)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
            base.execute("PRAGMA trusted_schema = OFF")
            stored = base.execute(TABLES).fetchall()
            tables = {table for (table,) in stored}
            if not tables & set(SELECTS):
                raise ValueError("none of its tables is there")
            if "StringIds" not in tables:
                raise ValueError("no table StringIds, which holds the names")
            rows = _rows(base, tables)
            gpu = _gpu(base, tables)
        processes = Counter[int]()
        for process, kind, _, start, end, *_ in rows:
            if kind == "kernel":
                processes[process] += max(1, (end or 0) - (start or 0))
        own = max(processes, key=processes.__getitem__, default=None)
        rows_of_process = [row for row in rows if row[0] == own]
        timed = [row for row in rows_of_process if row[3] is not None and row[4] is not None]
        events = [
            TraceEvent(
                start / 1e3,
                "X",
                kind,
                name,
                (end - start) / 1e3,
                pid,
                tid,
                EventArguments(int(number or 0)),
            )
            for _, kind, name, start, end, pid, tid, number in timed
        ]
        for event in events:
            event.name = _ADDED.sub("", event.name)
        steps, recording, _ = steps_of(events, unreadable=len(rows_of_process) - len(timed))
        recording = dataclasses.replace(recording, memory_recorded=False)
        return Trace(steps, gpu, processes=len(processes), recording=recording)
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        raise BadFile(
            f"not an export of Nsight Systems: {' '.join(str(error).split())[:200]}", path
        ) from None


def _check_whole(path: Path) -> None:
    """Raise ``BadFile`` if rows of the database lie in a file beside it, which is not read."""
    whole = path.resolve()
    remedies = {"-wal": "'PRAGMA wal_checkpoint(TRUNCATE)'", "-journal": ".tables"}
    for end, remedy in remedies.items():
        beside = whole.with_name(whole.name + end)
        try:
            size = beside.stat().st_size
        except OSError:
            continue
        if size:
            raise BadFile(
                f"{beside.name} beside it holds changes that are not in it; close what writes it,"
                f" then: sqlite3 {whole.name} {remedy}",
                path,
            )


def _rows(base: sqlite3.Connection, tables: Collection[str]) -> list[tuple[Any, ...]]:
    """The rows of all tables. Raises ``ValueError`` for too many, or for names that are too long
    together.
    """
    rows, names, size = list[tuple[Any, ...]](), dict[str, str](), 0
    for table, select in SELECTS.items():
        if table not in tables:
            continue
        for process, kind, name, *rest in base.execute(f"SELECT {select} LIMIT {_MOST_ROWS + 1}"):
            text = str(name or "")
            if text not in names:
                size += len(text)
                if size > _MOST_NAMES:
                    raise ValueError(f"names of more than {_MOST_NAMES:,} characters")
            rows.append((process, kind, names.setdefault(text, text), *rest))
            if len(rows) > _MOST_ROWS:
                raise ValueError(f"more than {_MOST_ROWS:,} rows")
    return rows


def _gpu(base: sqlite3.Connection, tables: Collection[str]) -> str:
    """The name of the GPU; empty where the table was not exported."""
    if "TARGET_INFO_GPU" not in tables:
        return ""
    found = base.execute(GPU_NAME).fetchone()
    return str(found[0])[:200] if found else ""
