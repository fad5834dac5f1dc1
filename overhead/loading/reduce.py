"""Reduce a journal to a fingerprint: raw samples become figures, records and comparisons."""

from __future__ import annotations

import dataclasses
import functools
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from overhead import results
from overhead.errors import BadFile
from overhead.loading import files
from overhead.measure.fitting.case_figures import DRIFTS, estimate, is_drift_judged, limited_by
from overhead.measure.fitting.drift import find_drift
from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.fitting.paired import PerDispatch, difference_and_ratio, marginal_costs
from overhead.measure.fitting.quiet_rounds import best_pace, canary_ns
from overhead.named_comparisons import NAMED_COMPARISONS, comparable_pairs
from overhead.profiles import profiles
from overhead.results import (
    Case,
    Comparison,
    Figure,
    Fingerprint,
    Params,
    Record,
    StackRole,
    Target,
    because,
    codes_of,
    facts_of,
    together,
)
from overhead.results.records import RunFacts
from overhead.slices import of_slices

_MOST_TEXT = 3900
"""Characters of the environment variables that a flag names."""
_OF_TARGET = [name for name in Target.__struct_fields__ if name in Record.__struct_fields__]
"""The fields that a record has from its target."""


def load(path: str | Path) -> Fingerprint:
    """The fingerprint (all figures of a run) in a file, or the newest of a folder; a journal is
    reduced to one.

    Raises ``BadFile``.
    """
    path = Path(path)
    return load_file(files.newest_file(path) if os.path.isdir(path) else path)


def load_file(path: Path) -> Fingerprint:
    """The fingerprint in a file, a journal or a download of the browser page. Raises ``BadFile``,
    also for a folder.
    """
    if files.is_journal(path):
        return reduce_journal(path)
    try:
        return files.read_fingerprint(path)
    except files.BrowserDownload:
        from overhead.probes.browser.importing import import_file

        return _Journal(path, import_file(path)).fingerprint()


def reduce_journal(path: Path) -> Fingerprint:
    """Compute the fingerprint of a finished or unfinished journal. Raises ``BadFile``."""
    return _Journal(path, files.read_journal(path)).fingerprint()


def series_by_record(path: Path) -> dict[str, Series]:
    """The raw samples in a journal: a series for each key of a record. Raises ``BadFile``."""
    journal = _Journal(path, files.read_journal(path))
    return {key.record: journal.series(key) for key in journal.planned if key.own}


@dataclasses.dataclass(frozen=True)
class _Key:
    """A case on a target, and the worker that measured it."""

    worker: str
    target: str
    case: str

    @property
    def own(self) -> bool:
        """Whether the worker belongs to this target. If not, the case ran as a companion in another
        target's worker.
        """
        return self.worker == self.target

    @property
    def record(self) -> str:
        """The key of the record of this case."""
        return f"{self.target} {self.case}"


