"""A step that cannot be captured, and one that gets recorded values instead of reading the
device.
"""

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from overhead.explaining.alternatives import ALTERNATIVES, ReadsDiffer, Tape
from overhead.explaining.attempts import AttemptJob, run_attempt

FORBIDDEN = (
    "CUDA error: operation not permitted when stream is capturing\nSearch for"
    " `cudaErrorStreamCaptureUnsupported' in https://docs.nvidia.com for more information.\nCUDA"
    " kernel errors might be asynchronously reported"
)
PROGRAM = f"""
def step():
    raise RuntimeError({FORBIDDEN!r})
"""


@contextlib.contextmanager
def _invalid(graph: object) -> Iterator[None]:
    try:
        yield
    finally:
        raise RuntimeError("operation failed due to a previous error during capture")


def test_a_step_that_cuda_cannot_capture_is_reported_with_the_failing_line(
    monkeypatch: Any,
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "CUDAGraph", object)
    monkeypatch.setattr(torch.cuda, "graph", _invalid)
    monkeypatch.setitem(
        ALTERNATIVES, "CUDA graph", dataclasses.replace(ALTERNATIVES["CUDA graph"], why_not=str)
    )
    without_warm_up = "overhead.explaining.attempts._warm"
    monkeypatch.setattr(without_warm_up, lambda step: [])
    attempt = run_attempt(AttemptJob(setup=PROGRAM, alternative="CUDA graph"))
    assert (
        attempt.reason
        == "RuntimeError: CUDA error: operation not permitted when stream is capturing"
    )
    assert attempt.where == "<string>:3, in step"


class DeviceTensor:
    """A tensor on a device that counts how often the host reads it."""

    is_cuda = True

    def __init__(self) -> None:
        self.value = 0
        self.reads = 0

    def item(self) -> Any:
        self.reads += 1
        return self.value

    def to(self, *args: Any) -> Any:
        return self.item() if args == ("cpu",) else self


@pytest.fixture
def tensor_type(monkeypatch: Any) -> Any:
    tape = Tape()
    monkeypatch.setattr(DeviceTensor, "item", tape.read(DeviceTensor.item))
    monkeypatch.setattr(DeviceTensor, "to", tape.read(DeviceTensor.to))
    return tape


def test_a_tape_replays_recorded_values_without_reading_the_device(tensor_type: Any) -> None:
    tensor = DeviceTensor()

    def step() -> Any:
        tensor.value += 1
        return tensor.item()

    first, second = tensor_type.record(step), tensor_type.record(step)
    reads = tensor.reads
    # After the last recorded step the first one comes again.
    assert [tensor_type.replay(step) for _ in range(3)] == [first, second, first]
    assert tensor.reads == reads


def test_a_tape_records_only_copies_to_the_host(tensor_type: Any) -> None:
    tensor = DeviceTensor()

    def step() -> Any:
        tensor.to("float16")
        return tensor.to("cpu")

    assert tensor_type.record(step) == 0
    tensor.value = 5
    # The recorded value. Had the first copy, which stays on the device, been recorded, it would
    # come in place of the second.
    assert tensor_type.replay(step) == 0


def test_a_tape_raises_if_a_step_reads_more_values_than_it_recorded_and_lets_others_be_read(
    tensor_type: Any,
) -> None:
    tensor = DeviceTensor()
    tensor_type.record(lambda: None)
    with pytest.raises(ReadsDiffer):
        tensor_type.replay(tensor.item)
    tensor.value = 7
    assert tensor.item() == 7, "outside of a replay"


def test_a_tape_skips_waits_during_a_replay(tensor_type: Any) -> None:
    waits = []
    wait = tensor_type.wait(lambda: waits.append(1))
    tensor_type.record(wait)
    tensor_type.replay(wait)
    assert waits == [1]
