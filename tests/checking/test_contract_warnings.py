"""The warning about an issue that blocks, on times that are given."""

from __future__ import annotations

from overhead.checking.contract import blocking_warning

US = 1000.0


def test_an_issue_that_leaves_nothing_to_wait_for_is_told() -> None:
    said = blocking_warning(False, issue=50 * US, empty=0.2 * US, one=0.2 * US, most=0.2 * US)
    assert "set synchronous = True" in said


def test_a_wait_that_grows_with_the_units_is_none() -> None:
    assert blocking_warning(False, issue=5 * US, empty=0.2 * US, one=20 * US, most=140 * US) == ""


def test_a_synchronous_issue_that_leaves_work_is_told() -> None:
    assert "synchronous is True" in blocking_warning(True, issue=5 * US, empty=0.2 * US, one=500 * US, most=900 * US)
