"""Reduce a journal to a fingerprint: raw samples become figures, records and comparisons."""

from __future__ import annotations

import dataclasses
import functools
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from overhead import results
from overhead.errors import BadFile
from overhead.loading import files
from overhead.measure.fitting.case_figures import DRIFTS, estimate, limited_by
from overhead.measure.fitting.drift import find_drift
from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.fitting.paired import PerDispatch, difference_and_ratio, marginal_costs
from overhead.measure.fitting.remarks import is_drift_judged
from overhead.measure.fitting.undisturbed_rounds import best_pace, reference_ns
from overhead.named_comparisons import comparable_pairs, named_comparisons
from overhead.profiles import profiles
from overhead.results import (
    Case,
    Comparison,
    Contention,
    Figure,
    Fingerprint,
    Params,
    Record,
    Target,
    because,
    codes_of,
    facts_of,
    together,
)
from overhead.results.records import RunFacts
from overhead.slices import of_features

_MOST_TEXT = 3900
"""Characters of the environment variables that a flag names. A text in a file has at most 4000."""
_MOST_CURVE_POINTS = 24
"""Of the curve of a record. Chosen, not measured: with more the file of a run is larger."""
_MOST_AGAINST = 8
"""A comparison names at most so many cases, the first included; ``Comparison.against`` has this
limit.
"""


def load(path: str | Path) -> Fingerprint:
    """The fingerprint (all figures of a run) in a file, or in the newest file of a folder. Of a
    journal (raw samples) the figures are computed. Raises ``BadFile``.
    """
    path = Path(path)
    return load_file(files.newest_file(path) if os.path.isdir(path) else path)


def load_file(path: Path) -> Fingerprint:
    """The fingerprint (all figures of a run) in a file. Of a journal (raw samples) and of what a
    person downloaded from the browser page, which holds samples too, the figures are computed.
    Raises ``BadFile``, also for a folder.
    """
    if files.is_journal(path):
        return reduce_journal(path)
    try:
        return files.read_fingerprint(path)
    except files.BrowserDownload:
        # Imported only here: few files are such.
        from overhead.probes.browser.importing import import_file

        # ``import_file`` turns it into the entries of a journal.
        return _Journal(path, import_file(path)).fingerprint()


def reduce_journal(path: Path) -> Fingerprint:
    """Compute the fingerprint of a finished or unfinished journal. Raises ``BadFile``."""
    return _Journal(path, files.read_journal(path)).fingerprint()


def series_by_record(path: Path) -> dict[str, Series]:
    """The raw samples in a journal: for each key of a record (a case on its target) a series, which
    has the samples of the processes that count. Raises ``BadFile``.
    """
    journal = _Journal(path, files.read_journal(path))
    series = {}
    for measured in journal.cases.values():
        if measured.is_own:
            series[measured.record_key] = journal.series(measured)
    return series


@dataclasses.dataclass(frozen=True)
class _CaseId:
    """Which case an entry is about: the keys of its worker, its target and its case."""

    worker: str
    target_key: str
    case_key: str


@dataclasses.dataclass(frozen=True)
class _ProcessId:
    """A process: the key of its worker, and its number among the processes of this worker."""

    worker: str
    number: int


