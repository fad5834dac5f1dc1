"""Read one side of a comparison: its runs on one machine, with one slope per case and process."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from overhead import results
from overhead.comparing.decide import FloatArray
from overhead.comparing.kernel_files import may_use
from overhead.comparing.verdicts import SkippedRun
from overhead.errors import BadFile
from overhead.loading import files
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
_MAY_DIFFER = ("kernel", "os", "overhead")
"""Versions in which the runs of one side may differ."""
_SHARED_BY_COPIES = 0.5
"""Two files are one run if they share more than this share of their samples, or figures, to the
last digit.
"""


@dataclass(frozen=True)
class Sampled:
    """Logarithms of the slope of a case (ns per unit), one value per process, and the numbers of
    the processes.

    ``slopes``: over the rounds that count for a figure; NaN where a process has too few. ``whole``:
    over all rounds. ``pace``: ln of the time of the canary's Python loop (fixed work timed beside
    each round), ns; -inf where unknown.
    """

    slopes: FloatArray
    whole: FloatArray
    pace: FloatArray
    numbers: FloatArray

    def at(self, chosen: object) -> Sampled:
        """The samples of these processes: a mask, or their positions."""
        return Sampled(*(getattr(self, own.name)[chosen] for own in fields(self)))

    @property
    def counted(self) -> Mask:
        """A mask of the processes with enough rounds for a figure."""
        return ~np.isnan(self.slopes)

    @property
    def of_all_rounds(self) -> Sampled:
        """The same with ``whole`` as the slopes."""
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
        """The compared figure of each case to the last digit, which no two runs share."""
        values = {key: record.value(FIGURE) for key, record in self.records.items()}
        return frozenset((key, value) for key, value in values.items() if value)

    @cached_property
    def exact_samples(self) -> frozenset[tuple[str, float]]:
        """A slope of each process of each case to the last digit."""
        of_cases = (self.sampled or {}).items()
        return frozenset(
            (key, slope) for key, sampled in of_cases for slope in sampled.whole.tolist()
        )

    @cached_property
    def view(self) -> View:
        """The fingerprint as a ``View``, which finds records, targets and comparisons."""
        return View(self.fingerprint)


@dataclass(frozen=True)
class SideCase:
    """One case on the side ``name``, with the runs that hold it, the oldest first."""

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
        return tuple(
            run for run in self.runs if _status_in(run, self.key) in ("failed", "unverified")
        )

    @cached_property
    def refused(self) -> tuple[Run, ...]:
        """The runs in which the case has no value."""
        return tuple(run for run in self.runs if run not in self.counted)

    @property
    def value(self) -> Value | None:
        """The compared figure, ns, of the middle run by its value; None if no run has one.

        It is without its board, as two machines have different ones.
        """
        values = [value for run in self.counted if (value := _value_in(run, self.key)) is not None]
        return sorted(values, key=_size)[(len(values) - 1) // 2] if values else None

    @property
    def samples(self) -> tuple[Sampled, ...]:
        """The samples of the case, for each run that counts and has some."""
        found = [
            run.sampled[self.key]
            for run in self.counted
            if run.sampled is not None and self.key in run.sampled
        ]
        return tuple(one for one in found if one.slopes.size)


def _value_in(run: Run, key: str) -> Value | None:
    return WithFigures.measured(run.records[key], FIGURE)


def _status_in(run: Run, key: str) -> str:
    """The status of the compared figure, or that of the record if it says that the case as a whole
    is refused.
    """
    record = run.records[key]
    figure = record.figure(FIGURE)
    return (
        record.status
        if figure is None or record.status in ("failed", "unverified")
        else figure.status
    )


def _size(value: Value) -> float:
    return value.value


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
        there is none.
        """
        return next(
            (run for run in self.runs if any(same_run(run, one) for one in other.runs)), None
        )

    @cached_property
    def cases(self) -> dict[str, SideCase]:
        """All cases of all runs by key, in the order of the runs."""
        keys = dict.fromkeys(key for run in self.runs for key in run.records)
        return {
            key: SideCase(self.name, key, tuple(r for r in self.runs if key in r.records))
            for key in keys
        }


