"""The window: what is inside it, in which order, and what the clock costs."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from overhead.measure.sampling import window
from overhead.measure.sampling.clock import SystemClock, clock_facts
from tests.fakes.chains import Steady
from tests.fakes.machine import FakeClock, FastFakeChain, Law


class Ledger:
    """Clock and chain in one, writing down every call in order; nothing takes time but the clock."""

    overlap, recorded, max_n = "pipelined", False, 1 << 20
    wait_spins = synchronous = latency = False

    def __init__(self, recorded: bool = False) -> None:
        self.calls: list[str] = []
        self.recorded = recorded
        self.time = 0

    def now(self) -> int:
        self.calls.append("now")
        self.time += 10
        return self.time

    def thread_cpu(self) -> int:
        self.calls.append("cpu")
        return self.time

    def sleep(self, seconds: float) -> None:
        self.calls.append(f"sleep {seconds}")

    def prepare(self, n: int) -> None:
        self.calls.append(f"prepare {n}")

    def issue(self, n: int) -> None:
        self.calls.append(f"issue {n}")

    def wait(self) -> None:
        self.calls.append("wait")


def test_a_sample_drains_warms_and_times_in_this_order() -> None:
    ledger = Ledger()
    window.sample(ledger, [7], ledger)  # type: ignore[arg-type]
    assert ledger.calls == [
        "prepare 1", "issue 1", "wait", "prepare 7", "now", "issue 7", "now", "wait", "now",
    ]  # fmt: skip


def test_the_second_timestamp_is_taken_before_the_wait_and_the_third_after_it() -> None:
    clock = FakeClock()
    chain = Steady(clock, Law(host=1_000.0, device=50_000.0, fixed=0.0))
    (n, issue, total) = window.sample(chain, [10], clock)[0]
    assert n == 10
    assert issue == pytest.approx(10_000, abs=100)
    assert total == pytest.approx(501_000, abs=200)


def test_the_cpu_clock_is_read_around_the_wait_in_samples_of_their_own() -> None:
    ledger = Ledger()
    rows = window.sample(ledger, [3], ledger, cpu=True)  # type: ignore[arg-type]
    assert ledger.calls[4:] == ["now", "issue 3", "now", "cpu", "wait", "cpu", "now"]
    assert len(rows[0]) == 4
    ledger.calls.clear()
    assert len(window.sample(ledger, [3], ledger)[0]) == 3  # type: ignore[arg-type]
    assert "cpu" not in ledger.calls


def test_deferred_work_shows_in_the_cpu_time_of_the_wait() -> None:
    clock = FakeClock()
    chain = Steady(clock, Law(host=1_000.0, device=100.0, fixed=5_000.0, deferred=300.0))
    assert [row[3] for row in window.sample(chain, [1, 100], clock, cpu=True)] == [300, 30_000]


def test_a_recording_is_warmed_with_the_recording_that_is_timed() -> None:
    ledger = Ledger(recorded=True)
    window.sample(ledger, [7], ledger)  # type: ignore[arg-type]
    assert ledger.calls[:4] == ["prepare 7", "issue 7", "wait", "prepare 7"]
    assert window.units(ledger, [7, 2]) == 18  # type: ignore[arg-type]
    ledger.recorded = False
    assert window.units(ledger, [7, 2]) == 11  # type: ignore[arg-type]


def test_a_chain_with_a_loop_of_its_own_is_asked_for_whole_lists() -> None:
    clock = FakeClock()
    chain = FastFakeChain(Law(host=1_000.0, device=0.0, fixed=0.0), clock)
    assert window.runs_itself(chain)
    assert window.sample(chain, [0, 5], clock) == [[0, 0, 0], [5, 5_000, 5_000]]
    assert not window.runs_itself(Steady(clock))


def test_naive_is_warm_and_naive_idle_follows_fifty_idle_milliseconds() -> None:
    ledger = Ledger()
    window.naive_idle(ledger, 1, ledger)  # type: ignore[arg-type]
    assert ledger.calls == [
        "prepare 1", "issue 1", "wait", "prepare 1", "sleep 0.05", "now", "issue 1", "wait", "now",
    ]  # fmt: skip
    clock = FakeClock()
    chain = Steady(clock)
    assert window.naive(chain, 3, clock) == pytest.approx([11_500] * 3, abs=200)
    assert window.latencies(chain, 3, clock) == pytest.approx([11_500] * 3, abs=200)
    assert window.empty_wait(chain, 2, clock) == pytest.approx([10_000] * 2, abs=200)


def test_a_chain_with_a_loop_of_its_own_idles_there() -> None:
    class Page(Steady):
        def sample_idle(self, ns: Sequence[int], idle_ms: float) -> window.Samples:
            return [[n, 1, int(idle_ms)] for n in ns]

    clock = FakeClock()
    assert window.naive_idle(Page(clock), 2, clock) == [50, 50]


def test_the_clock_is_measured_before_it_is_trusted() -> None:
    facts = clock_facts(FakeClock(resolution_ns=5_000))
    assert facts.resolution_ns == 5_000
    assert facts.cost_ns == pytest.approx(40, rel=0.5)
    assert facts.cpu_cost_ns == pytest.approx(0, abs=20)
    own = Steady(FakeClock(), clock_step_ns=100_000)
    assert window.clock_of(own, facts).resolution_ns == 100_000
    assert window.clock_of(Steady(FakeClock()), facts) == facts


def test_the_machines_clocks_and_the_canary_work_here() -> None:
    clock = SystemClock()
    facts = clock_facts(clock)
    assert facts.resolution_ns >= 1
    assert facts.cost_ns > 0
    clock.sleep(0)
    assert all(ns > 0 for ns in window.canary(clock))
    assert len(window.canary(FakeClock())) == 2
