"""Test that each export can be read by the tool it is for."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from overhead.errors import BadFile, UsageError
from overhead.export import FORMATS, export, to_pandas
from overhead.loading.files import read_fingerprint, write_fingerprint
from overhead.reading.tables import COLUMNS
from overhead.results import codes_of
from tests.fakes.contention import h100
from tests.fakes.report import fingerprint, record
from tests.fakes.runs import Made

FORMULA = '=HYPERLINK("http://x",A1)'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return Made(seed=1).write(tmp_path / "a.json")


@pytest.mark.needs("pandas")
def test_csv_is_read_by_pandas(path: Path) -> None:
    import pandas

    read = pandas.read_csv(io.StringIO(export(path, "csv")))
    made = to_pandas(read_fingerprint(path))
    assert list(read.columns) == list(COLUMNS)
    assert len(read) == len(made)
    assert read["value"].to_numpy() == pytest.approx(
        made["value"].to_numpy(dtype=float), nan_ok=True
    )
    assert set(read["figure_unit"].dropna()) >= {"ns"}


@pytest.mark.parametrize(
    "text", [FORMULA, "+1+1", "-2", "@SUM(A1)", "\t=1", "\r=1", "  =1+1", "\uff1d1", "\uff20x"]
)
def test_csv_text_does_not_become_a_spreadsheet_formula(tmp_path: Path, text: str) -> None:
    write_fingerprint(
        tmp_path / "a.json",
        fingerprint(record(adapter=text, each=None, status="failed", reason=text)),
    )
    (row,) = csv.DictReader(io.StringIO(export(tmp_path / "a.json", "csv")))
    for cell in row.values():
        assert not cell.lstrip().startswith(("=", "+", "-", "@", "\uff1d", "\uff20"))
    assert row["adapter"].lstrip().startswith("'")


def test_csv_text_after_a_semicolon_does_not_become_a_spreadsheet_formula(tmp_path: Path) -> None:
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


def test_exporting_to_an_unknown_format_or_from_a_bad_file_is_refused(
    path: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=r"unknown format 'xml'; known: csv, json"):
        export(path, "xml")
    (tmp_path / "bad.json").write_text("[")
    for name in FORMATS:
        with pytest.raises(BadFile, match=r"bad\.json"):
            export(tmp_path / "bad.json", name)


def test_a_folder_with_a_folder_for_each_node_names_one_of_them(path: Path, tmp_path: Path) -> None:
    node = tmp_path / "nodes" / "node-1"
    node.mkdir(parents=True)
    (node / "run.json").write_bytes(path.read_bytes())
    (tmp_path / "nodes" / "empty").mkdir()
    with pytest.raises(BadFile) as refused:
        export(tmp_path / "nodes", "csv")
    assert codes_of(refused.value.fault) == {"runs-in-inner-folders"}
    assert str(node) in str(refused.value)


def test_exported_json_is_plain_ascii(tmp_path: Path) -> None:
    """So no text in it controls a terminal, and no encoding of the output loses a character."""
    path = tmp_path / "a.json"
    write_fingerprint(path, fingerprint(record(adapter="a\x9b2J\u202eµ")))
    text = export(path, "json")
    assert text.isascii()
    assert json.loads(text)


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_of_many_at_once_is_exported_whole(tmp_path: Path, name: str) -> None:
    run = h100()
    write_fingerprint(tmp_path / "a.json", run)
    text = export(tmp_path / "a.json", name)
    read = list(csv.DictReader(io.StringIO(text))) if name == "csv" else json.loads(text)
    told = {
        (row["way"], int(row["peers"]), row["placement"], row["stack"], row["caller"])
        for row in read
    }
    assert told == {
        (o.way, o.peers, o.placement, o.target.stack, o.case.caller) for o in run.contention
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_run_without_anything_to_export_is_refused(tmp_path: Path, name: str) -> None:
    write_fingerprint(tmp_path / "a.json", fingerprint())
    with pytest.raises(BadFile, match=r"a\.json"):
        export(tmp_path / "a.json", name)
