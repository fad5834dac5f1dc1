"""The unpinned cost: two lengths in a few turns, before the thread is bound to a processor."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from overhead.measure.sampling import unpinned
from overhead.measure.sampling.events import Doing, Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.results import OneOffEntry, Why, codes_of
from tests.fakes.chains import Steady, dropped, measured
from tests.fakes.machine import Disturbance, FakeClock, FastFakeChain, Law, PollingFakeChain

SLOW_UNIT = Law(host=20_000_000.0, device=0.0, fixed=0.0, synchronous=True)


def entries(events: Sequence[Event], case: str, name: str) -> list[OneOffEntry]:
    """The one-off entries of this name, of a case."""
    one_off = [event for event in events if isinstance(event, OneOffEntry)]
    return [entry for entry in one_off if entry.case == case and entry.name == name]


def values(events: Sequence[Event], case: str, name: str = "met") -> list[float]:
    """The values of all these entries."""
    found: list[float] = []
    for entry in entries(events, case, name):
        found += entry.values
    return found


def reason(events: Sequence[Event], case: str) -> Why:
    """The reason why the case has no unpinned cost."""
    return entries(events, case, "met")[0].reason


def measured_unpinned(chain: Any, clock: FakeClock, **more: Any) -> list[Event]:
    return measured({"case": chain}, clock, met=frozenset({"case"}), **more)[1]


@pytest.mark.parametrize("chain", [Steady, lambda clock: FastFakeChain(Law(device=500.0), clock)])
def test_each_turn_of_the_met_cost_gives_the_true_slope(chain: Any) -> None:
    clock = FakeClock()
    events = measured_unpinned(chain(clock), clock)
    assert values(events, "case") == pytest.approx([1_000.0] * unpinned.UNPINNED.turns, rel=1e-3)
    assert not dropped(events)


def test_each_measurement_of_the_met_cost_is_stored_with_the_n_of_its_long_chain() -> None:
    clock = FakeClock()
    events = measured_unpinned(Steady(clock, max_n=1_000), clock)
    assert {e.at[0] for e in events if isinstance(e, OneOffEntry) and e.name.startswith("met")} == {
        1_000
    }


def test_the_met_cost_includes_interrupted_samples() -> None:
    disturbed = Disturbance(spread=0.0, preemptions=200.0, preempted_ns=(1e6, 1.1e6))
    clock = FakeClock(disturbance=disturbed, seed=1)
    events = measured_unpinned(
        Steady(clock, Law(host=1_000.0, device=0.0, fixed=0.0, synchronous=True)), clock
    )
    # 200 interruptions of about 1.05 ms per second take 0.21 of the time.
    mean_ns = sum(values(events, "case")) / unpinned.UNPINNED.turns
    assert mean_ns == pytest.approx(1_210.0, rel=0.1)


def test_a_turn_of_the_met_cost_takes_100_ms_and_the_cases_alternate() -> None:
    clock = FakeClock()
    seen: list[tuple[str, float]] = []

    def emit(event: Event) -> None:
        if isinstance(event, OneOffEntry) and event.name == "met":
            seen.append((event.case, clock.time))

    settings = Settings(seconds=0.5, met=frozenset("ab"))
    measure_cases({key: Steady(clock) for key in "abc"}, clock, settings, emit)
    assert [case for case, _ in seen] == list("ab" * unpinned.UNPINNED.turns)
    gaps = [(later - before) / 1e9 for (_, before), (_, later) in itertools.pairwise(seen)]
    assert all(0.1 <= gap < 0.12 for gap in gaps)


def test_the_met_cost_is_measured_before_the_thread_is_bound_to_a_processor() -> None:
    class Movable(FakeClock):
        moves: int = 0

        def processors(self) -> list[int]:
            return [0, 1]

        def move(self, processors: Sequence[int]) -> None:
            self.moves += 1

    clock = Movable()
    moves: list[int] = []

    def emit(event: Event) -> None:
        if isinstance(event, OneOffEntry) and event.name == "met":
            moves.append(clock.moves)

    measure_cases(
        {"case": Steady(clock)}, clock, Settings(seconds=0.5, met=frozenset({"case"})), emit
    )
    assert moves == [0] * unpinned.UNPINNED.turns
    assert clock.moves > 0


def test_the_met_cost_does_not_count_as_sampling_time() -> None:
    def rounds(**more: Any) -> int:
        clock = FakeClock()
        _, events, _ = measured(
            {"case": FastFakeChain(Law(scatter=0.3), clock)}, clock, seconds=0.5, **more
        )
        return sum(isinstance(e, Doing) and e.what.startswith("round") for e in events)

    without, with_met = rounds(), rounds(met=frozenset({"case"}))
    assert abs(with_met - without) <= 0.2 * without


def test_the_met_cost_uses_sizes_of_n_from_an_earlier_process() -> None:
    clock, prepared = FakeClock(), set()

    class Compiled(Steady):
        def prepare(self, n: int) -> None:
            sizes.add(n)

    def emit(event: Event) -> None:
        if isinstance(event, Doing) and event.what == "calibrate":
            prepared.update(sizes)

    sizes: set[int] = set()
    settings = Settings(
        seconds=0.1, met=frozenset({"case"}), ladders={"case": [0, 1, 1_250, 2_500, 5_000, 10_000]}
    )
    measure_cases({"case": Compiled(clock)}, clock, settings, emit)
    assert {1_250, 10_000} & prepared
    assert prepared <= {0, 1, 625, 1_250, 2_500, 5_000, 10_000}


@pytest.mark.parametrize(
    ("chain", "code"),
    [
        (lambda clock: Steady(clock, SLOW_UNIT), "first-units-too-long"),
        (lambda clock: Steady(clock, max_n=1), "n-is-bounded"),
        (
            lambda clock: PollingFakeChain(Law(poll=100e6), clock),
            "sample-would-show-poll",
        ),
    ],
)
def test_a_case_whose_shortest_chain_is_too_long_gives_the_reason_instead_of_a_met_cost(
    chain: Any, code: str
) -> None:
    clock = FakeClock()
    events = measured_unpinned(chain(clock), clock)
    assert codes_of(reason(events, "case")) == {code}
    assert values(events, "case") == []
    assert not dropped(events)


def test_a_slow_process_still_has_a_met_cost() -> None:
    class Interrupted(Steady):
        """Takes 100 ms more for every chain of 5,000 units or more."""

        def issue(self, n: int) -> None:
            super().issue(n)
            clock.time += 100e6 * (n >= 5_000)

    clock = FakeClock()
    assert (
        len(values(measured_unpinned(Interrupted(clock), clock), "case")) == unpinned.UNPINNED.turns
    )


def test_a_case_whose_units_did_not_run_in_the_met_turns_is_unverified() -> None:
    class Losing(Steady):
        """Loses a unit of every chain over 1,000 units."""

        def executed(self) -> int:
            return self.ran - (self.ran > 1_000)

    clock = FakeClock()
    events = measured_unpinned(Losing(clock), clock)
    assert dropped(events)["case"].status == "unverified"
    assert not values(events, "case")
