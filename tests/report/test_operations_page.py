"""The page of operations: a row for each, with its cost or the reason why there is none."""

from __future__ import annotations

from overhead.blocks.parts import Table, cell_text
from overhead.reading.view import View
from overhead.report.sections.operations import operations
from overhead.results import Figure, Fingerprint, Machine, Record
from overhead.workloads import OPERATIONS


def record(name: str, ns: float | None, api: str = "CUDA", reason: str = "") -> Record:
    figure = Figure(name="complete", value=ns, low=ns, high=ns) if ns else Figure(name="complete", status="nonlinear")
    return Record(
        stack="torch",
        api=api,
        adapter="NVIDIA H200",
        pattern="per-submit",
        caller="binding",
        dependency="chained",
        unit="operation",
        workload=OPERATIONS,
        params={"operation": name},
        window={"operation": f"call of {name}"},
        status="ok" if ns else "nonlinear",
        reason=reason,
        figures=[figure],
    )


def run(*records: Record) -> View:
    machine = Machine(id="0123456789ab", cpu="a processor", cores=16, memory_gib=128)
    return View(
        Fingerprint(
            schema_version=1,
            method_version=3,
            created="2026-11-23T12:00:00Z",
            profile="quick",
            machine=machine,
            records=list(records),
        )
    )


def test_each_device_has_a_table_of_operations_with_costs_multiples_and_reasons() -> None:
    bent = record("cat", None, reason="T(n) bends")
    parts = list(operations(run(record("add", 900.0, "CPU"), record("add", 4_000.0), record("adam", 40_000.0), bent)))
    tables = [part for part in parts if isinstance(part, Table)]
    assert [table.caption.endswith("on the processor") for table in tables] == [False, True], "the GPU comes first"
    cells = [[cell_text(cell) for cell in row] for row in tables[0].rows]
    assert tables[0].columns == ["operation", "statement", "complete, µs", "to the first", "remark"]
    assert cells[0] == ["add", "call of add", "4.000 (4.000 to 4.000)", "1.000× (1.000 to 1.000)", ""]
    assert cells[1][3] == "10.00× (10.00 to 10.00)"
    assert cells[2][2:] == ["nonlinear", "", "nonlinear: T(n) bends"]


def test_a_run_without_operations_has_no_page_of_operations() -> None:
    assert list(operations(run())) == []
