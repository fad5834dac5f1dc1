"""What limits peers, from the figures of their record, of one peer alone and of the compiled
caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec.structs import replace

from overhead.results import Contention, Limit, Reason, Value, Why, because, exactly, ratio


@dataclass(frozen=True)
class _LimitRule:
    """Which figures tell what limits.

    Chosen on simulated peers that share a device, a lock or processors
    (tests/fakes/shared_device.py): with these values tests/contention/test_figures.py finds the
    limit of each cause there. Not measured on hardware, where the cause is not known.
    """

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


@dataclass(frozen=True)
class Slices:
    """The slices of time that a device gives processes, and the time to switch between them."""

    ns: float
    switch_ns: float


def in_slices(found: Limited, slices: Slices) -> Limited:
    """The limit where the device is known to give time slices: then a device that limits does so in
    these.
    """
    if found.limit != "device":
        return found
    # A text is of an earlier version of the suite.
    if not isinstance(found.why, Reason):
        return Limited("slices", found.why)
    seen = found.why.values.get("seen", found.why)
    why = because("device-gives-slices", seen=seen, slice=slices.ns, switch=slices.switch_ns)
    return Limited("slices", why)


def limit_of(record: Contention, alone: Contention, others: Sequence[Contention]) -> Limited:
    """What makes peers (processes or threads that launch at once) slower than one alone: too few
    processors, the device, a lock.

    ``record``: the figures of these peers. ``alone``: those of one peer alone. ``others``: all
    records of the run, for the same calls from compiled code and for the slices of time that the
    device gives. A limit is named only where the whole interval of each figure that it rests on
    shows it.
    """
    slowdown = record.measured("slowdown")
    if slowdown is None:
        return Limited("", "")
    # Less than 15 % slower, or by an interval that begins below 5 %: there is nothing to explain.
    if slowdown.value <= LIMITS.slowdown or slowdown.floor <= LIMITS.certain:
        return Limited("", _no_clear_slowdown(slowdown))
    # ``busy``: one peer beside processes that only compute. The other ways: many peers, on the CPU
    # or on a device.
    peers = _SlowPeers(record, alone, others, slowdown)
    if record.way == "busy":
        return _beside_busy(peers)
    if record.target.api == "CPU":
        return _on_processors(peers)
    return _on_device(peers)


def _no_clear_slowdown(slowdown: Value) -> Reason:
    """Why no limit is named: the peers are not clearly slower. One set alone has no interval."""
    if not slowdown.bounded:
        return because("no-clear-slowdown-one-set", slowdown=slowdown.value)
    return because(
        "no-clear-slowdown", slowdown=slowdown.value, least=slowdown.low, most=slowdown.high
    )


@dataclass(frozen=True)
class _SlowPeers:
    """Peers (processes or threads at once) that are clearly slower than one alone: their record,
    and what it is judged against: the figures of one ``alone``, and the ``others`` of the run.
    """

    record: Contention
    alone: Contention
    others: Sequence[Contention]
    slowdown: Value

    @property
    def seen(self) -> Reason:
        """The sentence that every reason begins with: how much slower they are."""
        return because("peers-slower", slowdown=self.slowdown.value)

    @property
    def want(self) -> _WantOfProcessors | None:
        """For how long they had no processor; None where it was not measured."""
        return _WantOfProcessors.of(self.record, self.alone)

    @property
    def cpu(self) -> Value | None:
        """The CPU time of a unit, relative to one peer alone."""
        return ratio(self.record.measured("cpu"), self.alone.measured("cpu"))


def _beside_busy(peers: _SlowPeers) -> Limited:
    """The limit of a peer beside processes that keep processors busy. These only compute and use no
    device, so it is the processors: there are too few, or each is slower while others work.
    """
    want, seen = peers.want, peers.seen
    # ``want``: how long the peers were ready to run and had no processor. ``seen``: by how much
    # they are slower, with which every reason begins.
    if want is not None and want.lost.value >= LIMITS.ready:
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))
    return Limited("processors", because("busy-processors-slower", seen=seen))


def _on_processors(peers: _SlowPeers) -> Limited:
    """What limits peers whose work runs on the CPU itself. There is no device to wait for, so it is
    the processors or, among threads of one process, a lock.

    The order of the tests decides: a lack of processors explains any slowdown, so it comes first.
    ``want``: how long the peers were ready to run and had no processor; ``cpu``: the CPU time of a
    unit relative to one peer alone; ``seen``: by how much they are slower, as every reason begins.
    """
    want, cpu, seen = peers.want, peers.cpu, peers.seen
    if want is not None and want.surely_explains(peers.slowdown):
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))
    if want is not None and want.may_explain(peers.slowdown):
        why = because("peers-perhaps-without-processor", seen=seen, want=want.why)
        return Limited("unknown", why)
    # Enough processors: among threads a slower clock or a lock is left.
    if peers.record.way == "threads":
        if cpu is not None and _may_be_slower_processors(cpu, peers.slowdown):
            return _slower_or_spinning(cpu, seen)
        return _of_lock(peers, seen)
    # Processes share no lock; if each unit takes more CPU time, they slow down each other's core.
    if cpu is not None and cpu.floor > LIMITS.certain:
        why = because("processors-share-core", seen=seen, **cpu.named("cpu"))
        return Limited("processors", why)
    return Limited("unknown", because("neither-processors-nor-cpu-time", seen=seen))


def _slower_or_spinning(cpu: Value, seen: Reason) -> Limited:
    """The limit where the CPU time grew: slower processors and a lock that spins look alike."""
    why = because("slower-processors-or-spinning-lock", seen=seen, **cpu.named("cpu"))
    return Limited("unknown", why)


@dataclass(frozen=True)
class _HandingOver:
    """How long handing over a unit takes (the enqueue time), for one of several peers and for one
    ``alone``, beside the whole ``cost`` of a unit of a peer.
    """

    enqueue: Value
    alone: Value
    cost: Value

    @property
    def interval(self) -> dict[str, float]:
        """The enqueue times with their intervals, as values of a reason."""
        return {**self.enqueue.named("issue"), **self.alone.named("alone")}


def _handing_over(peers: _SlowPeers) -> _HandingOver | None:
    """The times that handing over a unit takes, alone and together, which show whether peers lose
    their time there or in waiting for the device.

    None where they tell nothing of it: for one peer, and for patterns that wait for the device
    while they hand over.
    """
    # ``issue``: the enqueue time of a unit. These two patterns wait, or read, after each unit.
    enqueue, cost = peers.record.measured("issue"), peers.record.measured("cost")
    alone = peers.alone.measured("issue")
    waits_inside = peers.record.case.pattern in ("wait-each", "read-each")
    if enqueue is None or alone is None or cost is None:
        return None
    if peers.record.peers == 1 or waits_inside:
        return None
    return _HandingOver(enqueue, alone, cost)


def _on_device(peers: _SlowPeers) -> Limited:
    """What limits peers on a device. The order of the tests decides.

    Too few processors come first, unless one peer alone already waits for the device or the peers
    poll. Then comes the device, which lengthens the enqueue time too where a queue is full. A lock
    is named last, where the figures leave no other cause.
    """
    # ``want``: how long the peers were ready to run and had no processor. ``seen``: by how much
    # they are slower, with which every reason begins.
    record, alone, slowdown = peers.record, peers.alone, peers.slowdown
    want, cpu, seen = peers.want, peers.cpu, peers.seen
    # ``polls``: the CPU time of a unit grew, as it does for a peer that asks again and again
    # whether the device is done.
    waits_for_device = _device_was_busy(record, alone)
    # A peer that polls takes a processor from others while it only waits for the device.
    polls = cpu is not None and cpu.floor >= LIMITS.polls
    if want is not None and want.surely_explains(slowdown) and not waits_for_device and not polls:
        return Limited("processors", because("peers-without-processor", seen=seen, want=want.why))

    # ``times``: what handing units over takes, alone and together, beside the cost.
    times = _handing_over(peers)
    if times is None:
        return Limited("unknown", because("enqueue-time-tells-nothing", seen=seen))
    handing = because("peers-handing-over", seen=seen, **times.interval)
    # ``slices``: where the device was seen to work for each process in turn. ``where``: whether the
    # time is lost in waiting (``device``) or in handing over (``lock``).
    slices = _slices_of_device(record, peers.others)
    where = _where_peers_wait(times, slowdown)
    # A device that works for one process at a time also lengthens the enqueue time. It does so
    # where all together do no more than one alone (``_take_turns``).
    if waits_for_device or where == "device" or (slices and _take_turns(record)):
        if slices is None:
            return Limited("device", because("peers-wait-for-device", seen=handing))
        why = because("device-gives-slices", seen=handing, slice=slices.ns, switch=slices.switch_ns)
        return Limited("slices", why)

    # From here on the device is not shown to limit. What is left open names no lock.
    if want is not None and want.may_explain(slowdown):
        return Limited("unknown", because("want-lengthens-enqueue", seen=seen, want=want.why))
    if where != "lock" or _device_may_be_busy(record, alone):
        return Limited("unknown", because("lock-or-device", seen=handing))
    # Time that is left beside handing over speaks against a lock: a queue may be full.
    if not _handing_over_fills(times, alone, slowdown):
        return Limited("unknown", because("lock-or-short-queue", seen=handing))
    if cpu is not None and _may_be_slower_processors(cpu, slowdown):
        return _slower_or_spinning(cpu, handing)
    return _of_lock(peers, handing)


def _take_turns(record: Contention) -> bool:
    """Whether all peers together surely do no more than one alone."""
    work = record.measured("work")
    return work is not None and work.ceiling <= 1


def _where_peers_wait(times: _HandingOver, slowdown: Value) -> Literal["device", "lock", ""]:
    """Where slowed peers lose their time: in waiting for the ``device`` after they handed units
    over, or in handing them over (a ``lock`` holds them up); '' where it is open.

    ``times``: what handing over takes, alone and together (the enqueue time). If nothing of the
    slowdown is in it, it stays as it was alone, and its share of the cost falls to 1 / slowdown. If
    everything is, it grows as the cost does, and its share grows to 1. ``LIMITS.grown`` says how
    much between these ends counts as a lock.
    """
    # ``longer``: how many times as long as alone; ``share``: of the cost of a unit.
    longer = ratio(times.enqueue, times.alone)
    share = ratio(times.enqueue, times.cost)
    if longer is None or share is None:
        return ""
    # Between 1 and the slowdown, and between 1 / slowdown and 1, at ``LIMITS.grown`` of the way.
    most_longer = 1 + LIMITS.grown * (slowdown.value - 1)
    most_share = 1 - (1 - LIMITS.grown) * (1 - 1 / slowdown.value)
    if longer.ceiling < most_longer or share.ceiling < most_share:
        return "device"
    # Only if both, with their whole intervals, lie above: else it is open.
    if longer.floor > most_longer and share.floor > most_share:
        return "lock"
    return ""


def _handing_over_fills(times: _HandingOver, alone: Contention, slowdown: Value) -> bool:
    """Whether handing units over may fill all of a peer's time, as it does where a lock limits.

    If the device limits, a peer hands over and then waits for its last units as long as for those
    before, so some of its time is left. What one peer alone waits at the end of a chain is allowed
    for: beside slower units it is a smaller share.
    """
    share = ratio(times.enqueue, times.cost)
    share_alone = ratio(alone.measured("issue"), alone.measured("cost"))
    if share is None or share_alone is None:
        return True
    # What one alone waits beside handing over, as a share of a unit that is ``slowdown`` times as
    # long.
    waited_alone = max(1 - share_alone.value, 0.0) / slowdown.value
    # Whether the share may be as large: its upper end counts.
    return share.ceiling >= LIMITS.filled * (1 - waited_alone)


def _may_be_slower_processors(cpu: Value, slowdown: Value) -> bool:
    """Whether the peers may be slow because each processor is: then the CPU time of a unit grows
    nearly as much as its cost. ``cpu``: that time, relative to one peer alone.
    """
    # If only processors are slower, the CPU time grows with the slowdown, at least by
    # ``LIMITS.spent`` of it.
    same_growth = 1 + LIMITS.spent * (slowdown.value - 1)
    # Processors are mostly slower by a small factor only; where peers are slower by a large one,
    # the CPU time must surely have grown.
    growth = cpu.ceiling if slowdown.value < LIMITS.clocks else cpu.floor
    return growth >= same_growth


@dataclass(frozen=True)
class _WantOfProcessors:
    """How much peers lack processors: the time for which they were ready to run and had none.
    ``lost``: of the time with a processor that one alone has, the share that a peer lost. (Other
    programs may take the processor of one alone too.) ``why``: the figures that show it.
    """

    lost: Value
    why: Reason

    @classmethod
    def of(cls, record: Contention, alone: Contention) -> _WantOfProcessors | None:
        """How much the peers of ``record`` lack processors beside one ``alone``; None where it was
        not measured. One alone of which it is not known counts as never without a processor.

        ``ready`` is the share of the time for which a peer was ready to run and had no processor.
        The lost share compares the times with one: 1 - (1 - ready) / (1 - ready alone). It is
        lowest where ``ready`` is low and that of one alone is high, and the other way round.
        """
        ready = record.measured("ready")
        ready_alone = alone.measured("ready") or exactly(0.0)
        if ready is None:
            return None
        low, high = _clamped(ready.floor, 1.0), _clamped(ready.ceiling, 1.0)
        usual = _clamped(ready_alone.value, _ALL_BUT_NONE)
        usual_low = _clamped(ready_alone.floor, _ALL_BUT_NONE)
        usual_high = _clamped(ready_alone.ceiling, _ALL_BUT_NONE)
        # The value, its lower and its upper end, each by the formula above. ``_clamped`` keeps a
        # share in 0 to 1; one alone had a processor for some time, so there is no division by 0.
        lost = Value(
            1 - (1 - min(ready.value, 1.0)) / (1 - usual),
            1 - (1 - low) / (1 - usual_high),
            1 - (1 - high) / (1 - usual_low),
        )
        interval = Value(ready.value, low, high).named("ready")
        # From a hundredth on the reason also tells for how long one alone had no processor.
        if usual >= _TOLD_ALONE:
            return cls(lost, because("no-processor-alone-too", **interval, alone=usual))
        return cls(lost, because("no-processor", **interval))

    def surely_explains(self, slowdown: Value) -> bool:
        """Whether peers surely lost time in this way, and as much as explains the slowdown."""
        least = self._share_that_explains(slowdown)
        return self.lost.floor >= LIMITS.ready and self.lost.value >= least

    def may_explain(self, slowdown: Value) -> bool:
        """Whether the interval leaves open that this explains the slowdown."""
        return self.lost.ceiling >= max(LIMITS.ready, self._share_that_explains(slowdown))

    def _share_that_explains(self, slowdown: Value) -> float:
        """The least lost share that explains this slowdown: of all time 1 - 1 / slowdown was lost,
        and a part of that (``LIMITS.explained``) must have been without a processor.
        """
        return LIMITS.explained * (1 - 1 / slowdown.value)


def _clamped(share: float, most: float) -> float:
    """The share, or the nearer end of 0 to ``most``: an interval may reach beyond."""
    return min(max(share, 0.0), most)


def _device_was_busy(record: Contention, alone: Contention) -> bool:
    """Whether the device surely had no time left even for more peers: one peer alone already waits
    for it, and all together do as much work as one.

    Not in the way ``devices``, in which each peer has a device of its own.
    """
    # ``enqueue_share``: handing over (``issue``) as a share of the cost; the rest is waiting.
    # ``work``: what all do, relative to one alone. The ends of the intervals make it sure.
    enqueue_share = ratio(alone.measured("issue"), alone.measured("cost"))
    work = record.measured("work")
    if record.way == "devices" or enqueue_share is None or work is None:
        return False
    return enqueue_share.ceiling < LIMITS.issue_alone and work.floor >= LIMITS.work


def _device_may_be_busy(record: Contention, alone: Contention) -> bool:
    """Whether it cannot be ruled out that the device is what limits: that one peer alone waits for
    it, and all together do as much work as one. Then no lock is named.

    Handing over takes longer in that case too, where a library waits for room in a queue. One alone
    also waits if it neither works on a processor nor is ready to for much of its time.
    """
    work = record.measured("work")
    if record.way == "devices" or work is None or work.ceiling < LIMITS.work:
        return False
    # Here the other ends of the intervals count, as it only must be possible.
    cost = alone.measured("cost")
    enqueue_share = ratio(alone.measured("issue"), cost)
    if enqueue_share is not None and enqueue_share.floor < LIMITS.issue_alone:
        return True
    # Working and being ready to, as shares of the time of one alone, at most.
    cpu_share = ratio(alone.measured("cpu"), cost)
    if cpu_share is None:
        return False
    ready = alone.measured("ready") or exactly(0.0)
    most_at_work = cpu_share.ceiling + max(ready.ceiling, 0.0)
    return most_at_work < LIMITS.issue_alone


def _slices_of_device(record: Contention, others: Sequence[Contention]) -> Slices | None:
    """How long the device works for one process before it turns to the next (a slice); None where
    no case on this target showed it. The device has the same slices for all cases.
    """
    # Devices give slices to processes, not to the threads of one.
    if record.way != "processes":
        return None
    for other in others:
        # Figures of a case that showed slices; other cases have none. ``hand_over``: how long the
        # device takes to turn from one process to the next.
        slice_ns, switch_ns = other.value("slice"), other.value("hand_over")
        is_same_target = other.target.key == record.target.key and other.way == record.way
        if is_same_target and slice_ns and switch_ns is not None:
            return Slices(slice_ns, switch_ns)
    return None


def _of_lock(peers: _SlowPeers, seen: Reason) -> Limited:
    """Which lock limits the peers: Python's (``interpreter``) or another one.

    Processes share no memory, so no lock of Python or of a library. For threads the same calls from
    compiled code tell, which hold no lock of Python: if all together do clearly more there, the
    lock of Python limits.
    """
    record = peers.record
    if record.way != "threads":
        return Limited("lock", because("lock-of-driver-or-system", seen=seen))
    # ``binding``: calls from Python. The other caller that is measured is compiled code, which
    # holds no lock of Python.
    if record.case.caller != "binding":
        return Limited("lock", because("lock-of-library-or-driver", seen=seen))
    # ``twin``: the record of the same calls from compiled code. "each" is the time per unit of all
    # together, so the ratio is how many times as much they do from compiled code.
    twin = _compiled_twin(record, peers.others)
    each = None
    if twin is not None:
        each = ratio(record.measured("each"), twin.measured("each"))
    if each is None:
        return Limited("unknown", because("interpreter-or-lock", seen=seen))
    # Work from compiled code relative to Python, with its interval.
    interval = each.named("each")
    if each.floor >= LIMITS.compiled:
        return Limited("interpreter", because("lock-of-python", seen=seen, **interval))
    if each.ceiling < LIMITS.compiled:
        return Limited("lock", because("lock-not-of-python", seen=seen, **interval))
    return Limited("unknown", because("lock-of-python-or-library", seen=seen, **interval))


class _PeersId(NamedTuple):
    """What tells records of one case apart."""

    key: str
    way: str
    peers: int
    placement: str


def _compiled_twin(record: Contention, others: Sequence[Contention]) -> Contention | None:
    """The record of as many peers that make the same calls from compiled code, which holds no lock
    of Python; None if it was not measured.
    """
    # ``native``: the caller that is compiled. All else must be equal: target, way, number of peers,
    # and where they run.
    case = replace(record.case, caller="native")
    key = f"{record.target.key} {case.key}"
    wanted = _PeersId(key, record.way, record.peers, record.placement)
    for other in others:
        if _PeersId(other.key, other.way, other.peers, other.placement) == wanted:
            return other
    return None
