"""What limits peers is told from intervals: noise names nothing, and no stack is said to wait for
what it has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

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

Interval = tuple[float, float, float]
"""A value, and the ends of its interval."""


def peers(
    way: Way = "processes",
    api: Api = "CUDA",
    caller: Caller = "binding",
    count: int = 8,
    common: Mapping[str, Interval] = MappingProxyType({}),
    **figures: Interval,
) -> Contention:
    """A record of so many peers with these figures, times in µs. ``common``: more of them."""
    target = Target(stack="numpy" if api == "CPU" else "dawn", api=api, adapter="A")
    made = []
    for name, (value, low, high) in {**common, **figures}.items():
        scale = 1.0 if name in ("slowdown", "work", "ready") else 1e3
        made.append(
            Figure(name=name, value=scale * value, low=scale * low, high=scale * high, processes=4)
        )
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
    count=1, cost=(24.2, 23.6, 24.8), issue=(24.6, 23.8, 25.4), cpu=(24.2, 23.6, 24.8)
)
SLOWER = {
    "cost": (137.0, 134.0, 141.0),
    "slowdown": (5.6, 5.1, 6.2),
    "work": (1.43, 1.29, 1.59),
    "cpu": (97.0, 33.0, 282.0),
}


@pytest.mark.parametrize(
    ("issue", "expected"),
    [
        ((85.9, 15.3, 483.0), "unknown"),
        ((120.0, 110.0, 131.0), "lock"),
        ((30.0, 27.0, 33.0), "device"),
        ((60.0, 40.0, 90.0), "unknown"),
    ],
)
def test_an_enqueue_time_names_a_limit_only_with_its_whole_interval(
    issue: Interval, expected: Limit
) -> None:
    assert limit(peers(issue=issue, common=SLOWER), HOST_BOUND) == expected


def test_noise_of_the_enqueue_time_does_not_give_one_figure_several_limits() -> None:
    noisy = [(21.0, 5.0, 90.0), (36.0, 12.0, 110.0), (70.0, 20.0, 245.0), (99.0, 15.0, 600.0)]
    assert {limit(peers(issue=issue, common=SLOWER), HOST_BOUND) for issue in noisy} == {"unknown"}


def test_one_alone_that_may_wait_for_the_device_names_no_lock() -> None:
    """The enqueue time grows too where a library waits for room in the queue of the device."""
    open_alone = peers(
        count=1, cost=(22.0, 10.0, 47.0), issue=(15.0, 5.0, 48.0), cpu=(20.0, 8.0, 47.0)
    )
    record = peers(
        "threads",
        caller="native",
        issue=(166.0, 150.0, 180.0),
        cost=(160.0, 150.0, 170.0),
        slowdown=(6.9, 3.1, 15.3),
        work=(1.16, 0.52, 2.55),
        cpu=(33.0, 29.0, 36.0),
    )
    assert limit(record, open_alone) == "unknown"


@pytest.mark.parametrize(("least", "expected"), [(0.95, "device"), (0.5, "unknown")])
def test_one_alone_waits_for_the_device_only_where_all_surely_do_as_much_work(
    least: float, expected: Limit
) -> None:
    alone = peers(
        count=1, cost=(24.2, 23.6, 24.8), issue=(12.0, 11.8, 12.2), cpu=(24.2, 23.6, 24.8)
    )
    more = {**SLOWER, "work": (1.0, least, 1.2), "issue": (120.0, 110.0, 131.0)}
    assert limit(peers(common=more), alone) == expected


@pytest.mark.parametrize(("most", "expected"), [(0.99, "slices"), (1.3, "unknown")])
def test_slices_are_named_only_where_all_together_surely_do_no_more_than_one(
    most: float, expected: Limit
) -> None:
    two = peers(count=2, slice=(2_000.0, 1_900.0, 2_100.0), hand_over=(100.0, 90.0, 110.0))
    record = peers(common={**SLOWER, "work": (0.9, 0.8, most), "issue": (60.0, 40.0, 90.0)})
    assert limit(record, HOST_BOUND, two) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("per-submit", "lock"), ("wait-each", "unknown"), ("read-each", "unknown")],
)
def test_an_enqueue_time_that_holds_the_wait_names_no_lock(
    pattern: Pattern, expected: Limit
) -> None:
    record = peers(issue=(120.0, 110.0, 131.0), common=SLOWER)
    assert (
        limit(
            msgspec.structs.replace(record, case=Case(pattern=pattern, caller="binding")),
            HOST_BOUND,
        )
        == expected
    )


@pytest.mark.parametrize("way", ["processes", "threads", "busy"])
@pytest.mark.parametrize("ready", [(0.80, 0.75, 0.85), (0.48, 0.05, 0.91), (0.0, 0.0, 0.001)])
@pytest.mark.parametrize("issue", [(0.418, 0.41, 0.43), (3.4, 3.3, 3.5)])
def test_a_stack_without_a_device_never_waits_for_one(
    way: Way, ready: Interval, issue: Interval
) -> None:
    alone = peers(
        way, "CPU", count=1, cost=(0.9, 0.8, 1.0), issue=(0.418, 0.41, 0.43), cpu=(0.44, 0.43, 0.45)
    )
    record = peers(
        way,
        "CPU",
        cost=(3.2, 3.0, 3.4),
        slowdown=(3.57, 3.3, 3.9),
        work=(2.2, 2.0, 2.4),
        ready=ready,
        cpu=(0.44, 0.43, 0.45),
        issue=issue,
    )
    found = limit(record, alone)
    assert found not in ("device", "slices")
    assert (found == "lock") <= (way == "threads")
    if ready[0] == 0.80:
        assert found == "processors"


@pytest.mark.parametrize("api", ["CUDA", "Vulkan", "CPU"])
def test_more_peers_than_processors_are_limited_by_processors(api: Api) -> None:
    alone = peers(
        api=api, count=1, cost=(5.0, 4.9, 5.1), issue=(5.0, 4.9, 5.1), cpu=(5.0, 4.9, 5.1)
    )
    record = peers(
        api=api,
        cost=(20.0, 19.0, 21.0),
        issue=(5.1, 4.9, 5.3),
        cpu=(5.1, 5.0, 5.2),
        slowdown=(4.0, 3.8, 4.2),
        work=(2.0, 1.9, 2.1),
        ready=(0.74, 0.70, 0.78),
    )
    assert limit(record, alone) == "processors"


def test_pythons_lock_is_named_only_where_the_whole_ratio_to_compiled_code_shows_it() -> None:
    alone = peers(
        "threads", count=1, cost=(4.2, 4.1, 4.3), issue=(4.2, 4.1, 4.3), cpu=(4.2, 4.1, 4.3)
    )
    compiled = peers("threads", caller="native", each=(4.5, 4.3, 4.7))
    common = {
        "cost": (55.0, 52.0, 58.0),
        "issue": (60.0, 57.0, 63.0),
        "slowdown": (12.3, 11.0, 13.8),
    }
    for each, expected in (
        ((6.9, 5.8, 8.2), "unknown"),
        ((9.0, 8.5, 9.5), "interpreter"),
        ((5.0, 4.8, 5.2), "lock"),
    ):
        record = peers(
            "threads", each=each, work=(0.65, 0.57, 0.74), cpu=(4.3, 4.2, 4.4), common=common
        )
        assert limit(record, alone, compiled) == expected


@pytest.mark.parametrize("way", ["processes", "devices"])
def test_processes_are_not_said_to_share_a_lock_of_a_library(way: Way) -> None:
    locked = peers(way, issue=(120.0, 110.0, 131.0), common=SLOWER)
    found = limit_of(locked, HOST_BOUND, [])
    assert (found.limit, code_of(found.why)) == ("lock", "lock-of-driver-or-system")
    of_threads = [
        msgspec.structs.replace(one, way="threads", limit="lock") for one in (HOST_BOUND, locked)
    ]
    of_processes = [
        msgspec.structs.replace(one, way=way, limit="lock") for one in (HOST_BOUND, locked)
    ]
    shown = View(fingerprint(contention=[*of_threads, *of_processes]))
    assert rows(shown, way)[0][LIMIT_COLUMN] != rows(shown, "threads")[0][LIMIT_COLUMN]


def test_a_disturbed_machine_is_not_taken_for_too_few_processors() -> None:
    """Other programs keep one alone from a processor as long as they keep several: something else
    limits these.
    """
    alone = peers(
        "threads",
        "CPU",
        count=1,
        cost=(2.5, 2.1, 3.0),
        cpu=(0.6, 0.5, 0.7),
        ready=(0.757, 0.746, 0.769),
    )
    record = peers(
        "threads",
        "CPU",
        cost=(10.1, 7.9, 12.8),
        slowdown=(4.05, 3.3, 5.0),
        work=(0.99, 0.8, 1.2),
        cpu=(0.61, 0.51, 0.73),
        ready=(0.766, 0.732, 0.801),
    )
    assert limit(record, alone) != "processors"
    alone = peers(
        "processes",
        "CPU",
        count=1,
        cost=(0.9, 0.8, 1.0),
        ready=(0.51, 0.48, 0.54),
        issue=(0.4, 0.39, 0.41),
    )
    record = peers(
        "processes",
        "CPU",
        cost=(3.2, 3.0, 3.4),
        slowdown=(3.57, 3.3, 3.9),
        work=(2.2, 2.0, 2.4),
        ready=(0.80, 0.78, 0.82),
        issue=(0.422, 0.41, 0.43),
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
        "threads", "CPU", count=1, cost=(5.0, 4.9, 5.1), issue=(5.0, 4.9, 5.1), cpu=(5.0, 4.9, 5.1)
    )
    record = peers(
        "threads",
        "CPU",
        caller="native",
        cost=(11.0, 10.8, 11.2),
        slowdown=(2.2, 2.15, 2.25),
        work=(3.6, 3.5, 3.7),
        cpu=(11.0, 10.8, 11.2),
        issue=(11.0, 10.8, 11.2),
    )
    assert limit(record, alone) == "unknown"
