"""Test the reason for a figure, a case or a stack without a value."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.reading.missing_values import (
    missing_case,
    missing_figures,
    missing_record,
    missing_stack,
    why,
)
from overhead.results import LeftOut, MissingStack, Record, about, because, codes_of, together
from tests.fakes.report import figure, fingerprint, record


def broken(status: Any, reason: str = "") -> Record:
    return record(each=None, status=status, reason=reason)


@pytest.mark.parametrize(
    "status", ["unavailable", "unverified", "failed", "below-resolution", "nonlinear"]
)
def test_every_status_without_a_value_has_a_reason(status: str) -> None:
    assert why(broken(status, "detail"), "complete") == about(status, "detail")
    assert why(broken(status), "complete") == about(status, "")


def test_a_figures_own_reason_is_preferred_to_that_of_its_record() -> None:
    own = record(
        each=None, status="failed", reason="the case's", more=(figure("host", None, "nonlinear"),)
    )
    assert why(own, "host") == about("nonlinear", "the case's")
    both = record(
        each=None,
        status="failed",
        reason="c",
        more=(figure("host", None, "nonlinear", reason="r"),),
    )
    assert why(both, "host") == about("nonlinear", "r")
    assert codes_of(why(record(), "device_span")) == {"not-measured"}


def test_figures_with_the_same_reason_are_listed_together() -> None:
    more = tuple(figure(name, None, "below-resolution", reason="fast") for name in ("one", "two"))
    found = missing_figures(record(more=(*more, figure("three", None, "failed"))))
    assert [(m.status, m.detail, names) for m, names in found.items()] == [
        ("below-resolution", "fast", ["one", "two"]),
        ("failed", "", ["three"]),
    ]


def test_a_case_without_a_reason_has_the_reasons_of_its_figures() -> None:
    more = tuple(figure(name, None, "failed", reason=name) for name in ("one", "two"))
    found = missing_case(record(each=None, status="failed", more=more))
    assert (found.status, found.detail) == ("failed", together("one", "two"))


def test_the_reason_for_a_missing_stack_is_its_own_or_that_of_its_first_case() -> None:
    run = fingerprint(
        broken("failed", "crash"),
        unavailable=[
            MissingStack(stack="jax", reason="no jax", mend="pip install jax"),
            MissingStack(stack="cupy", reason="no device"),
        ],
    )
    found = {stack: missing_stack(run, stack) for stack in ("jax", "cupy", "wgpu-native", "torch")}
    assert {stack: (missing.status, missing.detail) for stack, missing in found.items()} == {
        "jax": ("", "no jax"),
        "cupy": ("", "no device"),
        "wgpu-native": ("failed", "crash"),
        "torch": ("", because("not-measured-in-this-run")),
    }


@pytest.mark.parametrize("whole", [True, False])
def test_a_case_that_the_planner_left_out_has_the_planners_reason(whole: bool) -> None:
    one = record()
    left = LeftOut(target=one.target_key, case="all" if whole else one.case.key, reason="left out")
    assert missing_record(fingerprint(left_out=[left]), one).why == "left out"
    assert missing_record(fingerprint(), one).why == ""
