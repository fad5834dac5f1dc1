"""Values that a stack hands over are checked where they are made, with one clear line."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from overhead.errors import BadValue
from overhead.fields import checked, checked_mapping
from overhead.results import Case, Scalar, Target


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"pattern": "per-submt"},
            "Case.pattern is 'per-submt'; allowed: per-submit, per-k, per-pass, ",
        ),
        ({"unit": 3}, "Case.unit is 3; it must be text"),
        ({"unit": "x" * 201}, "Case.unit is 'x+[.]{3}; it must be text of length <= 200"),
        (
            {"params": {"k": [1, 2]}},
            r"Case.params\['k'\] is \[1, 2\] \(list\); it must be True or False, an integer,",
        ),
        ({"params": {"k": float("nan")}}, r"Case.params\['k'\] is nan; it must be finite"),
        (
            {"params": {"k": 2**64}},
            r"Case.params\['k'\] is 18446744073709551616; it must fit into 64 bits",
        ),
        ({"params": "k=1"}, "Case.params is 'k=1'; it must be a dict"),
    ],
)
def test_a_bad_field_of_a_case_is_named_with_its_value_and_what_is_allowed(
    fields: Any, message: str
) -> None:
    with pytest.raises(BadValue, match=f"^{message}"):
        Case(**{"pattern": "per-submit", **fields})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"stack": "My Stack"}, "Target.stack is 'My Stack'; it must be text matching regex"),
        ({"software": "no"}, "Target.software is 'no'; it must be True or False"),
        (
            {"versions": {"opencl": (3, 0)}},
            r"Target.versions\['opencl'\] is \(3, 0\) \(tuple\); it must be text",
        ),
        ({"options": {"index": None}}, r"Target.options\['index'\] is None; it must be "),
    ],
)
def test_a_bad_field_of_a_target_is_named(fields: Any, message: str) -> None:
    with pytest.raises(BadValue, match=f"^{message}"):
        Target(**{"stack": "mine", "api": "OpenCL", "adapter": "A", **fields})


@pytest.mark.parametrize(
    ("given", "kept"), [("vulkan", "Vulkan"), ("CUDA", "CUDA"), ("opencl", "OpenCL"), ("ze", "ze")]
)
def test_any_api_is_allowed_and_a_known_one_keeps_its_spelling(given: str, kept: str) -> None:
    target = Target(stack="mine", api=given, adapter="A")
    assert target.api == kept
    assert msgspec.json.decode(msgspec.json.encode(target), type=Target) == target


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.int64(3), 3), (np.float32(0.5), 0.5), (np.bool_(True), True), (np.array(7), 7)],
)
def test_a_numpy_scalar_in_a_field_becomes_a_plain_value(value: Any, plain: Scalar) -> None:
    case = Case(pattern="per-submit", params={"k": value})
    assert type(case.params["k"]) is type(plain)
    assert case.params["k"] == plain
    assert msgspec.json.decode(msgspec.json.encode(case), type=Case) == case


def test_a_mapping_field_is_checked_value_by_value() -> None:
    assert checked_mapping("window()", {"k": np.int8(1), "wait": "poll"}, Scalar) == {
        "k": 1,
        "wait": "poll",
    }
    with pytest.raises(
        BadValue, match=r"^window\(\)\['values'\] is array\(\[1, 2\]\) \(ndarray\); it must be "
    ):
        checked_mapping("window()", {"values": np.array([1, 2])}, Scalar)


def test_a_number_field_accepts_an_integer_but_an_integer_field_refuses_true() -> None:
    assert checked("x", 1, float) == 1.0
    with pytest.raises(BadValue, match=r"^x is True; it must be an integer$"):
        checked("x", True, int)
