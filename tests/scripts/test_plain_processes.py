"""Plain fresh processes beside the met cost of a run."""

from __future__ import annotations

import msgspec
import pytest

from overhead.results import Figure, Record
from scripts.agreement import plain_processes
from tests.fakes.report import record

MET = Figure(name="met", value=56e3, low=30e3, high=70e3, processes=8)


def with_met(of: Record) -> Record:
    return msgspec.structs.replace(of, figures=[*of.figures, MET])


def test_the_plain_processes_of_a_base_case_stand_beside_its_met_cost() -> None:
    plain = {"dawn binding": [20e3 + 10e3 * i for i in range(7)]}
    (found,) = plain_processes.beside([with_met(record("dawn")), record("torch")], plain)
    assert found["met"] == [56.0, 30.0, 70.0]
    assert found["plain"] == [50.0, 20.0, 80.0]
    assert found["medians"] == pytest.approx(56 / 50)
    assert found["inside"] == pytest.approx(5 / 7, abs=1e-3)
    assert found["bands"] == pytest.approx(40 / 60, abs=5e-3)
    assert found["two standard errors"] == pytest.approx(2 * 1.2533 * 21.602 / 7**0.5 / 50, abs=1e-3)


def test_from_eight_plain_processes_on_the_ends_are_percentiles() -> None:
    (found,) = plain_processes.beside([with_met(record("dawn"))], {"dawn binding": [1e3 * i for i in range(21)]})
    assert found["plain"] == [10.0, 2.0, 18.0]


def test_only_the_first_case_of_a_stack_and_a_caller_is_compared() -> None:
    first = with_met(record("dawn"))
    second = msgspec.structs.replace(first, params={"k": 2})
    plain = {"dawn binding": [1e3, 2e3], "torch binding": [1e3, 2e3]}
    found = plain_processes.beside([first, second, record("torch")], plain)
    assert [one["case"] for one in found] == [first.key]


def test_the_gpu_of_a_stack_comes_before_its_cpu() -> None:
    """A plain process takes the hardware target, whichever the file lists first."""
    cpu, gpu = (with_met(record("torch", api=api, adapter=api)) for api in ("CPU", "CUDA"))
    for records in ([cpu, gpu], [gpu, cpu]):
        (found,) = plain_processes.beside(records, {"torch binding": [1e3, 2e3]})
        assert found["case"] == gpu.key
