"""One case of a run: found by its key or words of it, its figures and its points as tables, and
T(n) as a file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from overhead.blocks.parts import Part, Table, Text, micro_cell
from overhead.errors import UnknownName, UsageError, nearest, require_extra
from overhead.loading.files import save_file
from overhead.loading.outputs import Output, begins_like, check_outputs
from overhead.loading.samples import medians_by_record
from overhead.reading.plain_text import plain
from overhead.report.core.case_line import case_figure, line_of, panel_name
from overhead.report.core.lines import measured_points
from overhead.results import Figure, Fingerprint, Record, facts_of
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
    """The record with this key, or the only one whose key has all these words. Raises
    ``UsageError``.
    """
    words = case.lower().split()
    alike = [r for r in run.records if all(word in r.key.lower() for word in words)]
    found = [r for r in alike if r.key == case] or alike
    if len(found) == 1:
        return found[0]
    if not found:
        raise _unknown_case(run, case, words)
    keys = "; ".join(
        [plain(r.key) for r in found[:_MOST_LISTED]] + ["..."] * (len(found) > _MOST_LISTED)
    )
    raise UsageError(
        f"{plain(case)}: {len(found)} cases have these words; add words of one of these keys:"
        f" {keys}"
    )


def _unknown_case(run: Fingerprint, case: str, words: Sequence[str]) -> UnknownName:
    """The error for words that no key has together, with the word that was probably meant for one
    that no key has.
    """
    known = {part for record in run.records for part in re.split(r"[\s@:]", record.key) if part}
    keys = " ".join(record.key.lower() for record in run.records)
    strange = next((word for word in words if word not in keys), "")
    near = nearest(strange, known) if strange else ""
    if not near:
        return UnknownName(
            f"{plain(case)}: no file, and no case of the run; overhead show --all lists them"
        )
    return UnknownName(
        f"{plain(case)}: no file, and no case of the run; {plain(strange)} is in no key, did you"
        f" mean {near!r}?",
        near,
    )


def case_blocks(run: Fingerprint, path: Path, record: Record) -> Iterator[Part]:
    """The figures of a case, and T(n) by n with how far it lies off the line. ``path``: the file of
    the run.
    """
    yield Text([*example_lines(run), record.key, with_status(record.status, record.reason)])
    rows = [
        [
            figure_name(f.name),
            *_value(record, f),
            f.status,
            str(f.processes or ""),
            sentence(f.reason),
        ]
        for f in record.figures
    ]
    columns = ["figure", "value", "unit", "status", "processes", "reason"]
    _, value, _, _, in_processes, reason = range(6)
    yield Table(
        "Figures",
        columns,
        rows,
        (value, in_processes),
        optional=(in_processes,),
        important=(reason,),
    )
    processes = medians_by_record(run, path).get(record.key, [])
    line, points = line_of(record)[0], []
    for p in measured_points(record):
        off = f"{100 * (p.total / (line.intercept + line.slope * p.n) - 1):+.1f}" if line else ""
        median = number(within(p.total / 1e3, 0.002))
        own = [one.ladder[p.n] / 1e3 for one in processes if p.n in one.ladder]
        ends = f"{between(min(own), max(own))} ({len(own)})" if own else ""
        points.append([f"{p.n:,}", median, between(p.q1 / 1e3, p.q3 / 1e3), off, ends])
    columns = [
        "n",
        f"T(n), {MICRO}, median",
        "quartiles",
        "off the line, %",
        "medians of the processes",
    ]
    _, _, quartiles, _, of_processes = range(5)
    yield Table(
        "The time of a chain of n",
        columns,
        points,
        numeric=range(5),
        optional=(of_processes, quartiles),
    ).without_empty()
    yield Text([] if processes else [ONLY_WITH_SAMPLES], quiet=True)


def _value(record: Record, figure: Figure) -> tuple[str, str]:
    if figure.unit == "ns":
        return micro_cell(record, figure.name), MICRO
    return spread(figure.measured) if figure.measured else figure.status, figure.unit


def save_plot(run: Fingerprint, path: Path, record: Record, out: Path) -> Path:
    """Draw T(n) of the record and write it to ``out``, by default a PNG in this folder. Returns its
    path.

    ``path``: the file of the run, beside which its samples may lie. Raises ``UsageError``.
    """
    require_extra("report", "matplotlib", "seaborn")
    out = out if out.name else Path(f"{panel_name(record)}.png")
    if out.suffix not in (".png", ".svg"):
        raise UsageError(f"{out}: name a file that ends in .png or .svg")
    check_outputs([Output(out, begins_like(_HEADS[out.suffix]))], [path])
    processes, file = medians_by_record(run, path).get(record.key, []), io.BytesIO()
    colour = facts_of(record.stack, run.stacks).colour
    figure = case_figure(
        record, processes, run.profile, colour, width=_PLOT_INCHES, title=record.key
    )
    figure.savefig(file, format=out.suffix[1:], metadata={_METADATA[out.suffix]: "overhead"})
    save_file(out, file.getvalue())
    return out
