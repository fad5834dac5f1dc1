"""What limits peers, from the figures of their record, of one peer alone and of the compiled
caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from overhead.results import Contention, Limit, Reason, Value, Why, because, exactly, ratio


@dataclass(frozen=True)
class _LimitRule:
    """Which figures tell what limits."""

    slowdown: float = 1.15
    """A smaller slowdown has no limit to name: a lower value explains noise, a higher one leaves
    costs unexplained.
    """
    certain: float = 1.05
    """The interval of the slowdown lies above this: a lower value explains what other sets may not
    show.
    """
    ready: float = 0.1
    """Least share of the time that peers lost for want of a processor and one alone did not: a
    lower one takes wake-ups for too few processors.
    """
    explained: float = 0.5
    """Share of the lost time that was spent without a processor: a lower one hides other limits."""
    issue_alone: float = 0.9
    """One peer alone waits for the device, and uses up its slices, if its issue is a smaller share
    of its cost: a lower value takes peers that poll for too few processors, a higher one takes the
    end of each chain for a wait.
    """
    work: float = 0.9
    """All together do at least this share of what one peer alone does: with less, more than the
    device limits.
    """
    polls: float = 1.5
    """CPU time of a unit, relative to one peer alone, that shows polling: a lower value takes slow
    clocks for it.
    """
    grown: float = 1 / 3
    """Share of the slowdown that the issue shows too: a higher one misses locks, a lower one takes
    devices for them.
    """
    spent: float = 2 / 3
    """Share of the slowdown that the CPU time shows too if processors are slower: a lower one
    misses locks.
    """
    clocks: float = 2.0
    """Clocks and shared cores mostly slow down by less than this. From here on only the whole
    interval of the CPU time shows them: a higher value takes a lock that spins for them.
    """
    filled: float = 0.95
    """With a lock, handing over takes up the cost but for what one alone also waits, or at least
    this share of it. On simulated peers locks come to 0.99, a device with a full queue to 0.94
    (November 2026).
    """
    compiled: float = 1.5
    """Work of threads from compiled code, relative to Python: with more, no lock of the library
    limits Python.
    """


LIMITS = _LimitRule()
_ALL_BUT_NONE = 0.999
"""One alone had a processor for some of the time, else it would have no cost."""
_TOLD_ALONE = 0.01
"""It is told from this share on for how long one alone had no processor."""


@dataclass(frozen=True)
class Limited:
    """What limits peers, and from which figures that follows. Both are '' where no slowdown is
    known.
    """

    limit: Limit
    why: Why


def limit_of(record: Contention, alone: Contention, others: Sequence[Contention]) -> Limited:
    """What limits the peers.

    ``alone``: figures of one peer alone. ``others``: all records, for the compiled caller and the
    slices of the device. A limit is named only where the whole interval of each figure that it
    rests on shows it.
    """
    slowdown = record.measured("slowdown")
    if slowdown is None:
        return Limited("", "")
    if slowdown.value <= LIMITS.slowdown or slowdown.floor <= LIMITS.certain:
        return Limited("", _no_clear_slowdown(slowdown))
    seen = because("peers-slower", slowdown=slowdown.value)
    if record.way == "busy":
        return _beside_busy(record, alone, seen)
    if record.target.api == "CPU":
        return _on_processors(record, alone, others, slowdown, seen)
    return _on_device(record, alone, others, slowdown, seen)


def _no_clear_slowdown(slowdown: Value) -> Reason:
    if not slowdown.bounded:
        return because("no-clear-slowdown-one-set", slowdown=slowdown.value)
    return because(
        "no-clear-slowdown", slowdown=slowdown.value, least=slowdown.low, most=slowdown.high
    )


def _beside_busy(record: Contention, alone: Contention, seen: Reason) -> Limited:
    """The neighbours only compute, so the processors limit: there are too few, or each is
    slower.
    """
    want = _WantOfProcessors.of(record, alone)
    if want is not None and want.lost.value >= LIMITS.ready:
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))
    return Limited("processors", because("busy-processors-slower", seen=seen))


def _on_processors(
    record: Contention,
    alone: Contention,
    others: Sequence[Contention],
    slowdown: Value,
    seen: Reason,
) -> Limited:
    """There is no device to wait for, and nothing of one to poll."""
    want = _WantOfProcessors.of(record, alone)
    if want is not None and want.surely_explains(slowdown):
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))
    if want is not None and want.may_explain(slowdown):
        return Limited(
            "unknown", because("peers-perhaps-without-processor", seen=seen, want=want.why)
        )
    cpu = _ratio(record, alone, "cpu")
    if record.way == "threads":
        if cpu is not None and _may_be_slower_processors(cpu, slowdown):
            return Limited(
                "unknown",
                because("slower-processors-or-spinning-lock", seen=seen, **_interval("cpu", cpu)),
            )
        return _of_lock(record, others, seen)
    if cpu is not None and cpu.floor > LIMITS.certain:
        return Limited(
            "processors", because("processors-share-core", seen=seen, **_interval("cpu", cpu))
        )
    return Limited("unknown", because("neither-processors-nor-cpu-time", seen=seen))


def _on_device(
    record: Contention,
    alone: Contention,
    others: Sequence[Contention],
    slowdown: Value,
    seen: Reason,
) -> Limited:
    want, cpu = _WantOfProcessors.of(record, alone), _ratio(record, alone, "cpu")
    waits_for_device = _device_was_busy(record, alone)
    polls = cpu is not None and cpu.floor >= LIMITS.polls
    if want is not None and want.surely_explains(slowdown) and not waits_for_device and not polls:
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))
    issue, before, cost = record.measured("issue"), alone.measured("issue"), record.measured("cost")
    waits = record.case.pattern in (
        "wait-each",
        "read-each",
    )  # their issue contains the wait for the device
    if issue is None or before is None or cost is None or record.peers == 1 or waits:
        return Limited("unknown", because("enqueue-time-tells-nothing", seen=seen))
    handing = because(
        "peers-handing-over", seen=seen, **_interval("issue", issue), **_interval("alone", before)
    )
    slices = _slices_of_device(record, others)
    work = record.measured("work")
    in_turn = slices is not None and work is not None and work.ceiling <= 1
    where = _where_peers_wait(issue, before, cost, slowdown)
    if waits_for_device or in_turn or where == "device":
        if slices is None:
            return Limited("device", because("peers-wait-for-device", seen=handing))
        return Limited(
            "slices",
            because("device-gives-slices", seen=handing, slice=slices.ns, switch=slices.switch_ns),
        )
    if want is not None and want.may_explain(slowdown):
        return Limited("unknown", because("want-lengthens-enqueue", seen=seen, want=want.why))
    if where != "lock" or _device_may_be_busy(record, alone):
        return Limited("unknown", because("lock-or-device", seen=handing))
    if not _handing_over_fills(cost, issue, alone, slowdown):
        return Limited("unknown", because("lock-or-short-queue", seen=handing))
    if cpu is not None and _may_be_slower_processors(cpu, slowdown):
        return Limited(
            "unknown",
            because("slower-processors-or-spinning-lock", seen=handing, **_interval("cpu", cpu)),
        )
    return _of_lock(record, others, handing)


def _where_peers_wait(
    issue: Value, before: Value, cost: Value, slowdown: Value
) -> Literal["device", "lock", ""]:
    """Where the lost time was spent: after the units were handed over, or in handing them over; ''
    where it is open.

    ``issue``: of a peer, and of one alone ``before``. ``cost``: of a unit of a peer.
    """
    longer, share = ratio(issue, before), ratio(issue, cost)
    if longer is None or share is None:
        return ""
    most_longer = 1 + LIMITS.grown * (slowdown.value - 1)
    most_share = 1 - (1 - LIMITS.grown) * (1 - 1 / slowdown.value)
    if longer.ceiling < most_longer or share.ceiling < most_share:
        return "device"
    return "lock" if longer.floor > most_longer and share.floor > most_share else ""


def _handing_over_fills(cost: Value, issue: Value, alone: Contention, slowdown: Value) -> bool:
    """Whether a unit may be handed over all the time, as where a lock limits.

    If the device limits, a peer also waits for the last units that it handed over, as long as for
    those before.
    """
    share, before = ratio(issue, cost), _ratio(alone, alone, "issue", "cost")
    if share is None or before is None:
        return True
    waited_alone = max(1 - before.value, 0.0) / slowdown.value
    return share.ceiling >= LIMITS.filled * (1 - waited_alone)


def _may_be_slower_processors(cpu: Value, slowdown: Value) -> bool:
    """Whether the CPU time grows with the cost. ``cpu``: relative to one peer alone."""
    same_growth = 1 + LIMITS.spent * (slowdown.value - 1)
    seen = cpu.ceiling if slowdown.value < LIMITS.clocks else cpu.floor
    return seen >= same_growth


@dataclass(frozen=True)
class _WantOfProcessors:
    """The time for which peers were ready to run and had no processor.

    ``lost``: the share of its time with a processor that a peer lost beside one alone, which other
    programs disturb too. ``why``: the figures that show it.
    """

    lost: Value
    why: Reason

    @classmethod
    def of(cls, record: Contention, alone: Contention) -> _WantOfProcessors | None:
        """None where it was not measured. Where it is not known for one alone, that had a processor
        all the time.
        """
        ready, before = record.measured("ready"), alone.measured("ready") or exactly(0.0)
        if ready is None:
            return None
        low, high = (min(max(end, 0.0), 1.0) for end in (ready.floor, ready.ceiling))
        least, most = (min(max(end, 0.0), _ALL_BUT_NONE) for end in (before.floor, before.ceiling))
        usual = min(max(before.value, 0.0), _ALL_BUT_NONE)
        lost = Value(
            1 - (1 - min(ready.value, 1.0)) / (1 - usual),
            1 - (1 - low) / (1 - most),
            1 - (1 - high) / (1 - least),
        )
        told = _interval("ready", Value(ready.value, low, high))
        if usual >= _TOLD_ALONE:
            return cls(lost, because("no-processor-alone-too", **told, alone=usual))
        return cls(lost, because("no-processor", **told))

    def surely_explains(self, slowdown: Value) -> bool:
        """Whether peers surely lost time in this way, and as much as explains the slowdown."""
        return self.lost.floor >= LIMITS.ready and self.lost.value >= self._half_of(slowdown)

    def may_explain(self, slowdown: Value) -> bool:
        """Whether the interval leaves open that this explains the slowdown."""
        return self.lost.ceiling >= max(LIMITS.ready, self._half_of(slowdown))

    def _half_of(self, slowdown: Value) -> float:
        return LIMITS.explained * (1 - 1 / slowdown.value)


def _device_was_busy(record: Contention, alone: Contention) -> bool:
    """Whether already one peer alone surely waits for the device, and all together do as much
    work.
    """
    handing_over, work = _ratio(alone, alone, "issue", "cost"), record.measured("work")
    if record.way == "devices" or handing_over is None or work is None:
        return False
    return handing_over.ceiling < LIMITS.issue_alone and work.floor >= LIMITS.work


def _device_may_be_busy(record: Contention, alone: Contention) -> bool:
    """Whether the intervals leave open that one peer alone waits for the device, and all together
    do as much work.

    Handing over takes longer then too, where a library waits for room in a queue. One alone without
    a processor's work for much of its time waits as well.
    """
    work = record.measured("work")
    if record.way == "devices" or work is None or work.ceiling < LIMITS.work:
        return False
    ready = alone.measured("ready") or exactly(0.0)
    handing_over, busy = _ratio(alone, alone, "issue", "cost"), _ratio(alone, alone, "cpu", "cost")
    waits = handing_over is not None and handing_over.floor < LIMITS.issue_alone
    return waits or (
        busy is not None and busy.ceiling + max(ready.ceiling, 0.0) < LIMITS.issue_alone
    )


@dataclass(frozen=True)
class _Slices:
    """The slices of time that a device gives processes, and the time to switch between them."""

    ns: float
    switch_ns: float


def _slices_of_device(record: Contention, others: Sequence[Contention]) -> _Slices | None:
    """The slices of the device; None where no case on this target showed them."""
    for two in others if record.way == "processes" else ():
        length, change = two.value("slice"), two.value("hand_over")
        same = (two.target.key, two.way) == (record.target.key, record.way)
        if same and length and change is not None:
            return _Slices(length, change)
    return None


def _of_lock(record: Contention, others: Sequence[Contention], seen: Reason) -> Limited:
    """Whether it is Python's lock or another one. Processes share no memory, so no lock of Python
    or a library.
    """
    if record.way != "threads":
        return Limited("lock", because("lock-of-driver-or-system", seen=seen))
    if record.case.caller != "binding":
        return Limited("lock", because("lock-of-library-or-driver", seen=seen))
    compiled = replace(record, case=replace(record.case, caller="native"))
    which = attrgetter("key", "way", "peers", "placement")
    twin = next((one for one in others if which(one) == which(compiled)), None)
    each = ratio(record.measured("each"), twin.measured("each")) if twin is not None else None
    if each is None:
        return Limited("unknown", because("interpreter-or-lock", seen=seen))
    if each.floor >= LIMITS.compiled:
        return Limited(
            "interpreter", because("lock-of-python", seen=seen, **_interval("each", each))
        )
    if each.ceiling < LIMITS.compiled:
        return Limited("lock", because("lock-not-of-python", seen=seen, **_interval("each", each)))
    return Limited(
        "unknown", because("lock-of-python-or-library", seen=seen, **_interval("each", each))
    )


def _ratio(record: Contention, alone: Contention, name: str, against: str = "") -> Value | None:
    return ratio(record.measured(name), alone.measured(against or name))


def _interval(name: str, of: Value) -> dict[str, float]:
    """The values of a reason that give a figure with its interval."""
    ends = {name: of.value, f"{name}_low": of.low, f"{name}_high": of.high}
    return {key: number for key, number in ends.items() if number is not None}
