"""Compare what two ways to run a step computed."""

import dataclasses
import datetime
import enum
import re
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest

from overhead.explaining.outcome import (
    StepOutcome,
    checksums,
    compare_outcomes,
    differences,
    result_values,
    state_values,
)
from overhead.results import Reason, because, codes_of

INF, NAN = float("inf"), float("nan")


def _compare(first: Any, second: Any) -> Any:
    return differences(result_values("step 1", first)[0], result_values("step 1", second)[0])


@pytest.mark.parametrize(("share", "differs"), [(0.5e-3, False), (2e-3, True)])
def test_float32_may_differ_by_a_thousandth_of_the_largest_value(share: Any, differs: Any) -> None:
    ours = np.array([0.001, 8.0], np.float32)
    theirs = ours + np.array([8 * share, 0], np.float32)
    assert bool(_compare(ours, theirs)) is differs


def test_a_difference_shows_both_values_where_it_is_largest() -> None:
    [found] = _compare(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.5, 3.1]))
    share = found.values["share"]
    assert found == because(
        "values-differ-by-share", name="step 1", first="2", second="2.5", share=share
    )
    assert share == pytest.approx(0.5 / 3.1)


def test_one_wrong_element_in_a_large_array_is_reported_as_a_difference() -> None:
    ours = np.ones(3_000_000, np.float32)
    for wrong in (0, 1, 1 << 20, 2_999_999):
        theirs = ours.copy()
        theirs[wrong] = 1.01
        assert _compare(ours, theirs)


@pytest.mark.parametrize("values", [(1, INF), (1, -INF), (1, NAN), (NAN, INF), (2, NAN)])
def test_nan_and_infinity_are_equal_only_to_themselves(values: Any) -> None:
    for kind in (list, np.array, lambda pair: np.array(pair, np.complex64)):
        assert _compare(kind(values), kind(values)) == []
        for other in ((1, 2.0), values[::-1], (1, INF) if values[1] != INF else (1, -INF)):
            assert _compare(kind(values), kind(other))


@dataclasses.dataclass
class Parts:
    count: int
    array: Any


class Pair(NamedTuple):
    x: Any
    y: Any


class Colour(enum.Enum):
    RED, BLUE = "r", "b"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (2**53, 2**53 + 1),
        (10**400, 10**400 + 1),
        (np.array([2**53]), np.array([2**53 + 1])),
        (np.array([2**64 - 1], np.uint64), np.array([2**64 - 2], np.uint64)),
        (range(3), range(4)),
        ("a", "b"),
        (b"a", b"b"),
        (bytearray(b"a"), bytearray(b"b")),
        (True, False),
        (None, 0),
        (None, ()),
        (1 + 1j, 1 + 2j),
        (np.array([1 + 1j]), np.array([1 + 2j])),
        (Colour.RED, Colour.BLUE),
        ({(1, 2): 1}, {(1, 3): 1}),
        ({1: 1}, {"1": 1}),
        ({"a": ()}, {}),
        ([[], []], [[]]),
        ({"a", "b", "c"}, {"a", "b", "d"}),
        (frozenset([1]), frozenset([1, 2])),
        (np.float64(1), np.float64(1.1)),
        (np.ones(2, np.float16), np.full(2, 1.1, np.float16)),
        (Parts(1, np.ones(2)), Parts(1, np.zeros(2))),
        (Pair(1, 2), Pair(1, 3)),
        (np.array(["a"]), np.array(["b"])),
        (np.array(["2020-01-01"], dtype="M8[D]"), np.array(["2020-01-02"], dtype="M8[D]")),
        ("x" * 500 + "a", "x" * 500 + "b"),
        (np.ones(2), np.ones(3)),
        (np.ones(2), np.ones(2, np.float32)),
        (np.ones(2), {"a": np.ones(2)}),
    ],
)
def test_values_of_each_python_and_numpy_type_are_compared(ours: Any, theirs: Any) -> None:
    assert _compare(ours, ours) == []
    assert _compare(ours, theirs)
    assert _compare(theirs, ours)


@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore")
def test_tensors_of_each_pytorch_type_are_compared() -> None:
    import torch

    def quantised(value: float) -> Any:
        return torch.quantize_per_tensor(
            torch.tensor([1.0, value]), scale=0.1, zero_point=0, dtype=torch.quint8
        )

    half_types = (torch.float16, torch.bfloat16)
    byte_types = (torch.float8_e4m3fn, torch.float8_e5m2)
    ones = torch.ones(2)
    pairs = [
        (quantised(2), quantised(2.1)),
        (torch.tensor([1 + 1j]).conj(), torch.tensor([1 + 2j]).conj()),
        (ones.to(torch.complex32), (1j * ones).to(torch.complex32)),
    ]
    for kind in (*half_types, *byte_types):
        pairs.append((ones.to(kind), torch.full((2,), 1.25).to(kind)))
    for ours, theirs in pairs:
        assert _compare(ours, ours) == []
        assert _compare(ours, theirs)

    # A thousandth is less than these types resolve.
    random = torch.rand(1000)
    for kind in half_types:
        assert _compare(random.to(kind), (random * 1.001).to(kind)) == []


