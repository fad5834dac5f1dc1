"""Files are decoded strictly and within bounds; a journal that a crash cut off is still read."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import pytest

from overhead import results
from overhead.errors import BadFile
from overhead.loading import files
from overhead.results import Case, HeaderEntry, Machine, PlannedEntry, RoundEntry, Target
from tests.fakes.report import fingerprint, record

MACHINE = Machine(id="0123456789ab", cpu="a CPU", cores=2, memory_gib=24)
HEADER = HeaderEntry(
    schema_version=results.SCHEMA_VERSION,
    method_version=results.METHOD_VERSION,
    created="2026-11-21T12:00:00Z",
    profile="quick",
    machine=MACHINE,
)
TARGET = Target(stack="fake", api="CPU", adapter="A", device="d0")
CASE = Case(pattern="per-k", params={"k": 4, "wait": "poll", "indirect": True})
ROUND = RoundEntry(
    target=TARGET.key, case=CASE.key, worker=TARGET.key, process=0, round=0, samples=[[1, 2, 3]]
)


def test_equal_keys_are_equal_cases_and_targets() -> None:
    assert CASE.key == "step per-k binding chained indirect=true k=4 wait=poll"
    assert TARGET.key == "fake@CPU:A#d0"
    assert record(params={"a": 1}).key != record(params={"a": 2}).key
    assert record(params={"a": 1, "b": 2}).key == record(params={"b": 2, "a": 1}).key


def test_a_written_fingerprint_is_read_back_equal(tmp_path: Path) -> None:
    written = fingerprint(record())
    path = tmp_path / "f.json"
    files.write_fingerprint(path, written)
    assert files.read_fingerprint(path) == written
    assert not list(tmp_path.glob("*part"))


def test_the_refusal_of_a_browser_download_names_the_import_command(tmp_path: Path) -> None:
    path = tmp_path / "download.json"
    path.write_bytes(b'{"format":"overhead-browser","cases":[]}')
    with pytest.raises(BadFile, match="overhead browser --import"):
        files.read_fingerprint(path)


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.jsonl.gz"
    bomb.write_bytes(gzip.compress(b"0" * 10_000_000))
    with pytest.raises(BadFile, match="larger than 1,000 bytes"):
        list(files.read_journal(bomb, max_bytes=1000))


def journal(tmp_path: Path, *lines: bytes) -> Path:
    path = tmp_path / "j.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def test_a_journal_may_have_an_incomplete_last_line_but_no_other_bad_line(tmp_path: Path) -> None:
    head = results.encode_entry(HEADER)
    planned = results.encode_entry(PlannedEntry(worker=TARGET.key, target=TARGET, case=CASE))
    cut = results.encode_entry(ROUND)[:-20]
    assert len(list(files.read_journal(journal(tmp_path, head, planned, cut)))) == 2
    with pytest.raises(BadFile, match="line 2"):
        list(files.read_journal(journal(tmp_path, head, cut + b"\n", planned)))


def test_a_journal_must_begin_with_its_only_header(tmp_path: Path) -> None:
    head, line = results.encode_entry(HEADER), results.encode_entry(ROUND)
    with pytest.raises(BadFile, match="no header"):
        list(files.read_journal(journal(tmp_path, line)))
    with pytest.raises(BadFile, match="second header"):
        list(files.read_journal(journal(tmp_path, head, head)))
    with pytest.raises(BadFile, match="empty"):
        list(files.read_journal(journal(tmp_path)))
    other = msgspec.structs.replace(HEADER, schema_version=7)
    with pytest.raises(BadFile, match="schema version 7"):
        list(files.read_journal(journal(tmp_path, results.encode_entry(other))))
