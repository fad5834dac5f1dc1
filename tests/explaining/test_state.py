"""The state that a step reaches."""

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from overhead.explaining import state
from overhead.results import Why, codes_of

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


def test_the_state_of_a_bound_method_includes_its_object() -> None:
    assert list(state.reachable_values(Simulation().step)) == [
        "self.positions",
        "self.step_count",
        "self.parts.0.mass",
    ]


def test_the_state_of_a_function_includes_closures_defaults_and_globals_it_names() -> None:
    weight = np.ones(2)

    def step(scale: Any = 3) -> Any:
        return weight * ARRAY * scale * COUNTER["steps"]

    found = state.reachable_values(step)
    assert found["weight"] is weight
    assert found["ARRAY"] is ARRAY
    assert found["default0"] == 3, "the default of its first argument"
    assert found["COUNTER.steps"] == 0


def test_a_changed_python_value_or_host_array_is_listed_by_name() -> None:
    simulation = Simulation()
    before = state.host_values(simulation.step)
    simulation.step()
    assert state.changed_names(before, state.host_values(simulation.step)) == [
        "self.positions",
        "self.step_count",
    ]


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
def test_an_iterator_or_random_generator_that_advances_is_listed_as_changed(
    source: Any, use: Any
) -> None:
    def step() -> Any:
        return use(source)

    before = state.host_values(step)
    assert state.changed_names(before, state.host_values(step)) == []
    step()
    assert state.changed_names(before, state.host_values(step))


def test_a_weight_of_a_torch_module_is_named_model_dot_weight() -> None:
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    model(torch.ones(2)).sum().backward()
    values = state.reachable_values(lambda: model(torch.ones(2)))
    names = [name for name, value in values.items() if state.is_array(value)]
    assert names == ["model.0.weight", "model.0.bias", "model.0.weight.grad", "model.0.bias.grad"]


class Unreadable:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


class Endless(Mapping[int, int]):
    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[int]:
        return itertools.repeat(1)

    def __getitem__(self, key: int) -> int:
        return key


def test_objects_that_raise_or_never_end_are_skipped_with_the_reason() -> None:
    unread: dict[str, Why] = {}
    found = state.reachable_values(
        {"unreadable": Unreadable(), "endless": Endless(), "count": 3}, unread
    )
    assert found["count"] == 3
    assert list(unread) == ["unreadable", "endless"]
    assert [codes_of(why) for why in unread.values()] == [{"part-unreadable"}, {"too-many-parts"}]
