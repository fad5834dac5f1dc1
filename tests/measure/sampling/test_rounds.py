"""The rounds of a worker: cases alternate, share the time fairly, are verified, and survive another
case's fault.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import Unsupported
from overhead.measure.fitting.one_off_figures import one_off_figures
from overhead.measure.fitting.one_process import Series
from overhead.measure.sampling.chain import Chain, DeviceTime, Samples
from overhead.measure.sampling.events import Doing, Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.results import OneOffEntry, RoundEntry, Why, because, codes_of
from tests.fakes.chains import Steady, dropped, measured
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law, device_time
from tests.fakes.reasons import values_of


class Faulty(Steady):
    """Raises ``error`` in ``issue`` once it has run ``after`` units."""

    def __init__(self, clock: FakeClock, error: BaseException, after: int = 500) -> None:
        super().__init__(clock)
        self.error, self.after = error, after

    def issue(self, n: int) -> None:
        if self.ran > self.after:
            raise self.error
        super().issue(n)


def rounds(events: Sequence[Event], case: str) -> list[RoundEntry]:
    return [e for e in events if isinstance(e, RoundEntry) and e.case == case]


def samples(events: Sequence[Event], case: str) -> Samples:
    """The samples of all rounds of a case."""
    rows: Samples = []
    for entry in rounds(events, case):
        rows += entry.samples
    return rows


def sampled_ns(events: Sequence[Event], case: str) -> int:
    """The time of all samples of a case, ns."""
    return sum(row[2] for row in samples(events, case))


def widths_of_rows(events: Sequence[Event], case: str) -> set[int]:
    """The numbers of columns: 4 where the CPU clock was read."""
    return {len(row) for row in samples(events, case)}


def reasons(events: Sequence[Event], name: str) -> list[Why]:
    """The reasons of the one-off values of this name."""
    return [e.reason for e in events if isinstance(e, OneOffEntry) and e.name == name]


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (RuntimeError("the device\nwent away"), "failed", "RuntimeError: the device went away"),
        (Unsupported("no such thing"), "unavailable", "no such thing"),
        (MemoryError(), "failed", "MemoryError"),
        (SystemExit(3), "failed", "SystemExit: 3"),
    ],
)
def test_a_case_that_raises_is_dropped_with_its_reason_and_the_others_go_on(
    error: BaseException, status: str, said: str
) -> None:
    clock = FakeClock()
    _, events, _ = measured({"good": Steady(clock), "bad": Faulty(clock, error)}, clock)
    lost = dropped(events)
    assert set(lost) == {"bad"}
    at = re.escape(f" ({Path(__file__).name}:") + r"\d+, in issue\)"
    assert lost["bad"].status == status
    expected = re.escape(said)
    if status == "failed":
        expected += at
    assert re.fullmatch(expected, str(lost["bad"].reason))
    assert len(rounds(events, "good")) >= 6


def test_a_case_that_raises_while_the_process_grows_older_is_dropped_once() -> None:
    clock = FakeClock()
    bad = Faulty(clock, RuntimeError("the device went away"), after=1 << 62)
    events: list[Event] = []

    def break_when_growing_older(event: Event) -> None:
        events.append(event)
        if isinstance(event, Doing) and event.what == "grow older":
            bad.after = 0

    chains = {"good": Steady(clock), "bad": bad}
    measure_cases(chains, clock, Settings(seconds=0.05), break_when_growing_older)
    doing = [e for e in events if isinstance(e, Doing) and e.what == "grow older"]
    assert [e.case for e in doing[:4]] == ["good", "bad", "good", "good"]
    assert set(dropped(events)) == {"bad"}


def test_a_keyboard_interrupt_passes_through_and_leaves_the_collector_on() -> None:
    clock = FakeClock()
    with pytest.raises(KeyboardInterrupt):
        measured({"case": Faulty(clock, KeyboardInterrupt())}, clock)
    assert gc.isenabled()


def test_a_case_whose_units_did_not_all_run_is_unverified() -> None:
    class Lying(Steady):
        def executed(self) -> int:
            return super().executed() - 1

    clock = FakeClock()
    rule, events, _ = measured({"case": Lying(clock)}, clock)
    assert dropped(events)["case"].status == "unverified"
    assert codes_of(dropped(events)["case"].reason) == {"units-not-executed"}
    assert rule == because("no-case-left")
    null = Lying(clock, executes=False)
    _, events, _ = measured({"null": null}, clock)
    assert not dropped(events)


def test_all_live_cases_alternate_within_each_round_in_changing_order() -> None:
    clock = FakeClock()
    _, events, _ = measured({key: Steady(clock) for key in "abc"}, clock)
    orders: dict[int, str] = {}
    for event in events:
        if isinstance(event, RoundEntry):
            orders[event.round] = orders.get(event.round, "") + event.case
    incomplete = [order for order in orders.values() if sorted(order) != ["a", "b", "c"]]
    assert len(incomplete) <= 0.1 * len(orders)
    assert len(set(orders.values())) > 2


def test_two_samplings_with_the_same_seed_give_the_same_samples() -> None:
    def run() -> list[Event]:
        clock = FakeClock(disturbance=Disturbance(), seed=3)
        return measured(
            {key: FastFakeChain(Law(scatter=0.1), clock) for key in "ab"}, clock, seed=5
        )[1]

    assert run() == run()


def seconds_of_sampling(
    chains: Mapping[str, Chain], clock: FakeClock, events: list[Event], seconds: float
) -> float:
    """Measure; return the fake seconds until the last round, and collect the events."""
    began, ended = clock.time, clock.time

    def emit(event: Event) -> None:
        nonlocal ended
        ended = clock.time if isinstance(event, RoundEntry) else ended
        events.append(event)

    measure_cases(chains, clock, Settings(seconds=seconds), emit)
    return (ended - began) / 1e9


def test_slow_and_fast_cases_take_part_in_the_same_rounds() -> None:
    clock = FakeClock(disturbance=Disturbance(preemptions=0.0), seed=1)
    slow = Law(host=3e6, device=0.0, fixed=0.0, synchronous=True, scatter=0.05)
    quick = Law(host=2_000.0, device=500.0, fixed=20_000.0, scatter=0.3, wake=20_000.0)
    chains = {"slow": FastFakeChain(slow, clock), "quick": FastFakeChain(quick, clock)}
    events: list[Event] = []
    ended = seconds_of_sampling(chains, clock, events, 3.0)
    took = {case: sampled_ns(events, case) for case in ("slow", "quick")}
    assert ended < 3.3
    slow_in = {entry.round for entry in rounds(events, "slow")}
    quick_in = {entry.round for entry in rounds(events, "quick")}
    assert len(slow_in & quick_in) >= 12
    assert len(slow_in ^ quick_in) <= 3
    assert took["quick"] > 0.1 * took["slow"]


def test_the_sampling_stops_at_its_time_which_the_required_rounds_may_exceed_by_half() -> None:
    clock = FakeClock()
    law = Law(host=5e6, device=0.0, fixed=0.0, synchronous=True)
    events: list[Event] = []
    assert seconds_of_sampling({"slow": Steady(clock, law)}, clock, events, 0.2) < 0.5
    assert len(rounds(events, "slow")) >= 2


def test_the_sampling_stops_at_the_maximum_of_rounds() -> None:
    clock = FakeClock(seed=1)
    rule, _, _ = measured(
        {"case": FastFakeChain(Law(jitter=0.3), clock)}, clock, seconds=30.0, max_rounds=7
    )
    assert rule == because("rounds-done", rounds=7)


def test_other_workers_measure_before_the_one_off_values_and_before_the_rounds() -> None:
    clock = FakeClock()
    _, events, _ = measured({"a": Steady(clock), "b": Steady(clock)}, clock)
    assert [e.what for e in events if isinstance(e, Doing) and e.others] == [
        "once",
        "once",
        "round 0",
    ]


def test_every_round_has_the_processor_speed_and_runs_without_the_garbage_collector() -> None:
    seen = []

    class Watching(Steady):
        def issue(self, n: int) -> None:
            seen.append(gc.isenabled())
            super().issue(n)

    clock = FakeClock()
    _, events, _ = measured({"case": Watching(clock)}, clock)
    assert not any(seen)
    assert gc.isenabled()
    for entry in rounds(events, "case"):
        assert len(entry.canary) == 2
        assert min(entry.canary) > 0


def test_only_chains_that_wait_without_spinning_have_samples_with_cpu_time() -> None:
    clock = FakeClock()
    chains = {
        "plain": Steady(clock),
        "spins": Steady(clock, wait_spins=True),
        "sync": Steady(clock, synchronous=True),
    }
    _, events, _ = measured(chains, clock)
    widths = {case: widths_of_rows(events, case) for case in chains}
    assert widths == {"plain": {3, 4}, "spins": {3}, "sync": {3}}


class WrongCpuClock(FakeClock):
    """A clock with a CPU time that grows in steps, or faster or slower than the wall clock."""

    def __init__(self, step_ns: int, pace: float = 1.0) -> None:
        super().__init__()
        self.step_ns, self.pace = step_ns, pace

    def thread_cpu(self) -> int:
        return int(self.cpu * self.pace) // self.step_ns * self.step_ns


@pytest.mark.parametrize(
    ("step_ns", "pace"), [(1_000_000, 1.0), (10_000_000, 1.0), (1, 2.0), (1, 0.0), (1, -1.0)]
)
def test_the_sampling_does_not_read_a_cpu_clock_with_long_steps_or_another_pace(
    step_ns: int, pace: float
) -> None:
    clock = WrongCpuClock(step_ns, pace)
    _, events, _ = measured({"plain": Steady(clock)}, clock)
    assert widths_of_rows(events, "plain") == {3}


def test_single_values_are_measured_for_each_case_and_the_slow_ones_only_for_extras() -> None:
    clock = FakeClock()
    chains = {"base": Steady(clock, latency=True), "other": Steady(clock)}
    _, _, found = measured(chains, clock, extras=frozenset({"base"}))
    assert {
        "first",
        "clock",
        "ladder",
        "empty_wait",
        "naive",
        "naive_idle",
        "latency",
        "device_busy",
    } <= set(found["base"].one_off)
    assert not {"naive_idle", "latency"} & set(found["other"].one_off)
    one_unit_ns = 1_000 + 500 + 10_000  # host, device and wait of a Steady
    assert found["base"].values("naive") == pytest.approx([one_unit_ns] * 7, abs=200)
    assert found["base"].one_off["naive"].at == [1] * 7


def test_a_chain_too_slow_for_100_units_gives_the_reason_instead_of_that_value() -> None:
    def legacy(host: float, **attributes: Any) -> OneOffEntry:
        clock = FakeClock()
        chain = Steady(clock, Law(host=host, device=0.0, fixed=0.0, synchronous=True), **attributes)
        _, events, _ = measured({"case": chain}, clock, seconds=1.0, extras=frozenset({"case"}))
        return next(e for e in events if isinstance(e, OneOffEntry) and e.name == "legacy")

    assert values_of(legacy(10e6).reason, "units-too-long")["units"] == 100
    assert legacy(1e6, max_n=50).reason == because("n-is-bounded", most=50)
    assert legacy(100e3).values == pytest.approx([10e6] * len(legacy(100e3).values), rel=0.01)


def test_the_time_to_prepare_a_recording_is_measured() -> None:
    clock = FakeClock()
    _, _, found = measured({"case": Steady(clock, recorded=True)}, clock)
    assert found["case"].values("prepare") == pytest.approx([140], abs=100)


def test_the_calls_of_a_chain_are_timed_in_each_round_between_two_chains_without_inner_clock() -> (
    None
):
    class Measurable(Steady):
        def stages(self, n: int) -> Mapping[str, Sequence[int]]:
            self.issue(n)
            self.wait()
            return {"encode": [400] * n, "submit": [850] * n, "clock": [100] * n}

    clock = FakeClock()
    _, events, found = measured(
        {"case": Measurable(clock), "plain": Steady(clock)}, clock, staged=frozenset({"case"})
    )
    once = {name: taken.values for name, taken in found["case"].one_off.items()}
    count = len(rounds(events, "case"))
    assert not dropped(events)
    assert count >= 6
    assert [
        len(once[name]) for name in ("stage:encode", "stage:submit", "unstaged", "stage_clock")
    ] == [count] * 4
    clock_ns = 100.0  # is taken off each stage
    assert set(once["stage:encode"]) == {400.0 - clock_ns}
    assert set(once["stage:submit"]) == {850.0 - clock_ns}
    assert once["unstaged"] == pytest.approx([1_000.0] * count, rel=0.01)
    figures = one_off_figures(Series([found["case"]] * 3), precision=0.03)
    gap_ns = (300.0 + 750.0) - 1_000.0  # all stages less the unit without an inner clock
    assert figures["stages_gap"].value == pytest.approx(gap_ns, abs=2)
    assert figures["stages_gap"].status == "ok"
    assert not any(name.startswith("stage") for name in found["plain"].one_off)


def test_device_time_and_the_cost_of_recordings_have_values_or_a_reason() -> None:
    class Measurable(Steady):
        refuses = False

        def device(self, n: int) -> DeviceTime | None:
            if self.refuses:
                raise Unsupported("no timestamps")
            self.ran += n
            return device_time(n, span=500.0 * n + 900)

        def making(self) -> dict[str, tuple[list[int], list[float]]]:
            return {"capture": ([1, 10], [100.0, 1_000.0])}

    clock = FakeClock()
    _, events, found = measured({"case": Measurable(clock)}, clock)
    assert found["case"].values("making:capture") == [100.0, 1_000.0]
    assert found["case"].values("device_quantum") == [1.0]
    assert not dropped(events)
    _, events, _ = measured({"case": Measurable(clock, refuses=True)}, clock)
    assert reasons(events, "device_span") == ["no timestamps"]


def test_a_case_whose_device_timing_raises_is_dropped() -> None:
    class Broken(Steady):
        def device(self, n: int) -> DeviceTime | None:
            raise ValueError("lost")

    clock = FakeClock()
    _, events, _ = measured({"case": Broken(clock)}, clock)
    assert re.fullmatch(
        r"ValueError: lost \(test_rounds.py:\d+, in device\)", str(dropped(events)["case"].reason)
    )


@pytest.mark.parametrize("ran", ["no unit", "half", "no recording"])
def test_a_case_whose_units_for_device_time_or_recordings_did_not_run_is_unverified(
    ran: str,
) -> None:
    class Idle(Steady):
        def device(self, n: int) -> DeviceTime | None:
            self.aside += n
            self.ran += {"no unit": 0, "half": n // 2}.get(ran, n)
            return device_time(n, span=500.0 * n)

        def making(self) -> dict[str, tuple[list[int], list[float]]]:
            self.aside += 10 * (ran == "no recording")
            return {"capture": ([10], [100.0])}

        def executed(self) -> int:
            return super().executed() - self.aside

    class Untraced(Steady):
        def device(self, n: int) -> DeviceTime | None:
            return device_time(n, span=500.0 * n)

    clock = FakeClock()
    cases = {
        "idle": Idle(clock),
        "untraced": Untraced(clock),
        "elsewhere": Untraced(clock, counts_device=False),
    }
    _, events, found = measured(cases, clock)
    statuses = {case: entry.status for case, entry in dropped(events).items()}
    first, second = list(cases)[:2]
    assert statuses == {first: "unverified", second: "unverified"}
    assert "device_busy" in found["elsewhere"].one_off


def test_a_device_clock_that_stands_still_gives_a_reason_instead_of_device_time() -> None:
    clock = FakeClock()
    _, events, _ = measured(
        {"case": Steady(clock, device=lambda n: device_time(n, span=0.0), counts_device=False)},
        clock,
    )
    assert not dropped(events)
    assert [codes_of(one) for one in reasons(events, "device_span")] == [{"device-clock-stands"}]


def test_device_time_of_long_chains_is_measured_twice_and_needs_two_lengths_for_a_slope() -> None:
    class Long(Steady):
        def device(self, n: int) -> DeviceTime | None:
            self.clock.sleep(1.0)
            self.ran += n
            return device_time(n, span=500.0 * n)

    clock = FakeClock()
    _, _, found = measured({"case": Long(clock)}, clock)
    assert len(found["case"].values("device_busy")) == 2
    _, events, _ = measured({"case": Steady(clock, held_n=1)}, clock)
    assert reasons(events, "device_span") == [because("one-length-of-device-time", units=1)]


def test_a_worker_without_chains_runs_no_rounds() -> None:
    assert measure_cases({}, FakeClock(), Settings(seconds=1.0), print) == because("no-case-left")


class Compiled(Steady):
    """Compiles for each new n."""

    def __init__(self, clock: FakeClock, seconds: float) -> None:
        super().__init__(clock)
        self.compiled, self.seconds = set[int](), seconds

    def prepare(self, n: int) -> None:
        if n not in self.compiled:
            self.clock.sleep(self.seconds)
        self.compiled.add(n)


@pytest.mark.parametrize(("seconds", "few"), [(0.0, False), (0.03, False), (0.1, True)])
def test_time_for_compiling_does_not_count_as_sampling_time_up_to_a_limit(
    seconds: float, few: bool
) -> None:
    clock = FakeClock()
    _, events, _ = measured({"case": Compiled(clock, seconds)}, clock)
    found = len(rounds(events, "case"))
    if few:
        assert found == 2
    else:
        assert found > 20
