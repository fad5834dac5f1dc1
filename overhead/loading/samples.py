"""The raw samples of a run, in their own file: what each process measured of a case."""

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
from overhead.results import Fingerprint, HeaderEntry


@dataclasses.dataclass(frozen=True)
class ProcessMedians:
    """Median T(n) of one process by n, ns. ``ladder``: the n of the line; ``anchors``: larger n,
    beyond the line.
    """

    ladder: Mapping[int, float]
    anchors: Mapping[int, float]


def medians_by_record(run: Fingerprint, path: Path | None) -> dict[str, list[ProcessMedians]]:
    """What each process measured, by the key of the record; empty where the run's samples are not
    found.

    ``path``: the file of the run. Samples lie beside it, or in a folder ``samples`` beside its
    folder.
    """
    folders = (
        [path.parent, *(folder / "samples" for folder in path.absolute().parents[1:3])]
        if path
        else []
    )
    files = [folder / f"{path.stem}.samples.jsonl.gz" for folder in folders] if path else []
    for file in [path] if path and is_journal(path) else files:
        with contextlib.suppress(BadFile):
            header = next(iter(read_journal(file)))
            if isinstance(header, HeaderEntry) and (header.created, header.machine.id) == (
                run.created,
                run.machine.id,
            ):
                series = series_by_record(file)
                return {
                    key: [_medians(process) for process in own.processes]
                    for key, own in series.items()
                }
    return {}


def _medians(process: Process) -> ProcessMedians:
    ladder = (
        () if wait_quantum(process) else process.values("ladder")
    )  # at other n calibration looked for the knee
    rows = wall_rows(process.rounds)[:, ::2]
    own = _by_n((int(n), ns) for n, ns in rows.tolist() if not ladder or n in ladder)
    anchor = process.one_off.get("anchor")
    beyond = _by_n(zip(anchor.at, anchor.values, strict=False) if anchor else ())
    return ProcessMedians(own, {n: ns for n, ns in beyond.items() if n > max(own, default=0)})


def _by_n(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    found: dict[int, list[float]] = defaultdict(list)
    for n, total in rows:
        found[n].append(total)
    return {n: statistics.median(values) for n, values in sorted(found.items())}
