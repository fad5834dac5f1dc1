"""Databases of Nsight Systems of several releases, and with some of their tables: what is there is
read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from overhead.explaining.record import Explanation
from overhead.explaining.trace_file import explain_traces
from overhead.results import because
from tests.traces.test_trace_faults import Program, explained, said, usual
from tests.traces.test_trace_file import nsys


def without_columns(table: str, columns: Iterable[str]) -> list[str]:
    return [f"ALTER TABLE {table} DROP COLUMN {column}" for column in columns]


KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CHANGES = {
    "kernels have a short name alone": without_columns(KERNELS, ["demangledName"]),
    "kernels have no name": without_columns(KERNELS, ["demangledName", "shortName"]),
    "the device of kernels is not told": without_columns(KERNELS, ["deviceId"]),
    "ranges have a text and no number": without_columns("NVTX_EVENTS", ["textId"]),
    "ranges have no type": without_columns("NVTX_EVENTS", ["eventType"]),
    "copies have no kind of memory": without_columns(
        "CUPTI_ACTIVITY_KIND_MEMCPY", ["srcKind", "dstKind", "bytes", "copyKind"]
    ),
    "the name of the device is in no column": without_columns("TARGET_INFO_GPU", ["name"]),
    "a column more": [f"ALTER TABLE {KERNELS} ADD COLUMN greenContextId INT"],
    "a table of names without an index": [
        "CREATE TABLE Copied AS SELECT * FROM StringIds",
        "DROP TABLE StringIds",
        "ALTER TABLE Copied RENAME TO StringIds",
    ],
    "a name that is no text": ["UPDATE StringIds SET value = x'ff41' WHERE value LIKE 'gemm'"],
    "a mark without an end": [
        "INSERT INTO NVTX_EVENTS VALUES (1000000000, NULL, 34, 'a mark', 1291845635, NULL)"
    ],
    "an empty table": [
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INT, end INT, deviceId INT, streamId INT)"
    ],
    "a table without times": ["CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (deviceId INT)"],
}


def figures(found: Explanation) -> tuple[object, ...]:
    """What must not depend on the release."""
    launches = found.per_step.launches.value
    return found.verdict.kind, found.profiled_steps, launches, found.replay.replayed.value


@pytest.mark.parametrize("change", CHANGES)
def test_a_column_that_a_release_has_not_costs_no_figure(change: str, tmp_path: Path) -> None:
    whole = explain_traces([nsys(tmp_path / "whole.sqlite", usual())])
    found = explain_traces([nsys(tmp_path / "t.sqlite", usual(), *CHANGES[change])])
    assert figures(found) == figures(whole)


def test_a_database_that_tells_of_no_process_is_read(tmp_path: Path) -> None:
    """As tests and tools make them: device work without the column of the process."""
    path = nsys(
        tmp_path / "t.sqlite",
        usual(),
        # The other process has one kernel.
        f"DELETE FROM {KERNELS} WHERE globalPid = {99 << 24}",
        *without_columns(KERNELS, ["globalPid"]),
        *without_columns("CUPTI_ACTIVITY_KIND_MEMCPY", ["globalPid"]),
    )
    found = explain_traces([path])
    assert (found.verdict.kind, found.per_step.launches.value) == ("host", 10)


def test_tables_of_other_libraries_are_named_and_not_read(tmp_path: Path) -> None:
    tables = ["CREATE TABLE MPI_P2P_EVENTS (start INT)", "CREATE TABLE CUDNN_EVENTS (start INT)"]
    found = explain_traces([nsys(tmp_path / "t.sqlite", usual(), *tables)])
    assert said(found)["tables-not-read"] == because(
        "tables-not-read", tables="MPI_P2P_EVENTS, CUDNN_EVENTS"
    )


def test_ranges_alone_may_be_of_a_program_whose_cuda_was_not_traced(tmp_path: Path) -> None:
    drop = [f"DROP TABLE {KERNELS}", "DROP TABLE CUPTI_ACTIVITY_KIND_RUNTIME"]
    found = explain_traces([nsys(tmp_path / "t.sqlite", usual(), *drop)])
    assert found.verdict.kind == "unclear"
    assert "cuda-not-traced" in said(found)
    assert found.profiled_steps == 6
    assert found.operations


def in_cpp(path: Path, migrations: int = 0) -> Path:
    """Steps of a program without ranges and PyTorch: it allocates 300 µs, launches a kernel, and
    waits for it. The device moves managed memory for 1 µs so often.
    """
    program = Program()
    for step in range(5):
        start = 1e6 + 1000.0 * step
        program.call("cudaMallocManaged", start=start, length_us=300)
        program.launch(called=start + 310, starts=start + 320, length_us=100)
        program.call("cudaDeviceSynchronize", start=start + 320, length_us=110)
    rows: Sequence[str] = []
    if migrations:
        process = 77 << 24
        first = 1_000_000_000
        values = [
            f"({first + 10_000 * index}, {first + 10_000 * index + 1000}, 0, 0, 0, {process}, 11,"
            " 4, 2, 9)"
            for index in range(migrations)
        ]
        rows = [f"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES {','.join(values)}"]
    return nsys(path, program.events, "DROP TABLE NVTX_EVENTS", *rows)


def test_a_program_without_ranges_shows_its_runtime_calls_by_time(tmp_path: Path) -> None:
    found = explain_traces([in_cpp(tmp_path / "t.sqlite")])
    calls = {row.name: row for row in found.calls}
    steps = found.profiled_steps
    allocations = calls["cudaMallocManaged"]
    # The first allocation lies before the first launch, with which a step may begin.
    assert allocations.host_ns * steps == pytest.approx(1_500_000, rel=0.21)
    launches = calls["cudaLaunchKernel"]
    assert launches.device_ns * steps == pytest.approx(500_000)
    # A wait is no work of the host.
    assert calls["cudaDeviceSynchronize"].host_ns < 20_000
    assert found.calls[0].name == "cudaMallocManaged"


def test_a_trace_with_operations_shows_no_table_of_calls(tmp_path: Path) -> None:
    assert explained(tmp_path, usual()).calls == []


def test_little_managed_memory_costs_no_verdict(tmp_path: Path) -> None:
    found = explain_traces([in_cpp(tmp_path / "t.sqlite", migrations=300)])
    assert found.verdict.kind != "unclear"
    assert int(str(said(found)["migrations-beside"].values["pieces"])) > 250


def test_a_part_of_a_recording_that_ends_before_its_work_is_called_that(tmp_path: Path) -> None:
    events = usual(host_us=20, device_us=200, wait=False)
    last_call = max(event["ts"] for event in events if event["cat"] == "cuda_runtime")
    path = nsys(
        tmp_path / "t.sqlite",
        events,
        f"DELETE FROM {KERNELS} WHERE start > {int(1000 * last_call)}",
    )
    with sqlite3.connect(path) as base:
        assert base.execute(f"SELECT count(*) FROM {KERNELS}").fetchone()[0] > 1
    base.close()
    found = explain_traces([path])
    assert found.verdict.kind == "unclear"
    assert "recording-ends-before-work" in said(found)
