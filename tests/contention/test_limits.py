"""What limits peers is told from intervals: noise names nothing, and no stack is said to wait for
what it has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import pytest

from overhead.contention.figures import contention_of
from overhead.contention.limits import limit_of
from overhead.reading.view import View
from overhead.results import (
    Api,
    Caller,
    Case,
    Contention,
    Figure,
    Limit,
    Pattern,
    Target,
    Way,
    code_of,
)
from overhead.words.contention.peers import LIMIT_COLUMN
from tests.contention.test_show import rows
from tests.fakes.report import fingerprint
from tests.fakes.shared_device import NATIVE, Shared, simulate


class Interval(NamedTuple):
    """A measured value and the ends of its interval."""

    value: float
    low: float
    high: float


def peers(
    way: Way = "processes",
    api: Api = "CUDA",
    caller: Caller = "binding",
    count: int = 8,
    common: Mapping[str, Interval] = MappingProxyType({}),
    **figures: Interval,
) -> Contention:
    """A record of so many peers with these figures: of a unit of a peer the whole time (``cost``),
    the time to hand it over (``issue``) and the CPU time; relative to one peer alone the
    ``slowdown`` of each and the ``work`` of all; the share of the time without a processor
    (``ready``). ``common``: more of them.
    """
    target = Target(stack="numpy" if api == "CPU" else "dawn", api=api, adapter="A")
    made = []
    for name, (value, low, high) in {**common, **figures}.items():
        scale = 1e3 if name.endswith("_us") else 1.0
        figure = Figure(name=name.removesuffix("_us"), value=scale * value, processes=4)
        made.append(msgspec.structs.replace(figure, low=scale * low, high=scale * high))
    return Contention(
        way=way,
        peers=count,
        target=target,
        case=Case(pattern="per-submit", caller=caller),
        figures=made,
    )


def limit(record: Contention, alone: Contention, *others: Contention) -> Limit:
    return limit_of(record, alone, [alone, record, *others]).limit


HOST_BOUND = peers(
    count=1,
    cost_us=Interval(24.2, low=23.6, high=24.8),
    issue_us=Interval(24.6, low=23.8, high=25.4),
    cpu_us=Interval(24.2, low=23.6, high=24.8),
)
SLOWER = {
    "cost_us": Interval(137.0, low=134.0, high=141.0),
    "slowdown": Interval(5.6, low=5.1, high=6.2),
    "work": Interval(1.43, low=1.29, high=1.59),
    "cpu_us": Interval(97.0, low=33.0, high=282.0),
}
"""Eight peers, each 5.6 times as slow as one peer alone (``HOST_BOUND``)."""


@pytest.mark.parametrize(
    ("issue", "expected"),
    [
        (Interval(85.9, low=15.3, high=483.0), "unknown"),
        (Interval(120.0, low=110.0, high=131.0), "lock"),
        (Interval(30.0, low=27.0, high=33.0), "device"),
        (Interval(60.0, low=40.0, high=90.0), "unknown"),
    ],
    ids=["not resolved", "all of the cost", "as one alone", "half of the cost"],
)
def test_an_enqueue_time_names_a_limit_only_with_its_whole_interval(
    issue: Interval, expected: Limit
) -> None:
    assert limit(peers(issue_us=issue, common=SLOWER), HOST_BOUND) == expected


def test_noise_of_the_enqueue_time_does_not_give_one_figure_several_limits() -> None:
    noisy = [
        Interval(21.0, low=5.0, high=90.0),
        Interval(36.0, low=12.0, high=110.0),
        Interval(70.0, low=20.0, high=245.0),
        Interval(99.0, low=15.0, high=600.0),
    ]
    assert {limit(peers(issue_us=issue, common=SLOWER), HOST_BOUND) for issue in noisy} == {
        "unknown"
    }


def test_one_alone_that_may_wait_for_the_device_names_no_lock() -> None:
    """The enqueue time grows too where a library waits for room in the queue of the device."""
    open_alone = peers(
        count=1,
        cost_us=Interval(22.0, low=10.0, high=47.0),
        issue_us=Interval(15.0, low=5.0, high=48.0),
        cpu_us=Interval(20.0, low=8.0, high=47.0),
    )
    record = peers(
        "threads",
        caller="native",
        issue_us=Interval(166.0, low=150.0, high=180.0),
        cost_us=Interval(160.0, low=150.0, high=170.0),
        slowdown=Interval(6.9, low=3.1, high=15.3),
        work=Interval(1.16, low=0.52, high=2.55),
        cpu_us=Interval(33.0, low=29.0, high=36.0),
    )
    assert limit(record, open_alone) == "unknown"


@pytest.mark.parametrize(("least", "expected"), [(0.95, "device"), (0.5, "unknown")])
def test_one_alone_waits_for_the_device_only_where_all_surely_do_as_much_work(
    least: float, expected: Limit
) -> None:
    alone = peers(
        count=1,
        cost_us=Interval(24.2, low=23.6, high=24.8),
        issue_us=Interval(12.0, low=11.8, high=12.2),
        cpu_us=Interval(24.2, low=23.6, high=24.8),
    )
    more = {
        **SLOWER,
        "work": Interval(1.0, low=least, high=1.2),
        "issue_us": Interval(120.0, low=110.0, high=131.0),
    }
    assert limit(peers(common=more), alone) == expected


@pytest.mark.parametrize(("most", "expected"), [(0.99, "slices"), (1.3, "unknown")])
def test_slices_are_named_only_where_all_together_surely_do_no_more_than_one(
    most: float, expected: Limit
) -> None:
    two = peers(
        count=2,
        slice_us=Interval(2_000.0, low=1_900.0, high=2_100.0),
        hand_over_us=Interval(100.0, low=90.0, high=110.0),
    )
    record = peers(
        common={
            **SLOWER,
            "work": Interval(0.9, low=0.8, high=most),
            "issue_us": Interval(60.0, low=40.0, high=90.0),
        }
    )
    assert limit(record, HOST_BOUND, two) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("per-submit", "lock"), ("wait-each", "unknown"), ("read-each", "unknown")],
)
def test_an_enqueue_time_that_holds_the_wait_names_no_lock(
    pattern: Pattern, expected: Limit
) -> None:
    # The last two patterns wait for the device while they hand over.
    record = peers(issue_us=Interval(120.0, low=110.0, high=131.0), common=SLOWER)
    of_pattern = msgspec.structs.replace(record, case=Case(pattern=pattern, caller="binding"))
    assert limit(of_pattern, HOST_BOUND) == expected


UNCHANGED_ISSUE = Interval(0.418, low=0.41, high=0.43)
"""The enqueue time that one peer alone has too."""
GROWN_ISSUE = Interval(3.4, low=3.3, high=3.5)
SHARES_WITHOUT_A_PROCESSOR = [
    Interval(0.80, low=0.75, high=0.85),
    Interval(0.48, low=0.05, high=0.91),
    Interval(0.0, low=0.0, high=0.001),
]
"""All of the lost time, perhaps some of it, and none."""


def limit_without_a_device(way: Way, ready: Interval, issue: Interval) -> Limit:
    """The limit of eight peers on the processors alone, 3.57 times as slow as one."""
    alone = peers(
        way,
        api="CPU",
        count=1,
        cost_us=Interval(0.9, low=0.8, high=1.0),
        issue_us=UNCHANGED_ISSUE,
        cpu_us=Interval(0.44, low=0.43, high=0.45),
    )
    record = peers(
        way,
        api="CPU",
        cost_us=Interval(3.2, low=3.0, high=3.4),
        slowdown=Interval(3.57, low=3.3, high=3.9),
        work=Interval(2.2, low=2.0, high=2.4),
        ready=ready,
        cpu_us=Interval(0.44, low=0.43, high=0.45),
        issue_us=issue,
    )
    return limit(record, alone)


@pytest.mark.parametrize("way", ["processes", "threads", "busy"])
@pytest.mark.parametrize("ready", SHARES_WITHOUT_A_PROCESSOR)
@pytest.mark.parametrize("issue", [UNCHANGED_ISSUE, GROWN_ISSUE])
def test_a_stack_without_a_device_never_waits_for_one(
    way: Way, ready: Interval, issue: Interval
) -> None:
    assert limit_without_a_device(way, ready, issue) not in ("device", "slices")


@pytest.mark.parametrize("way", ["processes", "busy"])
@pytest.mark.parametrize("ready", SHARES_WITHOUT_A_PROCESSOR)
@pytest.mark.parametrize("issue", [UNCHANGED_ISSUE, GROWN_ISSUE])
def test_processes_without_a_device_share_no_lock(
    way: Way, ready: Interval, issue: Interval
) -> None:
    assert limit_without_a_device(way, ready, issue) != "lock"


@pytest.mark.parametrize("way", ["processes", "threads", "busy"])
@pytest.mark.parametrize("issue", [UNCHANGED_ISSUE, GROWN_ISSUE])
def test_a_want_of_processors_that_explains_the_whole_slowdown_is_the_limit(
    way: Way, issue: Interval
) -> None:
    # At 3.57 times as slow 72 % of the time is lost; the peers had no processor for 80 %.
    ready = Interval(0.80, low=0.75, high=0.85)
    assert limit_without_a_device(way, ready, issue) == "processors"


@pytest.mark.parametrize("api", ["CUDA", "Vulkan", "CPU"])
def test_more_peers_than_processors_are_limited_by_processors(api: Api) -> None:
    alone = peers(
        api=api,
        count=1,
        cost_us=Interval(5.0, low=4.9, high=5.1),
        issue_us=Interval(5.0, low=4.9, high=5.1),
        cpu_us=Interval(5.0, low=4.9, high=5.1),
    )
    record = peers(
        api=api,
        cost_us=Interval(20.0, low=19.0, high=21.0),
        issue_us=Interval(5.1, low=4.9, high=5.3),
        cpu_us=Interval(5.1, low=5.0, high=5.2),
        slowdown=Interval(4.0, low=3.8, high=4.2),
        work=Interval(2.0, low=1.9, high=2.1),
        ready=Interval(0.74, low=0.70, high=0.78),
    )
    assert limit(record, alone) == "processors"


@pytest.mark.parametrize(
    ("each_us", "expected"),
    [
        (Interval(6.9, low=5.8, high=8.2), "unknown"),
        (Interval(9.0, low=8.5, high=9.5), "interpreter"),
        (Interval(5.0, low=4.8, high=5.2), "lock"),
    ],
    ids=["1.2 to 1.9 times as long", "twice as long", "about as long"],
)
def test_pythons_lock_is_named_only_where_the_whole_ratio_to_compiled_code_shows_it(
    each_us: Interval, expected: Limit
) -> None:
    """``each_us``: a unit of all threads together from Python, beside 4.5 µs from compiled code."""
    compiled = peers("threads", caller="native", each_us=Interval(4.5, low=4.3, high=4.7))
    one_unit = Interval(4.2, low=4.1, high=4.3)
    alone = peers("threads", count=1, cost_us=one_unit, issue_us=one_unit, cpu_us=one_unit)
    record = peers(
        "threads",
        each_us=each_us,
        work=Interval(0.65, low=0.57, high=0.74),
        cpu_us=Interval(4.3, low=4.2, high=4.4),
        cost_us=Interval(55.0, low=52.0, high=58.0),
        issue_us=Interval(60.0, low=57.0, high=63.0),
        slowdown=Interval(12.3, low=11.0, high=13.8),
    )
    assert limit(record, alone, compiled) == expected


@pytest.mark.parametrize("way", ["processes", "devices"])
def test_processes_are_not_said_to_share_a_lock_of_a_library(way: Way) -> None:
    locked = peers(way, issue_us=Interval(120.0, low=110.0, high=131.0), common=SLOWER)
    found = limit_of(locked, HOST_BOUND, [])
    assert found.limit == "lock"
    assert code_of(found.why) == "lock-of-driver-or-system"
    of_threads = [
        msgspec.structs.replace(one, way="threads", limit="lock") for one in (HOST_BOUND, locked)
    ]
    of_processes = [
        msgspec.structs.replace(one, way=way, limit="lock") for one in (HOST_BOUND, locked)
    ]
    # Threads share the lock of a library, so the table has other words for theirs.
    shown = View(fingerprint(contention=[*of_threads, *of_processes]))
    assert rows(shown, way)[0][LIMIT_COLUMN] != rows(shown, "threads")[0][LIMIT_COLUMN]


def test_a_disturbed_machine_is_not_taken_for_too_few_processors() -> None:
    """Other programs keep one alone from a processor as long as they keep several: something else
    limits these.
    """
    alone = peers(
        "threads",
        api="CPU",
        count=1,
        cost_us=Interval(2.5, low=2.1, high=3.0),
        cpu_us=Interval(0.6, low=0.5, high=0.7),
        ready=Interval(0.757, low=0.746, high=0.769),
    )
    record = peers(
        "threads",
        api="CPU",
        cost_us=Interval(10.1, low=7.9, high=12.8),
        slowdown=Interval(4.05, low=3.3, high=5.0),
        work=Interval(0.99, low=0.8, high=1.2),
        cpu_us=Interval(0.61, low=0.51, high=0.73),
        ready=Interval(0.766, low=0.732, high=0.801),
    )
    assert limit(record, alone) != "processors"


def test_a_want_of_processors_that_grows_with_the_peers_limits_them() -> None:
    """One alone had no processor for 51 % of the time, each of several for 80 %."""
    alone = peers(
        "processes",
        api="CPU",
        count=1,
        cost_us=Interval(0.9, low=0.8, high=1.0),
        ready=Interval(0.51, low=0.48, high=0.54),
        issue_us=Interval(0.4, low=0.39, high=0.41),
    )
    record = peers(
        "processes",
        api="CPU",
        cost_us=Interval(3.2, low=3.0, high=3.4),
        slowdown=Interval(3.57, low=3.3, high=3.9),
        work=Interval(2.2, low=2.0, high=2.4),
        ready=Interval(0.80, low=0.78, high=0.82),
        issue_us=Interval(0.422, low=0.41, high=0.43),
    )
    assert limit(record, alone) == "processors"


SHORT_QUEUE = Shared(library=500.0, device=2_000.0, depth=1)


@pytest.mark.parametrize(
    "shared",
    [
        SHORT_QUEUE,
        replace(SHORT_QUEUE, way="threads"),
        Shared(library=2_000.0, device=1_900.0, depth=4),
        Shared(library=2_000.0, locked=900.0, device=1_000.0, peers=(4, 8)),
        Shared(library=5_000.0, device=100.0, slower=2.2),
        Shared(library=5_000.0, device=100.0, slower=3.0),
        Shared(way="devices", library=5_000.0, device=100.0, slower=3.0),
        Shared(way="threads", library=5_000.0, device=100.0, slower=2.2),
    ],
    ids=[
        "a queue of one place",
        "a queue of one place, threads",
        "a busy device",
        "a device and a short lock",
        "processors 2.2 times as slow",
        "processors 3 times as slow",
        "slow processors, a device each",
        "slow processors, threads",
    ],
)
def test_no_lock_is_named_where_the_device_or_slower_processors_explain_the_cost(
    shared: Shared,
) -> None:
    lines, _ = simulate(shared)
    native, _ = simulate(replace(shared, case=NATIVE))
    limits = {record.limit for record in contention_of([*native, *lines], 0.1)}
    assert not limits & {"lock", "interpreter"}


@pytest.mark.parametrize("locked", [1_000.0, 2_000.0])
@pytest.mark.parametrize("device", [100.0, 900.0])
@pytest.mark.parametrize("way", ["processes", "devices"])
def test_a_lock_that_takes_up_the_cost_is_named(way: Way, device: float, locked: float) -> None:
    lines, _ = simulate(Shared(way=way, library=2_000.0, locked=locked, device=device, peers=(4,)))
    four = next(record for record in contention_of(lines, 0.1) if record.peers == 4)
    assert four.limit == "lock"


def test_threads_without_a_device_on_slower_processors_share_no_lock() -> None:
    alone = peers(
        "threads",
        api="CPU",
        count=1,
        cost_us=Interval(5.0, low=4.9, high=5.1),
        issue_us=Interval(5.0, low=4.9, high=5.1),
        cpu_us=Interval(5.0, low=4.9, high=5.1),
    )
    record = peers(
        "threads",
        api="CPU",
        caller="native",
        cost_us=Interval(11.0, low=10.8, high=11.2),
        slowdown=Interval(2.2, low=2.15, high=2.25),
        work=Interval(3.6, low=3.5, high=3.7),
        cpu_us=Interval(11.0, low=10.8, high=11.2),
        issue_us=Interval(11.0, low=10.8, high=11.2),
    )
    assert limit(record, alone) == "unknown"
