"""The window: its contents and their order, and the cost of the clock."""

from __future__ import annotations

import pytest

from overhead.measure.sampling import window
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.clock import SystemClock, clock_facts
from tests.fakes.chains import Steady
from tests.fakes.machine import FakeClock, FastFakeChain, Law


class LoggingClock(FakeClock):
    """Appends every reading to ``calls``."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self.calls = calls

    def now(self) -> int:
        self.calls.append("now")
        return super().now()

    def thread_cpu(self) -> int:
        self.calls.append("cpu")
        return super().thread_cpu()

    def sleep(self, seconds: float) -> None:
        self.calls.append(f"sleep {seconds}")


class LoggingChain(Chain):
    """Appends every call to ``calls``; ``clock`` does the same."""

    def __init__(self, recorded: bool = False) -> None:
        self.calls: list[str] = []
        self.clock = LoggingClock(self.calls)
        self.recorded = recorded

    def prepare(self, n: int) -> None:
        self.calls.append(f"prepare {n}")

    def issue(self, n: int) -> None:
        self.calls.append(f"issue {n}")

    def wait(self) -> None:
        self.calls.append("wait")

    def executed(self) -> int:
        return 0


def test_a_sample_warms_drains_and_prepares_the_chain_before_it_is_timed() -> None:
    chain = LoggingChain()
    window.sample(chain, [7], chain.clock)
    assert chain.calls == [
        "prepare 1",
        "issue 1",
        "wait",
        "prepare 7",
        "now",
        "issue 7",
        "now",
        "wait",
        "now",
    ]


def test_a_sample_has_the_time_before_the_wait_and_the_time_after_it() -> None:
    clock = FakeClock()
    chain = Steady(clock, Law(host=1_000.0, device=50_000.0, fixed=0.0))
    (n, issue, total) = window.sample(chain, [10], clock)[0]
    assert n == 10
    assert issue == pytest.approx(10_000, abs=100)
    assert total == pytest.approx(501_000, abs=200)


def test_a_sample_with_cpu_time_reads_the_cpu_clock_before_and_after_the_wait() -> None:
    chain = LoggingChain()
    rows = window.sample(chain, [3], chain.clock, cpu=True)
    assert chain.calls[4:] == ["now", "issue 3", "now", "cpu", "wait", "cpu", "now"]
    assert len(rows[0]) == 4
    chain.calls.clear()
    assert len(window.sample(chain, [3], chain.clock)[0]) == 3
    assert "cpu" not in chain.calls


def test_deferred_work_appears_in_the_cpu_time_of_the_wait() -> None:
    clock = FakeClock()
    chain = Steady(clock, Law(host=1_000.0, device=100.0, fixed=5_000.0, deferred=300.0))
    assert [row[3] for row in window.sample(chain, [1, 100], clock, cpu=True)] == [300, 30_000]


def test_a_recording_is_launched_once_before_it_is_timed() -> None:
    chain = LoggingChain(recorded=True)
    window.sample(chain, [7], chain.clock)
    assert chain.calls[:4] == ["prepare 7", "issue 7", "wait", "prepare 7"]
    assert chain.units([7, 2]) == 18
    chain.recorded = False
    assert chain.units([7, 2]) == 11


def test_a_chain_with_its_own_loop_gets_the_whole_list_of_n() -> None:
    clock = FakeClock()
    chain = FastFakeChain(Law(host=1_000.0, device=0.0, fixed=0.0), clock)
    assert chain.own_loop
    assert window.sample(chain, [0, 5], clock) == [[0, 0, 0], [5, 5_000, 5_000]]
    assert not Steady(clock).own_loop


def test_single_units_are_timed_after_a_warm_unit_or_after_50_ms_of_sleep() -> None:
    logging = LoggingChain()
    window.single_shot_after_idle(logging, 1, logging.clock)
    assert logging.calls == [
        "prepare 1",
        "issue 1",
        "wait",
        "prepare 1",
        "sleep 0.05",
        "now",
        "issue 1",
        "wait",
        "now",
    ]
    clock = FakeClock()
    chain = Steady(clock)
    assert window.totals(chain, 1, 3, clock) == pytest.approx([11_500] * 3, abs=200)
    assert window.totals(chain, 0, 2, clock) == pytest.approx([10_000] * 2, abs=200)


def test_the_resolution_and_the_cost_of_a_clock_are_measured() -> None:
    facts = clock_facts(FakeClock(resolution_ns=5_000))
    assert facts.resolution_ns == 5_000
    assert facts.cost_ns == pytest.approx(40, rel=0.5)
    assert facts.cpu_cost_ns == pytest.approx(0, abs=20)
    own = Steady(FakeClock(), clock_step_ns=100_000)
    assert window.clock_of(own, facts).resolution_ns == 100_000
    assert window.clock_of(Steady(FakeClock()), facts) == facts


def test_the_clocks_and_the_reference_loop_of_this_machine_work() -> None:
    clock = SystemClock()
    facts = clock_facts(clock)
    assert facts.resolution_ns >= 1
    assert facts.cost_ns > 0
    clock.sleep(0)
    assert [ns > 0 for ns in clock.reference_loop()] == [True, True]
