"""Read what ``nsys export --type sqlite`` writes. The file is not trusted."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from overhead.bounded_files import first_bytes
from overhead.errors import BadFile
from overhead.traces.assembly import TraceSource, assemble
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.marks import kind_of_range
from overhead.traces.nsys_queries import GPU_NAME, PROCESS_NAMES, SELECTS, TABLES
from overhead.traces.processes import (
    ProcessId,
    ProcessTime,
    chosen_process,
    process_times,
)
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import Trace

_DATABASE = b"SQLite format 3\0"
"""How a database of SQLite begins."""
_REPORTS = (".nsys-rep", ".qdrep", ".qdstrm")
"""How the names of files end that Nsight Systems has to export before anybody can read them."""
_MOST_ROWS = 4_000_000
_MOST_SECONDS = 60.0
"""Most rows that are read, and seconds for a query. Chosen, not measured; a hostile database may
compute without an end.
"""
_MOST_PROCESSES = 10_000
_MOST_TEXT = 10_000_000
_MOST_NAMES = 100_000_000
"""Most processes with a name, bytes of a value, also of one that the database computes, and
characters of all different names.
"""
_ADDED = re.compile(r"_v\d{4,}$|, (?:op_id|seq|sizes) = .*")
"""Nsight Systems adds CUDA's version to a call (``cudaLaunchKernel_v7000``), PyTorch a number to an
operation.
"""
_KINDS = {
    "range": EventKind.OPERATION,
    "call": EventKind.CALL,
    "work": EventKind.WORK,
}
"""By the word in the queries what a row is."""


def is_of_nsys(path: Path) -> bool:
    """Whether a file is a database, or a report that can be exported as one."""
    if path.suffix in _REPORTS:
        return True
    return first_bytes(path, len(_DATABASE)) == _DATABASE


def read_nsys_file(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps in a database that Nsight Systems has exported. Raises ``BadFile``, also for one of
    its reports that is not exported yet: only its own program can read that.
    """
    if path.suffix in _REPORTS:
        raise BadFile(
            f"a report of Nsight Systems; export it: nsys export --type sqlite {path.name}", path
        )
    return read_nsys_export(path, choice)