def read_side(name: str, paths: Sequence[Path]) -> Side:
    """Load a side from files and folders. A second copy of a run is skipped, also one with another
    date.

    Raises ``BadFile`` if a file is bad or the runs differ in machine, versions, environment
    variables or method version. Among several runs, a run with bad raw samples is skipped instead.
    """
    loaded, unread = load_paths(paths)
    loaded.sort(key=_by_age)
    skipped = [SkippedRun(one.path.name, one.reason) for one in unread]
    first = loaded[0]
    for other in loaded[1:]:
        if difference := _difference(first.fingerprint, other.fingerprint):
            field, mine, theirs = difference
            raise BadFile(
                f"{field} {theirs}, but {mine} in {first.path.name} of the same side; name runs of"
                " one kind on each side",
                other.path,
            )
    runs: list[Run] = []
    for one in loaded:
        try:
            run = _run(one.path, one.fingerprint)
        except BadFile as error:
            if len(loaded) == 1:
                raise
            skipped.append(SkippedRun(one.path.name, _fault(error)))
            continue
        original = next((known for known in runs if same_run(known, run)), None)
        if original is None:
            runs.append(run)
        else:
            skipped.append(SkippedRun(one.path.name, because("same-run", file=original.path.name)))
    if not runs:
        raise BadFile(because("no-readable-samples", why=skipped[-1].why), first.path.parent)
    return Side(name, tuple(runs), tuple(skipped))


def _fault(error: BadFile) -> Why:
    """What is wrong with a file of the run, which may be its samples, with the name of that
    file.
    """
    return about(Path(error.file).name, error.fault) if error.file else error.fault


def _by_age(loaded: Loaded) -> tuple[str, str]:
    """The order of the runs of a side: not that of the names of their files."""
    return loaded.fingerprint.created, str(loaded.path)


def _difference(first: Fingerprint, other: Fingerprint) -> tuple[str, object, object] | None:
    """A field in which two runs of one side must not differ, with both values; None if they are of
    one kind.
    """
    if first.machine.id != other.machine.id:
        return "machine", first.machine.id, other.machine.id
    if not same_figures(first.method_version, other.method_version):
        return "method_version", first.method_version, other.method_version
    for field in sorted({*first.versions} & {*other.versions} - {*_MAY_DIFFER}):
        if first.versions[field] != other.versions[field]:
            return field, first.versions[field], other.versions[field]
    for field in sorted({*first.environment, *other.environment}):
        mine, theirs = (one.environment.get(field, "absent") for one in (first, other))
        if mine != theirs:
            return f"variable {field}", mine, theirs
    return None


def same_run(one: Run, other: Run) -> bool:
    """Whether these are one run: the same file, or a copy, also with another date or without some
    of its cases.
    """
    if _identity(one.fingerprint) == _identity(other.fingerprint):
        return True
    if one.exact_samples and other.exact_samples:
        mine, theirs = one.exact_samples, other.exact_samples
    else:
        mine, theirs = one.exact_figures, other.exact_figures
    return len(mine & theirs) > _SHARED_BY_COPIES * min(len(mine), len(theirs))


def _identity(fingerprint: Fingerprint) -> tuple[object, ...]:
    return fingerprint.machine.id, fingerprint.created, fingerprint.together


def _run(path: Path, fingerprint: Fingerprint) -> Run:
    samples = path if files.is_journal(path) else path.with_suffix(".samples.jsonl.gz")
    if not samples.is_file():
        return Run(path, fingerprint, None, _possible_kernels(fingerprint))
    of_run = fingerprint.created, fingerprint.machine.id
    kernels: dict[str, Mapping[str, str]] = {}
    for line in files.read_journal(samples):
        if isinstance(line, results.HeaderLine) and (line.created, line.machine.id) != of_run:
            raise BadFile("raw samples of another run than the fingerprint beside it", samples)
        if isinstance(line, results.OpenedLine) and line.worker == line.target:
            kernels[f"{line.target} {line.case}"] = line.kernels
    return Run(
        path,
        fingerprint,
        {key: sampled(series) for key, series in series_by_record(samples).items()},
        kernels,
    )


def _possible_kernels(fingerprint: Fingerprint) -> dict[str, Mapping[str, str]]:
    """By record key the hashes of the kernel files that the case may use."""
    workloads = {record.workload for record in fingerprint.records}
    found: dict[str, Mapping[str, str]] = {}
    for record in fingerprint.records:
        facts = results.facts_of(record.stack, fingerprint.stacks)
        kernels = fingerprint.kernels.items()
        found[record.key] = {
            name: value for name, value in kernels if may_use(record, facts, name, workloads)
        }
    return found


def sampled(series: Series) -> Sampled:
    """The samples of a case, without the processes that have no positive slope."""
    whole = {
        p.number: fit_process(p, series).value(FIGURE) or 0.0 for p in series.processes if p.rounds
    }
    usual = without_slow_rounds(series)
    quiet = (
        {p.number: fit_process(p, usual).value(FIGURE) for p in usual.processes}
        if usual is not series
        else whole
    )
    rows = [
        (quiet.get(p.number) or math.nan, whole[p.number], p.pace, p.number)
        for p in series.processes
        if whole.get(p.number, 0.0) > 0
    ]
    *values, numbers = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes, over_all, pace = map(np.log, values)
    return Sampled(slopes, over_all, pace, numbers)
