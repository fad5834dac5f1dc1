"""Read what ``nsys export --type sqlite`` writes. The file is not trusted."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from overhead.bounded_files import first_bytes
from overhead.errors import BadFile
from overhead.results import because
from overhead.traces.assembly import TraceSource, assemble
from overhead.traces.events import EventKind, TraceEvent
from overhead.traces.marks import kind_of_range
from overhead.traces.nsys_queries import (
    GPU_NAME,
    KIND_OF_TABLE,
    NOT_READ,
    PROCESS_NAMES,
    TABLES,
    TEXTS,
    busy_query,
    rows_query,
)
from overhead.traces.nsys_report import exported_report
from overhead.traces.nsys_waits import columns_of, waits_of_calls
from overhead.traces.other_files import other_database
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
_UNNAMED = "a kernel without a name"
"""Where the table of texts lacks the name."""
_OF_NSYS = {"TARGET_INFO_SESSION_START_TIME", "ProcessStreams", "ThreadNames", "StringIds"}
"""Tables that each export of Nsight Systems has, one or more of them."""
_MOST_TABLES = 200
"""Most characters of the tables of an unknown database that a sentence names."""


def is_of_nsys(path: Path) -> bool:
    """Whether a file is a database, or a report that can be exported as one."""
    if path.suffix in _REPORTS:
        return True
    return first_bytes(path, len(_DATABASE)) == _DATABASE


def read_nsys_file(path: Path, choice: StepChoice = ANY_STEPS) -> Trace:
    """The steps in a database that Nsight Systems has exported, or in a report of it, which its own
    program exports first, where it is installed. ``choice``: what the person names as steps. Raises
    ``BadFile``.
    """
    if path.suffix not in _REPORTS:
        return read_nsys_export(path, choice)
    if not path.is_file():
        raise BadFile("no such file", path)
    with exported_report(path) as database:
        trace = read_nsys_export(database, choice, shown=path)
    recording = dataclasses.replace(trace.recording, exported=True)
    return dataclasses.replace(trace, recording=recording)


def read_nsys_export(
    path: Path, choice: StepChoice = ANY_STEPS, shown: Path | None = None
) -> Trace:
    """The steps in a database that ``nsys export`` wrote, of the process with most device work.
    Ranges that the program marks by NVTX are its steps and operations. Raises ``BadFile``.

    ``shown``: the file that errors name, if it is another one.
    """
    shown = shown or path
    if not path.is_file():
        raise BadFile("no such file", shown)
    _refuse_unfinished(path)
    try:
        found = _read_database(path, choice.process)
        source = TraceSource(
            device=found.gpu,
            processes=found.processes if len(found.processes) > 1 else (),
            unreadable=found.unreadable,
            not_read=", ".join(found.not_read),
        )
        return assemble(found.events, source, choice=choice)
    except BadFile as error:
        raise BadFile(error.fault, shown) from None
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        message = " ".join(str(error).split())[:200]
        raise BadFile(because("database-is-damaged", message=message), shown) from None


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


@dataclass
class _Database:
    """What was read of a database. ``gpu``: the name of the first GPU; empty where it is not
    told. ``processes``: those with device work. ``unreadable``: rows without times, which cannot
    be placed. ``not_read``: names of tables that are not read.
    """

    events: list[TraceEvent] = field(default_factory=list)
    gpu: str = ""
    processes: Sequence[ProcessTime] = ()
    unreadable: int = 0
    not_read: Sequence[str] = ()


def _read_database(path: Path, choice: str) -> _Database:
    """Read a database within bounds of time and memory, since a stranger may have made it.
    ``choice``: the process that the person names. Raises ``BadFile`` for one of another program.
    """
    stop = time.monotonic() + _MOST_SECONDS
    # Immutable: SQLite opens no file beside it, and makes none.
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as base:
        # A query that is told True ends with an error. It asks every 100,000 instructions.
        base.set_progress_handler(lambda: time.monotonic() > stop, 100_000)
        base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_TEXT)
        # A view of the database must not call functions that do more than compute.
        base.execute("PRAGMA trusted_schema = OFF")
        # A damaged text of a name costs not the file.
        base.text_factory = _text
        tables = {table for (table,) in base.execute(TABLES).fetchall()}
        columns = _columns(base, tables)
        _refuse_other_databases(tables, columns)
        found = _Database(gpu=_gpu(base, tables))
        found.not_read = [table for table in NOT_READ if table in tables]
        busy_ns = _busy_ns(base, columns)
        process: ProcessId | None = None
        if busy_ns or choice:
            process = chosen_process(busy_ns, choice)
            found.processes = process_times(busy_ns, process, _names(base, tables))
        texts = _texts(base)
        for table in columns:
            _add_rows(found, base, table, columns[table], process, texts)
        found.events += waits_of_calls(base, tables, process, _MOST_ROWS - len(found.events))
        return found


def _text(content: bytes) -> str:
    return content.decode(errors="replace")


def _columns(base: sqlite3.Connection, tables: Collection[str]) -> dict[str, set[str]]:
    """The columns of each table that is read. A table without times is not one of them."""
    columns = {}
    for table in KIND_OF_TABLE:
        if table not in tables:
            continue
        names = columns_of(base, table)
        if {"start", "end"} <= names:
            columns[table] = names
    return columns


def _refuse_other_databases(tables: Collection[str], columns: Collection[str]) -> None:
    """Raise ``BadFile`` for a database of another program, or of Nsight Systems without work of a
    device. ``columns``: the tables that are read.
    """
    other = other_database(tables)
    if other is not None:
        raise BadFile(other)
    of_nsys = not _OF_NSYS.isdisjoint(tables)
    # Ranges alone are explained, as operations of the CPU. Without the names nobody knows which
    # calls wait.
    if columns and "StringIds" in tables:
        return
    if columns:
        raise BadFile(because("database-without-names"))
    if of_nsys:
        raise BadFile(because("database-without-device-tables"))
    named = ", ".join(sorted(tables)[:6])[:_MOST_TABLES] or "none"
    raise BadFile(because("database-of-another-program", tables=named))


def _gpu(base: sqlite3.Connection, tables: Collection[str]) -> str:
    """The name of the GPU; empty where the table was not exported."""
    if "TARGET_INFO_GPU" not in tables:
        return ""
    # Only a name is lost where the table has other columns.
    with contextlib.suppress(sqlite3.OperationalError):
        row = base.execute(GPU_NAME).fetchone()
        # A device may have no name.
        return str(row[0] or "")[:200] if row else ""
    return ""


def _names(base: sqlite3.Connection, tables: Collection[str]) -> dict[ProcessId, str]:
    """The names of processes by their number; none where the database has no such table."""
    names: dict[ProcessId, str] = {}
    if "PROCESSES" not in tables:
        return names
    with contextlib.suppress(sqlite3.Error):  # no verdict hangs on a name
        for number, name in base.execute(PROCESS_NAMES).fetchmany(_MOST_PROCESSES):
            names[int(number)] = str(name or "").rpartition("/")[2][:200]
    return names


def _busy_ns(
    base: sqlite3.Connection, columns: Mapping[str, Collection[str]]
) -> dict[ProcessId, float]:
    """How long the device work of each process takes; none without any. A database may hold all
    processes of a program, and a step belongs to one of them.
    """
    busy_ns: dict[ProcessId, float] = {}
    for table in columns:
        if KIND_OF_TABLE[table] is not EventKind.WORK:
            continue
        for process, length_ns in base.execute(busy_query(table, columns[table])):
            # A table without the column of the process tells of none.
            if process is not None:
                busy_ns[process] = busy_ns.get(process, 0.0) + length_ns
    return busy_ns


def _texts(base: sqlite3.Connection) -> dict[int, str]:
    """The texts of the database by their number. Raises ``ValueError`` for more than the memory
    should hold.
    """
    texts: dict[int, str] = {}
    characters = 0
    for number, text in base.execute(TEXTS):
        texts[number] = str(text or "")
        characters += len(texts[number])
        if characters > _MOST_NAMES or len(texts) > _MOST_ROWS:
            raise ValueError(f"names of more than {_MOST_NAMES:,} characters")
    return texts


def _add_rows(
    found: _Database,
    base: sqlite3.Connection,
    table: str,
    columns: Collection[str],
    process: ProcessId | None,
    texts: Mapping[int, str],
) -> None:
    """Add the rows of a table that are of this process as events, in the form that is the same for
    all formats of traces. Raises ``ValueError`` for too many rows, or names that are too long.
    """
    characters = 0
    # By the name of a row, in the words of the database, the name and the kind of its event. A
    # name is kept once, though millions of rows may have it.
    named: dict[object, tuple[str, EventKind]] = {}
    tracks: dict[tuple[object, object], str] = {}
    is_work = KIND_OF_TABLE[table] is EventKind.WORK
    for name, start, end, device, track, correlation in base.execute(
        rows_query(table, columns), (process,)
    ):
        begin_ns, end_ns = _as_number(start), _as_number(end)
        if begin_ns is None or end_ns is None:
            found.unreadable += 1
            continue
        if name not in named:
            text = texts.get(name, "") if isinstance(name, int) else str(name or "")
            characters += len(text)
            named[name] = _name_and_kind(text, KIND_OF_TABLE[table])
        if (device, track) not in tracks:
            tracks[device, track] = f"{device or 0}:{track or 0}" if is_work else str(track or 0)
        if characters > _MOST_NAMES:
            raise ValueError(f"names of more than {_MOST_NAMES:,} characters")
        if len(found.events) >= _MOST_ROWS:
            raise ValueError(f"more than {_MOST_ROWS:,} rows")
        own_name, kind = named[name]
        place = tracks[device, track]
        event = TraceEvent(
            kind=kind,
            name=own_name,
            start=begin_ns,
            end=end_ns,
            thread="" if is_work else place,
            stream=place if is_work else "",
            correlation=int(_as_number(correlation) or 0),
        )
        found.events.append(event)


def _as_number(value: object) -> float | None:
    """A number of the database, of which a text may stand in any column; None for what is none."""
    if isinstance(value, int | float):
        return float(value)
    with contextlib.suppress(TypeError, ValueError):
        return float(str(value))
    return None


def _name_and_kind(text: str, kind: EventKind) -> tuple[str, EventKind]:
    """The name of a row without what profilers add to it, and what its event is."""
    name = _ADDED.sub("", text)
    if kind is EventKind.OPERATION:
        kind = kind_of_range(name, otherwise=kind)
    if kind is EventKind.WORK and not name:
        name = _UNNAMED
    return name, kind
