"""Periods of peers in, figures out: cost, enqueue time, work of all together, and what limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from overhead.contention.limits import LIMITS, limit_of
from overhead.errors import BadFile
from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats
from overhead.results import (
    Contention,
    Figure,
    PeersEntry,
    PeriodEntry,
    Status,
    Target,
    Why,
    because,
)


@dataclass(frozen=True)
class _SliceRule:
    """When the delays of short chains show that the device gives slices of time.

    Chosen on the simulated device of tests/fakes/shared_device.py, whose slices and hand-overs
    tests/contention/test_figures.py finds again within 10 %.
    """

    interrupted: float = 1.5
    """A chain that takes this many times as long as alone was interrupted: a lower factor counts
    noise too.
    """
    least: int = 20
    """Interrupted chains that are needed: with fewer, the quartiles tell nothing."""
    quartiles: float = 0.35
    """Largest distance of a quartile from the median: more takes a queue for slices, less misses
    slices.
    """
    of_chain: float = 0.6
    """Share of the other peer's chain that a delay stays below: above it, the device may have
    finished that chain.
    """
    lost: float = 0.05
    """Least share of work that hand-overs cost: with less, the delay may be the other peer's
    queue.
    """


_SLICES = _SliceRule()


class _CaseId(NamedTuple):
    """A case in one way. ``of``: the target of a peer and the case, as in ``PeriodEntry``."""

    way: str
    of: str


class _RecordPair(NamedTuple):
    """A record of peers at once, and one with the figures of one of these peers alone."""

    record: Contention
    alone: Contention


def contention_of(
    entries: Sequence[PeersEntry | PeriodEntry], precision: float
) -> Iterator[Contention]:
    """The figures of what peers (processes or threads) did at once, from the entries of a journal:
    a record for each case, way, number of peers and placement, with what limits the peers.

    A ``PeersEntry`` announces a case, a ``PeriodEntry`` has the times of one period in which all
    peers ran it. ``precision``: relative half-width of a figure that is ``ok``. Raises ``BadFile``
    for a period of a case that no entry announces.
    """
    # First the periods are sorted by case. A case of several targets (devices) is one case, which
    # is found under the name of each of them.
    cases: dict[_CaseId, _Case] = {}
    for entry in entries:
        if isinstance(entry, PeersEntry):
            case = _Case(entry, precision)
            for target in entry.targets:
                cases.setdefault(_CaseId(entry.way, f"{target.key} {entry.case.key}"), case)
            continue
        announced = cases.get(_CaseId(entry.way, entry.of))
        if announced is None:
            raise BadFile(f"windows of a case that was never planned: {entry.of} ({entry.way})")
        announced.add(entry)

    # Then each case gives its records.
    pairs: list[_RecordPair] = []
    # ``fromkeys``: each case once, in the order of the journal.
    for case in dict.fromkeys(cases.values()):
        pairs.extend(case.records())
    records = [pair.record for pair in pairs]
    # What limits a case can show in the records of others, so all figures come first.
    for pair in pairs:
        limited = limit_of(pair.record, pair.alone, records)
        yield replace(pair.record, limit=limited.limit, why=limited.why)


_Set = Mapping[str, Floats]
"""What a set of processes measured, a value for each peer: ``rates`` (units a ns), ``issue``,
``cpu`` (ns a unit), ``ready`` (share of the time). What no period measured is not there.
"""
_Sets = Mapping[int, _Set]
"""The sets by their number."""


class _Group(NamedTuple):
    """Periods that make one record. ``peers``: 0 for one peer alone in the way ``busy``, where a
    record counts the busy neighbours.
    """

    placement: str
    peers: int
    devices: tuple[str, ...]


@dataclass(eq=False)
class _Case:
    """A case that peers ran at once, with its periods (stretches of time in which they ran chains).
    ``lone``: the periods of one peer alone; ``shared``: the others.
    """

    plan: PeersEntry
    precision: float
    lone: list[PeriodEntry] = field(default_factory=list)
    shared: list[PeriodEntry] = field(default_factory=list)

    def add(self, period: PeriodEntry) -> None:
        """Keep a period of this case. Its devices count only in the way ``devices``, where each
        peer has one of its own; else they would part the periods of one record.
        """
        if period.way != "devices":
            period = replace(period, devices=[])
        if period.alone:
            self.lone.append(period)
        else:
            self.shared.append(period)

    def records(self) -> Iterator[_RecordPair]:
        """The records of this case: one for each placement, number of peers and devices. Each comes
        with a second one, which has the figures of one peer alone on the same devices: from both
        follows what limits the peers.
        """
        # The periods of one peer alone are a record too. Shared ones with the same key, of one peer
        # beside idle processes, take their place.
        groups = _grouped(self.lone) | _grouped(self.shared)
        for group in sorted(groups):
            periods = groups[group]
            # ``sets``: by set of processes, what each peer measured; ``alone``: the same of one
            # peer alone.
            sets = _sets(periods)
            alone = self._alone(group.devices)
            figures = self._figures(periods, sets, alone)
            figures += self._slice_figures(periods, sets, alone)
            # The record has the status of its first figure, the cost.
            record = Contention(
                way=self.plan.way,
                peers=group.peers,
                placement=periods[0].placement,
                target=self._first_target(periods[0]),
                case=self.plan.case,
                devices=periods[0].devices,
                status=figures[0].status,
                reason=figures[0].reason,
                figures=figures,
                costs=_costs_of_peers(sets),
            )
            # The same record, but with the figures of one peer alone. These are compared with
            # nothing, so the last argument is empty.
            figures_alone = self._figures(self.lone, alone, {})
            yield _RecordPair(record, replace(record, figures=figures_alone))

    def _first_target(self, period: PeriodEntry) -> Target:
        """The target of the first peer of a period."""
        for target in self.plan.targets:
            if period.of == f"{target.key} {self.plan.case.key}":
                return target
        return self.plan.targets[0]

    def _alone(self, devices: Sequence[str]) -> _Sets:
        """What one peer alone measured on each of these devices, by set (of fresh processes). A set
        is left out if a device is missing in it: its mean would be that of other devices.

        Devices are named in the way ``devices`` only; else there is one value for the one peer.
        """
        # ``devices_measured``: how many values a complete set has; one for each device.
        periods = [period for period in self.lone if set(period.devices) <= set(devices)]
        devices_measured = max(len(devices), 1)
        complete = {}
        for number, measured in _sets(periods).items():
            if all(len(values) == devices_measured for values in measured.values()):
                complete[number] = measured
        return complete

    def _figures(self, periods: Sequence[PeriodEntry], sets: _Sets, alone: _Sets) -> list[Figure]:
        """The figures of a record, ``cost`` first, each the mean over the sets of fresh processes;
        with ratios to what one peer did ``alone`` in the same set.

        ``periods``: those that ``sets`` were made of, for the reason where a figure has no value.
        """
        # ``rates``: by set, an array with the rate of each peer, units a ns.
        rates = {number: one["rates"] for number, one in sets.items() if "rates" in one}
        # Each peer takes 1 / rate for a unit. The cost is that of the mean rate. All together take
        # 1 / (sum of the rates) for a unit: the figure ``each``.
        costs_ns = [len(of_peers) / of_peers.sum() for of_peers in rates.values()]
        together_ns = [1 / of_peers.sum() for of_peers in rates.values()]

        # Without a value, the first of these periods that failed says why. The figures of a unit:
        # its cost, its enqueue time (from ``short`` chains), its CPU time; ``ready``: the share of
        # the time for which a peer was ready to run and had no processor.
        candidates = [*periods, *self.lone]
        figures = [
            self._mean("cost", costs_ns, candidates),
            self._mean("issue", _means(sets, "issue"), candidates, kind="short"),
            self._mean("cpu", _means(sets, "cpu"), candidates),
            self._mean("each", together_ns, candidates),
            self._mean("ready", _means(sets, "ready"), candidates, unit="share"),
        ]
        # One peer alone has nothing to be compared with.
        if all(period.alone for period in periods):
            return figures
        # ``work``: by set, how many times as much all do as one alone: the sum of their rates over
        # the rate of one alone (of several devices the mean).
        work = _works(sets, alone)
        # K peers that do W times as much as one are each K / W times as slow.
        slowdown = [len(rates[number]) / ratio for number, ratio in work.items()]
        figures.append(self._mean("slowdown", slowdown, candidates, unit="ratio"))
        figures.append(self._mean("work", list(work.values()), candidates, unit="ratio"))
        return figures

    def _mean(
        self,
        name: str,
        values: Sequence[float],
        periods: Sequence[PeriodEntry],
        kind: str = "long",
        unit: str = "ns",
    ) -> Figure:
        """The figure of this name with the mean of ``values``, one for each set. Without values it
        has the reason why a period failed: one of this kind, which the figure comes from, if there
        is one.
        """
        figure = _mean_of_sets(name, values, self.precision, unit)
        if values:
            return figure
        failure = _failure(periods, kind)
        return replace(figure, status=failure.status, reason=failure.reason)

    def _slice_figures(
        self, periods: Sequence[PeriodEntry], sets: _Sets, alone: _Sets
    ) -> list[Figure]:
        """How long a device works for one process before it turns to the other (``slice``), and how
        long the turn takes (``hand_over``); nothing where the device does not work in slices.

        In these periods one peer runs short chains while another keeps the device busy with long
        ones. A short chain that loses the device waits for the slice s of the other peer and for
        two hand-overs h, s + 2h; that is its delay. Of the work of one peer alone s / (s + h) is
        left.
        """
        # By set: the delays of the interrupted chains, and the work of both peers relative to one
        # alone.
        delays_ns: list[Floats] = []
        works: list[float] = []
        for number, ratio in _works(sets, alone).items():
            # Else even one alone leaves the device idle at times, and gives up slices.
            if not _waits_for_device(alone[number]):
                continue
            # Column 2 of the rows is the whole time of a chain. ``usual_ns``: of a short chain
            # alone. A chain that took 1.5 times as long (``interrupted``) had lost the device.
            # ``_rows``: the chains of the first peer, which runs the short ones.
            usual_ns = np.median(_rows(self.lone, "short", number)[:, 2])
            total_ns = _rows(periods, "slices", number)[:, 2]
            interrupted = total_ns > _SLICES.interrupted * usual_ns
            delays_ns.append(total_ns[interrupted] - usual_ns)
            works.append(ratio)

        # Without an interrupted chain in every set there is no delay to average.
        if not all(len(delays) for delays in delays_ns):
            return []
        work = np.array(works)
        all_delays_ns = np.concatenate([*delays_ns, []])  # [] for no set at all
        if not _show_slices(all_delays_ns, work, self.lone):
            return []
        # From both equations: delay = s + 2h and work = s / (s + h) give s = delay / (2 / work - 1)
        # and h = s (1 / work - 1). One value for each set.
        delay_ns = np.array([np.median(delays) for delays in delays_ns])
        slices_ns = delay_ns / (2 / work - 1)
        hand_over_ns = slices_ns * (1 / work - 1)
        # ``beside``: a hand-over may be about zero, so its error is judged beside a whole slice.
        hand_over = mean_of_processes(
            "hand_over", hand_over_ns, self.precision, beside=float(slices_ns.mean())
        )
        return [_mean_of_sets("slice", slices_ns, self.precision), hand_over]


def _costs_of_peers(sets: _Sets) -> list[float]:
    """The cost of each peer, ns: the median of all sets (each of fresh processes). A rate is in
    units a ns, so the cost of a unit is 1 / rate.
    """
    costs_ns = [1 / one["rates"] for one in sets.values() if "rates" in one]
    if not costs_ns:
        return []
    # Rows: sets; columns: peers. The median over the sets.
    of_peers: list[float] = np.median(costs_ns, axis=0).tolist()
    return of_peers


def _means(sets: _Sets, name: str) -> list[float]:
    """By set the mean of what its peers measured under this name."""
    return [float(measured[name].mean()) for measured in sets.values() if name in measured]


def _waits_for_device(alone: _Set) -> bool:
    """Whether one peer alone waits for the device. Only then does it use up the slices of time that
    the device gives to it.

    It does so if handing units over (the enqueue time, ``issue``) takes clearly less than the whole
    cost of a unit. The cost is 1 / rate, so rate times enqueue time is the share.
    """
    if "issue" not in alone:
        return False
    # Less than nine tenths: a smaller rest may be only the wait at the end of each chain.
    share: float = alone["rates"].mean() * alone["issue"].mean()
    return share < LIMITS.issue_alone


def _show_slices(delays_ns: Floats, work: Floats, lone: Sequence[PeriodEntry]) -> bool:
    """Whether the delays of short chains come from slices of time, which the device gives to two
    processes in turn, and not from waiting for the queue or the whole chain of the other peer.

    Slices are all about as long as each other, shorter than the other's chain, and turning from
    one process to the other costs work. ``lone``: the periods of one peer alone.
    """
    if len(delays_ns) < _SLICES.least or work.mean() > 1 - _SLICES.lost:
        return False
    # Quartiles of the delays: they lie close together if all slices are about as long. ``_SLICES``
    # has the limits: of how many delays, how much lost work, how close, how short.
    low, usual, high = np.quantile(delays_ns, (0.25, 0.5, 0.75))
    alike = max(high - usual, usual - low) <= _SLICES.quartiles * usual
    whole_chain_ns = np.median(_rows(lone, "long")[:, 2])
    return bool(alike and usual < _SLICES.of_chain * whole_chain_ns)


def _mean_of_sets(
    name: str, values: Sequence[float] | Floats, precision: float, unit: str = "ns"
) -> Figure:
    """The figure of this name: the mean of one value for each set, with its 95 % interval. Costs
    and ratios vary by factors, so their mean is the geometric one; that of shares is not.
    """
    # ``scale``: the size beside which the half-width of the interval is judged; None: the mean.
    if unit == "share":
        return mean_of_processes(name, values, precision, unit=unit, scale=1.0)
    # A coarse clock of CPU time may stand still: zero has no logarithm. Then the mean is the usual
    # one.
    if min(values, default=1.0) <= 0:
        return mean_of_processes(name, values, precision, unit=unit, scale=None)
    # ``exp`` of the mean of the logarithms is the geometric mean; its interval is turned back in
    # the same way.
    of_logarithms = mean_of_processes(name, np.log(values), precision, unit=unit, scale=1.0)
    return replace(
        of_logarithms,
        value=_exp(of_logarithms.value),
        low=_exp(of_logarithms.low),
        high=_exp(of_logarithms.high),
    )


def _exp(logarithm: float | None) -> float | None:
    return None if logarithm is None else float(np.exp(logarithm))


def _grouped(periods: Sequence[PeriodEntry]) -> dict[_Group, list[PeriodEntry]]:
    """The periods in groups, of which each makes one record: by placement, number of peers and
    devices. Periods of all sets are together.
    """
    groups: dict[_Group, list[PeriodEntry]] = defaultdict(list)
    for period in periods:
        # In the way ``busy`` a record counts the busy processes beside the one that is measured.
        is_without_busy = period.alone and period.way == "busy"
        peers = 0 if is_without_busy else period.peers
        groups[_Group(str(period.placement), peers, tuple(period.devices))].append(period)
    return groups


def _works(sets: _Sets, alone: _Sets) -> dict[int, float]:
    """By set the work of all together, relative to one peer alone in the same set."""
    works = {}
    for number, measured in sets.items():
        if "rates" in measured and "rates" in alone.get(number, {}):
            works[number] = float(measured["rates"].sum() / alone[number]["rates"].mean())
    return works


class _Measured(NamedTuple):
    """What the periods of a set measured on the same devices. ``name``: as in ``_Set``."""

    number: int
    name: str
    devices: tuple[str, ...]


def _sets(periods: Sequence[PeriodEntry]) -> _Sets:
    """What each set of fresh processes measured in the good ones of these periods: by name an array
    with a value for each peer.

    Values of periods on the same devices are averaged, peer by peer; those of other devices stand
    behind them, as other peers.
    """
    # By set, name and devices: an array of each period, with a value for each peer.
    values_of: dict[_Measured, list[Floats]] = defaultdict(list)
    for period in periods:
        for name, values in _by_peer(period).items():
            values_of[_Measured(period.process, name, tuple(period.devices))].append(values)
    sets: dict[int, dict[str, Floats]] = defaultdict(dict)
    # Sorted, so that the devices stand in the same order in every set.
    for measured in sorted(values_of):
        # Rows: periods; columns: peers. The mean over the periods.
        mean = np.mean(values_of[measured], axis=0)
        of_set = sets[measured.number]
        # Peers on other devices stand behind those that are there already.
        of_set[measured.name] = np.concatenate([of_set.get(measured.name, []), mean])
    return sets


def _by_peer(period: PeriodEntry) -> _Set:
    """What one period measured, as arrays with a value for each peer: the enqueue time of a unit
    from short chains, and from long ones the rate, units a ns. Nothing if the period failed.

    A row of a chain is ``[start_ns, issue_ns, total_ns]``, from the begin of the period.
    """
    # Periods that show slices (two processes to which a device gives time in turn) have figures of
    # their own. ``_fault``: why a period cannot be used.
    if _fault(period) or period.kind == "slices":
        return {}
    # An array for each peer, with a row for each of its chains.
    chains = [np.array(rows) for rows in period.chains]
    units = np.array(period.units)
    if period.kind == "short":
        issue_ns = np.array([np.median(rows[:, 1]) for rows in chains])
        return {"issue": issue_ns / units}

    # After the end of the period other peers stop, so a chain that runs on has the device to
    # itself: only its part before the end counts.
    ended_ns = np.array([rows[-1, 0] + rows[-1, 2] for rows in chains])
    until_ns = np.minimum(ended_ns, period.length)
    chains_done = np.array(
        [_chains_done(rows, end) for rows, end in zip(chains, until_ns, strict=True)]
    )
    # Chains times units, over the time in which they were done.
    measured = {"rates": chains_done * units / until_ns}
    # Where the system does not tell CPU time and waits, the lists are empty.
    if len(period.cpu) == len(period.ready) == len(chains):
        # CPU time of a unit; and the share of its time for which a peer was ready and had no
        # processor.
        measured["cpu"] = period.cpu / units / [len(rows) for rows in chains]
        measured["ready"] = period.ready / ended_ns
    return measured


def _chains_done(rows: Floats, until_ns: float) -> float:
    """How many chains a peer did until then; of one that ran on, the part of its time until then.

    ``rows``: ``[start_ns, issue_ns, total_ns]``.
    """
    # 1 for a chain that ended by then, less for one that ran on, 0 for one that had not begun.
    shares = np.clip((until_ns - rows[:, 0]) / rows[:, 2], 0, 1)
    return float(shares.sum())


def _rows(periods: Sequence[PeriodEntry], kind: str, process: int | None = None) -> Floats:
    """The chains of the first peer in all good periods of this kind, a row for each: ``[start_ns,
    issue_ns, total_ns]``. ``process``: the number of the set; None for all sets.
    """
    rows_of_periods = []
    for period in periods:
        is_of_set = process is None or period.process == process
        if period.kind == kind and is_of_set and not _fault(period):
            rows_of_periods.append(period.chains[0])
    # The empty array is for no period at all.
    return np.concatenate([np.empty((0, 3)), *rows_of_periods])


def _fault(period: PeriodEntry) -> Why:
    """Why the period cannot be used; '' where it can.

    A period is whole if each peer began a chain in it, and each row and each number of units is
    one that can be divided by.
    """
    if period.status != "ok":
        return period.reason or period.status
    # How many peers should have rows in the period. In the way ``busy`` one peer is measured, and
    # ``period.peers`` counts the processes beside it that only keep processors busy; ``alone``:
    # the peer ran with no other beside it.
    peers = 1 if period.alone or period.way == "busy" else period.peers
    if not len(period.chains) == len(period.units) == peers or not all(period.units):
        return because("window-without-rows")
    for rows in period.chains:
        if not rows:
            return because("window-without-rows")
        first_start_ns = rows[0][0]
        if first_start_ns >= period.length:
            return because("window-without-rows")
        for row in rows:
            # The last of the three is the total time of the chain, by which is divided.
            if len(row) != 3 or row[2] == 0:
                return because("window-without-rows")
    return ""


class _Failure(NamedTuple):
    """Why there is no figure."""

    status: Status
    reason: Why


def _failure(periods: Sequence[PeriodEntry], kind: str) -> _Failure:
    """Why a figure has no value: status and reason of the first of these periods that failed.

    A period of ``kind`` comes first, as the figure is made of such. If none failed, no period of
    the kind was measured.
    """
    failed = [period for period in periods if _fault(period)]
    if not failed:
        return _Failure("failed", because("no-window-of-kind", kind=kind))
    of_kind = [period for period in failed if period.kind == kind]
    first = (of_kind or failed)[0]
    # Rows that cannot be used make a period fail, whatever status the file gives it.
    status: Status = "failed" if first.status == "ok" else first.status
    return _Failure(status, _fault(first))
