"""Measure what peers do at once: sets of fresh processes, and in each windows in random order."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

import msgspec

from overhead.child import ChildEnded, ChildLimits, ChildProcess
from overhead.contention.peer import Answer, BusyJob, Opened, OpenJob, Ran, WindowJob, decode_answer
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
_BESIDE_WINDOW_S = 0.02
"""Seconds that a process takes to open its cases, and that a window takes besides its length. Only
the time left uses them.
"""
_KINDS: tuple[PeriodKind, ...] = ("long", "short")
_AHEAD_NS = 5_000_000
"""A window begins this long after the parent says so, which is longer than a message takes."""


@dataclass(frozen=True)
class _Window:
    """One window to measure: what is the same in its line and in the jobs of its peers."""

    case: int
    peers: int
    placement: Placement = "free"
    kind: PeriodKind = "long"
    alone: bool = False
    first: int = 0
    """The first peer that takes part: other than 0 where each device is measured alone."""


def measure_contention(plan: ContentionPlan, measuring: Measuring) -> None:
    """Measure all groups of the plan that fit its time, and add their lines to the journal of the
    run.
    """
    listener, longest = measuring.listener, dict.fromkeys(plan.ways, 0.0)
    wanted = list(groups(plan, measuring.targets))
    sets_s = [_planned_set_s(plan, group, measuring) for group in wanted]
    time_left = ContentionTimeLeft(plan, sets_s, listener)
    listener.begin()
    time_left.tell()
    with device_lock(listener.waiting):
        began = time.monotonic()
        time_left.begin()
        for at, group in enumerate(wanted):
            left = plan.seconds - (time.monotonic() - began)
            target, late = group.targets[0], left < longest[group.way] or left <= 0
            reason = why_one_thread(facts_of_stack(target.stack)) if group.way == "threads" else ""
            if reason or late:
                why: Why = reason or because("beyond-seconds-of-contention", seconds=plan.seconds)
                left_out = LeftOut(target=target.key, case=f"all, {group.way}", reason=why)
                measuring.add([OmittedEntry(left_out=left_out)])
                listener.note(because("left-out", target=target.key, way=group.way, why=why))
                continue
            time_left.begin_group(at)
            took = _measure_group(plan, group, measuring, left, time_left)
            longest[group.way] = max(longest[group.way], took)


def _planned_set_s(plan: ContentionPlan, group: PeerGroup, measuring: Measuring) -> float:
    """Seconds that one set of a group should take; none if the stack cannot be measured in this
    way.
    """
    if group.way == "threads" and why_one_thread(facts_of_stack(group.targets[0].stack)):
        return 0.0
    return _Set(plan, group, 0, measuring, dict(enumerate(group.cases))).planned_s()


def _measure_group(
    plan: ContentionPlan,
    group: PeerGroup,
    measuring: Measuring,
    left: float,
    time_left: ContentionTimeLeft,
) -> float:
    """Measure the planned sets, or as many as fit ``left`` seconds. Returns the seconds that all
    would take.

    The first death of a peer may be an accident: what was measured stays, and the set is measured
    again.
    """
    begin, cases = time.monotonic(), dict(enumerate(group.cases))
    measuring.add(
        PeersEntry(way=group.way, targets=list(group.targets), case=case) for case in group.cases
    )
    numbers, measured, each = itertools.count(), 0, 0.0
    forgives = True
    while cases and measured < plan.sets:
        target = group.targets[0].key
        step = because(
            "measuring-set", way=group.way, target=target, number=measured + 1, sets=plan.sets
        )
        measuring.listener.working(step)
        time_left.begin_set()
        with _Set(plan, group, next(numbers), measuring, cases, forgives=forgives) as one:
            measuring.add(_told(one.lines(), time_left))
            fits_again = 2 * (time.monotonic() - begin) <= left
            if one.died and forgives and not fits_again:
                measuring.add(one.failed("failed", one.died))
        forgives = forgives and not one.died
        measured += not one.died
        each = (time.monotonic() - begin) / max(1, measured)
        if not one.died:
            time_left.end_set()
        time_left.tell()
        if each * (measured + 1) > left:
            break
    return each * plan.sets


def _told(lines: Iterable[PeriodEntry], time_left: ContentionTimeLeft) -> Iterator[PeriodEntry]:
    """The lines; the time left is told after each."""
    for line in lines:
        yield line
        time_left.tell()


class _Set(ExitStack):
    """One set of fresh processes for the cases of a group. ``cases``: those that have not failed;
    others go.

    ``forgives``: whether the set may be measured again after a peer died. ``died``: how one did, or
    ''.
    """

    def __init__(
        self,
        plan: ContentionPlan,
        group: PeerGroup,
        number: int,
        measuring: Measuring,
        cases: dict[int, Case],
        *,
        forgives: bool = False,
    ) -> None:
        super().__init__()
        self.plan, self.group, self.number, self.measuring, self.cases = (
            plan,
            group,
            number,
            measuring,
            cases,
        )
        self.rng = random.Random(f"{group.targets[0].key} {group.way} {number}")
        self.units: list[int] = []
        self.most: list[int] = []
        self.children: list[ChildProcess[Answer]] = []
        self.busy: list[ChildProcess[Answer]] = []
        self.forgives = forgives
        self.died: Why = ""
        self.now = _Window(min(cases), 1)
        self.seen: set[_Window] = set()

    def lines(self) -> Iterator[PeriodEntry]:
        """Measure the set, and yield the line of each window. Where a peer dies, the set ends."""
        try:
            yield from self._measured()
        except ChildEnded as ended:
            self.died = ended.reason
            if self.forgives and ended.why == "died":
                of = f"{self.group.targets[0].key}, {self.group.way}"
                self.measuring.listener.note(
                    about(of, together(ended.reason, because("measured-again")))
                )
            else:
                yield from self.failed("failed", self.died)

    def _measured(self) -> Iterator[PeriodEntry]:
        way, plan = self.group.way, self.plan
        yield from self._open(1)
        later = plan.repeats // 2 if way == "devices" else 0
        if way == "devices":
            yield from self._open(len(self.group.targets) - 1)
        yield from self._measure(list(self._alone(plan.repeats - later)))
        if way == "processes":
            yield from self._open(max(plan.numbers) - 1)
        if way == "busy":
            self.busy = [self._start({}) for _ in range(max(self._numbers()))]
        yield from self._measure(list(self._together()))
        yield from self._measure(
            list(self._alone(later))
        )  # a process can be slower in its first windows

    def planned_s(self) -> float:
        """About how long all windows take, and to start the processes, s."""
        windows = [*self._alone(self.plan.repeats), *self._together()]
        placed = [
            one
            for one in windows
            if processors_of_peers(one.placement, self._targets(one)) is not None
        ]
        processes = (
            max((one.peers for one in placed), default=1) if self.group.way != "threads" else 1
        )
        at_once = len(every_processor()) or 1
        opening_s = _OPENS_IN_S * (1 + processes / at_once)
        return opening_s + sum(self._length_ns(one) / 1e9 + _BESIDE_WINDOW_S for one in placed)

    def _length_ns(self, window: _Window) -> int:
        plan = self.plan
        return (
            plan.short_ns if window.kind == "short" else plan.long_ns + plan.each_ns * window.peers
        )

    def _numbers(self) -> list[int]:
        """The numbers of peers, without one alone; those of busy processes are half and all of the
        processors.
        """
        processors, devices = len(every_processor()) or 2, len(self.group.targets)
        if self.group.way == "busy":
            return sorted({max(1, processors // 2), processors})
        if self.group.way == "devices":
            return sorted(
                {number for number in self.plan.numbers if 1 < number < devices} | {devices}
            )
        return [
            number for number in self.plan.numbers if self.group.way == "processes" or number > 1
        ]

    def _alone(self, repeats: int) -> Iterator[_Window]:
        for case, kind, _ in itertools.product(self.cases, _KINDS, range(repeats)):
            for first in range(len(self.group.targets)):
                yield _Window(case, 1, kind=kind, alone=True, first=first)

    def _together(self) -> Iterator[_Window]:
        plan, way = self.plan, self.group.way
        numbers = self._numbers()
        for case, _ in itertools.product(self.cases, range(plan.repeats if way == "busy" else 1)):
            for number, placement, kind in itertools.product(numbers, plan.placements, _KINDS):
                if placement == "free" or number == numbers[-1] or way == "devices":
                    yield _Window(case, number, placement, kind)
            if way == "processes" and processor_kind(self.group.targets[0]) == "gpu":
                yield _Window(case, 2, kind="slices")

    def _start(self, environment: Mapping[str, str]) -> ChildProcess[Answer]:
        interpreter = self.measuring.interpreter
        variables, python = {**interpreter.environment, **environment}, interpreter.python_command
        return self.enter_context(
            ChildProcess(
                "overhead.contention.peer", None, decode_answer, _LIMITS, variables, python
            )
        )

    def _open(self, count: int) -> Iterator[PeriodEntry]:
        """Start more processes, and open the cases in them. The first finds how many units a long
        chain has.
        """
        threads = max(self.plan.numbers) if self.group.way == "threads" else 1
        targets = self.group.targets * max(self.plan.numbers)
        more = targets[len(self.children) : len(self.children) + count]
        for target in more:
            chain_ns = 0 if self.children else self.plan.chain_ns
            self.children.append(self._start(target.environment))
            plugins, entries = list(self.measuring.request.plugins), usable_entry_points()
            self.children[-1].send(
                OpenJob(target, list(self.group.cases), threads, plugins, entries, chain_ns)
            )
        for child in self.children[len(self.children) - len(more) :]:
            opened = child.receive(_OPENING_S)
            assert isinstance(opened, Opened)
            for case in [case for case in self.cases if opened.reasons[case]]:
                yield from self._not_open(case, opened.statuses[case], opened.reasons[case])
            if child is self.children[0]:
                self.units, self.most = opened.units, opened.most

    def _measure(self, windows: list[_Window]) -> Iterator[PeriodEntry]:
        """Measure the windows in random order, without those of cases that have failed."""
        self.rng.shuffle(windows)
        for window in windows:
            places = processors_of_peers(window.placement, self._targets(window))
            if window.case not in self.cases or places is None:
                continue
            self.now = window
            for child in self.children:
                if child.exit_code(0) is not None:
                    child.receive()  # raises how it ended
            line = self._run(window, places)
            if line.status == "ok":
                self.seen.add(window)
                yield line
            else:
                yield from self.failed(line.status, line.reason)

    def _run(self, window: _Window, places: list[list[int]]) -> PeriodEntry:
        """The line of one window. Raises ``ChildEnded``."""
        plan, threads = self.plan, window.peers if self.group.way == "threads" else 1
        count = 1 if self.group.way in ("threads", "busy") else window.peers
        children = self.children[window.first : window.first + count]
        short, long = min(plan.short, self.most[window.case]), self.units[window.case]
        length = self._length_ns(window)
        most = plan.most_short if window.kind == "short" else plan.most_long
        units = [
            short if window.kind == "short" or (window.kind == "slices" and i == 0) else long
            for i in range(count)
        ]
        for at, (child, n) in enumerate(zip(children, units, strict=True)):
            child.send(
                WindowJob(window.case, n, length, threads, places[at * threads :][:threads], most)
            )
        for child in children:
            child.receive()
        start = time.perf_counter_ns() + _AHEAD_NS
        for neighbour in self.busy[: window.peers] if not window.alone else ():
            neighbour.send(BusyJob(start + length + _AHEAD_NS))
        for child in children:
            child.send(start)
        ran = [one for child in children if isinstance(one := child.receive(), Ran)]
        if failed := next((one for one in ran if one.reason), None):
            return msgspec.structs.replace(
                self._line(window), status=failed.status, reason=failed.reason
            )
        return msgspec.structs.replace(
            self._line(window),
            length=length,
            units=[n for n, one in zip(units, ran, strict=True) for _ in one.chains],
            chains=[rows for one in ran for rows in one.chains],
            cpu=[ns for one in ran for ns in one.cpu],
            ready=[ns for one in ran for ns in one.ready],
        )

    def _targets(self, window: _Window) -> tuple[Target, ...]:
        """The target of each peer that is measured."""
        count = 1 if self.group.way == "busy" else window.peers
        return (self.group.targets * count)[window.first : window.first + count]

    def _line(self, window: _Window) -> PeriodEntry:
        many = self.group.way == "devices"
        return PeriodEntry(
            way=self.group.way,
            of=f"{self.group.targets[0].key} {self.group.cases[window.case].key}",
            process=self.number,
            peers=window.peers,
            placement=window.placement,
            alone=window.alone,
            kind=window.kind,
            devices=[target.device for target in self._targets(window)] if many else [],
        )

    def _not_open(self, case: int, status: Status, reason: Why) -> Iterator[PeriodEntry]:
        """A line for each number of peers of a case that did not open. The case is not measured."""
        planned = [
            one
            for one in [*self._alone(1), *self._together()]
            if one.case == case and one.kind == "long"
        ]
        self._drop(case, status, reason)
        for window in planned:
            if window.placement == "free":
                yield msgspec.structs.replace(self._line(window), status=status, reason=reason)

    def failed(self, status: Status, reason: Why) -> Iterator[PeriodEntry]:
        """The lines of the window that came to nothing, and of each other one of its case that is
        not measured now.

        So each number of peers without a figure has its reason. The case is not measured again.
        """
        at = self.now
        planned = [*self._alone(1), *self._together()]
        missing = [
            one for one in planned if one.case == at.case and one not in self.seen and one != at
        ]
        self._drop(at.case, status, reason)
        yield msgspec.structs.replace(self._line(at), status=status, reason=reason)
        later = because("not-with-fewer", peers=at.peers, why=reason)
        for window in missing:
            if processors_of_peers(window.placement, self._targets(window)) is not None:
                yield msgspec.structs.replace(self._line(window), status=status, reason=later)

    def _drop(self, case: int, status: Status, reason: Why) -> None:
        self.cases.pop(case, None)
        of = f"{self.group.targets[0].key} {self.group.cases[case].key}"
        self.measuring.listener.note(about(f"{of}, {self.group.way}", about(status, reason)))
