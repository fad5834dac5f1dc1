"""Fake chains, measured by the real code on a fake clock, and series of samples with exact
slopes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.results import FailedEntry, OneOffEntry, RoundEntry, Why
from tests.fakes.machine import CALM, Disturbance, FakeChain, FakeClock, FastFakeChain, Law


class Steady(FakeChain):
    """A chain without noise; keyword arguments become its attributes."""

    def __init__(self, clock: FakeClock, law: Law | None = None, **attributes: Any) -> None:
        super().__init__(law or Law(host=1_000.0, device=500.0, fixed=10_000.0), clock)
        for name, value in attributes.items():
            setattr(self, name, value)


def run(chain: Any, *ns: int) -> int:
    """Prepare, issue and wait for each of these numbers of units. Returns their sum."""
    for n in ns:
        chain.prepare(n)
        chain.issue(n)
        chain.wait()
    return sum(ns)


def one_round(
    samples: Sequence[Sequence[int]], canary: Sequence[int] = (), number: int = 0
) -> RoundEntry:
    """A round of a case without a name."""
    return RoundEntry(
        target="",
        case="",
        worker="",
        process=0,
        round=number,
        samples=[*map(list, samples)],
        canary=list(canary),
    )


def one_off_line(values: Sequence[float], at: Sequence[int] = (), reason: Why = "") -> OneOffEntry:
    """One-off values without a name."""
    return OneOffEntry(
        target="",
        case="",
        worker="",
        process=0,
        name="",
        values=list(values),
        at=list(at),
        reason=reason,
    )


def measured(
    chains: Mapping[str, Any], clock: FakeClock, seconds: float = 0.5, **more: Any
) -> tuple[Why, list[Event], dict[str, Process]]:
    """The rule that stopped ``measure_cases``, all events, and the process of each case."""
    events: list[Event] = []
    rule = measure_cases(chains, clock, Settings(seconds, **more), events.append)
    return rule, events, {key: process_of(events, key) for key in chains}


def process_of(events: Sequence[Event], case: str) -> Process:
    """The rounds and one-off values of a case among the events."""
    rounds = [e for e in events if isinstance(e, RoundEntry) and e.case == case]
    one_off: dict[str, OneOffEntry] = {}
    for e in events:
        if isinstance(e, OneOffEntry) and e.case == case:
            before = one_off.get(e.name, one_off_line([]))
            one_off[e.name] = one_off_line(
                [*before.values, *e.values], [*before.at, *e.at], e.reason
            )
    return Process(rounds, one_off)


def dropped(events: Sequence[Event]) -> dict[str, FailedEntry]:
    """The lines of dropped cases, by case."""
    return {e.case: e for e in events if isinstance(e, FailedEntry)}


def series(
    law: Law,
    disturbance: Disturbance = CALM,
    *,
    processes: int = 3,
    seconds: float = 0.3,
    seed: int = 0,
    **more: Any,
) -> Series:
    """A case with this law, measured in several fake processes."""
    found = []
    for index in range(processes):
        clock = FakeClock(disturbance, seed * 100 + index)
        _, events, _ = measured(
            {"case": FastFakeChain(law, clock)}, clock, seconds, seed=seed, **more
        )
        found.append(replace(process_of(events, "case"), number=index))
    return Series(found, law.synchronous, False, law.overlap)


def anchored_series(
    law: Law,
    disturbance: Disturbance | None = None,
    processes: int = 3,
    max_n: int = 1 << 20,
    make: Callable[[Law, FakeClock], FastFakeChain] | None = None,
    resolution_ns: int = 1,
    seed: int = 0,
    **more: Any,
) -> Series:
    """A case with this law, measured with anchors in several fake processes. ``make``: makes its
    chain.
    """
    found = []
    for index in range(processes):
        own = 100 * seed + index
        clock = FakeClock(disturbance or Disturbance(preemptions=0), own, resolution_ns)
        chain = make(law, clock) if make else FastFakeChain(law, clock, max_n=max_n)
        _, events, _ = measured({"case": chain}, clock, 0.3, seed=own, process=index, **more)
        assert not dropped(events)
        found.append(replace(process_of(events, "case"), number=index))
    return Series(found, law.synchronous, False, law.overlap, anchored=True)


def one_process_per_slope(
    *slopes: float,
    fixed: float = 1_000.0,
    ns: Sequence[int] = (1, 2, 4, 8, 16, 100),
    rounds: int = 4,
    **more: Any,
) -> Series:
    """One process for each slope (ns per unit), with samples exactly on its line; ``issue`` has
    half the slope.
    """
    rows = [[[n, round(s / 2 * n), round(fixed + s * n)] for n in ns] * 2 for s in slopes]
    cpu = [[[n, round(s / 2 * n), round(fixed + s * n), 10 * n] for n in (1, 100)] for s in slopes]
    return Series(
        [
            Process([one_round(r + c, (50_000, 50_000), i) for i in range(rounds)], number=number)
            for number, (r, c) in enumerate(zip(rows, cpu, strict=True))
        ],
        **more,
    )


def at_paces(slopes: Sequence[float], best_loops_ns: Sequence[float]) -> Series:
    """One process for each slope, with this best time of its reference loop."""
    made = one_process_per_slope(*slopes)
    paired = zip(made.processes, best_loops_ns, strict=True)
    return replace(made, processes=[replace(process, pace=ns) for process, ns in paired])


def with_reference_loops(slopes: Sequence[float], loops_us: Sequence[float]) -> Series:
    """One process for each slope; ``loops_us``: the sum of both reference loops in its rounds."""
    made = one_process_per_slope(*slopes)
    return replace(
        made,
        processes=[
            replace(
                p,
                rounds=[msgspec.structs.replace(r, canary=[round(500 * us)] * 2) for r in p.rounds],
            )
            for p, us in zip(made.processes, loops_us, strict=True)
        ],
    )
