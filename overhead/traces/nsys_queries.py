"""The queries of a database of Nsight Systems, in SQL.

Releases since 2021 differ in their columns, and a person may have exported only some of the tables.
So a query asks for what a table has, and stands in NULL for the rest.
"""

from __future__ import annotations

from collections.abc import Collection

from overhead.traces.events import EventKind

_COPY = """'Memcpy ' || CASE {copyKind} WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 8 THEN 'DtoD'
    WHEN 9 THEN 'HtoH' WHEN 10 THEN 'PtoP' WHEN 11 THEN 'UVM' WHEN 12 THEN 'UVM'
    WHEN 13 THEN 'UVM' ELSE '' END
    || CASE {srcKind} WHEN 0 THEN ' Pageable ->' ELSE '' END
    || CASE {dstKind} WHEN 0 THEN ' -> Pageable' ELSE '' END"""
"""CUPTI numbers the kinds of copies and of memory."""
KIND_OF_TABLE = {
    "CUPTI_ACTIVITY_KIND_KERNEL": EventKind.WORK,
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": EventKind.WORK,
    "CUPTI_ACTIVITY_KIND_MEMSET": EventKind.WORK,
    "CUPTI_ACTIVITY_KIND_MEMCPY": EventKind.WORK,
    "CUPTI_ACTIVITY_KIND_RUNTIME": EventKind.CALL,
    "NVTX_EVENTS": EventKind.OPERATION,
}
"""By table, what a row is."""
_NAMES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "coalesce({demangledName}, {shortName}, {mangledName}, {name})",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "'CUDA graph'",
    "CUPTI_ACTIVITY_KIND_MEMSET": "'Memset'",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _COPY,
    "CUPTI_ACTIVITY_KIND_RUNTIME": "coalesce({nameId}, {name})",
    "NVTX_EVENTS": "coalesce(substr({text}, 1, 1000), {textId})",
}
"""By table, the name of a row: a text, or its number in the table of texts."""
NOT_READ = (
    "MPI_COLLECTIVES_EVENTS",
    "MPI_P2P_EVENTS",
    "MPI_OTHER_EVENTS",
    "MPI_RMA_EVENTS",
    "OPENACC_LAUNCH_EVENTS",
    "OPENACC_DATA_EVENTS",
    "OPENACC_OTHER_EVENTS",
    "OPENMP_EVENTS",
    "CUDNN_EVENTS",
    "CUBLAS_EVENTS",
    "UCP_SUBMIT_EVENTS",
)
"""Tables of what a program also does, which are named and not read."""
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
"""The names of the tables that are stored, and not computed."""
COLUMNS_OF_TABLE = "SELECT name FROM pragma_table_info(?)"
"""The names of the columns of a table."""
TEXTS = "SELECT id, substr(value, 1, 1000) FROM StringIds"
"""The texts by their number. Other tables have the number alone."""
GPU_NAME = "SELECT name FROM TARGET_INFO_GPU"
_PROCESS = "({} >> 24) & 16777215"
"""The number of a process. The lowest 24 bits of a global number are a thread, the next 24 a
process.
"""
PROCESS_NAMES = f"SELECT {_PROCESS.format('globalPid')}, name FROM PROCESSES"


WAITS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
RECORDED_EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
"""For what each call waits, and which call recorded each event of CUDA. Many databases have
neither.
"""


def waits_query(columns: Collection[str]) -> str:
    """What the calls of one process (the parameter) wait for, times in ns, number of the
    call, kind of wait, context, stream and event.
    """
    asked = (
        "SELECT {start}, {end}, {correlationId}, {syncType}, {contextId}, {streamId}, {eventId}"
        f" FROM {WAITS} WHERE (?1 IS NULL OR coalesce({{process}}, ?1) = ?1)"
    )
    return _asked(asked, columns)


def recorded_events_query(columns: Collection[str]) -> str:
    """Of one process (the parameter) the events that calls record in a stream: event, number of the
    call, context and stream.
    """
    asked = (
        "SELECT {eventId}, {correlationId}, {contextId}, {streamId}"
        f" FROM {RECORDED_EVENTS} WHERE (?1 IS NULL OR coalesce({{process}}, ?1) = ?1)"
    )
    return _asked(asked, columns)


def contexts_query(table: str, columns: Collection[str]) -> str:
    """The contexts in which device work of one process (the parameter) ran, and their devices.
    Waits name the context; the device beside it is 0 whatever it is.
    """
    asked = (
        f"SELECT DISTINCT {{contextId}}, {{deviceId}} FROM {table}"
        " WHERE (?1 IS NULL OR coalesce({process}, ?1) = ?1) LIMIT 1000"
    )
    return _asked(asked, columns)


def busy_query(table: str, columns: Collection[str]) -> str:
    """By process how long its rows of device work take together, ns; at least 1 for each row."""
    process, start, end = _asked("{process}, {start}, {end}", columns).split(", ")
    length = f"max(1, coalesce({end}, 0) - coalesce({start}, 0))"
    return f"SELECT {process}, sum({length}) FROM {table} GROUP BY 1"


def rows_query(table: str, columns: Collection[str]) -> str:
    """The rows of one process (the parameter), and those of an unknown one: name, times in ns,
    device, track (the stream of device work, the thread of a call), and correlation.
    """
    track = "{streamId}" if KIND_OF_TABLE[table] is EventKind.WORK else "{globalTid}"
    asked = f"SELECT {_NAMES[table]}, {{start}}, {{end}}, {{deviceId}}, {track}, {{correlationId}}"
    # Without a process (NULL), that of all rows is unknown.
    chosen = f"{asked} FROM {table} WHERE (?1 IS NULL OR coalesce({{process}}, ?1) = ?1)"
    # A mark of a moment has no end. It is no range.
    if table == "NVTX_EVENTS":
        chosen += " AND {end} IS NOT NULL"
    return _asked(chosen, columns)


def _asked(query: str, columns: Collection[str]) -> str:
    """The query with NULL for each column that the table has not."""
    names = {}
    for name in _COLUMNS:
        names[name] = f'"{name}"' if name in columns else "NULL"
    process = "NULL"
    for name in ("globalPid", "globalTid"):
        if name in columns:
            process = _PROCESS.format(name)
            break
    return query.format(process=process, **names)


_COLUMNS = (
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "correlationId",
    "globalTid",
    "demangledName",
    "shortName",
    "mangledName",
    "name",
    "nameId",
    "text",
    "textId",
    "copyKind",
    "srcKind",
    "dstKind",
    "syncType",
    "eventId",
)
"""All columns that a query asks for."""
