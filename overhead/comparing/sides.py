"""Read one side of a comparison: its runs on one machine, with one slope per case and process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np

from overhead import results
from overhead.comparing.decide import FloatArray
from overhead.comparing.kernel_files import may_use
from overhead.comparing.verdicts import SkippedRun
from overhead.errors import BadFile
from overhead.loading import files
from overhead.loading.figures import with_sound_figures
from overhead.loading.folders import Loaded, load_paths
from overhead.loading.reduce import series_by_record
from overhead.measure.fitting.line import Mask
from overhead.measure.fitting.one_process import Series, fit_process
from overhead.measure.fitting.undisturbed_rounds import without_slow_rounds
from overhead.reading.view import View
from overhead.results import (
    Fingerprint,
    Machine,
    Record,
    Value,
    Why,
    WithFigures,
    about,
    because,
    same_figures,
)

FIGURE = "complete"
"""The compared figure: the sustained cost in ns per unit."""
_UNPROVEN = ("failed", "unverified")
"""A case with this status did not do its work, or nothing proves that it did."""
_MAY_DIFFER = ("kernel", "os", "overhead")
"""Versions in which the runs of one side may differ."""
_SHARED_BY_COPIES = 0.5
"""Two files are one run if they share more than this share of their samples, or figures, to the
last digit. Chosen, not measured: two runs share nearly none, and a copy with fewer cases all.
"""


class LoadedRun(Protocol):
    """A run whose fingerprint is in memory, such as what ``overhead.run`` returns. Its raw samples
    are beside ``path``.
    """

    @property
    def path(self) -> Path:
        """The file of the fingerprint."""

    @property
    def fingerprint(self) -> Fingerprint:
        """All figures of the run."""


@dataclass(frozen=True)
class Sampled:
    """What the processes of a run say of one case, one value per process, and the numbers of the
    processes.

    ``slopes``: ln of the slope (ns per unit) over the rounds that count for a figure; NaN where a
    process has too few. ``whole``: the same over all rounds. ``loop_time``: ln of the time of the
    reference loop (fixed work in Python, timed beside each round), ns; -inf where unknown.
    """

    slopes: FloatArray
    whole: FloatArray
    loop_time: FloatArray
    numbers: FloatArray

    def at(self, chosen: object) -> Sampled:
        """The samples of these processes: a mask, or their positions."""
        arrays = [getattr(self, field.name) for field in fields(self)]
        return Sampled(*(array[chosen] for array in arrays))

    @property
    def counted(self) -> Mask:
        """A mask of the processes with enough rounds for a figure."""
        return ~np.isnan(self.slopes)

    @property
    def of_all_rounds(self) -> Sampled:
        """The samples with ``whole``, the slopes over all rounds, in place of those over the rounds
        that count.
        """
        return replace(self, slopes=self.whole)


@dataclass(frozen=True)
class Run:
    """A fingerprint with its samples and kernel hashes, by record key.

    ``sampled`` is None if there is no file of raw samples."""

    path: Path
    fingerprint: Fingerprint
    sampled: Mapping[str, Sampled] | None
    kernels: Mapping[str, Mapping[str, str]]

    @cached_property
    def records(self) -> dict[str, Record]:
        """The records by key."""
        return {record.key: record for record in self.fingerprint.records}

    @cached_property
    def exact_figures(self) -> frozenset[tuple[str, float]]:
        """The compared figure of each case to the last digit, which no two runs share: it tells a
        copy of a run.
        """
        # ``FIGURE``: the name of the compared figure, the sustained cost of a unit.
        figures = set()
        for key, record in self.records.items():
            value = record.value(FIGURE)
            if value:
                figures.add((key, value))
        return frozenset(figures)

    @cached_property
    def exact_samples(self) -> frozenset[tuple[str, float]]:
        """A slope of each process of each case to the last digit."""
        slopes: set[tuple[str, float]] = set()
        for key, sampled in (self.sampled or {}).items():
            slopes.update((key, slope) for slope in sampled.whole.tolist())
        return frozenset(slopes)

    @cached_property
    def view(self) -> View:
        """The fingerprint as a ``View``, which finds records, targets and comparisons."""
        return View(self.fingerprint)


@dataclass(frozen=True)
class SideCase:
    """One case on one side of a comparison: ``name`` is BASE, NEW or a variant, ``key`` that of its
    records, ``runs`` the runs of the side that hold it, the oldest first.
    """

    name: str
    key: str
    runs: tuple[Run, ...]

    @property
    def record(self) -> Record:
        """The record of the case in the newest run that holds it."""
        return self.runs[-1].records[self.key]

    @cached_property
    def counted(self) -> tuple[Run, ...]:
        """The runs in which the case has a value. Samples of the others were refused, so they count
        nowhere.
        """
        return tuple(run for run in self.runs if _value_in(run, self.key) is not None)

    @cached_property
    def unproven(self) -> tuple[Run, ...]:
        """The runs in which the case failed, or in which the values did not prove its work."""
        return tuple(run for run in self.runs if _status_in(run, self.key) in _UNPROVEN)

    @cached_property
    def refused(self) -> tuple[Run, ...]:
        """The runs in which the case has no value."""
        return tuple(run for run in self.runs if run not in self.counted)

    @property
    def value(self) -> Value | None:
        """The compared figure, ns, of the middle run by its value (of an even number the lower of
        both); None if no run has one.

        The value names no board (GPU) as its source: a ratio of values that name two boards would
        raise, and BASE and NEW may be of two machines.
        """
        # ``_value_in``: the figure of the case in a run, without the board that it was measured on.
        values = []
        for run in self.runs:
            value = _value_in(run, self.key)
            if value is not None:
                values.append(value)
        if not values:
            return None
        # The middle of an odd number, and of an even number the lower of the two in the middle.
        values.sort(key=lambda value: value.value)
        return values[(len(values) - 1) // 2]

    @property
    def samples(self) -> tuple[Sampled, ...]:
        """The samples of the case that are tested, one for each run in which it has a value and
        that has raw samples with a slope.
        """
        of_runs = []
        for run in self.counted:
            # A run without raw samples counts for the value alone.
            sampled = run.sampled.get(self.key) if run.sampled is not None else None
            if sampled is not None and sampled.slopes.size:
                of_runs.append(sampled)
        return tuple(of_runs)


def _value_in(run: Run, key: str) -> Value | None:
    """The compared figure of a case, ns, whose source names no board (GPU): ``Record.measured``
    would add it, and a ratio of values of two boards raises.
    """
    return WithFigures.measured(run.records[key], FIGURE)


def _status_in(run: Run, key: str) -> str:
    """The status of the compared figure of a case in a run. That of the whole record comes first if
    it says that the work was not done: its figures then mean nothing.
    """
    # ``_UNPROVEN``: the case failed, or nothing proves that its work was done.
    record = run.records[key]
    figure = record.figure(FIGURE)
    if figure is None or record.status in _UNPROVEN:
        return record.status
    return figure.status


@dataclass(frozen=True)
class Side:
    """One side, BASE or NEW, its runs with the oldest first. All have the same machine, versions
    and method version.
    """

    name: str
    runs: tuple[Run, ...]
    skipped: tuple[SkippedRun, ...] = ()

    @property
    def machine(self) -> Machine:
        """The machine of all runs."""
        return self.runs[0].fingerprint.machine

    def held_too(self, other: Side) -> Run | None:
        """A run of this side that the other side holds too, as a copy or as the same file; None if
        there is none. A test would compare it with itself.
        """
        for run in self.runs:
            if any(same_run(run, other_run) for other_run in other.runs):
                return run
        return None

    @cached_property
    def cases(self) -> dict[str, SideCase]:
        """All cases of the side by key, each with the runs that hold it, the oldest run first."""
        # Runs are in the order of age, so those of a case are too.
        holders: dict[str, list[Run]] = {}
        for run in self.runs:
            for key in run.records:
                holders.setdefault(key, []).append(run)
        cases = {}
        for key, runs in holders.items():
            cases[key] = SideCase(self.name, key, tuple(runs))
        return cases


def read_side(name: str, given: Sequence[Path | LoadedRun]) -> Side:
    """A side of a comparison (``name``) from files, folders and runs that are in memory. A second
    copy of a run is skipped, also one with another date: its samples must not count twice.

    Raises ``BadFile`` if a file is bad or the runs differ in machine, versions, environment
    variables or method version. Among several runs, a run with bad raw samples is skipped instead.
    """
    # First all runs: those in memory, and those that the files and folders hold.
    loaded: list[Loaded] = []
    paths: list[Path] = []
    for run_or_path in given:
        if isinstance(run_or_path, Path):
            paths.append(run_or_path)
        else:
            # A reader of its file would see only sound figures (without those of cases whose work
            # nothing proves), and so must this comparison.
            sound = with_sound_figures(run_or_path.path, run_or_path.fingerprint)
            loaded.append(Loaded(run_or_path.path, sound))
    skipped: list[SkippedRun] = []
    # Without a path there is nothing to read, but if no run is in memory either, ``load_paths``
    # says so.
    if paths or not loaded:
        from_files, unread = load_paths(paths)
        loaded += from_files
        # Files that could not be read are told in the result.
        skipped = [SkippedRun(file.path.name, file.reason) for file in unread]
    # The oldest first; then ``BadFile`` if a run differs in more than a side allows.
    loaded.sort(key=_by_age)
    _refuse_different_kinds(loaded)

    # Then each with its samples, and each run once.
    runs: list[Run] = []
    for candidate in loaded:
        try:
            run = _with_samples(candidate)
        except BadFile as error:
            if len(loaded) == 1:
                raise
            # ``_fault``: what is wrong, with the name of the file, which may be the samples.
            skipped.append(SkippedRun(candidate.path.name, _fault(error)))
            continue
        original = next((known for known in runs if same_run(known, run)), None)
        if original is None:
            runs.append(run)
        else:
            why = because("same-run", file=original.path.name)
            skipped.append(SkippedRun(candidate.path.name, why))
    if not runs:
        raise BadFile(because("no-readable-samples", why=skipped[-1].why), loaded[0].path.parent)
    return Side(name, tuple(runs), tuple(skipped))


def _refuse_different_kinds(loaded: Sequence[Loaded]) -> None:
    """Raise ``BadFile`` if a run of a side differs from the oldest one in more than it may: the
    spread between the runs of a side must be that of equal runs.
    """
    first = loaded[0]
    for other in loaded[1:]:
        difference = _difference(first.fingerprint, other.fingerprint)
        if difference is not None:
            field, mine, theirs = difference
            raise BadFile(
                f"{field} {theirs}, but {mine} in {first.path.name} of the same side; name runs of"
                " one kind on each side",
                other.path,
            )


def _fault(error: BadFile) -> Why:
    """What is wrong with a file of the run, which may be its samples, with the name of that
    file.
    """
    if not error.file:
        return error.fault
    return about(Path(error.file).name, error.fault)


def _by_age(loaded: Loaded) -> tuple[str, str]:
    """The order of the runs of a side: not that of the names of their files."""
    return loaded.fingerprint.created, str(loaded.path)


class _FieldOfKind(NamedTuple):
    """A field in which two runs of one side differ, and the values of both."""

    field: str
    first: object
    other: object


def _difference(first: Fingerprint, other: Fingerprint) -> _FieldOfKind | None:
    """A field in which two runs of one side must not differ, with both values; None if they are of
    one kind: one machine, method, versions of packages and environment variables.
    """
    if first.machine.id != other.machine.id:
        return _FieldOfKind("machine", first.machine.id, other.machine.id)
    if not same_figures(first.method_version, other.method_version):
        return _FieldOfKind("method_version", first.method_version, other.method_version)
    # Packages that only one run names do not count, nor those that may differ on a side (the
    # kernel, the operating system and this suite).
    in_both = first.versions.keys() & other.versions.keys()
    for package in sorted(in_both - {*_MAY_DIFFER}):
        if first.versions[package] != other.versions[package]:
            return _FieldOfKind(package, first.versions[package], other.versions[package])
    # A variable that a run did not set counts as "absent".
    for variable in sorted({*first.environment, *other.environment}):
        mine = first.environment.get(variable, "absent")
        theirs = other.environment.get(variable, "absent")
        if mine != theirs:
            return _FieldOfKind(f"variable {variable}", mine, theirs)
    return None


def same_run(one: Run, other: Run) -> bool:
    """Whether these are one run: the same file, or a copy, also one with another date or without
    some of its cases. Two runs share hardly a sample to the last digit; without raw samples their
    figures tell it.
    """
    # Machine, date and mark of the command are those of one run.
    if _identity(one.fingerprint) == _identity(other.fingerprint):
        return True
    # Sets of (case, number to the last digit).
    if one.exact_samples and other.exact_samples:
        mine = one.exact_samples
        theirs = other.exact_samples
    else:
        mine = one.exact_figures
        theirs = other.exact_figures
    # A copy may lack some cases, so the smaller set decides.
    smaller = min(len(mine), len(theirs))
    # More than half: a copy shares all, two runs nearly none.
    return len(mine & theirs) > _SHARED_BY_COPIES * smaller


def _identity(fingerprint: Fingerprint) -> tuple[object, ...]:
    return fingerprint.machine.id, fingerprint.created, fingerprint.together


def _with_samples(loaded: Loaded) -> Run:
    """The run with its raw samples, which stand in its journal or in a file beside its fingerprint,
    reduced to a slope for each case and process; without samples if there is no such file. Raises
    ``BadFile``, also if these samples are those of another run.
    """
    path = loaded.path
    fingerprint = loaded.fingerprint
    # A journal holds its own samples; a fingerprint has them in a file of nearly the same name.
    samples = path if files.is_journal(path) else path.with_suffix(".samples.jsonl.gz")
    if not samples.is_file():
        return Run(path, fingerprint, None, _possible_kernels(fingerprint))
    this_run = fingerprint.created, fingerprint.machine.id
    # By record key ("TARGET CASE") the hash of each of the case's kernel sources.
    kernels: dict[str, Mapping[str, str]] = {}
    for entry in files.read_journal(samples):
        if isinstance(entry, results.HeaderEntry) and (entry.created, entry.machine.id) != this_run:
            raise BadFile("raw samples of another run than the fingerprint beside it", samples)
        # A case may run in the worker of another target too, to alternate with it.
        if isinstance(entry, results.OpenedEntry) and entry.worker == entry.target:
            kernels[f"{entry.target} {entry.case}"] = entry.kernels
    # Then the samples: one slope for each case and process. ``Series``: the samples of a case.
    series_of_cases = series_by_record(samples)
    by_case = {key: sampled(series) for key, series in series_of_cases.items()}
    return Run(path, fingerprint, by_case, kernels)


def _possible_kernels(fingerprint: Fingerprint) -> dict[str, Mapping[str, str]]:
    """By record key the hashes of the kernel files that the case may use, judged by their names:
    without raw samples a run lists only the files of all its cases. ``facts_of``: what is known of
    a stack, such as how the names of its kernel files end.
    """
    workloads = {record.workload for record in fingerprint.records}
    by_case: dict[str, Mapping[str, str]] = {}
    for record in fingerprint.records:
        facts = results.facts_of(record.stack, fingerprint.stacks)
        hashes = {}
        for file, kernel_hash in fingerprint.kernels.items():
            if may_use(record, facts, file, workloads):
                hashes[file] = kernel_hash
        by_case[record.key] = hashes
    return by_case


def sampled(series: Series) -> Sampled:
    """What each process says of a case, in the form that the test takes: the logarithms of its
    slope over the rounds that figures count, of that over all rounds, and of the time of its
    reference loop, which shows the processor's speed. Processes without a positive slope are left
    out.

    This is the last form of a sample before the test.
    """
    # By process the slope over all rounds, and over those that are not disturbed: in which the
    # reference loop (fixed work) was not slow. The same object comes back if no round is left out.
    over_all = _slopes_by_process(series)
    undisturbed = without_slow_rounds(series)
    over_counted = over_all
    if undisturbed is not series:
        over_counted = _slopes_by_process(undisturbed)

    # A row for each process; turned into one array for each column.
    rows = []
    for process in series.processes:
        whole = over_all.get(process.number, 0.0)
        if whole > 0:
            # NaN: with too few undisturbed rounds the process counts over all rounds only.
            slope = over_counted.get(process.number) or math.nan
            rows.append((slope, whole, process.pace, process.number))
    # ``reshape``: without a row the array would have no columns.
    *values, numbers = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    # The logarithm of 0, a loop that was not timed, is -inf.
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes, whole_slopes, loop_time = (np.log(column) for column in values)
    return Sampled(slopes, whole_slopes, loop_time, numbers)


def _slopes_by_process(series: Series) -> dict[int, float]:
    """The compared figure of each process that has rounds, ns per unit, by its number; 0 where no
    line could be fitted.
    """
    # ``fit_process`` fits lines through the samples of a process; the slope is the compared figure.
    slopes = {}
    for process in series.processes:
        if process.rounds:
            slopes[process.number] = fit_process(process, series).value(FIGURE) or 0.0
    return slopes
