"""Compare what two ways to run a step computed."""

from typing import Any

import numpy as np
import pytest

from overhead.explain.outcome import differences, of_result, of_state


def _compare(first: Any, second: Any) -> Any:
    return differences(of_result("step 1", first)[0], of_result("step 1", second)[0])


def test_equal_results_do_not_differ() -> None:
    assert _compare({"loss": 0.5, "x": np.arange(9)}, {"loss": 0.5, "x": np.arange(9)}) == []


@pytest.mark.parametrize(("share", "differs"), [(0.5e-3, False), (2e-3, True)])
def test_float32_may_differ_by_a_thousandth_of_the_largest_value(share: Any, differs: Any) -> None:
    ours = np.array([0.001, 8.0], np.float32)
    theirs = ours + np.array([8 * share, 0], np.float32)
    assert bool(_compare(ours, theirs)) is differs


def test_a_difference_shows_both_values_where_it_is_largest() -> None:
    [found] = _compare(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.1]))
    assert (found.name, found.first, found.second) == ("step 1", "2", "2.5")
    assert found.worst == pytest.approx(0.5 / 3.1)


def test_integers_must_be_equal() -> None:
    assert _compare(np.array([1000000]), np.array([1000001]))


def test_a_change_outside_the_kept_elements_shows_in_the_sums() -> None:
    ours = np.ones(1_000_000)
    theirs = ours.copy()
    theirs[1] = 3.0
    assert _compare(ours, theirs)


def test_not_a_number_equals_itself_only() -> None:
    assert _compare(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])) == []
    assert _compare(np.array([np.nan, 1.0]), np.array([2.0, 1.0]))


@pytest.mark.parametrize("other", [np.ones(3), np.ones(2, np.float32), "text", None, {"a": np.ones(2)}])
def test_another_shape_type_or_structure_differs(other: Any) -> None:
    assert _compare(np.ones(2), other)


def test_a_later_step_does_not_change_values_that_were_kept() -> None:
    reused = np.zeros(3)
    kept = of_result("step 1", reused)[0]
    reused += 1
    assert differences(kept, of_result("step 1", np.zeros(3))[0]) == []


def test_the_state_holds_the_arrays_that_a_step_reaches() -> None:
    weight = np.ones(2)
    values, left_out = of_state(lambda: weight)
    assert [value.name for value in values] == ["weight"]
    assert left_out == {}


def test_a_number_equals_an_array_without_dimensions() -> None:
    assert _compare(0.1, np.array(0.1, np.float32)) == []
    assert _compare(0.1, np.array(0.2, np.float32))


class Hostile(str):
    def __repr__(self) -> str:
        raise RuntimeError("no text")


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (np.array(["a", None, {}], dtype=object), np.array(["a", None, {"b": 1}], dtype=object)),
        (np.array(["a"]), np.array(["b"])),
        (np.array(["2020-01-01"], dtype="M8[D]"), np.array(["2020-01-02"], dtype="M8[D]")),
        (np.zeros(3, dtype=[("a", "f4")]), np.ones(3, dtype=[("a", "f4")])),
        (10**400, 10**400 + 1),
        ("x" * 500 + "a", "x" * 500 + "b"),
        ({"\udcff": "\udcff"}, {"\udcff": 1.0}),
    ],
)
def test_values_that_are_no_numbers_are_compared_as_text(ours: Any, theirs: Any) -> None:
    assert _compare(ours, ours) == []
    assert _compare(ours, theirs)
    for value in of_result("step 1", ours)[0]:
        f"{value.name}{value.text}".encode()


class NoArray:
    shape = (2,)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")


@pytest.mark.parametrize(("value", "said"), [(NoArray(), "no array"), (Hostile("a"), "no text")])
def test_a_value_that_cannot_be_read_is_left_out_with_the_reason(value: Any, said: str) -> None:
    values, left_out = of_result("step 1", {"a": value, "b": 2})
    assert [kept.name for kept in values] == ["step 1.b"]
    assert left_out == {"step 1.a": f"cannot be read: RuntimeError: {said}"}


def test_names_of_parts_that_are_left_out_can_be_written_to_a_file() -> None:
    _, left_out = of_result("step 1", {"\udcff": NoArray()})
    assert [name.encode() for name in left_out]


def test_the_state_of_an_object_that_cannot_be_read_is_left_out_with_the_reason() -> None:
    held = [NoArray(), np.zeros(2)]
    values, left_out = of_state(lambda: held)
    assert [kept.name for kept in values] == ["held.1"]
    assert left_out == {"held.0": "cannot be read: RuntimeError: no array"}