@pytest.mark.needs("torch")
@pytest.mark.filterwarnings("ignore")
def test_a_sparse_tensor_is_left_out_with_the_reason() -> None:
    import torch

    _, left_out = result_values("step 1", torch.ones(2, 2).to_sparse())
    _, why = left_out["step 1"]
    assert codes_of(why) == {"part-unreadable"}


def test_the_kept_result_of_a_step_does_not_change_when_a_later_step_reuses_the_memory() -> None:
    reused = np.zeros(3)
    kept, _ = result_values("step 1", reused)
    reused += 1
    zeros, _ = result_values("step 1", np.zeros(3))
    assert differences(kept, zeros) == []


def test_a_number_equals_an_array_without_dimensions() -> None:
    assert _compare(0.1, np.array(0.1, np.float32)) == []
    assert _compare(0.1, np.array(0.2, np.float32))


class Hostile(str):
    def __repr__(self) -> str:
        raise RuntimeError("no text")


class NoArray:
    shape = (2,)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (NoArray(), because("part-unreadable", error="RuntimeError: no array")),
        (Hostile("a"), because("part-unreadable", error="RuntimeError: no text")),
        (np.array([1, None], object), because("part-holds-other-things", type="object")),
        (np.zeros(2, [("a", "f4")]), because("part-holds-other-things", type="[('a', '<f4')]")),
    ],
)
def test_a_value_that_cannot_be_read_is_left_out_with_the_reason(
    value: Any, reason: Reason
) -> None:
    values, left_out = result_values("step 1", {"a": value, "b": 2})
    assert [kept.name for kept in values] == ["step 1.b"]
    assert left_out["step 1.a"] == (1, reason)


def _outcome(result: Any) -> Any:
    values, left_out = result_values("step 1", result)
    return StepOutcome(values, [], left_out)


@pytest.mark.parametrize(
    ("result", "count"),
    [(np.ones((3, 4)), 12), ([1, "a", 2.0], 3), (None, 0), ([], 0), (np.ones(0), 0), (1 + 1j, 1)],
)
def test_a_comparison_counts_the_values_that_it_compared(result: Any, count: int) -> None:
    found = compare_outcomes(_outcome(result), _outcome(result))
    assert found.count == count
    assert found.differences == []
    assert bool(found.unknown) == (count == 0), "without a value it is not known"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (object(), because("part-of-unknown-type", type="builtins.object")),
        (re.compile("a"), because("part-of-unknown-type", type="re.Pattern")),
        ({object()}, because("set-without-order")),
        (Decimal(1), because("part-of-unknown-type", type="decimal.Decimal")),
        (
            datetime.datetime(2026, 1, 1),
            because("part-of-unknown-type", type="datetime.datetime"),
        ),
    ],
)
def test_an_object_of_an_unknown_type_is_left_out_of_the_comparison_and_counted(
    value: Any, reason: Reason
) -> None:
    found = compare_outcomes(_outcome([value, 1]), _outcome([value, 1]))
    assert found.count == 1, "the number beside it"
    assert list(found.left_out) == ["step 1.0"]
    assert found.unknown == ""
    values_left_out, why = found.left_out["step 1.0"]
    assert values_left_out == 1
    assert why == reason
    assert compare_outcomes(_outcome(value), _outcome(value)).unknown, "nothing is left to compare"


def test_an_array_over_the_size_limit_is_left_out_of_the_comparison_and_counted() -> None:
    result = {"a": np.ones(10), "b": np.ones(1000), "c": np.ones(20)}
    # 300 bytes: enough for 10 and 20 numbers of 8 bytes, not for 1000.
    values, left_out = result_values("step 1", result, room=300)
    assert [value.name for value in values] == ["step 1.a", "step 1.c"]
    values_left_out, _ = left_out["step 1.b"]
    assert values_left_out == 1000
    found = compare_outcomes(StepOutcome(values, [], left_out), _outcome(result))
    assert found.count == 10 + 20
    assert found.differences == []


def test_a_list_over_the_length_limit_is_not_reported_as_the_same() -> None:
    assert compare_outcomes(_outcome([0] * 200_000), _outcome([0] * 199_999 + [1])).left_out


