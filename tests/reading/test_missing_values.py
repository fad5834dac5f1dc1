"""Test the reason for a figure, a case or a stack without a value."""

from __future__ import annotations

from typing import Any

import pytest

from overhead.reading.missing_values import (
    MissingValue,
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
    without_reason = figure("host", None, "nonlinear")
    of_case = record(each=None, status="failed", reason="the case's", more=(without_reason,))
    assert why(of_case, "host") == about("nonlinear", "the case's")
    with_reason = figure("host", None, "nonlinear", reason="its own")
    of_figure = record(each=None, status="failed", reason="the case's", more=(with_reason,))
    assert why(of_figure, "host") == about("nonlinear", "its own")


def test_a_figure_that_a_measured_case_lacks_was_not_measured() -> None:
    assert codes_of(why(record(), "device_span")) == {"not-measured"}


def test_figures_with_the_same_reason_are_listed_together() -> None:
    figures = (
        figure("one", None, "below-resolution", reason="fast"),
        figure("two", None, "below-resolution", reason="fast"),
        figure("three", None, "failed"),
    )
    assert missing_figures(record(more=figures)) == {
        MissingValue("below-resolution", "fast"): ["one", "two"],
        MissingValue("failed", ""): ["three"],
    }


def test_a_case_without_a_reason_has_the_reasons_of_its_figures() -> None:
    figures = tuple(figure(name, None, "failed", reason=name) for name in ("one", "two"))
    found = missing_case(record(each=None, status="failed", more=figures))
    assert found == MissingValue("failed", together("one", "two"))


def test_the_reason_for_a_missing_stack_is_its_own_or_that_of_its_first_case() -> None:
    no_jax = MissingStack(stack="jax", reason="no jax", mend="pip install jax")
    no_cupy = MissingStack(stack="cupy", reason="no device")
    run = fingerprint(broken("failed", "crash"), unavailable=[no_jax, no_cupy])
    assert missing_stack(run, "jax") == MissingValue("", "no jax")
    assert missing_stack(run, "cupy") == MissingValue("", "no device")
    assert missing_stack(run, "wgpu-native") == MissingValue("failed", "crash")
    not_measured = because("not-measured-in-this-run")
    assert missing_stack(run, "torch") == MissingValue("", not_measured)


@pytest.mark.parametrize("case", ["all", record().case.key])
def test_a_case_that_the_planner_left_out_has_the_planners_reason(case: str) -> None:
    lacking = record()
    left = LeftOut(target=lacking.target_key, case=case, reason="left out")
    assert missing_record(fingerprint(left_out=[left]), lacking).why == "left out"
    assert missing_record(fingerprint(), lacking).why == ""
