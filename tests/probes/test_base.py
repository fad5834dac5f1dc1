"""The interface of stacks refuses what cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest

from overhead import probes
from overhead.errors import BadValue
from overhead.probes import floor
from overhead.probes.base import Probe, Space, Unsupported
from overhead.results import Case

BASE = Case(pattern="per-submit", params={"values": 1})


def test_space_refuses_an_axis_that_the_base_case_lacks() -> None:
    with pytest.raises(
        BadValue,
        match=r"^Space.axes has 'valuez', which the base case lacks; allowed: pattern, .*values$",
    ):
        Space(BASE, axes={"valuez": [8]})


def test_none_among_the_values_of_an_axis_means_that_the_case_lacks_the_parameter() -> None:
    space = Space(BASE, axes={"wait": [None, "poll"]})
    assert [case.params for case in space.star()] == [{"values": 1}, {"values": 1, "wait": "poll"}]
    assert [case.params for case in space.cross()] == [{"values": 1}, {"values": 1, "wait": "poll"}]


def test_space_refuses_a_text_instead_of_a_list_of_values() -> None:
    with pytest.raises(
        BadValue, match=r"^Space.axes\['pattern'\] is 'wait-each'; it must be a list of values$"
    ):
        Space(BASE, axes={"pattern": "wait-each"})


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"cost": "quick"}, "Mine.cost is 'quick'; allowed: cheap, fast, slow, polling"),
        ({"distributions": "pyopencl"}, "Mine.distributions is 'pyopencl'; it must be a list"),
    ],
)
def test_register_refuses_a_stack_with_a_bad_attribute(
    attributes: dict[str, Any], message: str
) -> None:
    good = {"name": "mine", "title": "Mine"}
    with pytest.raises(BadValue, match=f"^{message}"):
        probes.register(type("Mine", (Probe,), {**good, **attributes}))


def test_the_floor_stack_needs_a_python_with_plain_reference_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(floor, "_function", lambda address: lambda argument: None)
    with pytest.raises(Unsupported, match="no-plain-reference-count"):
        floor.ForeignCalls("ctypes")
