"""The page of operations: a row for each, with its cost or the reason why there is none."""

from __future__ import annotations

import msgspec

from overhead.blocks.parts import Table, cell_text
from overhead.reading.view import View
from overhead.report.sections.operations import operations
from overhead.results import Api, Figure, Record
from overhead.workloads import OPERATIONS
from tests.fakes.report import fingerprint, record


def operation(name: str, ns: float | None, api: Api = "CUDA", reason: str = "") -> Record:
    """A record of one operation. Both ends of the interval of its cost equal the cost."""
    figures = (Figure(name="complete", value=ns, low=ns, high=ns, status="ok" if ns else "nonlinear"),)
    made = record(
        "torch", each=None, api=api, status=figures[0].status, reason=reason, params={"operation": name}, more=figures
    )
    return msgspec.structs.replace(made, workload=OPERATIONS, window={"operation": f"call of {name}"})


def run(*records: Record) -> View:
    return View(fingerprint(*records))


def test_each_device_has_a_table_of_operations_with_costs_multiples_and_reasons() -> None:
    bent = operation("cat", None, reason="T(n) bends")
    parts = list(
        operations(run(operation("add", 900.0, "CPU"), operation("add", 4_000.0), operation("adam", 40_000.0), bent))
    )
    tables = [part for part in parts if isinstance(part, Table)]
    assert [table.caption.endswith("on the processor") for table in tables] == [False, True], "the GPU comes first"
    cells = [[cell_text(cell) for cell in row] for row in tables[0].rows]
    assert tables[0].columns == ["operation", "statement", "complete, µs", "to the first", "remark"]
    assert cells[0] == ["add", "call of add", "4.000 (4.000 to 4.000)", "1.000× (1.000 to 1.000)", ""]
    assert cells[1][3] == "10.00× (10.00 to 10.00)"
    assert cells[2][2:] == ["nonlinear", "", "nonlinear: T(n) bends"]


def test_a_run_without_operations_has_no_page_of_operations() -> None:
    assert list(operations(run())) == []