def read_nsys_export(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps in a database that ``nsys export`` wrote, of the process with most device work.
    Ranges that the program marks by NVTX are its steps and operations. Raises ``BadFile``.
    """
    if not path.is_file():
        raise BadFile("no such file", path)
    _refuse_unfinished(path)
    try:
        database = _read_database(path)
        processes = _processes(database.rows, database.names, choice.process)
        read = [process.process for process in processes if process.is_read]
        rows = [row for row in database.rows if str(row.process) in read]
        # The others cannot be placed in time; they count as unreadable.
        timed = [row for row in rows if row.start is not None and row.end is not None]
        source = TraceSource(
            device=database.gpu,
            processes=processes if len(processes) > 1 else (),
            unreadable=len(rows) - len(timed),
        )
        return assemble(_events_of(timed), source, choice=choice)
    except BadFile as error:
        raise BadFile(error.fault, path) from None  # the function above knows no name
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        message = " ".join(str(error).split())[:200]
        raise BadFile(f"not an export of Nsight Systems: {message}", path) from None


def _refuse_unfinished(path: Path) -> None:
    """Raise ``BadFile`` if rows of the database lie in a file beside it, which is not read.

    SQLite keeps changes in such a file until the database is closed, or after a crash. Without them
    the trace would lack events.
    """
    whole = path.resolve()
    # What to type into sqlite3. The first writes the changes into the database. Any command that
    # reads, such as the second, undoes those of a change that was cut short.
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


class _Row(NamedTuple):
    """A row of a query. Times are ns; None where the database has none. ``device``, ``track``: of
    device work, device and stream; else 0 and the thread.
    """

    process: int
    kind: str
    name: str
    start: int | None
    end: int | None
    device: int
    track: int
    correlation: int | None


@dataclass(frozen=True)
class _Database:
    """What was read of a database. ``gpu``: the name of the first GPU; empty where it is not
    told. ``names``: of processes, as far as they are told.
    """

    rows: Sequence[_Row]
    gpu: str
    names: Mapping[ProcessId, str]


def _read_database(path: Path) -> _Database:
    """Read a database within bounds of time and memory, since a stranger may have made it. Raises
    ``ValueError`` for one of another program.
    """
    stop = time.monotonic() + _MOST_SECONDS
    # Immutable: SQLite opens no file beside it, and makes none.
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as base:
        # A query that is told True ends with an error. It asks every 1,000 instructions.
        base.set_progress_handler(lambda: time.monotonic() > stop, 1000)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
        # A view of the database must not call functions that do more than compute.
        base.execute("PRAGMA trusted_schema = OFF")
        tables = {table for (table,) in base.execute(TABLES).fetchall()}
        if tables.isdisjoint(SELECTS):
            raise ValueError("none of its tables is there")
        if "StringIds" not in tables:
            raise ValueError("no table StringIds, which holds the names")
        return _Database(_rows(base, tables), _gpu(base, tables), _names(base, tables))


def _rows(base: sqlite3.Connection, tables: Collection[str]) -> list[_Row]:
    """The rows of all tables that hold events: calls, device work and ranges. Raises ``ValueError``
    for too many, or for names that are too long together, which a hostile file may have.
    """
    rows: list[_Row] = []
    names: dict[str, str] = {}  # a name is kept once, though millions of rows may have it
    characters = 0
    for table, select in SELECTS.items():
        if table not in tables:
            continue
        # One row more than are allowed shows that there are too many.
        for process, kind, name, *rest in base.execute(f"SELECT {select} LIMIT {_MOST_ROWS + 1}"):
            text = str(name or "")
            if text not in names:
                names[text] = text
                characters += len(text)
                if characters > _MOST_NAMES:
                    raise ValueError(f"names of more than {_MOST_NAMES:,} characters")
            # All queries give their columns in the order of the fields of ``_Row``.
            rows.append(_Row(process, kind, names[text], *rest))
            if len(rows) > _MOST_ROWS:
                raise ValueError(f"more than {_MOST_ROWS:,} rows")
    return rows


def _gpu(base: sqlite3.Connection, tables: Collection[str]) -> str:
    """The name of the GPU; empty where the table was not exported."""
    if "TARGET_INFO_GPU" not in tables:
        return ""
    row = base.execute(GPU_NAME).fetchone()
    return str(row[0])[:200] if row else ""


def _names(base: sqlite3.Connection, tables: Collection[str]) -> dict[ProcessId, str]:
    """The names of processes by their number; none where the database has no such table."""
    names: dict[ProcessId, str] = {}
    if "PROCESSES" not in tables:
        return names
    with contextlib.suppress(sqlite3.Error):  # no verdict hangs on a name
        for number, name in base.execute(PROCESS_NAMES).fetchmany(_MOST_PROCESSES):
            names[int(number)] = str(name or "").rpartition("/")[2][:200]
    return names


def _processes(
    rows: Iterable[_Row], names: Mapping[ProcessId, str], choice: str
) -> list[ProcessTime]:
    """The processes with device work; one of them is read: the one that the person names
    (``choice``), else the one whose device work takes longest. A database may hold all processes of
    a program, and a step belongs to one of them. None without any device work.
    """
    busy_ns: dict[ProcessId, float] = {}
    for row in rows:
        # ``_KINDS``: by the word for what a row is (call, work, range) the kind of its event.
        if _KINDS[row.kind] is EventKind.WORK:
            length_ns = (row.end or 0) - (row.start or 0)
            # Also work of no length, or with wrong times, shows that the process has some.
            busy_ns[row.process] = busy_ns.get(row.process, 0.0) + max(1, length_ns)
    if not busy_ns and not choice:
        return []
    return process_times(busy_ns, chosen_process(busy_ns, choice), names)


def _events_of(rows: Iterable[_Row]) -> Iterator[TraceEvent]:
    """The rows of one process as events, in the form that is the same for all formats of traces.
    All have start and end.
    """
    for row in rows:
        # Without what profilers add to it, the name is that of the call or operation.
        name = _ADDED.sub("", row.name)
        kind = _KINDS[row.kind]
        stream = ""
        if kind is EventKind.OPERATION:
            kind = kind_of_range(name, otherwise=kind)
        elif kind is EventKind.WORK:  # of which ``track`` is the stream; else it is the thread
            stream = f"{row.device}:{row.track}"
        yield TraceEvent(
            kind=kind,
            name=name,
            start=float(row.start or 0),
            end=float(row.end or 0),
            thread=str(row.track),
            stream=stream,
            correlation=int(row.correlation or 0),
        )