class _Journal:
    """The lines of a journal, grouped by case and process."""

    def __init__(self, path: Path, lines: Iterable[results.JournalEntry]) -> None:
        self.path = path
        self.planned: dict[_Key, tuple[Target, Case]] = {}
        self.wanted: dict[str, int] = {}
        self.opened: dict[_Key, results.OpenedEntry] = {}
        self.failed: dict[_Key, dict[int, results.FailedEntry]] = defaultdict(dict)
        self.died: dict[str, list[results.DiedEntry]] = defaultdict(list)
        self.rounds: dict[_Key, dict[int, list[results.RoundEntry]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self.once: dict[_Key, dict[int, dict[str, results.OneOffEntry]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        self.rules: dict[tuple[str, int], results.Why] = {}
        self.canary: dict[tuple[str, int], list[results.RoundEntry]] = defaultdict(list)
        self.missing: list[results.MissingStack] = []
        self.left_out: list[results.LeftOut] = []
        self.shared: list[results.PeersEntry | results.PeriodEntry] = []
        for line in lines:
            self._add(line)

    def _add(self, line: results.JournalEntry) -> None:
        match line:
            case results.HeaderEntry():
                self.header = line
            case results.PlannedEntry(worker=worker, target=target, case=case):
                self.planned[_Key(worker, target.key, case.key)] = (target, case)
                self.wanted[worker] = line.planned_processes(self.header.profile)
            case (
                results.OpenedEntry()
                | results.RoundEntry()
                | results.OneOffEntry()
                | results.FailedEntry()
            ):
                self._add_of_case(line)
            case results.DiedEntry(worker=worker):
                self.died[worker].append(line)
            case results.MissingEntry(unavailable=unavailable):
                self.missing.append(unavailable)
            case results.OmittedEntry(left_out=left_out):
                self.left_out.append(left_out)
            case results.EndedEntry():
                self.rules[line.worker, line.process] = line.rule
            case results.PeersEntry() | results.PeriodEntry():
                self.shared.append(line)

    def _add_of_case(
        self,
        line: results.OpenedEntry | results.RoundEntry | results.OneOffEntry | results.FailedEntry,
    ) -> None:
        key = _Key(line.worker, line.target, line.case)
        if key not in self.planned:
            raise BadFile(f"{line.target} {line.case} was never planned", self.path)
        match line:
            case results.OpenedEntry():
                self.opened[key] = line
            case results.RoundEntry():
                self.rounds[key][line.process].append(line)
                self.canary[line.worker, line.process].append(line)
            case results.OneOffEntry():
                found = self.once[key][line.process]
                if before := found.get(line.name):  # one line per round
                    values, at = [*before.values, *line.values], [*before.at, *line.at]
                    line = msgspec.structs.replace(line, values=values, at=at)
                found[line.name] = line
            case results.FailedEntry():
                self.failed[key][line.process] = line

    @property
    def target(self) -> float:
        return profiles()[self.header.profile].target

    def series(self, key: _Key) -> Series:
        rounds, once, pace = self.rounds[key], self.once[key], self.paces.get
        processes = [
            Process(
                rounds.get(number, ()),
                once.get(number, {}),
                number,
                pace((key.worker, number), 0.0),
            )
            for number in self._counted(key)
        ]
        opened = self.opened.get(key)
        anchored = self.header.method_version >= results.ANCHORED_FROM
        if opened is None:
            return Series(processes, anchored=anchored)
        return Series(processes, opened.synchronous, opened.wait_spins, opened.overlap, anchored)

    @functools.cached_property
    def paces(self) -> dict[tuple[str, int], float]:
        """A low percentile of the canary times of each process, ns, by worker and process."""
        return {which: best_pace(rounds) for which, rounds in self.canary.items()}

    def _counted(self, key: _Key) -> list[int]:
        """The processes of the case to use: the complete ones if there are as many as planned, else
        all.
        """
        whole = self._whole(key)
        if self.failed[key] or len(whole) >= self.wanted[key.worker]:
            return whole
        return sorted({*self.rounds[key], *self.once[key]})

    def _whole(self, key: _Key) -> list[int]:
        """The processes that ended, and in which the case was measured and did not fail."""
        found = sorted(self.rounds[key].keys() - self.failed[key].keys())
        return [process for process in found if (key.worker, process) in self.rules]

    def _loss(self, key: _Key) -> results.FailedEntry | None:
        """The failure that leaves the case without figures: wrong values, or another where no
        process is whole.
        """
        kept = bool(self._whole(key))
        return next(
            (line for line in self.failed[key].values() if line.status != "failed" or not kept),
            None,
        )

    def fingerprint(self) -> Fingerprint:
        own = {name: getattr(self.header, name) for name in RunFacts.__struct_fields__}
        return Fingerprint(
            **own | {"volatile": {**self.header.volatile, **self._canaries()}},
            kernels={n: h for o in self.opened.values() for n, h in o.kernels.items()},
            records=[self._record(key) for key in self.planned if key.own],
            comparisons=self._comparisons(),
            contention=[
                one
                for slice in of_slices("reducing")
                for one in slice.reduce(self.shared, self.target)
            ],
            unavailable=self.missing,
            left_out=self.left_out,
            flags=self._flags(),
        )

    def _canaries(self) -> results.Volatile:
        """Median canary times of processes, us: the median of all processes, the fastest and the
        slowest process.
        """
        sums = [[sum(one.canary) for one in rounds] for rounds in self.canary.values()]
        found = [statistics.median(values) / 1e3 for values in sums if any(values)]
        if not found:
            return {}
        paces = {
            "canary_us": statistics.median(found),
            "canary_us_least": min(found),
            "canary_us_most": max(found),
        }
        return {name: round(value, 1) for name, value in paces.items()}

    def _record(self, key: _Key) -> Record:
        target, case = self.planned[key]
        opened, loss = self.opened.get(key), self._loss(key)
        series = self.series(key)
        figures: list[Figure] = []
        status: results.Status = "failed"
        bound: results.Bound = ""
        reason: results.Why = because("no-round-measured")
        flags = list(opened.flags) if opened else []
        flags += ["worker-died"] * (key.worker in self.died)
        if loss is not None:
            status, reason = loss.status, loss.reason
        elif any(p.rounds for p in series.processes):
            found = estimate(series, self.target)
            bound = limited_by(series, found)
            flags += ["failed-later"] * bool(self.failed[key])
            flags += ["drifting"] * any(
                codes_of(figure.reason) & DRIFTS for figure in found.values()
            )
            if (
                series.anchored
                and found["complete"].value is not None
                and not is_drift_judged(series)
            ):
                flags.append("drift-not-judged")
            rules = dict.fromkeys(
                r for (worker, _), r in self.rules.items() if worker == key.worker and r
            )
            stopped = together(*rules)
            figures = [
                f if f.rule else msgspec.structs.replace(f, rule=stopped) for f in found.values()
            ]
            status, reason = found["complete"].status, found["complete"].reason
        return Record(
            **{name: getattr(target, name) for name in _OF_TARGET},
            **msgspec.structs.asdict(case),
            overlap=opened.overlap if opened else "pipelined",
            window=self._window(key),
            status=status,
            reason=reason,
            bound=bound,
            flags=flags,
            figures=figures,
            curve=_curve(series),
            by_processor=_by_processor(series),
        )

    def _comparisons(self) -> list[Comparison]:
        """The named comparisons between cases that alternated in the processes of one worker."""
        found = []
        for worker in self.wanted:
            keys = [key for key in self.planned if key.worker == worker]
            keys = [
                key for key in keys if self._loss(key) is None and any(self.rounds[key].values())
            ]
            for named, *pair in comparable_pairs([self.planned[key] for key in keys]):
                of, against = (_Key(worker, target.key, case.key) for target, case in pair)
                times = float(self._window(of).get(named.times, 1))
                paired = difference_and_ratio(
                    self.series(of), self.series(against), named.figure, self.target, times
                )
                found.append(_comparison(named.name, [of, against], paired))
            found.extend(self._marginal(keys))
        order = {named.name: i for i, named in enumerate(NAMED_COMPARISONS)}
        return sorted(found, key=lambda c: order.get(c.name, len(order)))

    def _marginal(self, keys: Sequence[_Key]) -> Iterator[Comparison]:
        """What one more submit, pass, dispatch or bind change costs, from own cases that differ
        only in these.
        """
        alike: dict[str, dict[PerDispatch, _Key]] = defaultdict(dict)
        for key in keys:
            case = self.planned[key][1]
            counts = PerDispatch.of(case)
            if counts is not None and key.own:
                rest = {
                    name: value
                    for name, value in case.params.items()
                    if name not in ("k", "bindgroup")
                }
                alike[
                    msgspec.structs.replace(case, pattern="one-pass", params=rest).key
                ].setdefault(counts, key)
        for members in alike.values():
            if {PerDispatch(1.0, 1.0), PerDispatch(0.0, 0.0)} <= members.keys():
                own = list(members.values())
                passes = not any("without-passes" in self._roles(key) for key in own)
                series = {counts: self.series(key) for counts, key in members.items()}
                if costs := marginal_costs(series, self.target, passes=passes):
                    yield _comparison("marginal", own[:8], costs.values())

    def _roles(self, key: _Key) -> Sequence[StackRole]:
        """What the stack of the case is to the suite."""
        return facts_of(self.planned[key][0].stack, self.header.stacks).roles

    def _window(self, key: _Key) -> Params:
        opened = self.opened.get(key)
        return opened.window if opened else {}

    def _flags(self) -> list[results.Why]:
        ended = Counter(worker for worker, _ in self.rules)
        flags: list[results.Why] = [
            because("processes-measured", worker=worker, measured=ended[worker], planned=wanted)
            for worker, wanted in self.wanted.items()
            if ended[worker] < wanted
        ]
        if self.header.environment:
            words = " ".join(f"{name}={value}" for name, value in self.header.environment.items())
            flags.append(because("environment-of-workers", variables=words[:_MOST_TEXT]))
        for worker, deaths in self.died.items():
            last = deaths[-1].reason
            if len(deaths) > 1:
                flags.append(
                    because("workers-died", worker=worker, processes=len(deaths), why=last)
                )
            else:
                flags.append(because("worker-died", worker=worker, why=last))
        trend = find_drift(
            [_canary_by_round(rounds) for rounds in self.canary.values()], self.target
        )
        if trend:
            flags.append(
                because("processor-drifts", early_us=trend.early / 1e3, late_us=trend.late / 1e3)
            )
        return flags


def _canary_by_round(rounds: Sequence[results.RoundEntry]) -> dict[int, float]:
    """The median canary of a process in each round, ns."""
    found: dict[int, list[float]] = defaultdict(list)
    for one in rounds:
        if ns := canary_ns(one):
            found[one.round].append(ns)
    return {number: statistics.median(values) for number, values in found.items()}


def _comparison(name: str, keys: Sequence[_Key], figures: Iterable[Figure]) -> Comparison:
    """A comparison of the first of these cases with the others."""
    return Comparison(
        name=name,
        of=keys[0].record,
        against=[key.record for key in keys[1:]],
        worker=keys[0].worker,
        figures=[*figures],
    )


def _curve(series: Series, most: int = 24) -> list[results.Point]:
    """Median and quartiles of the samples of each n over all processes; at most ``most`` n, spread
    over their range.
    """
    by_n: dict[int, list[list[int]]] = defaultdict(list)
    for process in series.processes:
        for row in (row for one in process.rounds for row in one.samples if len(row) == 3):
            by_n[row[0]].append(row)
    ns = sorted(by_n)
    if len(ns) > most:
        step = (len(ns) - 1) / (most - 1)
        ns = [ns[round(i * step)] for i in range(most)]
    points = []
    for n in ns:
        totals = sorted(total for _, _, total in by_n[n])
        issue = statistics.median(issue for _, issue, _ in by_n[n])
        q1, q3 = totals[len(totals) // 4], totals[(3 * len(totals)) // 4]
        points.append(
            results.Point(n=n, issue=issue, total=statistics.median(totals), q1=q1, q3=q3)
        )
    return points


def _by_processor(series: Series) -> list[results.ProcessorCost]:
    """The met cost on each processor, which only older journals have, from the first process that
    measured it.
    """
    for process in series.processes:
        if measured := process.one_off.get("met_by_processor"):
            serving = process.values("interrupt_processors")
            costs = zip(measured.at, measured.values, strict=True)
            return [
                results.ProcessorCost(cpu=cpu, ns=ns, serves_interrupts=cpu in serving)
                for cpu, ns in costs
            ]
    return []
