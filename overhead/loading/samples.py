"""The raw samples of a fingerprint: where they lie, and what each process measured of a case."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from overhead.errors import BadFile
from overhead.loading.files import is_journal, read_journal
from overhead.loading.reduce import series_by_record
from overhead.measure.fitting.one_process import Process, wait_quantum, wall_rows
from overhead.results import Fingerprint, HeaderLine


@dataclasses.dataclass(frozen=True)
class ProcessMedians:
    """Median T(n) of one process by n, ns. ``ladder``: the n of the line; ``anchors``: larger n, beyond the line."""

    ladder: Mapping[int, float]
    anchors: Mapping[int, float]


def medians_by_record(run: Fingerprint, path: Path | None) -> dict[str, list[ProcessMedians]]:
    """What each process measured, by the key of the record; empty where the samples of the run are not found.

    ``path``: the file of the run, a fingerprint or a journal.
    """
    found = samples_path_of(run, path) if path else None
    if found is not None:
        with contextlib.suppress(BadFile):
            return {key: [_medians(p) for p in series.processes] for key, series in series_by_record(found).items()}
    return {}


def samples_path_of(run: Fingerprint, path: Path) -> Path | None:
    """The file of the run's raw samples: beside its fingerprint, or in ``samples`` beside its folder; None without."""
    if is_journal(path):
        return path
    folders = [path.parent, *(folder / "samples" for folder in path.absolute().parents[1:3])]
    for file in (folder / f"{path.stem}.samples.jsonl.gz" for folder in folders):
        with contextlib.suppress(BadFile):
            header = next(iter(read_journal(file)))
            if isinstance(header, HeaderLine) and (header.created, header.machine.id) == (
                run.created,
                run.machine.id,
            ):
                return file
    return None


def _medians(process: Process) -> ProcessMedians:
    rows = ((int(n), float(total)) for n, _, total in wall_rows(process.rounds))
    ladder = () if wait_quantum(process) else process.values("ladder")  # at other n calibration looked for the knee
    anchor = process.one_off.get("anchor")
    beyond = zip(anchor.at, anchor.values, strict=False) if anchor else ()
    own = _by_n(row for row in rows if not ladder or row[0] in ladder)
    return ProcessMedians(own, {n: ns for n, ns in _by_n(beyond).items() if n > max(own, default=0)})


def _by_n(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    found: dict[int, list[float]] = defaultdict(list)
    for n, total in rows:
        found[n].append(total)
    return {n: statistics.median(values) for n, values in sorted(found.items())}