def _trained(step: Any) -> Any:
    """The outcome of one step."""
    before = checksums(step)
    values, left_out = result_values("step 1", step())
    state, unread = state_values(step, before)
    return StepOutcome(values, state, left_out | unread)


def _training(change: float, result: Any = None) -> Any:
    """The outcome of a step that adds this to its four weights and returns this."""
    weight = np.ones(4)

    def step() -> Any:
        weight[:] += change
        return result

    return _trained(step)


def _nothing() -> None:
    pass


def test_a_step_that_only_changes_state_differs_from_a_step_that_does_nothing() -> None:
    assert compare_outcomes(_training(change=0.5), _trained(_nothing), own=True).differences
    unknown = compare_outcomes(_trained(_nothing), _trained(_nothing), own=True)
    assert unknown.differences == []
    assert unknown.count == 0
    assert unknown.unknown


@pytest.mark.parametrize(
    ("result", "count"), [(None, 4), (1.0, 5)], ids=["four weights", "four weights and a result"]
)
def test_an_alternative_of_the_user_is_compared_by_its_results_and_its_state(
    result: Any, count: int
) -> None:
    ours = _training(change=0.5, result=result)
    assert compare_outcomes(ours, _training(change=0.25, result=result), own=True).differences
    found = compare_outcomes(ours, _training(change=0.5, result=result), own=True)
    assert found.differences == []
    assert found.count == count
    assert found.unknown == ""


def test_equal_results_are_not_enough_if_the_alternative_does_not_reach_the_changed_state() -> None:
    found = compare_outcomes(_training(change=0.5, result=1.0), _trained(lambda: 1.0), own=True)
    assert found.differences == []
    assert found.count == 1, "the result"
    assert found.unknown
    values_left_out, _ = found.left_out["weight"]
    assert values_left_out == 4


def _weights_and_perhaps_moments(change: float, *, moments: bool) -> Any:
    """The outcome of a step that changes four weights and, if asked to, three moments."""
    weight, moment = np.ones(4), np.ones(3)

    def both() -> None:
        weight[:] += change
        moment[:] += 1

    def weights_alone() -> None:
        weight[:] += change

    return _trained(both if moments else weights_alone)


def test_state_that_both_reach_is_compared_although_the_alternative_lacks_other_state() -> None:
    ours = _weights_and_perhaps_moments(0.5, moments=True)
    same_weights = _weights_and_perhaps_moments(0.5, moments=False)
    found = compare_outcomes(ours, same_weights, own=True)
    assert found.differences == []
    assert found.count == 4, "the weights"
    assert found.unknown == ""
    values_left_out, _ = found.left_out["moment"]
    assert values_left_out == 3
    other_weights = _weights_and_perhaps_moments(0.25, moments=False)
    assert compare_outcomes(ours, other_weights, own=True).differences


def test_an_alternative_of_the_user_may_have_arrays_and_names_of_its_own() -> None:
    table, copy, scratch = np.ones(3), np.ones(5), np.zeros(2)

    def other() -> Any:
        scratch[:] += 1
        return copy[:3].sum()

    found = compare_outcomes(_trained(lambda: table.sum()), _trained(other), own=True)
    assert found.differences == []
    assert found.count == 1, "the sum, which both return"
    assert found.unknown == ""


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("value", [NAN, INF])
def test_results_that_are_not_finite_are_not_called_the_same(own: bool, value: float) -> None:
    def outcome() -> Any:
        weight, x = np.full(4, value), np.ones(8)

        def step() -> Any:
            weight[:] += x[:4]
            return weight.sum()

        return _trained(step)

    found = compare_outcomes(outcome(), outcome(), own=own)
    assert found.unknown == because("results-not-finite")
    # One finite value is enough.
    partly = _outcome([value, 1.0])
    assert compare_outcomes(partly, partly, own=own).unknown == ""


def test_a_step_that_returns_nothing_and_changes_nothing_has_no_results_to_compare() -> None:
    x = np.ones(8)

    def step() -> None:
        x.sum()

    found = compare_outcomes(_trained(step), _trained(step))
    assert found.differences == []
    assert found.unknown


@pytest.mark.parametrize(
    ("responds", "is_same"),
    [(True, True), (None, True), (False, False)],
    ids=["responds to other values", "not tried with them", "returns the same with them"],
)
def test_an_alternative_that_was_not_tried_with_other_values_is_not_called_cached(
    responds: bool | None, is_same: bool
) -> None:
    values, _ = result_values("step 1", np.ones(4))
    step = StepOutcome(values, [], responds=True)
    alternative = StepOutcome(values, [], responds=responds)
    found = compare_outcomes(step, alternative, own=True)
    assert found.differences == []
    assert (not found.unknown) == is_same
