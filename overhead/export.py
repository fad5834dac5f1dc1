"""Write runs in the formats of other tools: CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.errors import BadFile, require_extra, unknown_name
from overhead.loading.folders import load_paths
from overhead.loading.show import report_skipped
from overhead.reading.plain_text import plain
from overhead.reading.tables import COLUMNS, rows
from overhead.results import Fingerprint
from overhead.words.reasons import in_words

if TYPE_CHECKING:
    import pandas

_SPREADSHEET_FORMULA = re.compile(r"(^|[;|])(\s*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
"""Matches the place before a character that starts a spreadsheet formula, at the start of a
cell.
"""
_LONGEST_TEXT = 4000
FORMATS = ("csv", "json")


def export(path: Path, format: str) -> str:
    """The figures of a file or folder of runs as text in ``format`` (``csv`` or ``json``), times in
    ns.

    A row of ``csv``, or an object of ``json``, for each figure of a case, of a comparison, and of
    peers (several that use a device at the same time), with the columns ``tables.COLUMNS``.

    Raises ``UsageError`` for an unknown format, and ``BadFile`` for a bad file and where no run has
    a figure or a case.
    """
    if format not in FORMATS:
        raise unknown_name("format", format, FORMATS)
    # ``skipped``: files that are no runs, which are named on standard error.
    loaded, skipped = load_paths([path])
    report_skipped(skipped)
    table: list[tuple[Any, ...]] = []
    # ``rows``: of the table; ``in_words``: the reasons in a row as sentences.
    for run in loaded:
        table += rows(run.fingerprint)
    if not table:
        raise BadFile("nothing to export: no case was measured", path)
    if format == "csv":
        return csv_text([COLUMNS, *map(in_words, table)])
    # JSON: an object for each row. ``allow_nan``: JSON has no NaN, so one raises.
    objects = []
    for row in table:
        by_column = dict(zip(COLUMNS, row, strict=True))
        objects.append(in_words(by_column))
    return json.dumps(objects, indent=1, allow_nan=False) + "\n"


def to_pandas(fingerprint: Fingerprint) -> pandas.DataFrame:
    """One row for each figure; what has no figures has one row, so that nothing is dropped."""
    require_extra("report", "pandas")
    from pandas import DataFrame

    return DataFrame([in_words(row) for row in rows(fingerprint)], columns=list(COLUMNS))


def csv_text(table: Iterable[Iterable[Any]]) -> str:
    """The rows as CSV. A text that a spreadsheet would run as a formula gets a leading
    apostrophe.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    for row in table:
        writer.writerow([_cell(value) for value in row])
    return out.getvalue()


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return _SPREADSHEET_FORMULA.sub(r"\1\2'", plain(value, _LONGEST_TEXT))
