"""Measure what peers do at once: sets of fresh processes, and in each periods in random order.

A period is a stretch of time in which all peers run chains of a case. ``measure_contention``
measures group by group (``plan.groups``); a group has several sets, so that a figure has an
interval; a set is the ``with`` block of ``_Set``, whose processes end with the block.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.contention.peer import Answer, BusyJob, Opened, OpenJob, PeriodJob, Ran, decode_answer
from overhead.contention.placing import processors_of_peers
from overhead.contention.plan import ContentionPlan, PeerGroup, groups, why_one_thread
from overhead.contention.time_left import ContentionTimeLeft
from overhead.devices import processor_kind
from overhead.locks import device_lock
from overhead.measure.sampling.clock import every_processor
from overhead.probes import facts_of_stack, usable_entry_points
from overhead.results import (
    Case,
    LeftOut,
    OmittedEntry,
    PeersEntry,
    PeriodEntry,
    PeriodKind,
    Placement,
    Status,
    Target,
    Why,
    about,
    because,
    together,
)
from overhead.runner.run import Measuring

_LIMITS = ChildLimits(60.0, poll_s=1.0)
_OPENING_S = 300.0
_OPENS_IN_S = 1.5
_BESIDE_PERIOD_S = 0.02
"""Seconds that a process takes to open its cases, and that a period takes besides its length. Only
the time left uses them.
"""
_KINDS: tuple[PeriodKind, ...] = ("long", "short")
_AHEAD_NS = 5_000_000
"""A period begins this long after the parent says so, which is longer than a message takes."""


@dataclass(frozen=True)
class _Period:
    """One period to measure: a stretch of time in which ``peers`` peers (processes or threads) run
    chains of a case at once.

    ``case``: its number in the group. ``kind``: long chains, for the cost; ``short`` ones, for the
    enqueue time. ``alone``: the first peer runs with no other beside it.
    """

    case: int
    peers: int
    placement: Placement = "free"
    kind: PeriodKind = "long"
    alone: bool = False
    first: int = 0
    """The first peer that takes part: other than 0 where each device is measured alone."""


def measure_contention(plan: ContentionPlan, measuring: Measuring) -> None:
    """Measure what peers do at once: all groups of the plan (the cases of a stack in one way to run
    many at once) that fit its time. Their entries go to the journal of the run.

    ``measuring``: the run that this is part of, with its targets, its journal and its listener.
    """
    listener = measuring.listener
    # ``sets_s``: how long a set of processes of each group should take, only to tell the time left.
    wanted = list(groups(plan, measuring.targets))
    sets_s = [_planned_set_s(plan, group, measuring) for group in wanted]
    time_left = ContentionTimeLeft(plan, sets_s, listener)
    listener.begin()
    time_left.tell()

    longest_s = dict.fromkeys(plan.ways, 0.0)
    # No other run on this machine measures at the same time.
    with device_lock(listener.waiting):
        began_s = time.monotonic()
        time_left.begin()
        for number, group in enumerate(wanted):
            left_s = plan.seconds - (time.monotonic() - began_s)
            reason = _why_not_measured(group)
            # A group may take as long as the longest one so far that ran in the same way.
            is_late = left_s <= 0 or left_s < longest_s[group.way]
            # A way in which the stack cannot be measured is the better reason.
            if not reason and is_late:
                reason = because("beyond-seconds-of-contention", seconds=plan.seconds)
            if reason:
                _leave_out(group, reason, measuring)
                continue
            time_left.begin_group(number)
            took_s = _measure_group(plan, group, measuring, left_s, time_left)
            longest_s[group.way] = max(longest_s[group.way], took_s)


def _why_not_measured(group: PeerGroup) -> Why:
    """Why the stack cannot be measured in this way; '' if it can."""
    if group.way != "threads":
        return ""
    return why_one_thread(facts_of_stack(group.first.stack))


def _leave_out(group: PeerGroup, reason: Why, measuring: Measuring) -> None:
    """Say in the journal and to the user that a group is not measured."""
    target = group.first.key
    left_out = LeftOut(target=target, case=f"all, {group.way}", reason=reason)
    measuring.add([OmittedEntry(left_out=left_out)])
    measuring.listener.note(because("left-out", target=target, way=group.way, why=reason))


def _planned_set_s(plan: ContentionPlan, group: PeerGroup, measuring: Measuring) -> float:
    """Seconds that one set (of fresh processes) of a group should take, for the time left; 0 if the
    stack cannot be measured in the way of the group.
    """
    if _why_not_measured(group):
        return 0.0
    # A set that starts no process: number 0 only names it.
    cases = dict(enumerate(group.cases))
    return _Set(plan, group, 0, measuring, cases).planned_s()


def _measure_group(
    plan: ContentionPlan,
    group: PeerGroup,
    measuring: Measuring,
    left_s: float,
    time_left: ContentionTimeLeft,
) -> float:
    """Measure a group in the planned number of sets (each of fresh processes), or as many as fit
    ``left_s``. Returns the seconds that all planned sets would take.

    The first death of a peer may be an accident: what was measured stays, and the set is measured
    again. After the second one its case has failed.
    """
    # First the journal gets an entry for each case, which announces what its periods are of.
    began_s = time.monotonic()
    targets = list(group.targets)
    measuring.add([PeersEntry(way=group.way, targets=targets, case=case) for case in group.cases])

    # ``cases``: those that have not failed; a set takes those that fail out. ``numbers``: of the
    # sets, those that died too. ``measured``: how many sets are complete. ``set_s``: the mean time
    # of one.
    cases = dict(enumerate(group.cases))
    numbers = itertools.count()
    measured = 0
    set_s = 0.0
    may_repeat = True
    while cases and measured < plan.sets:
        target = group.first.key
        step = because(
            "measuring-set", way=group.way, target=target, number=measured + 1, sets=plan.sets
        )
        measuring.listener.working(step)
        time_left.begin_set()
        with _Set(plan, group, next(numbers), measuring, cases, may_repeat=may_repeat) as one_set:
            measuring.add(_telling_time_left(one_set.entries(), time_left))
            # Another set takes no longer than all that was done so far, so twice that must fit.
            elapsed_s = time.monotonic() - began_s
            has_time_to_repeat = 2 * elapsed_s <= left_s
            # The set kept the failure to itself, to be repeated. If there is no time for that, the
            # failure is what was measured.
            if one_set.died and may_repeat and not has_time_to_repeat:
                measuring.add(one_set.failed("failed", one_set.died))
        # After the first death, none is forgiven any more. Only complete sets count.
        if one_set.died:
            may_repeat = False
        else:
            measured += 1
            time_left.end_set()
        # Mean time of a measured set. The time of sets that died, and to end processes, counts too.
        set_s = (time.monotonic() - began_s) / max(1, measured)
        time_left.tell()
        # The next set begins only if it would end within ``left_s`` too.
        time_with_next_s = set_s * (measured + 1)
        if time_with_next_s > left_s:
            break
    return set_s * plan.sets


def _telling_time_left(
    entries: Iterable[PeriodEntry], time_left: ContentionTimeLeft
) -> Iterator[PeriodEntry]:
    """The entries; the time left is told after each."""
    for entry in entries:
        yield entry
        time_left.tell()


class _Set(ExitStack):
    """One set of fresh processes, in which peers (processes or threads at once) run the cases of a
    group; a ``with`` block, with which the processes end. ``cases``: by number those that have not
    failed; one that fails is removed, also for later sets. ``units``: by case the units of a long
    chain. ``most``: by case the largest number of units of a chain. ``may_repeat``: whether the set
    may be measured again after a peer died, so that the death is not written down as a failure.
    ``died``: how a peer died, or ''. ``now``: the period that is measured. ``seen``: those that
    were measured.
    """

    def __init__(
        self,
        plan: ContentionPlan,
        group: PeerGroup,
        number: int,
        measuring: Measuring,
        cases: dict[int, Case],
        *,
        may_repeat: bool = False,
    ) -> None:
        super().__init__()
        self.plan = plan
        self.group = group
        self.number = number
        self.measuring = measuring
        self.cases = cases
        # The order of the periods is random, and the same whenever this set is measured.
        self.rng = random.Random(f"{group.first.key} {group.way} {number}")
        self.units: list[int] = []
        self.most: list[int] = []
        self.children: list[ChildProcess[Answer]] = []
        self.busy: list[ChildProcess[Answer]] = []
        self.may_repeat = may_repeat
        self.died: Why = ""
        # Until a period is measured, the first case stands for what fails.
        self.now = _Period(min(cases), 1)
        self.seen: set[_Period] = set()

    def entries(self) -> Iterator[PeriodEntry]:
        """Measure the set, and yield the entry of each period. Where a peer dies, the set ends.

        Then the entries say that its case failed, unless the set may be measured again.
        """
        try:
            yield from self._measured()
        except ChildEnded as ended:
            # ``together`` makes one reason of two, ``about`` names what it is about.
            self.died = ended.reason
            # Only a death may be an accident. Too long a silence is a failure at once.
            if self.may_repeat and ended.why == "died":
                peers = f"{self.group.first.key}, {self.group.way}"
                why = together(ended.reason, because("measured-again"))
                self.measuring.listener.note(about(peers, why))
            else:
                yield from self.failed("failed", self.died)

    def _measured(self) -> Iterator[PeriodEntry]:
        """Start the processes and measure all periods: first those of one peer alone, then those of
        several at once. Yields the entry of each period.

        In the way ``devices`` some of those alone come last, because a process can be slower in its
        first periods.
        """
        way, plan = self.group.way, self.plan
        # ``_open`` starts so many processes; they stay until the set ends. The others start later,
        # so that the first is really alone. ``repeats``: periods of each kind with one alone.
        yield from self._open(1)
        at_the_end = 0
        if way == "devices":
            at_the_end = plan.repeats // 2
            # Here each device has one alone, so all are open from the beginning.
            yield from self._open(len(self.group.targets) - 1)
        yield from self._measure(list(self._alone(plan.repeats - at_the_end)))
        if way == "processes":
            yield from self._open(max(plan.numbers) - 1)
        if way == "busy":
            # Processes that only compute, so they get no environment of a target. Here the numbers
            # of peers count them.
            most_busy = max(self._numbers())
            self.busy = [self._start({}) for _ in range(most_busy)]
        yield from self._measure(list(self._together()))
        yield from self._measure(list(self._alone(at_the_end)))

    def planned_s(self) -> float:
        """About how many seconds the set takes: to start its processes, and for all periods. Only
        the time left that the user sees is made of it.
        """
        # A placement that this machine does not have is not measured.
        placed = []
        for period in [*self._alone(self.plan.repeats), *self._together()]:
            if processors_of_peers(period.placement, self._targets(period)) is not None:
                placed.append(period)
        processes = 1
        if self.group.way != "threads":
            processes = max((period.peers for period in placed), default=1)
        # The first process opens alone; the others as many at a time as there are processors, so
        # each takes its part of ``_OPENS_IN_S``. A period also takes ``_BESIDE_PERIOD_S``.
        at_once = len(every_processor()) or 1
        opening_s = _OPENS_IN_S * (1 + processes / at_once)
        periods_s = 0.0
        for period in placed:
            periods_s += self._length_ns(period) / 1e9 + _BESIDE_PERIOD_S
        return opening_s + periods_s

    def _length_ns(self, period: _Period) -> int:
        if period.kind == "short":
            return self.plan.short_ns
        return self.plan.long_ns + self.plan.each_ns * period.peers

    def _numbers(self) -> list[int]:
        """The numbers of peers that run at once, in rising order. In the way ``busy`` they count
        the processes that keep a processor busy: half as many as processors, and as many.

        One peer is measured by ``_alone``. Only processes have it once more: one that runs beside
        others that are open and idle.
        """
        processors = len(every_processor()) or 2
        devices = len(self.group.targets)
        # ``plan.numbers``: numbers of peers, which count devices, processes or threads. All devices
        # at once are always measured.
        match self.group.way:
            case "busy":
                return sorted({max(1, processors // 2), processors})
            case "devices":
                fewer = {number for number in self.plan.numbers if 1 < number < devices}
                return sorted(fewer | {devices})
            case "processes":
                return list(self.plan.numbers)
            case "threads":
                return [number for number in self.plan.numbers if number > 1]

    def _alone(self, repeats: int) -> Iterator[_Period]:
        """The periods of one peer alone, which those of several are compared with: ``repeats`` of
        each case and kind, on each device.
        """
        for case, kind, _ in itertools.product(self.cases, _KINDS, range(repeats)):
            for first in range(len(self.group.targets)):
                yield _Period(case, 1, kind=kind, alone=True, first=first)

    def _together(self) -> Iterator[_Period]:
        """The periods of several peers at once: of each case one for each number of peers,
        placement (free, or pinned to processors) and kind of chain.

        For processes on a GPU also one in which two show how long the GPU works for each in turn.
        """
        plan, way = self.plan, self.group.way
        numbers = self._numbers()
        # ``busy``: one peer beside busy processes, as often as alone. ``_KINDS``: long and short
        # chains.
        repeats = plan.repeats if way == "busy" else 1
        shows_slices = way == "processes" and processor_kind(self.group.first) == "gpu"
        for case, _ in itertools.product(self.cases, range(repeats)):
            for number, placement, kind in itertools.product(numbers, plan.placements, _KINDS):
                # Pinned peers are measured at the largest number only, but on devices at each.
                if placement == "free" or number == numbers[-1] or way == "devices":
                    yield _Period(case, number, placement, kind)
            if shows_slices:
                yield _Period(case, 2, kind="slices")

    def _start(self, environment: Mapping[str, str]) -> ChildProcess[Answer]:
        """A new process for peers, which ends with this set. ``environment``: of its target."""
        # ``interpreter``: the Python that measures. None: the first job is sent later. ``_LIMITS``:
        # a process that is silent for a minute is killed.
        interpreter = self.measuring.interpreter
        child = ChildProcess(
            "overhead.contention.peer",
            None,
            decode_answer,
            _LIMITS,
            {**interpreter.environment, **environment},
            interpreter.python_command,
        )
        return self.enter_context(child)

    def _open(self, count: int) -> Iterator[PeriodEntry]:
        """Start ``count`` more processes, and open all cases in each, for as many threads as there
        are peers in one. Yields the entries of cases that did not open.

        The first process also finds how many units a long chain has, which the others need not.
        """
        # ``began``: how many processes there were before. In each the threads are peers, the most
        # that the plan has.
        threads = max(self.plan.numbers) if self.group.way == "threads" else 1
        began = len(self.children)
        # Peers have the group's target, or in turn those of all its devices.
        targets = self.group.targets * max(self.plan.numbers)
        for target in targets[began : began + count]:
            # How long a long chain shall take: asked of the first process only.
            chain_ns = 0 if self.children else self.plan.chain_ns
            child = self._start(target.environment)
            self.children.append(child)
            child.send(
                OpenJob(
                    target,
                    list(self.group.cases),
                    threads,
                    list(self.measuring.request.plugins),
                    usable_entry_points(),
                    chain_ns,
                )
            )
        # Only now, so that all processes start at the same time.
        for child in self.children[began:]:
            opened = child.receive(_OPENING_S)
            assert isinstance(opened, Opened)
            for case in list(self.cases):
                if opened.reasons[case]:
                    yield from self._not_open(case, opened.statuses[case], opened.reasons[case])
            if child is self.children[0]:
                self.units, self.most = opened.units, opened.most

    def _measure(self, periods: list[_Period]) -> Iterator[PeriodEntry]:
        """Measure the periods in random order, so that a slow change of the machine is not taken
        for an effect of the number of peers. Those of cases that have failed are left out.

        Yields the entry of each, and where one fails what ``failed`` yields. Raises ``ChildEnded``.
        """
        self.rng.shuffle(periods)
        for period in periods:
            # By peer the processors that it may use; None if the machine has no such placement.
            places = processors_of_peers(period.placement, self._targets(period))
            if period.case not in self.cases or places is None:
                continue
            # ``now``: what ``failed`` says has failed, if a process dies.
            self.now = period
            # A process that takes no part in this period may have died too.
            for child in self.children:
                if child.exit_code(0) is not None:
                    child.receive()  # raises how it ended
            entry = self._run(period, places)
            if entry.status == "ok":
                self.seen.add(period)
                yield entry
            else:
                yield from self.failed(entry.status, entry.reason)

    def _run(self, period: _Period, places: list[list[int]]) -> PeriodEntry:
        """Let the peers run one period, and return its entry. Raises ``ChildEnded``.

        All peers run a chain first, to be warm. Then they get the moment at which the period
        begins, on the clock that all processes of a machine share. ``places``: of each peer the
        processors that it may use.
        """
        # Threads are peers of one process. In the way ``busy`` one is measured, beside others that
        # only compute.
        is_threads = self.group.way == "threads"
        threads = period.peers if is_threads else 1
        processes = 1 if is_threads or self.group.way == "busy" else period.peers
        children = self.children[period.first : period.first + processes]
        units = self._units(period, processes)
        length_ns = self._length_ns(period)
        most = self.plan.most_short if period.kind == "short" else self.plan.most_long

        # ``first``: 0, or the device that is measured alone. ``most``: chains of a peer at most, as
        # they go to a file. Each process gets its part of the places: one for each of its threads.
        for number, (child, n) in enumerate(zip(children, units, strict=True)):
            first = number * threads
            own_places = places[first : first + threads]
            child.send(PeriodJob(period.case, n, length_ns, threads, own_places, most))
        # Each answers when its threads have run a chain and are warm.
        for child in children:
            child.receive()
        start_ns = time.perf_counter_ns() + _AHEAD_NS
        # Busy neighbours compute until a little after the end of the period. In the way ``busy``
        # ``peers`` counts them; in other ways the list is empty.
        if not period.alone:
            for neighbour in self.busy[: period.peers]:
                neighbour.send(BusyJob(start_ns + length_ns + _AHEAD_NS))
        for child in children:
            child.send(start_ns)
        answers = [child.receive() for child in children]
        ran = [answer for answer in answers if isinstance(answer, Ran)]
        # One peer that failed makes the whole period fail.
        for answer in ran:
            if answer.reason:
                return msgspec.structs.replace(
                    self._entry(period), status=answer.status, reason=answer.reason
                )
        return _with_rows(self._entry(period), length_ns, units, ran)

    def _units(self, period: _Period, processes: int) -> list[int]:
        """How many units the chains of each process have in this period. Where the period is to
        show slices of time, the first process runs short chains, which the long ones of the others
        delay.
        """
        # By default all chains are long. ``most``: the largest number of units of the case.
        short = min(self.plan.short, self.most[period.case])
        units = [self.units[period.case]] * processes
        if period.kind == "short":
            units = [short] * processes
        elif period.kind == "slices":
            units[0] = short
        return units

    def _targets(self, period: _Period) -> tuple[Target, ...]:
        """The target of each peer that is measured."""
        count = 1 if self.group.way == "busy" else period.peers
        return (self.group.targets * count)[period.first : period.first + count]

    def _entry(self, period: _Period) -> PeriodEntry:
        """The journal's entry of a period, which names it, still without what was measured."""
        # Only where each peer has a device of its own, its devices tell records apart.
        devices: list[str] = []
        if self.group.way == "devices":
            devices = [target.device for target in self._targets(period)]
        return PeriodEntry(
            way=self.group.way,
            of=f"{self.group.first.key} {self.group.cases[period.case].key}",
            process=self.number,
            peers=period.peers,
            placement=period.placement,
            alone=period.alone,
            kind=period.kind,
            devices=devices,
        )

    def _not_open(self, case: int, status: Status, reason: Why) -> Iterator[PeriodEntry]:
        """An entry for each number of peers of a case that did not open, so that each has the
        reason where its cost would be. The case is not measured.
        """
        # ``_drop``, which tells the user, takes the case out of ``cases``, of which these periods
        # are made; so they are listed before.
        planned = [*self._alone(1), *self._together()]
        self._drop(case, status, reason)
        for period in planned:
            # The cost comes from long chains; unpinned peers (``free``) are enough for the reason.
            is_of_case = period.case == case and period.kind == "long"
            if is_of_case and period.placement == "free":
                yield msgspec.structs.replace(self._entry(period), status=status, reason=reason)

    def failed(self, status: Status, reason: Why) -> Iterator[PeriodEntry]:
        """The entries of the period that just failed (``now``), and of each other one of its case
        that is therefore not measured.

        So each number of peers without a figure has its reason. The case is not measured again.
        """
        failed = self.now
        # Before the case is dropped: these are the periods of the cases that are left.
        planned = [*self._alone(1), *self._together()]
        self._drop(failed.case, status, reason)
        yield msgspec.structs.replace(self._entry(failed), status=status, reason=reason)
        # The other periods of the case, such as those with more peers, get this reason.
        # A placement that this machine does not have is not named.
        why_not = because("not-with-fewer", peers=failed.peers, why=reason)
        for period in planned:
            if period.case != failed.case or period in self.seen or period == failed:
                continue
            if processors_of_peers(period.placement, self._targets(period)) is not None:
                yield msgspec.structs.replace(self._entry(period), status=status, reason=why_not)

    def _drop(self, case: int, status: Status, reason: Why) -> None:
        """Measure the case no more, and tell the user why."""
        self.cases.pop(case, None)
        peers = f"{self.group.first.key} {self.group.cases[case].key}, {self.group.way}"
        self.measuring.listener.note(about(peers, about(status, reason)))


def _with_rows(
    entry: PeriodEntry, length_ns: int, units: Sequence[int], ran: Sequence[Ran]
) -> PeriodEntry:
    """The entry of a period, completed with what all peers measured in it, a value for each peer.

    ``units`` (of a chain) and ``ran`` (what the processes answered) are by process. A process may
    have several peers as its threads.
    """
    # By peer: units of a chain, rows of its chains, CPU time, and time ready without a processor.
    units_of_peers: list[int] = []
    chains: list[list[list[int]]] = []
    cpu_ns: list[int] = []
    ready_ns: list[int] = []
    # ``n``: the units of a chain of this process, the same for all its threads.
    for n, answer in zip(units, ran, strict=True):
        units_of_peers += [n] * len(answer.chains)
        chains += answer.chains
        cpu_ns += answer.cpu
        ready_ns += answer.ready
    return msgspec.structs.replace(
        entry, length=length_ns, units=units_of_peers, chains=chains, cpu=cpu_ns, ready=ready_ns
    )
