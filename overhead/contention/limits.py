"""What limits peers, from the figures of their record, of one peer alone and of the compiled caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from msgspec.structs import replace

from overhead.reading.format import MICRO, micro_of
from overhead.results import Contention, Limit


@dataclass(frozen=True)
class _LimitRule:
    """Which figures tell what limits."""

    slowdown: float = 1.15
    """A smaller slowdown has no limit to name: a lower value explains noise, a higher one leaves costs unexplained."""
    certain: float = 1.05
    """The interval of the slowdown lies above this: a lower value explains what other sets may not show."""
    ready: float = 0.1
    """Least share of the time without a processor: a lower one takes wake-ups for too few processors."""
    explained: float = 0.5
    """Share of the lost time that was spent without a processor: a lower one hides other limits."""
    issue_alone: float = 0.9
    """One peer alone waits for the device, and uses up its slices, if its issue is a smaller share of its cost: a lower
    value takes peers that poll for too few processors, a higher one takes the end of each chain for a wait."""
    work: float = 0.9
    """All together do at least this share of what one peer alone does: with less, more than the device limits."""
    polls: float = 1.5
    """CPU time of a unit, relative to one peer alone, that shows polling: a lower value takes slow clocks for it."""
    grown: float = 1 / 3
    """Share of the slowdown that the issue shows too: a higher one misses locks, a lower one takes devices for them."""
    spent: float = 2 / 3
    """Share of the slowdown that the CPU time shows too if processors are slower: a lower one misses locks."""
    clocks: float = 2.0
    """Clocks and shared cores slow down by less than this: a higher value takes a lock that spins for them."""
    compiled: float = 1.5
    """Work of threads from compiled code, relative to Python: with more, no lock of the library limits Python."""


LIMITS = _LimitRule()


def limit_of(record: Contention, alone: Contention, others: Sequence[Contention]) -> tuple[Limit, str]:
    """What limits the peers, and a sentence with the figures that show it; both '' where no slowdown is known.

    ``alone``: figures of one peer alone. ``others``: all records, for the compiled caller and the slices of the device.
    """
    slowdown = record.measured("slowdown")
    if slowdown is None:
        return "", ""
    slower = f"A unit takes {slowdown.value:.3g} times as long as alone"
    if slowdown.value <= LIMITS.slowdown or slowdown.floor <= LIMITS.certain:
        spread = f"{slowdown.low:.3g} to {slowdown.high:.3g}" if slowdown.bounded else "from one set of processes"
        return "", f"{slower} ({spread}): no clear slowdown."
    device, ready = _device_was_busy(record, alone), record.value("ready") or 0.0
    lacking = ready >= max(LIMITS.ready, LIMITS.explained * (1 - 1 / slowdown.value))
    without = f"{slower}; for {ready:.0%} of the time a peer had no processor"
    cpu = (record.value("cpu") or 0.0) / (alone.value("cpu") or float("inf"))
    if record.way == "busy" or (lacking and not device and cpu < LIMITS.polls):
        return "processors", f"{without}."
    if record.way == "threads" and record.target.api == "CPU":  # there is no device to wait for
        return _of_lock(record, others, slower)
    issue, before = record.value("issue"), alone.value("issue")
    waits = record.case.pattern in ("wait-each", "read-each")  # their issue contains the wait for the device
    if not issue or not before or record.peers == 1 or waits:
        return "unknown", f"{slower}; the issue does not tell the device from a lock here."
    known = f"{slower}; handing it over takes {micro_of(issue)} {MICRO}, alone {micro_of(before)}"
    if device or issue / before < 1 + LIMITS.grown * (slowdown.value - 1):
        return _of_device(record, others, known)
    if lacking:
        return "unknown", f"{without}, which makes the issue longer too."
    if slowdown.value < LIMITS.clocks and cpu >= 1 + LIMITS.spent * (slowdown.value - 1):
        return "unknown", f"{known}, the CPU time {cpu:.3g} times: slower processors, or a lock that spins."
    return _of_lock(record, others, known)


def _device_was_busy(record: Contention, alone: Contention) -> bool:
    """Whether already one peer alone waits for the device, and all together do as much work."""
    issue, cost, work = (one or 0.0 for one in (alone.value("issue"), alone.value("cost"), record.value("work")))
    return record.way != "devices" and 0 < issue < LIMITS.issue_alone * cost and work >= LIMITS.work


def _of_device(record: Contention, others: Sequence[Contention], known: str) -> tuple[Limit, str]:
    for two in others if record.way == "processes" else ():
        length, change = two.value("slice"), two.value("hand_over")
        if two.target.key == record.target.key and length and change is not None:
            times = f"slices of {micro_of(length)} {MICRO}, switching takes {micro_of(change)}"
            return "slices", f"{known}: the device gives {times}."
    return "device", f"{known}: the peers wait for the device."


def _of_lock(record: Contention, others: Sequence[Contention], known: str) -> tuple[Limit, str]:
    """Whether it is Python's lock or one of the library."""
    if record.way != "threads" or record.case.caller != "binding":
        return "lock", f"{known}: the peers wait for a lock of the library or driver."
    compiled = replace(record, case=replace(record.case, caller="native"))
    which = attrgetter("key", "way", "peers", "placement")
    twin = max((one.value("each") or 0.0 for one in others if which(one) == which(compiled)), default=0.0)
    each = record.value("each") or 0.0
    if not twin:
        return "unknown", f"{known}: the interpreter or a lock of the library; no compiled caller tells them apart."
    both = f"together they need {micro_of(each)} {MICRO} a unit, from compiled code {micro_of(twin)}"
    if each >= LIMITS.compiled * twin:
        return "interpreter", f"{known}; {both}: Python's lock limits."
    return "lock", f"{known}; {both}: the lock is not Python's."
