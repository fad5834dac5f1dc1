"""The warnings about suspicious times, on times that are given."""

from __future__ import annotations

import types
from typing import Any

import pytest

from overhead.checking import calls, contract
from overhead.checking.calls import (
    blocking_warning,
    device_time_warning,
    span_warning,
    unfinished_warning,
    unread_warning,
)
from overhead.checking.findings import Findings
from overhead.measure.sampling.chain import Chain, DeviceTime
from overhead.probes.base import Unsupported
from overhead.results import Case, Reason, because

US = 1000.0
SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (
            blocking_warning(False, issue=50 * US, empty=0.2 * US, one=0.2 * US, most=0.2 * US),
            "wait-does-not-wait",
        ),
        (blocking_warning(False, issue=5 * US, empty=0.2 * US, one=20 * US, most=140 * US), ""),
        (
            blocking_warning(True, issue=5 * US, empty=0.2 * US, one=500 * US, most=900 * US),
            "synchronous-yet-waits",
        ),
        (
            unread_warning("read-each", 2 * US, left=700 * US, full=900 * US),
            "work-left-after-units",
        ),
        (unread_warning("read-each", 2 * US, left=3 * US, full=900 * US), ""),
        (unread_warning("read-each", 2 * US, left=15 * US, full=15 * US), ""),  # too little to tell
        (
            unfinished_warning(48 * US, 3990 * US, window=200 * US, n=200),
            "wait-returns-early",
        ),  # lazy MLX
        (unfinished_warning(98 * US, 176 * US, window=1000 * US, n=200), ""),  # colder caches
        (unfinished_warning(0.5 * US, 2 * US, window=1 * US, n=200), ""),  # too little to tell
        (device_time_warning(1.5, window=1500.0), "device-time-too-short"),
        (device_time_warning(0.9, window=10.0), "device-time-too-short"),
        (device_time_warning(0.886, window=0.886, fused=True), ""),  # a fused step on an H100
        (device_time_warning(1500.0, window=40_000.0), ""),
    ],
)
def test_only_suspicious_times_give_a_warning(said: Reason | None, code: str) -> None:
    assert (said.code if said is not None else "") == code


def span(n: int, ns: float) -> DeviceTime:
    return DeviceTime(n, ns, busy=True, quantum=1.0, method="given")


def test_a_device_time_that_does_not_grow_with_n_gives_a_warning() -> None:
    warning = because("span-of-one-unit", few_ns=1500.0, few=25, many_ns=1510.0, many=200)
    assert span_warning(span(n=25, ns=1500.0), span(n=200, ns=1510.0)) == warning
    assert span_warning(span(n=25, ns=40_000.0), span(n=200, ns=300_000.0)) is None


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


class WithoutTimestamps(Slow):
    """A chain on a device that has no clock."""

    def device(self, n: int) -> DeviceTime | None:
        raise Unsupported("no timestamps")


@pytest.mark.parametrize(
    "chain",
    [
        pytest.param(Slow(max_n=4), id="chains of few units, which a run measures too"),
        pytest.param(Slow(max_n=1000), id="chains of many units"),
        pytest.param(WithoutTimestamps(max_n=4), id="no device time"),
    ],
)
def test_check_of_a_chain_with_slow_units_or_without_device_time_finds_nothing_and_issues_few_units(
    chain: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Findings()
    monkeypatch.setattr(calls, "time", types.SimpleNamespace(perf_counter_ns=lambda: chain.now))
    contract.check_chain(found, chain, Case(pattern="per-submit", unit="step"))
    assert not found.found
    assert not found.unavailable
    assert chain.now < 60 * SECOND, "fewer than 60 units"
