"""Test that each export can be read by the tool it is for."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from pathlib import Path

import pyperf
import pytest

from overhead.errors import BadFile, UsageError
from overhead.export import FORMATS, export
from overhead.loading.files import read_fingerprint, write_fingerprint
from overhead.reading.tables import COLUMNS
from tests.fakes.report import crowded, fingerprint, record
from tests.fakes.runs import COSTS, LADDER, Made

RANGE = re.compile(r"(\+-|\u00b1)\s*(?P<value>\d.+)")
"""How the action looks for a number in ``range``."""
FORMULA = '=HYPERLINK("http://x",A1)'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Made(seed=1).write(tmp_path / "a.json")


@pytest.mark.needs("pandas")
def test_csv_is_read_by_pandas(path: Path) -> None:
    import pandas

    from overhead.reading.tables import to_pandas

    read = pandas.read_csv(io.StringIO(export(path, "csv")))
    made = to_pandas(read_fingerprint(path))
    assert list(read.columns) == list(COLUMNS)
    assert len(read) == len(made)
    assert read["value"].to_numpy() == pytest.approx(made["value"].to_numpy(dtype=float), nan_ok=True)
    assert set(read["figure_unit"].dropna()) >= {"ns"}


def test_csv_drops_nothing(tmp_path: Path) -> None:
    made = crowded()
    write_fingerprint(tmp_path / "a.json", made)
    read = list(csv.DictReader(io.StringIO(export(tmp_path / "a.json", "csv"))))
    assert len(read) == sum(max(1, len(r.figures)) for r in made.records)
    assert {r["case_status"] for r in read} == {r.status for r in made.records}


@pytest.mark.parametrize("text", [FORMULA, "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "  =1+1", "\uff1d1", "\uff20x"])
def test_no_text_becomes_a_formula(tmp_path: Path, text: str) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint(record(adapter=text, each=None, status="failed", reason=text)))
    (row,) = csv.DictReader(io.StringIO(export(tmp_path / "a.json", "csv")))
    for cell in row.values():
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff20"))
    assert row["adapter"].lstrip().startswith("'")


def test_no_text_after_a_semicolon_becomes_a_formula(tmp_path: Path) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint(record(adapter=f"A; {FORMULA};-2;b=3")))
    text = export(tmp_path / "a.json", "csv")
    for row in csv.reader(io.StringIO(text), delimiter=";"):
        assert not any(cell.lstrip(' "').startswith(("=", "+", "-", "@")) for cell in row[1:])
    (adapter,) = {row["adapter"] for row in csv.DictReader(io.StringIO(text))}
    assert adapter == f"A; '{FORMULA};'-2;b=3"


def test_csv_numbers_stay_numbers(tmp_path: Path) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint(record(fixed=-60_000.0)))
    read = csv.DictReader(io.StringIO(export(tmp_path / "a.json", "csv")))
    assert next(float(row["value"]) for row in read if row["figure"] == "fixed") == -60_000.0


def test_github_entries_have_name_unit_value_range_and_extra(path: Path) -> None:
    entries = json.loads(export(path, "github"))
    assert len(entries) == 2 * len(COSTS)
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        assert set(entry) == {"name", "unit", "value", "range", "extra"}
        assert isinstance(entry["name"], str)
        assert isinstance(entry["value"], float)
        assert entry["unit"] == "ns"
        assert (spread := RANGE.match(entry["range"]))
        assert float(spread["value"]) > 0
        assert entry["value"] > 0
        assert "machine 0123456789ab" in entry["extra"]


def test_pyperf_has_a_run_for_each_process(path: Path, tmp_path: Path) -> None:
    (tmp_path / "p.json").write_text(export(path, "pyperf"), encoding="utf-8")
    suite = pyperf.BenchmarkSuite.load(str(tmp_path / "p.json"))
    figures = {r.key: r.value("complete") for r in read_fingerprint(path).records}
    assert set(suite.get_benchmark_names()) == set(figures)
    for benchmark in suite.get_benchmarks():
        values = benchmark.get_values()
        assert benchmark.get_nrun() == len(values) == Made().processes
        assert statistics.stdev(values) > 0
        figure = figures[benchmark.get_name()]
        assert figure is not None
        assert 1e9 * benchmark.mean() == pytest.approx(figure, rel=0.01)
        assert benchmark.get_unit() == "second"
        assert all(run.get_total_loops() == LADDER[-1] for run in benchmark.get_runs())


@pytest.mark.parametrize("name", ["github", "pyperf"])
def test_an_empty_export_and_several_runs_give_one_line_errors(tmp_path: Path, name: str) -> None:
    empty, folder = tmp_path / "empty.json", tmp_path / "runs"
    write_fingerprint(empty, fingerprint(record(each=None, status="failed", reason="x")))
    folder.mkdir()
    for seed in (1, 2):
        Made(seed=seed).write(folder / f"{seed}.json")
    with pytest.raises(UsageError, match="no figure with a value"):
        export(empty, name)
    with pytest.raises(UsageError, match="2 runs"):
        export(folder, name)


def test_unknown_formats_and_bad_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown format 'xml'; known: csv, github, json, pyperf"):
        export(path, "xml")
    (tmp_path / "bad.json").write_text("[")
    for name in FORMATS:
        with pytest.raises(BadFile, match=r"bad\.json"):
            export(tmp_path / "bad.json", name)


@pytest.mark.parametrize("name", ["json", "github", "pyperf"])
def test_exported_json_is_plain_ascii(tmp_path: Path, name: str) -> None:
    """So no text in it controls a terminal, and no encoding of the output loses a character."""
    path = tmp_path / "a.json"
    write_fingerprint(path, fingerprint(record(adapter="a\x9b2J\u202eµ")))
    text = export(path, name)
    assert text.isascii()
    assert json.loads(text)
