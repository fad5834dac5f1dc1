"""A step that gets recorded values instead of reading the device."""

from typing import Any

import pytest

from overhead.explain.alternatives.without_synchronisations import Tape


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


def test_replays_recorded_values_in_turn_without_reading(tensor_type: Any) -> None:
    tensor = DeviceTensor()

    def step() -> Any:
        tensor.value += 1
        return tensor.item()

    recorded = [tensor_type.record(step) for _ in range(2)]
    reads = tensor.reads
    assert [tensor_type.replay(step) for _ in range(3)] == [*recorded, recorded[0]]
    assert tensor.reads == reads


def test_only_copies_to_the_host_are_recorded(tensor_type: Any) -> None:
    tensor = DeviceTensor()

    def step() -> Any:
        tensor.to("float16")
        return tensor.to("cpu")

    assert tensor_type.record(step) == 0
    tensor.value = 5
    assert tensor_type.replay(step) == 0


def test_outside_a_step_the_tensor_is_read(tensor_type: Any) -> None:
    tensor = DeviceTensor()
    tensor_type.record(tensor.item)
    tensor.value = 7
    assert tensor.item() == 7


def test_a_step_that_reads_more_than_was_recorded_is_refused(tensor_type: Any) -> None:
    tensor = DeviceTensor()
    tensor_type.record(lambda: None)
    with pytest.raises(RuntimeError, match="reads more values"):
        tensor_type.replay(tensor.item)


def test_waits_return_at_once_while_replaying(tensor_type: Any) -> None:
    waits = []
    wait = tensor_type.wait(lambda: waits.append(1))
    tensor_type.record(wait)
    tensor_type.replay(wait)
    assert waits == [1]
