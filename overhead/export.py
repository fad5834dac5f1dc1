"""Write runs in the formats of other tools: CSV, JSON, JSON for GitHub's benchmark action, and JSON for pyperf."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from overhead.comparing.sides import FIGURE, sampled, samples_beside
from overhead.errors import UsageError, unknown
from overhead.loading.folders import Loaded, collect, report_skipped
from overhead.loading.reduce import series_of
from overhead.reading.format import plain
from overhead.reading.tables import COLUMNS, rows
from overhead.results import Figure, Fingerprint, Record

TRACKED = (FIGURE, "host")
"""The figures for the GitHub action: smaller is better, and they are stable from run to run."""
_SPREADSHEET_FORMULA = re.compile(r"(^|[;|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Matches the place before a character that starts a spreadsheet formula, at the start of a cell."""
_LONGEST_TEXT = 4000


def export(path: Path, format: str) -> str:
    """The file text of the run in ``format``: ``csv``, ``json``, ``github`` or ``pyperf``.

    Only the first two take several runs. Raises ``UsageError`` for an unknown format, or for several runs in a format
    that holds one, and ``BadFile`` for a bad file.
    """
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    loaded, skipped = collect([path])
    report_skipped(skipped)
    return FORMATS[format](loaded)


def to_csv(loaded: Sequence[Loaded]) -> str:
    """CSV with one row per figure under ``tables.COLUMNS``, times in ns.

    A text that a spreadsheet would run as a formula gets a leading apostrophe.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for one in loaded:
        writer.writerows([_cell(value) for value in row] for row in rows(one.fingerprint))
    return out.getvalue()


def to_json(loaded: Sequence[Loaded]) -> str:
    """A JSON list with one object per figure, whose members are ``tables.COLUMNS``; times in ns."""
    return _json([dict(zip(COLUMNS, row, strict=True)) for one in loaded for row in rows(one.fingerprint)])


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _SPREADSHEET_FORMULA.sub(r"\1\2'", plain(value, _LONGEST_TEXT))


def to_github(loaded: Sequence[Loaded]) -> str:
    """JSON for benchmark-action/github-action-benchmark with the tool ``customSmallerIsBetter``.

    A list of entries with name, unit, value, range and extra. Figures without a value are left out, because the format
    has no field for a reason.
    """
    fingerprint = _single(loaded).fingerprint
    entries = [
        _entry(fingerprint, record, figure)
        for record in fingerprint.records
        for name in TRACKED
        if (figure := record.figure(name)) is not None and figure.measured
    ]
    return _json(entries or _nothing(loaded))


def _entry(fingerprint: Fingerprint, record: Record, figure: Figure) -> dict[str, Any]:
    extra = [f"machine {fingerprint.machine.id}", f"profile {fingerprint.profile}", f"{figure.processes} processes"]
    extra += [f"{figure.status}: {figure.reason}"] if figure.status != "ok" else []
    entry: dict[str, Any] = {"name": plain(f"{record.key} {figure.name}", _LONGEST_TEXT), "unit": figure.unit}
    entry["value"] = figure.value
    if figure.low is not None and figure.high is not None:
        entry["range"] = f"\u00b1 {(figure.high - figure.low) / 2:#.4g}"
    return {**entry, "extra": plain(", ".join(extra), _LONGEST_TEXT)}


def to_pyperf(loaded: Sequence[Loaded]) -> str:
    """JSON in file format 1.0 of pyperf: a benchmark per case, and a run per process with its slope in seconds.

    Without raw samples beside the file a case has one run, with the value of its figure.
    """
    one = _single(loaded)
    samples = samples_beside(one.path)
    slopes = {key: sampled(series).slopes for key, series in series_of(samples).items()} if samples else {}
    benchmarks = []
    for record in one.fingerprint.records:
        cost = record.measured(FIGURE)
        if cost is None or cost.value <= 0:
            continue
        logs = slopes.get(record.key)
        values = [math.exp(float(log)) for log in logs] if logs is not None and logs.size else [cost.value]
        benchmarks.append(_benchmark(record, [ns / 1e9 for ns in values], from_samples=bool(slopes)))
    fingerprint = one.fingerprint
    metadata = {"date": fingerprint.created, "machine": fingerprint.machine.id, "profile": fingerprint.profile}
    return _json({"version": "1.0", "metadata": metadata, "benchmarks": benchmarks or _nothing(loaded)})


def _benchmark(record: Record, seconds: Sequence[float], *, from_samples: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": plain(record.key, _LONGEST_TEXT),
        "unit": "second",
        "quantity": f"{FIGURE}, a {plain(record.unit)}",
    }
    if record.curve:
        metadata["loops"] = max(point.n for point in record.curve)
    if not from_samples:
        metadata["values"] = "the figure alone: there are no raw samples beside the file"
    return {"metadata": metadata, "runs": [{"values": [value]} for value in seconds]}


def _single(loaded: Sequence[Loaded]) -> Loaded:
    if len(loaded) != 1:
        raise UsageError(f"{loaded[0].path.parent}: {len(loaded)} runs, but this format holds one: name one file")
    return loaded[0]


def _nothing(loaded: Sequence[Loaded]) -> Any:
    raise UsageError(f"{loaded[0].path}: no figure with a value to export")


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, allow_nan=False) + "\n"


FORMATS: dict[str, Callable[[Sequence[Loaded]], str]] = {
    "csv": to_csv,
    "json": to_json,
    "github": to_github,
    "pyperf": to_pyperf,
}
"""The function of each format, in the order of the help text."""
