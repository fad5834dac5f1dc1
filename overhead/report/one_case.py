"""One case of a run: found by its key or words of it, its figures and its points as tables, and
T(n) as a file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from overhead.blocks.parts import Column, Part, Text, micro_cell, table_of
from overhead.errors import UnknownName, UsageError, nearest, require_extra
from overhead.loading.files import save_file
from overhead.loading.outputs import Output, begins_like, check_outputs
from overhead.loading.samples import ProcessMedians, medians_by_record
from overhead.measure.fitting.line import Line
from overhead.reading.plain_text import plain
from overhead.report.core.case_line import case_figure, line_of, panel_name
from overhead.report.core.lines import measured_points
from overhead.results import Figure, Fingerprint, Point, Record, facts_of
from overhead.words.format import MICRO, between, number, spread, within
from overhead.words.glossary import figure_name
from overhead.words.reasons import sentence, with_status
from overhead.words.report.example_run import example_lines
from overhead.words.report.lines import ONLY_WITH_SAMPLES

_MOST_LISTED = 10
_PLOT_INCHES = 6.0
_METADATA = {".png": "Software", ".svg": "Creator"}
"""Where a drawing says what made it, by the kind of file."""
_HEADS = {
    ".png": re.compile(
        rb"\x89PNG\r\n\x1a\n.{25}\x00\x00\x00\x11tEXtSoftware\x00overhead", re.DOTALL
    ),
    ".svg": re.compile(
        rb'<\?xml version="1\.0" encoding="utf-8" standalone="no"\?>\r?\n<!DOCTYPE svg'
        rb" [^>]*>\r?\n<svg [^>]*>\r?\n"
        rb" <metadata>\r?\n  <rdf:RDF [^>]*>\r?\n   <cc:Work>\r?\n    <dc:type [^>]*/>\r?\n"
        rb"(?:    <dc:(?:date|format)>[^<]*</dc:\w+>\r?\n)*"
        rb"    <dc:creator>\r?\n     <cc:Agent>\r?\n      <dc:title>overhead</dc:title>"
    ),
}
"""How matplotlib begins such a file, line by line: a drawing program keeps the name in a drawing
that it has changed, and writes the lines its own way.
"""


def find_case(run: Fingerprint, case: str) -> Record:
    """The record of the case that a user named: by its whole key, or by words that only one key
    has. Raises ``UsageError``, which names the keys that it could be.
    """
    # A whole key, or else words that all stand in one key.
    words = case.lower().split()
    found = [record for record in run.records if record.key == case]
    if not found:
        found = [record for record in run.records if _has_words(record, words)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise _unknown_case(run, case, words)
    keys = [plain(record.key) for record in found[:_MOST_LISTED]]
    if len(found) > _MOST_LISTED:
        keys.append("...")
    raise UsageError(
        f"{plain(case)}: {len(found)} cases have these words; add words of one of these keys:"
        f" {'; '.join(keys)}"
    )


def _has_words(record: Record, words: Iterable[str]) -> bool:
    """Whether the key of the case has all these words, which are in lower case."""
    key = record.key.lower()
    return all(word in key for word in words)


def _unknown_case(run: Fingerprint, case: str, words: Sequence[str]) -> UnknownName:
    """The error for words that no key of a case has together. If one of them is in no key at all,
    it is probably misspelt, and the error names the nearest word of the keys.
    """
    # The words of all keys, and the first of the given ones that none of them has.
    known: set[str] = set()
    for record in run.records:
        # A key begins with stack@API:adapter, so these signs separate words too.
        known.update(filter(None, re.split(r"[\s@:]", record.key)))
    all_keys = " ".join(record.key.lower() for record in run.records)
    unknown = [word for word in words if word not in all_keys]
    meant = nearest(unknown[0], known) if unknown else ""
    if not meant:
        return UnknownName(
            f"{plain(case)}: no file, and no case of the run; overhead show --all lists them"
        )
    return UnknownName(
        f"{plain(case)}: no file, and no case of the run; {plain(unknown[0])} is in no key, did you"
        f" mean {meant!r}?",
        meant,
    )


def case_blocks(run: Fingerprint, path: Path, record: Record) -> Iterator[Part]:
    """What ``overhead show`` prints of one case: its figures, and T(n), the time of a chain of n
    units, with how far it lies off the fitted line.

    ``path``: the file of the run. Samples beside it add the medians of each process.
    """
    # ``example_lines``: that the run is the example of this package; none for any other run.
    yield Text([*example_lines(run), record.key, with_status(record.status, record.reason)])
    yield table_of("Figures", _figure_columns(record), record.figures)
    processes = medians_by_record(run, path).get(record.key, [])
    columns = _point_columns(record, processes)
    yield table_of("The time of a chain of n", columns, measured_points(record))
    yield Text([] if processes else [ONLY_WITH_SAMPLES], quiet=True)


def _figure_columns(record: Record) -> list[Column[Figure]]:
    """The columns of the table of a case's figures, each a row: value, status, reason."""
    value = partial(_value, record)
    # ``hidden``: a narrow terminal hides these columns first, in the order of their numbers.
    return [
        Column("figure", _name),
        Column("value", value, is_number=True),
        Column("unit", _unit),
        Column("status", _status),
        Column("processes", _processes, is_number=True, hidden=1),
        Column("reason", _reason, is_important=True),
    ]


