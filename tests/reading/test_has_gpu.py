"""Whether a run is of a machine with a GPU."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.view import View
from overhead.results import Gpu, Record
from tests.fakes.report import fingerprint, record

NUMPY = record("numpy", api="CPU", adapter="CPU")


def has_gpu(measured: Record, *gpus: Gpu) -> bool:
    run = fingerprint(measured)
    machine = msgspec.structs.replace(run.machine, gpus=[*gpus])
    return View(msgspec.structs.replace(run, machine=machine)).has_gpu


def test_a_gpu_that_the_machine_names_counts_though_no_stack_measured_it() -> None:
    assert has_gpu(NUMPY, Gpu(name="AMD Radeon"))
    assert not has_gpu(NUMPY)


def test_a_gpu_that_was_measured_counts_though_the_machine_does_not_name_it() -> None:
    assert has_gpu(record("vulkan"))


@pytest.mark.parametrize(
    "measured",
    [record("vulkan", software=True), record("dawn", api="Null", executes=False)],
    ids=["software", "null"],
)
def test_an_adapter_that_is_no_hardware_is_no_gpu(measured: Record) -> None:
    assert not has_gpu(measured, Gpu(name="llvmpipe", software=True))
