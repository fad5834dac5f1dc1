"""One case of a run: found by its key or words of it, its figures and its points as tables, and T(n) as a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from overhead.blocks.parts import Part, Table, Text, micro_cell
from overhead.errors import UsageError, require_extra
from overhead.loading.files import save_file
from overhead.loading.samples import ProcessMedians, medians_by_record
from overhead.reading.format import MICRO, between, number, plain, spread, within
from overhead.results import Fingerprint, Record

_MOST_LISTED = 10
_PLOT_INCHES = 6.0


def find_case(run: Fingerprint, case: str) -> Record:
    """The record with this key, or the only one whose key has all these words. Raises ``UsageError``."""
    words = case.lower().split()
    found = [r for r in run.records if r.key == case] or [
        r for r in run.records if all(word in r.key.lower() for word in words)
    ]
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(f"{plain(case, 200)}: no file, and no case of the run; overhead show --all lists the cases")
    keys = "; ".join(plain(r.key, 200) for r in found[:_MOST_LISTED])
    more = f" and {len(found) - _MOST_LISTED} more" if len(found) > _MOST_LISTED else ""
    raise UsageError(
        f"{plain(case, 200)}: {len(found)} cases have these words; name one by its whole key: {keys}{more}"
    )


def case_blocks(run: Fingerprint, path: Path, record: Record) -> Iterator[Part]:
    """The figures of a case, and T(n) by n with how far it lies off the line. ``path``: the file of the run."""
    yield Text([record.key, f"{record.status}: {record.reason}" if record.reason else record.status])
    rows = [
        [
            f.name,
            micro_cell(record, f.name) if f.unit == "ns" else spread(f.measured) if f.measured else f.status,
            MICRO if f.unit == "ns" else f.unit,
            str(f.processes or ""),
            f"{f.holds_to:,}" if f.holds_to else "",
            f.status,
            f.reason,
        ]
        for f in record.figures
    ]
    columns = ["figure", "value", "unit", "processes", "up to n", "status", "reason"]
    yield Table("Figures", columns, rows, numeric=(1, 3, 4)).without_empty()
    from overhead.report.core.case_line import QUARTILES_ONLY, line_of
    from overhead.report.core.lines import measured_points

    line, _ = line_of(record)
    processes = medians_by_record(run, path).get(record.key, [])
    points = [
        [
            f"{p.n:,}",
            number(within(p.total / 1e3, 0.002)),
            between(p.q1 / 1e3, p.q3 / 1e3),
            f"{100 * (p.total / (line.intercept + line.slope * p.n) - 1):+.1f}" if line else "",
            _range(processes, p.n),
        ]
        for p in measured_points(record)
    ]
    columns = ["n", f"T(n), {MICRO}", "quartiles", "off the line, %", f"medians of processes, {MICRO}"]
    yield Table("T(n)", columns, points, numeric=range(5)).without_empty()
    if not processes:
        yield Text([QUARTILES_ONLY.capitalize() + "."], quiet=True)


def _range(processes: list[ProcessMedians], n: int) -> str:
    found = [p.ladder[n] / 1e3 for p in processes if n in p.ladder]
    return f"{between(min(found), max(found))} ({len(found)})" if found else ""


def save_plot(run: Fingerprint, path: Path, record: Record, out: Path) -> Path:
    """Draw T(n) of the record and write it to ``out``; for an empty path to a PNG in this folder. Returns the path."""
    require_extra("report", "matplotlib", "seaborn")
    from overhead.report.core.case_line import case_figure, panel_name
    from overhead.report.core.draw import style

    out = out if out.name else Path(f"{panel_name(record)}.png")
    if out.suffix not in (".png", ".svg"):
        raise UsageError(f"{out}: name a file that ends in .png or .svg")
    processes = medians_by_record(run, path).get(record.key, [])
    file = io.BytesIO()
    with style():
        figure = case_figure(record, processes, run.profile, width=_PLOT_INCHES, title=record.key)
        figure.savefig(file, format=out.suffix[1:])
    save_file(out, file.getvalue())
    return out
