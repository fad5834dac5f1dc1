"""Read one side of a comparison: its runs on one machine, with one slope per case and process."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from overhead import results
from overhead.comparing.decide import FloatArray
from overhead.errors import BadFile
from overhead.loading import files
from overhead.loading.folders import Skipped, load_paths
from overhead.loading.reduce import series_by_record
from overhead.measure.fitting.line import Mask
from overhead.measure.fitting.one_process import Series, fit_process
from overhead.measure.fitting.quiet_rounds import without_slow_rounds
from overhead.reading.view import View
from overhead.results import Fingerprint, Machine, Record, Value, WithFigures, same_figures

FIGURE = "complete"
"""The compared figure: the sustained cost in ns per unit."""


@dataclass(frozen=True)
class Sampled:
    """Logarithms of the slope of a case (ns per unit), one value per process, and the numbers of the processes.

    ``slopes``: over the rounds that count for a figure; NaN where a process has too few. ``whole``: over all rounds.
    ``pace``: ln of the time of the canary's Python loop (fixed work timed beside each round), ns; -inf where unknown.
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
    def view(self) -> View:
        """The fingerprint as a ``View``, which finds records, targets and comparisons."""
        return View(self.fingerprint)


@dataclass(frozen=True)
class SideCase:
    """One case on the side ``name``, with the runs that hold it."""

    name: str
    key: str
    runs: tuple[Run, ...]

    @property
    def record(self) -> Record:
        """The record of the case in the last run that holds it."""
        return self.runs[-1].records[self.key]

    @property
    def value(self) -> Value | None:
        """The compared figure, ns, without its board (two machines have different ones); None if it has no value."""
        return WithFigures.measured(self.record, FIGURE)

    @property
    def samples(self) -> tuple[Sampled, ...]:
        """The samples of the case, for each run that has some."""
        found = [run.sampled[self.key] for run in self.runs if run.sampled is not None and self.key in run.sampled]
        return tuple(one for one in found if one.slopes.size)


@dataclass(frozen=True)
class Side:
    """One side, BASE or NEW. All its runs have the same machine and method version."""

    name: str
    runs: tuple[Run, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def machine(self) -> Machine:
        """The machine of all runs."""
        return self.runs[0].fingerprint.machine

    @cached_property
    def identities(self) -> dict[tuple[object, ...], Run]:
        """The runs by machine, time and partner, which a copy of a run shares."""
        return {_identity(run.fingerprint): run for run in self.runs}

    @cached_property
    def cases(self) -> dict[str, SideCase]:
        """All cases of all runs by key, in the order of the files."""
        keys = dict.fromkeys(key for run in self.runs for key in run.records)
        return {key: SideCase(self.name, key, tuple(r for r in self.runs if key in r.records)) for key in keys}


def read_side(name: str, paths: Sequence[Path]) -> Side:
    """Load a side from files and folders. A second copy of a run is skipped.

    Raises ``BadFile`` if a file is bad or the runs have different machines or method versions. Among several runs,
    a run with bad raw samples is skipped instead.
    """
    loaded, skipped = load_paths(paths)
    first = loaded[0]
    for other in loaded[1:]:
        machines = first.fingerprint.machine.id, other.fingerprint.machine.id
        methods = first.fingerprint.method_version, other.fingerprint.method_version
        for field, (mine, theirs), same in (
            ("machine", machines, machines[0] == machines[1]),
            ("method_version", methods, same_figures(*methods)),
        ):
            if not same:
                raise BadFile(f"{other.path}: {field} {theirs}, but {mine} in {first.path.name} of the same side")
    runs: dict[object, Run] = {}
    for one in loaded:
        identity = _identity(one.fingerprint)
        if identity in runs:
            skipped.append(Skipped(one.path, f"the same run as {runs[identity].path.name}"))
            continue
        try:
            runs[identity] = _run(one.path, one.fingerprint)
        except BadFile as error:
            if len(loaded) == 1:
                raise
            skipped.append(Skipped(one.path, str(error).removeprefix(f"{one.path.parent}{os.sep}")))
    if not runs:
        raise BadFile(f"{first.path.parent}: no run whose raw samples can be read; {skipped[-1].reason}")
    return Side(name, tuple(runs.values()), tuple(skipped))


def _identity(fingerprint: Fingerprint) -> tuple[object, ...]:
    return fingerprint.machine.id, fingerprint.created, fingerprint.together


def _run(path: Path, fingerprint: Fingerprint) -> Run:
    samples = path if files.is_journal(path) else path.with_suffix(".samples.jsonl.gz")
    if not samples.is_file():
        everywhere = {record.key: fingerprint.kernels for record in fingerprint.records}
        return Run(path, fingerprint, None, everywhere)
    of_run = fingerprint.created, fingerprint.machine.id
    kernels: dict[str, Mapping[str, str]] = {}
    for line in files.read_journal(samples):
        if isinstance(line, results.HeaderLine) and (line.created, line.machine.id) != of_run:
            raise BadFile(f"{samples}: raw samples of another run than the fingerprint beside it")
        if isinstance(line, results.OpenedLine) and line.worker == line.target:
            kernels[f"{line.target} {line.case}"] = line.kernels
    return Run(path, fingerprint, {key: sampled(series) for key, series in series_by_record(samples).items()}, kernels)


def sampled(series: Series) -> Sampled:
    """The samples of a case, without the processes that have no positive slope."""
    whole = {p.number: fit_process(p, series).value(FIGURE) or 0.0 for p in series.processes if p.rounds}
    usual = without_slow_rounds(series)
    quiet = {p.number: fit_process(p, usual).value(FIGURE) for p in usual.processes} if usual is not series else whole
    rows = [
        (quiet.get(p.number) or math.nan, whole[p.number], p.pace, p.number)
        for p in series.processes
        if whole.get(p.number, 0.0) > 0
    ]
    *values, numbers = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes, over_all, pace = map(np.log, values)
    return Sampled(slopes, over_all, pace, numbers)
