"""The state that a step reaches."""

import itertools
import random
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from overhead.explain import state

ARRAY = np.arange(3.0)
COUNTER = {"steps": 0}


class Simulation:
    def __init__(self) -> None:
        self.positions = np.zeros(4)
        self.step_count = 0
        self.parts = [{"mass": 2.0}]

    def step(self) -> Any:
        self.positions += 1
        self.step_count += 1


def test_reaches_what_a_bound_method_holds() -> None:
    assert list(state.reach(Simulation().step)) == ["self.positions", "self.step_count", "self.parts.0.mass"]


def test_reaches_closures_defaults_and_named_globals() -> None:
    weight = np.ones(2)

    def step(scale: Any = 3) -> Any:
        return weight * ARRAY * scale * COUNTER["steps"]

    found = state.reach(step)
    assert found["weight"] is weight
    assert found["ARRAY"] is ARRAY
    assert (found["default0"], found["COUNTER.steps"]) == (3, 0)


def test_reaches_a_partial_and_a_result_in_containers() -> None:
    found = state.reach([partial(max, ARRAY, key=5), {"logits": ARRAY[:2]}])
    assert found["0.0"] is ARRAY
    assert found["1.logits"].shape == (2,)
    assert found["0.key"] == 5


def test_a_cycle_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert state.reach(loop) == {}


def test_finds_host_values_that_a_step_changes() -> None:
    simulation = Simulation()
    before = state.host_values(simulation.step)
    simulation.step()
    assert state.changed(before, state.host_values(simulation.step)) == ["self.positions", "self.step_count"]


def _sequence() -> Any:
    yield from range(10)


@pytest.mark.parametrize(
    ("source", "use"),
    [
        (np.random.default_rng(1), lambda source: source.random()),
        (random.Random(1), lambda source: source.random()),
        (_sequence(), next),
        (iter([1, 2, 3]), next),
    ],
)
def test_finds_a_source_of_values_that_moves_on(source: Any, use: Any) -> None:
    def step() -> Any:
        return use(source)

    before = state.host_values(step)
    assert state.changed(before, state.host_values(step)) == []
    step()
    assert state.changed(before, state.host_values(step))


def test_torch_modules_are_named_as_the_program_names_them() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    model(torch.ones(2)).sum().backward()
    names = [name for name, value in state.reach(lambda: model(torch.ones(2))).items() if state.is_array(value)]
    assert names == ["model.0.weight", "model.0.bias", "model.0.weight.grad", "model.0.bias.grad"]


def test_bfloat16_becomes_float32() -> None:
    torch = pytest.importorskip("torch")
    assert state.to_numpy(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float32


def test_reaches_through_a_decorator_of_a_library() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.ones(2)
    assert state.reach(torch.no_grad()(lambda: weight * 2))["func.weight"] is weight


class Unreadable:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Everything:
    """Has every attribute, as a mock has."""

    def __getattr__(self, name: str) -> Any:
        return self


def test_an_object_with_every_attribute_is_no_array() -> None:
    assert not state.is_array(Everything())


class Endless(Mapping[int, int]):
    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return itertools.repeat(1)

    def __getitem__(self, key: int) -> int:
        return key


class Unequal(int):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = int.__hash__


def test_objects_that_raise_or_never_end_do_not_stop_the_walk() -> None:
    unread: dict[str, str] = {}
    found = state.reach({"unreadable": Unreadable(), "endless": Endless(), "count": 3}, unread)
    assert found["count"] == 3
    assert list(unread) == ["unreadable", "endless"]
    assert unread["unreadable"].startswith("cannot be read: ")


def test_values_that_cannot_be_compared_count_as_changed() -> None:
    assert state.changed({"a": Unequal(1)}, {"a": Unequal(1)}) == ["a"]
