"""The raw samples of a run, in their own file: what each process measured of a case."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from overhead.errors import BadFile
from overhead.loading.files import is_journal, read_journal
from overhead.loading.reduce import series_by_record
from overhead.measure.fitting.one_process import Process, wait_quantum, wall_rows
from overhead.results import Fingerprint, HeaderEntry


@dataclasses.dataclass(frozen=True)
class ProcessMedians:
    """Median T(n) of one process by n, ns. ``ladder``: the n of the line; ``anchors``: larger n,
    beyond the line.
    """

    ladder: Mapping[int, float]
    anchors: Mapping[int, float]


def medians_by_record(run: Fingerprint, path: Path | None) -> dict[str, list[ProcessMedians]]:
    """The median times that each process of the run measured, by the key of the record (the case);
    empty where the run's samples are not found.

    ``path``: the file of the run. Its samples are a file of their own: beside it, or in a folder
    ``samples`` beside its folder.
    """
    file = samples_file(run, path)
    medians: dict[str, list[ProcessMedians]] = {}
    if file is None:
        return medians
    with contextlib.suppress(BadFile):
        # ``series``: the samples of a case, process by process.
        for key, series in series_by_record(file).items():
            medians[key] = [_medians(process) for process in series.processes]
    return medians


def samples_file(run: Fingerprint, path: Path | None) -> Path | None:
    """The file of raw samples of the run, whose own file is ``path``; None where it is not
    found.
    """
    if path is None:
        return None
    for file in _places(path):
        with contextlib.suppress(BadFile):  # a file that is not there or is bad is no error
            header = next(iter(read_journal(file)))
            if isinstance(header, HeaderEntry) and _is_of_run(header, run):
                return file
    return None


@dataclasses.dataclass(frozen=True)
class SamplesPlace:
    """Where a file of raw samples is, as a page may tell it: without folders that only this machine
    has. ``path``: from the current folder; with ``is_from_run`` from the folder of the run's file.
    '' where the file was not found.
    """

    path: str
    is_from_run: bool = False


def place_of_samples(samples: Path | None, run: Path | None) -> SamplesPlace:
    """Where the samples are that ``samples_file`` found for the run, whose own file is ``run``."""
    if samples is None or run is None:
        return SamplesPlace("")
    path = samples.absolute()
    here = Path.cwd()
    if path.is_relative_to(here):
        return SamplesPlace(path.relative_to(here).as_posix())
    from_run = os.path.relpath(path, run.absolute().parent)
    return SamplesPlace(Path(from_run).as_posix(), is_from_run=True)


def _places(path: Path) -> list[Path]:
    """The paths at which the raw samples of a run may be; not all exist. If the file of the run is
    a journal, it holds them itself. Else they are beside it, or in a folder ``samples`` beside its
    folder or the one above.
    """
    if is_journal(path):
        return [path]
    # ``parents[1:3]``: the folder above that of the file, and the one above that.
    folders = [path.parent]
    for folder in path.absolute().parents[1:3]:
        folders.append(folder / "samples")
    return [folder / f"{path.stem}.samples.jsonl.gz" for folder in folders]


def _is_of_run(header: HeaderEntry, run: Fingerprint) -> bool:
    """Whether samples with this header belong to the run: a name alone does not tell it."""
    return header.created == run.created and header.machine.id == run.machine.id


def _medians(process: Process) -> ProcessMedians:
    """The median times of one process: of the n of its ladder, the numbers of units that the line
    is fitted to, and of its anchors, longer chains that check the line.

    Samples of other n are left out: with them the process looked for the knee, the n above which a
    unit costs more. Where the wait polls, all n count, because there the ladder is not fixed.
    """
    # ``wait_quantum``: of a wait that polls, the time between two polls; 0 for any other.
    ladder = () if wait_quantum(process) else process.values("ladder")
    # Pairs of n and the whole time, ns, from rows that have the time to enqueue in between.
    times = []
    for n, _, total_ns in wall_rows(process.rounds).tolist():
        if not ladder or n in ladder:
            times.append((int(n), total_ns))
    on_line = _by_n(times)
    longest = max(on_line, default=0)

    # An anchor must lie beyond the line to check it.
    anchor = process.one_off.get("anchor")
    far = {}
    if anchor is not None:
        # ``at``: the n of each value. Should one of both lists be shorter, the rest of the other is
        # dropped.
        for n, total_ns in _by_n(zip(anchor.at, anchor.values, strict=False)).items():
            if n > longest:
                far[n] = total_ns
    return ProcessMedians(on_line, far)


def _by_n(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The median time of each n, ns. ``rows``: n and time."""
    times: dict[int, list[float]] = defaultdict(list)
    for n, total_ns in rows:
        times[n].append(total_ns)
    return {n: statistics.median(values) for n, values in sorted(times.items())}