def _name(figure: Figure) -> str:
    return figure_name(figure.name)


def _value(record: Record, figure: Figure) -> str:
    """The value with its interval, a time in microseconds; the status of a figure without one."""
    if figure.unit == "ns":
        return micro_cell(record, figure.name)
    value = figure.measured
    return spread(value) if value is not None else figure.status


def _unit(figure: Figure) -> str:
    return MICRO if figure.unit == "ns" else figure.unit


def _status(figure: Figure) -> str:
    return figure.status


def _processes(figure: Figure) -> str:
    """The number of processes that measured the figure."""
    return str(figure.processes) if figure.processes else ""


def _reason(figure: Figure) -> str:
    return sentence(figure.reason)


def _point_columns(record: Record, processes: Sequence[ProcessMedians]) -> list[Column[Point]]:
    """The columns of the table of T(n), the time of a chain of n units, by n. Empty columns are
    left out: without ``processes`` (from samples) that with the medians of each.
    """
    # ``line_of``: the line through T(n).
    off_line = partial(_off_line, line_of(record).line)
    medians = partial(_medians_of_processes, processes)
    # ``hidden``: a narrow terminal hides these columns first, in the order of their numbers.
    columns: list[Column[Point]] = [
        Column("n", _n),
        Column(f"T(n), {MICRO}, median", _median),
        Column("quartiles", _quartiles, hidden=2),
        Column("off the line, %", off_line),
        Column("medians of the processes", medians, hidden=1),
    ]
    return [replace(column, is_number=True, only_if_filled=True) for column in columns]


def _n(point: Point) -> str:
    return f"{point.n:,}"


def _median(point: Point) -> str:
    """The median of T(n) in microseconds, to 0.2 %."""
    return number(within(point.total / 1e3, 0.002))


def _quartiles(point: Point) -> str:
    return between(point.q1 / 1e3, point.q3 / 1e3)


def _off_line(line: Line | None, point: Point) -> str:
    """How far T(n) lies above the line, in per cent of the line."""
    if line is None:
        return ""
    on_line = line.intercept + line.slope * point.n
    off = point.total / on_line - 1
    return f"{100 * off:+.1f}"


def _medians_of_processes(processes: Sequence[ProcessMedians], point: Point) -> str:
    """The lowest and the highest median of T(n) among the processes, and in brackets how many
    measured this n; '' for none. ``ladder``: the medians of a process by n.
    """
    medians = []
    for process in processes:
        if point.n in process.ladder:
            medians.append(process.ladder[point.n] / 1e3)
    if not medians:
        return ""
    ends = between(min(medians), max(medians))
    return f"{ends} ({len(medians)})"


def save_plot(run: Fingerprint, path: Path, record: Record, out: Path) -> Path:
    """Draw T(n) of the record, the time of n units over n, and write it to ``out``, by default a
    PNG in this folder. Returns its path.

    ``path``: the file of the run, beside which its samples may lie. Raises ``UsageError``.
    """
    require_extra("report", "matplotlib", "seaborn")
    # An empty path: the file gets the name of the case.
    if not out.name:
        out = Path(f"{panel_name(record)}.png")
    if out.suffix not in (".png", ".svg"):
        raise UsageError(f"{out}: name a file that ends in .png or .svg")
    # Only a drawing that this command made may be overwritten: its first bytes name ``overhead``,
    # because ``metadata`` below writes that.
    check_outputs([Output(out, begins_like(_HEADS[out.suffix]))], [path])
    # The medians of each process, if the samples lie beside the file.
    processes = medians_by_record(run, path).get(record.key, [])
    colour = facts_of(record.stack, run.stacks).colour
    figure = case_figure(
        record, processes, run.profile, colour, width=_PLOT_INCHES, title=record.key
    )
    file = io.BytesIO()
    made_by = {_METADATA[out.suffix]: "overhead"}
    figure.savefig(file, format=out.suffix.removeprefix("."), metadata=made_by)
    save_file(out, file.getvalue())
    return out
