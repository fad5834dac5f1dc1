"""Windows of peers in, figures out: cost, issue, work of all together, and what limits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from overhead.contention.limits import LIMITS, limit_of
from overhead.errors import BadFile
from overhead.measure.fitting.interval import mean_of_processes
from overhead.measure.fitting.line import Floats
from overhead.results import Contention, Figure, PeersEntry, PeriodEntry, Status, Why, because


@dataclass(frozen=True)
class _SliceRule:
    """When the delays of short chains show that the device gives slices of time."""

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


def contention_of(lines: Sequence[PeersEntry | PeriodEntry], target: float) -> Iterator[Contention]:
    """A record for each case, way, number of peers and placement. ``target``: relative half-width
    that is ``ok``.

    Raises ``BadFile`` for a window of a case that no line announces.
    """
    cases: dict[tuple[str, str], _Case] = {}
    for line in lines:
        if isinstance(line, PeersEntry):
            case = _Case(line, target)
            for peer in line.targets:
                cases.setdefault((line.way, f"{peer.key} {line.case.key}"), case)
        elif (line.way, line.of) in cases:
            case = cases[line.way, line.of]
            own = line if line.way == "devices" else replace(line, devices=[])
            (case.lone if line.alone else case.shared).append(own)
        else:
            raise BadFile(f"windows of a case that was never planned: {line.of} ({line.way})")
    found = [pair for case in dict.fromkeys(cases.values()) for pair in case.records()]
    for record, alone in found:
        limited = limit_of(record, alone, [other for other, _ in found])
        yield replace(record, limit=limited.limit, why=limited.why)


_Set = Mapping[str, Floats]
"""What a set of processes measured, by peer: ``rates`` (units a ns), ``issue``, ``cpu`` (ns a
unit), ``ready``.
"""
_Sets = Mapping[int, _Set]


@dataclass(eq=False)
class _Case:
    """A case that peers ran at once. ``lone``: its windows of one peer alone; ``shared``: the
    others.
    """

    plan: PeersEntry
    target: float
    lone: list[PeriodEntry] = field(default_factory=list)
    shared: list[PeriodEntry] = field(default_factory=list)

    def records(self) -> Iterator[tuple[Contention, Contention]]:
        """Each record, and one of the same peers alone. Lone windows give one where no shared ones
        have one peer.
        """
        for (_, peers, devices), windows in sorted(
            (_grouped(self.lone) | _grouped(self.shared)).items()
        ):
            sets, alone = _sets(windows), self._alone(devices)
            figures = self._figures(windows, sets, alone) + self._slices(windows, sets, alone)
            own = (
                one
                for one in self.plan.targets
                if windows[0].of == f"{one.key} {self.plan.case.key}"
            )
            costs = [1 / one["rates"] for one in sets.values() if "rates" in one]
            record = Contention(
                way=self.plan.way,
                peers=peers,
                placement=windows[0].placement,
                target=next(own, self.plan.targets[0]),
                case=self.plan.case,
                devices=windows[0].devices,
                status=figures[0].status,
                reason=figures[0].reason,
                figures=figures,
                costs=np.median(costs, axis=0).tolist() if costs else [],
            )
            yield record, replace(record, figures=self._figures(self.lone, alone, {}))

    def _alone(self, devices: Sequence[str]) -> _Sets:
        own = [window for window in self.lone if set(window.devices) <= set(devices)]
        count = max(len(devices), 1)
        return {
            n: one
            for n, one in _sets(own).items()
            if all(len(values) == count for values in one.values())
        }

    def _figures(self, windows: Sequence[PeriodEntry], sets: _Sets, alone: _Sets) -> list[Figure]:
        """The figures of these sets, ``cost`` first; with ratios to the peers ``alone`` in the same
        set.
        """

        def mean(name: str, values: list[float], kind: str = "long", unit: str = "ns") -> Figure:
            found = _mean_of_sets(name, values, self.target, unit)
            status, reason = (
                (found.status, found.reason) if values else _failure([*windows, *self.lone], kind)
            )
            return replace(found, status=status, reason=reason)

        rates = {number: one["rates"] for number, one in sets.items() if "rates" in one}
        means = {
            n: [float(one[n].mean()) for one in sets.values() if n in one]
            for n in ("issue", "cpu", "ready")
        }
        found = [
            mean("cost", [len(each) / each.sum() for each in rates.values()]),
            mean("issue", means["issue"], "short"),
            mean("cpu", means["cpu"]),
            mean("each", [1 / each.sum() for each in rates.values()]),
            mean("ready", means["ready"], unit="share"),
        ]
        if not all(window.alone for window in windows):
            work = _works(sets, alone)
            found += [
                mean("slowdown", [len(rates[n]) / ratio for n, ratio in work.items()], unit="ratio")
            ]
            found += [mean("work", list(work.values()), unit="ratio")]
        return found

    def _slices(self, windows: Sequence[PeriodEntry], sets: _Sets, alone: _Sets) -> list[Figure]:
        """``slice`` and ``hand_over`` of the device where delays of short chains show them, else
        nothing.

        A chain that loses its slice s waits for that of the other peer and two hand-overs h: s +
        2h. Of the work of one peer alone s / (s + h) is left.
        """
        found = []
        for number, ratio in _works(sets, alone).items():
            share = (
                alone[number]["rates"].mean() * alone[number]["issue"].mean()
                if "issue" in alone[number]
                else 1.0
            )
            if share < LIMITS.issue_alone:
                usual = np.median(_rows(self.lone, "short", number)[:, 2])
                total = _rows(windows, "slices", number)[:, 2]
                found.append((total[total > _SLICES.interrupted * usual] - usual, ratio))
        delays, work = [delay for delay, _ in found], np.array([ratio for _, ratio in found])
        if not all(map(len, delays)) or not _show_slices(
            np.concatenate([*delays, []]), work, self.lone
        ):
            return []
        slices = np.array([np.median(delay) for delay in delays]) / (2 / work - 1)
        changes = mean_of_processes(
            "hand_over", slices * (1 / work - 1), self.target, beside=float(slices.mean())
        )
        return [_mean_of_sets("slice", slices, self.target), changes]


def _show_slices(delays: Floats, work: Floats, lone: Sequence[PeriodEntry]) -> bool:
    """Whether delays of short chains come from slices, and not from the queue or the whole chain of
    the other peer.
    """
    if len(delays) < _SLICES.least or work.mean() > 1 - _SLICES.lost:
        return False
    low, usual, high = np.quantile(delays, (0.25, 0.5, 0.75))
    alike = max(high - usual, usual - low) <= _SLICES.quartiles * usual
    return bool(alike and usual < _SLICES.of_chain * np.median(_rows(lone, "long")[:, 2]))


def _mean_of_sets(
    name: str, values: Sequence[float] | Floats, target: float, unit: str = "ns"
) -> Figure:
    """The mean of one value per set with its 95 % interval; of costs and ratios the geometric
    mean.
    """
    if unit == "share" or min(values, default=1.0) <= 0:  # a coarse clock of CPU time stands still
        return mean_of_processes(
            name, values, target, unit=unit, scale=1.0 if unit == "share" else None
        )
    found = mean_of_processes(name, np.log(values), target, unit=unit, scale=1.0)
    value, low, high = (
        None if end is None else float(np.exp(end)) for end in (found.value, found.low, found.high)
    )
    return replace(found, value=value, low=low, high=high)


def _grouped(
    windows: Sequence[PeriodEntry],
) -> dict[tuple[str, int, tuple[str, ...]], list[PeriodEntry]]:
    """The windows of each record, by placement, number of peers and devices."""
    found = defaultdict(list)
    for window in windows:
        peers = 0 if window.alone and window.way == "busy" else window.peers
        found[str(window.placement), peers, tuple(window.devices)].append(window)
    return found


def _works(sets: _Sets, alone: _Sets) -> dict[int, float]:
    """By set the work of all together, relative to one peer alone in the same set."""
    both = [
        number for number in sets if "rates" in sets[number] and "rates" in alone.get(number, {})
    ]
    return {
        number: float(sets[number]["rates"].sum() / alone[number]["rates"].mean())
        for number in both
    }


def _sets(windows: Sequence[PeriodEntry]) -> _Sets:
    """What each set measured in the good windows: their mean, and peers of different devices after
    each other.
    """
    found: dict[tuple[int, str, tuple[str, ...]], list[Floats]] = defaultdict(list)
    for window in windows:
        for name, values in _by_peer(window).items():
            found[window.process, name, tuple(window.devices)].append(values)
    sets: dict[int, dict[str, Floats]] = defaultdict(dict)
    for (number, name, _), each in sorted(found.items()):
        sets[number][name] = np.concatenate([sets[number].get(name, []), np.mean(each, axis=0)])
    return sets


def _by_peer(window: PeriodEntry) -> _Set:
    if _fault(window) or window.kind == "slices":
        return {}
    rows, units = [np.array(own) for own in window.chains], np.array(window.units)
    if window.kind == "short":
        return {"issue": np.array([np.median(own[:, 1]) for own in rows]) / units}
    ended = np.array([own[-1, 0] + own[-1, 2] for own in rows])
    until = np.minimum(ended, window.length)
    done = [
        np.clip((end - own[:, 0]) / own[:, 2], 0, 1).sum()
        for own, end in zip(rows, until, strict=True)
    ]
    found = {"rates": np.array(done) * units / until}
    if len(window.cpu) == len(window.ready) == len(rows):
        found |= {
            "cpu": window.cpu / units / [len(own) for own in rows],
            "ready": window.ready / ended,
        }
    return found


def _rows(windows: Sequence[PeriodEntry], kind: str, process: int | None = None) -> Floats:
    """The rows of the first peer in the good windows of a kind, of one set or of all."""
    found = [
        w.chains[0]
        for w in windows
        if w.kind == kind and process in (None, w.process) and not _fault(w)
    ]
    return np.concatenate([np.empty((0, 3)), *found])


def _fault(window: PeriodEntry) -> Why:
    """Why the window cannot be used; '' where it can."""
    if window.status != "ok":
        return window.reason or window.status
    whole = (
        len(window.chains)
        == len(window.units)
        == (1 if window.alone or window.way == "busy" else window.peers)
    )
    good = all(len(row) == 3 and row[2] for own in window.chains for row in own) and all(
        window.units
    )
    if not (whole and good and all(own and own[0][0] < window.length for own in window.chains)):
        return because("window-without-rows")
    return ""


def _failure(windows: Sequence[PeriodEntry], kind: str) -> tuple[Status, Why]:
    """Status and reason of the first window that failed, of this kind if one did."""
    failed = sorted(
        (window for window in windows if _fault(window)), key=lambda window: window.kind != kind
    )
    if not failed:
        return "failed", because("no-window-of-kind", kind=kind)
    return "failed" if failed[0].status == "ok" else failed[0].status, _fault(failed[0])
