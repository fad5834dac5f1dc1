"""The queries of a database of Nsight Systems, in SQL."""

from __future__ import annotations

_TEXT = "(SELECT substr(value, 1, 1000) FROM StringIds WHERE id = {})"
_PROCESS = "({} >> 24) & 16777215"
"""The number of a process. The lowest 24 bits of a global number are a thread, the next 24 a
process.
"""
_COPY = """'Memcpy ' || CASE copyKind WHEN 1 THEN 'HtoD' WHEN 2 THEN 'DtoH' WHEN 11 THEN 'UVM'
    WHEN 12 THEN 'UVM' WHEN 13 THEN 'UVM' ELSE '' END
    || CASE srcKind WHEN 0 THEN ' Pageable ->' ELSE '' END
    || CASE dstKind WHEN 0 THEN ' -> Pageable' ELSE '' END"""
_WORK = {
    "KERNEL": _TEXT.format("demangledName"),
    "GRAPH_TRACE": "'CUDA graph'",
    "MEMSET": "'Memset'",
    "MEMCPY": _COPY,
}
"""The names of device work, by table. CUPTI numbers the kinds of copies and of memory."""
SELECTS = {
    f"CUPTI_ACTIVITY_KIND_{table}": (
        f"""{_PROCESS.format("globalPid")}, 'work', {name}, start, end, deviceId, streamId,
    correlationId FROM CUPTI_ACTIVITY_KIND_{table}"""
    )
    for table, name in _WORK.items()
} | {
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        f"""{_PROCESS.format("globalTid")}, 'call', {_TEXT.format("nameId")}, start, end,
    0, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"""
    ),
    "NVTX_EVENTS": (
        f"""{_PROCESS.format("globalTid")}, 'range',
    coalesce(substr(text, 1, 1000), {_TEXT.format("textId")}), start, end,
    0, globalTid, 0 FROM NVTX_EVENTS WHERE end IS NOT NULL"""
    ),
}
"""By table: the process, what the row is, name, times in ns, device, thread or stream,
correlation.
"""
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
"""The names of the tables that are stored, and not computed."""
GPU_NAME = "SELECT name FROM TARGET_INFO_GPU"
PROCESS_NAMES = f"SELECT {_PROCESS.format('globalPid')}, name FROM PROCESSES"