@dataclasses.dataclass
class _MeasuredCase:
    """What a journal (the raw samples of a run) has about one case that one worker measured; a
    worker measures in several processes, one after the other. ``opened``: facts on the case, from
    the process that opened it last. ``failed``, ``rounds``, ``one_off``: by the number of the
    process, why the case failed, the samples of its rounds, and the values that were measured once,
    by name.
    """

    worker: str
    target: Target
    case: Case
    opened: results.OpenedEntry | None = None
    failed: dict[int, results.FailedEntry] = dataclasses.field(default_factory=dict)
    rounds: dict[int, list[results.RoundEntry]] = dataclasses.field(default_factory=dict)
    one_off: dict[int, dict[str, results.OneOffEntry]] = dataclasses.field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Whether the worker belongs to the target of the case. If not, the case ran as a companion
        in the worker of another target, for a comparison, and gets no record.
        """
        return self.worker == self.target.key

    @property
    def record_key(self) -> str:
        """The key of the record of this case."""
        return _record_key(self.target, self.case)

    @property
    def window(self) -> Params:
        """Facts on what was timed; empty if the case never opened."""
        return self.opened.window if self.opened else {}

    def add(
        self,
        entry: results.OpenedEntry | results.RoundEntry | results.OneOffEntry | results.FailedEntry,
    ) -> None:
        """Keep an entry of the journal that is about this case."""
        match entry:
            case results.OpenedEntry():
                self.opened = entry
            case results.RoundEntry():
                self.rounds.setdefault(entry.process, []).append(entry)
            case results.OneOffEntry():
                self._add_one_off(entry)
            case results.FailedEntry():
                self.failed[entry.process] = entry

    def _add_one_off(self, entry: results.OneOffEntry) -> None:
        """Keep a value that is no sample of a round, such as the time to open. Some are measured in
        each round all the same: their entries have one name, and become one entry.
        """
        by_name = self.one_off.setdefault(entry.process, {})
        # The values of the entry before stay in front of those of this one.
        before = by_name.get(entry.name)
        if before is not None:
            entry = msgspec.structs.replace(
                entry, values=[*before.values, *entry.values], at=[*before.at, *entry.at]
            )
        by_name[entry.name] = entry


class _Journal:
    """The entries of a journal (the raw samples of a run), grouped by case, and the fingerprint
    (all figures) that follows from them. ``cases``: the planned cases, in the order of the plan.
    ``wanted``: by worker the planned number of processes. ``opened``: the cases in the order in
    which they first opened. ``rules``: of each process that ended, why it stopped. ``rounds``: of
    each process the rounds of all its cases. ``of_features``: entries that only features
    understand.
    """

    def __init__(self, path: Path, entries: Iterable[results.JournalEntry]) -> None:
        self.path = path
        self.cases: dict[_CaseId, _MeasuredCase] = {}
        self.wanted: dict[str, int] = {}
        self.opened: list[_MeasuredCase] = []
        # ``died``: by worker, the processes that ended too early. ``missing``: stacks or devices
        # that could not be measured. ``left_out``: cases that were not planned, with the reason.
        self.died: dict[str, list[results.DiedEntry]] = defaultdict(list)
        self.rules: dict[_ProcessId, results.Why] = {}
        self.rounds: dict[_ProcessId, list[results.RoundEntry]] = defaultdict(list)
        self.missing: list[results.MissingStack] = []
        self.left_out: list[results.LeftOut] = []
        self.of_features: list[results.PeersEntry | results.PeriodEntry] = []
        for entry in entries:
            self._add(entry)

    def _add(self, entry: results.JournalEntry) -> None:
        """Keep an entry with those of its kind, or with its case. The header comes first."""
        match entry:
            case results.HeaderEntry():
                self.header = entry
            case results.PlannedEntry():
                self._add_planned(entry)
            case (
                results.OpenedEntry()
                | results.RoundEntry()
                | results.OneOffEntry()
                | results.FailedEntry()
            ):
                self._add_of_case(entry)
            case results.DiedEntry():
                self.died[entry.worker].append(entry)
            case results.MissingEntry():
                self.missing.append(entry.unavailable)
            case results.OmittedEntry():
                self.left_out.append(entry.left_out)
            case results.EndedEntry():
                # Only a process that ended by itself has this entry; ``rule``: why it stopped
                # sampling.
                self.rules[_ProcessId(entry.worker, entry.process)] = entry.rule
            # Samples of processes that share a device, which ``_contention`` reduces.
            case results.PeersEntry() | results.PeriodEntry():
                self.of_features.append(entry)

    def _add_planned(self, entry: results.PlannedEntry) -> None:
        planned = _CaseId(entry.worker, entry.target.key, entry.case.key)
        self.cases.setdefault(planned, _MeasuredCase(entry.worker, entry.target, entry.case))
        self.wanted[entry.worker] = entry.planned_processes

    def _add_of_case(
        self,
        entry: results.OpenedEntry | results.RoundEntry | results.OneOffEntry | results.FailedEntry,
    ) -> None:
        """Keep an entry with the others of its case. Raises ``BadFile`` if no entry before it
        planned the case.
        """
        measured = self.cases.get(_CaseId(entry.worker, entry.target, entry.case))
        if measured is None:
            raise BadFile(f"{entry.target} {entry.case} was never planned", self.path)
        if isinstance(entry, results.OpenedEntry) and measured.opened is None:
            self.opened.append(measured)
        measured.add(entry)
        if isinstance(entry, results.RoundEntry):
            self.rounds[_ProcessId(entry.worker, entry.process)].append(entry)

    @property
    def precision(self) -> float:
        """The largest relative half-width of a figure that is ``ok``."""
        return profiles()[self.header.profile].precision

    def series(self, measured: _MeasuredCase) -> Series:
        """The samples of a case, from the processes that count, as the figures are fitted to them.

        ``pace_ns``: how fast the CPU was at its best in the process, by a loop that is always the
        same. ``anchored``: whether the method of the run took anchors, much longer chains that
        check whether T(n) goes on as a line. Facts on how the case waits are known only if a
        process opened it.
        """
        processes = []
        for number in self._counted(measured):
            pace_ns = self.paces_ns.get(_ProcessId(measured.worker, number), 0.0)
            rounds = measured.rounds.get(number, ())
            processes.append(Process(rounds, measured.one_off.get(number, {}), number, pace_ns))
        # Runs before this version of the method took no anchors.
        anchored = self.header.method_version >= results.ANCHORED_FROM
        opened = measured.opened
        if opened is None:
            return Series(processes, anchored=anchored)
        return Series(processes, opened.synchronous, opened.wait_spins, opened.overlap, anchored)

    @functools.cached_property
    def paces_ns(self) -> dict[_ProcessId, float]:
        """A low percentile of the times of the reference loop in each process, ns."""
        return {process: best_pace(rounds) for process, rounds in self.rounds.items()}

    def _counted(self, measured: _MeasuredCase) -> list[int]:
        """The numbers of the processes whose samples the figures of the case are made of.

        These are the complete ones if there are as many as planned, or if the case failed in a
        process. Else the run was interrupted, and the samples of unfinished processes count too.
        """
        # ``wanted``: by worker, the planned number of processes. Where the case failed in one, that
        # explains why complete ones are missing: the run need not have been interrupted.
        complete = self._complete(measured)
        if measured.failed or len(complete) >= self.wanted[measured.worker]:
            return complete
        # Every process that sent samples of a round, or other values of the case.
        return sorted({*measured.rounds, *measured.one_off})

    def _complete(self, measured: _MeasuredCase) -> list[int]:
        """The numbers of the processes that measured the case to their end without a failure: a
        process that ended has an entry with its rule, which says why it stopped.
        """
        complete = []
        for number in sorted(measured.rounds.keys() - measured.failed.keys()):
            if _ProcessId(measured.worker, number) in self.rules:
                complete.append(number)
        return complete

    def _failure_of(self, measured: _MeasuredCase) -> results.FailedEntry | None:
        """The failure that leaves the case without figures; None if it has figures.

        An error in one process (status ``failed``) does so only where no other process measured the
        case to its end. Any other status, such as wrong values, holds of the case itself.
        """
        has_complete = bool(self._complete(measured))
        for entry in measured.failed.values():
            if entry.status != "failed" or not has_complete:
                return entry
        return None

    def fingerprint(self) -> Fingerprint:
        """All figures of the run: what the header says of it, a record for each case, and what
        follows from several cases.
        """
        # ``RunFacts``: the fields that the header and the fingerprint share. ``volatile``: the
        # state of the machine, such as load and clocks.
        facts = {name: getattr(self.header, name) for name in RunFacts.__struct_fields__}
        facts["volatile"] = {**self.header.volatile, **self._reference_loop_us()}
        return Fingerprint(
            **facts,
            kernels=self._kernels(),
            # A case that ran in another target's worker, for a comparison, has no record.
            records=[self._record(each) for each in self.cases.values() if each.is_own],
            comparisons=self._comparisons(),
            contention=self._contention(),
            unavailable=self.missing,
            left_out=self.left_out,
            flags=self._flags(),
        )

    def _kernels(self) -> dict[str, str]:
        """The hash of each kernel by the name of its file. Where two cases have other kernels of
        one name, that of the case that opened later counts.
        """
        kernels: dict[str, str] = {}
        for measured in self.opened:
            if measured.opened is not None:
                kernels |= measured.opened.kernels
        return kernels

    def _contention(self) -> list[Contention]:
        """The records that features make of their own entries."""
        records: list[Contention] = []
        for feature in of_features("reducing"):
            records += feature.reduce(self.of_features, self.precision)
        return records

    def _reference_loop_us(self) -> results.Volatile:
        """The time of the reference loop, us: the median of all processes, and those of the fastest
        and the slowest process. They tell a reader how fast the CPU was in this run.
        """
        medians = []
        for rounds in self.rounds.values():
            # A round times the loop in Python and in compiled code, ns; both together count.
            times_ns = [sum(entry.canary) for entry in rounds]  # the loop's name in the journal
            if any(times_ns):
                medians.append(statistics.median(times_ns) / 1e3)
        if not medians:
            return {}
        return {
            "canary_us": round(statistics.median(medians), 1),
            "canary_us_least": round(min(medians), 1),
            "canary_us_most": round(max(medians), 1),
        }

    def _record(self, measured: _MeasuredCase) -> Record:
        """The record of a case: with its figures, or with the reason why there are none."""
        series = self.series(measured)
        failure = self._failure_of(measured)
        opened = measured.opened
        # ``opened``: what the process that opened the case said of it, with its own flags.
        flags = list(opened.flags) if opened else []
        if measured.worker in self.died:
            flags.append("worker-died")

        # A case is without figures unless one of the branches below finds some.
        figures: list[Figure] = []
        status: results.Status = "failed"
        reason: results.Why = because("no-round-measured")
        bound: results.Bound = ""
        if failure is not None:
            status, reason = failure.status, failure.reason
        elif any(process.rounds for process in series.processes):
            # ``by_name``: the figures by name. ``bound``: what limits the cost, such as the device.
            by_name = estimate(series, self.precision)
            bound = limited_by(series, by_name)
            flags += self._flags_of_figures(measured, series, by_name)
            figures = self._with_rules(measured, by_name)
            # The case counts as well measured as its cost, the slope of T(n).
            status, reason = by_name["complete"].status, by_name["complete"].reason
        return Record.of(
            measured.target,
            measured.case,
            # ``overlap``: whether the device works while the next units are issued; "pipelined" is
            # the default of a case that never opened. ``window``: facts on what was timed.
            overlap=opened.overlap if opened else "pipelined",
            window=measured.window,
            status=status,
            reason=reason,
            bound=bound,
            flags=flags,
            figures=figures,
            curve=_curve(series),
            by_processor=_by_processor(series),
        )

    def _flags_of_figures(
        self, measured: _MeasuredCase, series: Series, by_name: Mapping[str, Figure]
    ) -> Iterator[str]:
        """What a reader should know about the figures of a case, as the names of flags: it failed
        in a later process; a figure changed during the run (drifts); it could not be judged whether
        it did.
        """
        if measured.failed:
            yield "failed-later"
        # ``DRIFTS``: the codes of the reasons that say so.
        if any(codes_of(figure.reason) & DRIFTS for figure in by_name.values()):
            yield "drifting"
        # Runs of earlier methods, without anchors (longer chains at the end), do not get this flag.
        has_cost = by_name["complete"].value is not None
        if series.anchored and has_cost and not is_drift_judged(series):
            yield "drift-not-judged"

    def _with_rules(self, measured: _MeasuredCase, by_name: Mapping[str, Figure]) -> list[Figure]:
        """The figures of a case, each with the rule by which its sampling ended, such as that it
        was precise enough: its own, or else those of the processes of the worker.
        """
        # A dict, because several processes mostly ended by the same rule, which is told once.
        rules: dict[results.Why, None] = {}
        for process, rule in self.rules.items():
            if process.worker == measured.worker and rule:
                rules[rule] = None
        of_processes = together(*rules)
        figures = []
        for figure in by_name.values():
            if not figure.rule:
                figure = msgspec.structs.replace(figure, rule=of_processes)
            figures.append(figure)
        return figures

    def _comparisons(self) -> list[Comparison]:
        """The differences and ratios of cases that took turns in the processes of one worker, in
        the order of the table of named comparisons; what that lacks comes last.
        """
        comparisons: list[Comparison] = []
        for worker in self.wanted:
            # ``usable``: cases of this worker with samples and without a failure.
            usable = []
            for measured in self.cases.values():
                was_measured = any(measured.rounds.values())
                has_figures = was_measured and self._failure_of(measured) is None
                if measured.worker == worker and has_figures:
                    usable.append(measured)
            comparisons += self._named(usable)
            comparisons += self._marginal(usable)
        # Sorted by the place of their name in the table.
        order = {named.name: place for place, named in enumerate(named_comparisons())}
        last = len(order)
        return sorted(comparisons, key=lambda comparison: order.get(comparison.name, last))

    def _named(self, usable: Sequence[_MeasuredCase]) -> Iterator[Comparison]:
        """Each comparison of the table of named comparisons that a pair of these cases of one
        worker allows.
        """
        by_key = {measured.record_key: measured for measured in usable}
        pairs = comparable_pairs([(measured.target, measured.case) for measured in usable])
        for named, of, against in pairs:
            first, second = by_key[_record_key(*of)], by_key[_record_key(*against)]
            # One call of the first case may make several calls of the second, which then counts so
            # many times; the first case's window says how many.
            times = float(first.window.get(named.times, 1))
            # The series of both, with the figure that the comparison is about (``named.figure``).
            figures = difference_and_ratio(
                self.series(first), self.series(second), named.figure, self.precision, times
            )
            yield _comparison(named.name, [first, second], figures)

    def _marginal(self, usable: Sequence[_MeasuredCase]) -> Iterator[Comparison]:
        """What one more submit, pass, dispatch or bind change costs, from cases of one target that
        differ only in how many of these there are for each dispatch.

        Needs both ends: a case with all dispatches in one submit and pass, and one with a submit
        and a pass for each.
        """
        # Submits and passes for each dispatch: none for each, or one for each.
        all_in_one, all_apart = PerDispatch(0.0, 0.0), PerDispatch(1.0, 1.0)
        for alike in _alike_but_for_counts(usable):
            if all_apart not in alike or all_in_one not in alike:
                continue
            # Some stacks have no passes: then a pass has no cost of its own.
            has_passes = True
            for measured in alike.values():
                facts = facts_of(measured.target.stack, self.header.stacks)
                if "without-passes" in facts.roles:
                    has_passes = False
            series = {counts: self.series(measured) for counts, measured in alike.items()}
            costs = marginal_costs(series, self.precision, passes=has_passes)
            if costs:
                # The file limits how many cases a comparison names; the costs are from all of them.
                cases = list(alike.values())[:_MOST_AGAINST]
                yield _comparison("marginal", cases, costs.values())

    def _flags(self) -> list[results.Why]:
        """What a reader should know about the whole run: fewer processes than planned, variables
        that were set, workers that died, and a CPU that became slower or faster.
        """
        flags: list[results.Why] = []
        # By worker: how many of its processes ended as they should, which a rule tells.
        ended = Counter(process.worker for process in self.rules)
        for worker, wanted in self.wanted.items():
            if ended[worker] < wanted:
                flags.append(
                    because(
                        "processes-measured", worker=worker, measured=ended[worker], planned=wanted
                    )
                )
        if self.header.environment:
            variables = [f"{name}={value}" for name, value in self.header.environment.items()]
            # Cut to what a text in the file may have.
            text = " ".join(variables)[:_MOST_TEXT]
            flags.append(because("environment-of-workers", variables=text))
        for worker, deaths in self.died.items():
            last = deaths[-1].reason
            if len(deaths) == 1:
                flags.append(because("worker-died", worker=worker, why=last))
            else:
                flags.append(
                    because("workers-died", worker=worker, processes=len(deaths), why=last)
                )
        # For each process, the time of the reference loop by the number of the round.
        by_round = [_reference_loop_by_round(rounds) for rounds in self.rounds.values()]
        trend = find_drift(by_round, self.precision)
        if trend:
            flags.append(
                because("processor-drifts", early_us=trend.early / 1e3, late_us=trend.late / 1e3)
            )
        return flags


def _record_key(target: Target, case: Case) -> str:
    return f"{target.key} {case.key}"


def _alike_but_for_counts(
    usable: Iterable[_MeasuredCase],
) -> list[dict[PerDispatch, _MeasuredCase]]:
    """The cases in groups that differ only in how many submits, passes and bind changes there are
    for each dispatch; in a group, each case by these numbers.

    Pattern and the parameters ``k`` and ``bindgroup`` set these numbers, so they are left out of
    what must be equal.
    """
    groups: dict[str, dict[PerDispatch, _MeasuredCase]] = defaultdict(dict)
    for measured in usable:
        counts = PerDispatch.of(measured.case)
        if counts is None or not measured.is_own:
            continue
        params = dict(measured.case.params)
        params.pop("k", None)
        params.pop("bindgroup", None)
        # This stands for all cases that differ only in these numbers: its key names their group.
        alike = msgspec.structs.replace(measured.case, pattern="one-pass", params=params)
        # Of two cases with the same numbers, the first stays.
        groups[alike.key].setdefault(counts, measured)
    return list(groups.values())


def _reference_loop_by_round(rounds: Sequence[results.RoundEntry]) -> dict[int, float]:
    """The median time of the reference loop (always the same work of the CPU) in each round of a
    process, ns: over the run it shows whether the CPU became slower.
    """
    times_ns: dict[int, list[float]] = defaultdict(list)
    for entry in rounds:
        loop_ns = reference_ns(entry)
        if loop_ns:
            times_ns[entry.round].append(loop_ns)
    return {number: statistics.median(values) for number, values in times_ns.items()}


def _comparison(name: str, cases: Sequence[_MeasuredCase], figures: Iterable[Figure]) -> Comparison:
    """A comparison of the first of these cases with the others."""
    first, *others = cases
    return Comparison(
        name=name,
        of=first.record_key,
        against=[other.record_key for other in others],
        worker=first.worker,
        figures=[*figures],
    )


def _curve(series: Series) -> list[results.Point]:
    """Median and quartiles of the samples of each n (units in a chain) over all processes, for
    drawings of T(n).

    At most ``_MOST_CURVE_POINTS`` n, spread over their range: the smallest and the largest n stay.
    """
    # By n, the samples ``[n, issue_ns, total_ns]`` of all processes.
    by_n: dict[int, list[list[int]]] = defaultdict(list)
    for process in series.processes:
        for entry in process.rounds:
            for sample in entry.samples:
                # A fourth value is the CPU time of the wait, whose clock was read inside the
                # sample: such a sample takes longer.
                if len(sample) == 3:
                    by_n[sample[0]].append(sample)
    lengths = sorted(by_n)
    if len(lengths) > _MOST_CURVE_POINTS:
        # Indices with equal distances, the first and the last included.
        step = (len(lengths) - 1) / (_MOST_CURVE_POINTS - 1)
        lengths = [lengths[round(i * step)] for i in range(_MOST_CURVE_POINTS)]
    return [_point(n, by_n[n]) for n in lengths]


def _point(n: int, samples: Sequence[Sequence[int]]) -> results.Point:
    """The point of the curve T(n) at n units, from all samples of this n: their median and
    quartiles. ``samples``: rows ``[n, issue_ns, total_ns]``, the time to enqueue and in all.
    """
    # The quartiles are those of the whole time.
    issues = [issue_ns for _, issue_ns, _ in samples]
    totals = sorted(total_ns for _, _, total_ns in samples)
    return results.Point(
        n=n,
        issue=statistics.median(issues),
        total=statistics.median(totals),
        q1=totals[len(totals) // 4],
        q3=totals[(3 * len(totals)) // 4],
    )


def _by_processor(series: Series) -> list[results.ProcessorCost]:
    """The unpinned cost (of a process that is not fixed to a CPU core) on each core, from the first
    process that measured it.

    Only five committed journals of method 3 have it; later ones measure the cost as a spread over
    processes.
    """
    for process in series.processes:
        measured = process.one_off.get("met_by_processor")
        if measured is None:
            continue
        serving = process.values("interrupt_processors")
        # ``at``: the CPU cores; ``values``: the cost on each, ns. ``serving``: cores that serve
        # interrupts.
        costs = []
        for cpu, cost_ns in zip(measured.at, measured.values, strict=True):
            costs.append(
                results.ProcessorCost(cpu=cpu, ns=cost_ns, serves_interrupts=cpu in serving)
            )
        return costs
    return []
