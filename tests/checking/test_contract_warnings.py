"""The warning about an issue that blocks, on times that are given."""

from __future__ import annotations

import types
from typing import Any

import pytest

from overhead.checking import calls, contract
from overhead.checking.findings import Findings
from overhead.checking.suspicions import (
    blocking_warning,
    device_time_warning,
    span_warning,
    unfinished_warning,
    unread_warning,
)
from overhead.measure.sampling.chain import Chain, DeviceTime
from overhead.results import Case

US = 1000.0
SECOND = 1_000_000_000


def test_an_issue_that_leaves_nothing_to_wait_for_is_told() -> None:
    said = blocking_warning(False, issue=50 * US, empty=0.2 * US, one=0.2 * US, most=0.2 * US)
    assert "synchronous must be True" in said


def test_a_wait_that_grows_with_the_units_is_none() -> None:
    assert blocking_warning(False, issue=5 * US, empty=0.2 * US, one=20 * US, most=140 * US) == ""


def test_a_synchronous_issue_that_leaves_work_is_told() -> None:
    assert "synchronous is True" in blocking_warning(True, issue=5 * US, empty=0.2 * US, one=500 * US, most=900 * US)


def test_a_unit_that_leaves_work_behind_is_told() -> None:
    assert "does the call in each unit return" in unread_warning("read-each", 2 * US, left=700 * US, full=900 * US)
    assert unread_warning("read-each", 2 * US, left=3 * US, full=900 * US) == ""
    assert unread_warning("read-each", 2 * US, left=15 * US, full=15 * US) == ""  # too little to tell


def test_units_that_run_only_when_values_are_read_are_told() -> None:
    said = unfinished_warning(48 * US, 3990 * US, window=200 * US, n=200)  # MLX without an evaluation
    assert "48 us after 1 unit and its wait, and 3990 us after 200 units" in said
    assert unfinished_warning(98 * US, 176 * US, window=1000 * US, n=200) == ""  # colder caches
    assert unfinished_warning(0.5 * US, 2 * US, window=1 * US, n=200) == ""  # too little to tell


def test_a_device_time_far_below_the_window_is_told_except_for_a_fast_loop() -> None:
    assert "is span in ns?" in device_time_warning(1.5, window=1500.0)
    assert "is span in ns?" in device_time_warning(0.9, window=10.0)
    assert device_time_warning(0.886, window=0.886, fused=True) == ""  # a fused step on an H100
    assert device_time_warning(1500.0, window=40_000.0) == ""


def span(n: int, ns: float) -> DeviceTime:
    return DeviceTime(n, ns, busy=True, quantum=1.0, method="given")


def test_a_device_time_that_does_not_grow_with_n_is_told() -> None:
    assert "not of one" in span_warning(span(25, 1500.0), span(200, 1510.0))
    assert span_warning(span(25, 40_000.0), span(200, 300_000.0)) == ""


class Slow(Chain):
    """A unit takes a second of the clock."""

    overlap = "serial"
    synchronous = True

    def __init__(self, max_n: int) -> None:
        self.max_n = max_n
        self.ran = self.now = 0

    def issue(self, n: int) -> None:
        assert n <= self.max_n
        self.ran += n
        self.now += n * SECOND

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return self.ran

    def window(self) -> dict[str, Any]:
        return {"operation": "one second"}


@pytest.mark.parametrize("max_n", [4, 1000])  # a run measures chains of few units too
def test_a_chain_of_few_or_long_units_is_checked_in_a_short_time(max_n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chain, found = Slow(max_n), Findings()
    monkeypatch.setattr(calls, "time", types.SimpleNamespace(perf_counter_ns=lambda: chain.now))
    contract.check_chain(found, chain, Case(pattern="per-submit", unit="step"))
    assert not found.found
    assert chain.now < 60 * SECOND
