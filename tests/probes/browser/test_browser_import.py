"""The download of a page becomes a journal after strict checks, and the single-file page needs no
other file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from overhead.errors import BadFile
from overhead.loading.reduce import load
from overhead.probes.browser import page_files
from overhead.probes.browser.importing import import_file
from overhead.probes.browser.page_files import kernel_hashes
from overhead.results import (
    EndedEntry,
    FailedEntry,
    HeaderEntry,
    JournalEntry,
    OneOffEntry,
    OpenedEntry,
    PlannedEntry,
    RoundEntry,
    codes_of,
)
from overhead.runner.output import write_entries
from tests.fakes.download import ROWS, download, entry

Kind = TypeVar("Kind")


def write(folder: Path, content: Any) -> Path:
    path = folder / "overhead-browser.json"
    path.write_text(json.dumps(content, separators=(",", ":")))
    return path


def of_kind(journal: Sequence[JournalEntry], kind: type[Kind]) -> list[Kind]:
    return [journal_entry for journal_entry in journal if isinstance(journal_entry, kind)]


def test_import_file_converts_a_download_of_the_page_to_a_journal(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [
        {"pattern": "per-submit"},
        {"pattern": "fused"},
        {"pattern": "per-k", "k": 16},
        {"pattern": "per-submit", "dependency": "independent", "bindgroup": "rotated"},
        {"pattern": "per-submit", "wait": "map"},
    ]
    path = write(tmp_path, download([entry(case) for case in cases]))
    journal = import_file(path)
    header = journal[0]
    assert isinstance(header, HeaderEntry)
    assert header.machine.cpu == "not told to a browser (MacIntel)"
    planned = of_kind(journal, PlannedEntry)
    assert [plan.case.key for plan in planned] == [
        "step per-submit browser chained",
        "step fused browser chained",
        "step per-k browser chained k=16",
        "step per-submit browser independent bindgroup=rotated",
        "step per-submit browser chained wait=map",
    ]
    target = planned[0].target
    assert target.stack == "safari"
    assert target.api == "Metal"
    assert not target.software
    assert not of_kind(journal, FailedEntry)
    replicates, rounds = 3, 4
    assert len(of_kind(journal, RoundEntry)) == replicates * len(cases) * rounds
    assert [ended.process for ended in of_kind(journal, EndedEntry)] == [0, 1, 2]
    opened = of_kind(journal, OpenedEntry)
    assert set(opened[0].flags) == {"page-not-isolated", "replicates-in-one-browser"}
    assert {one_off.name for one_off in of_kind(journal, OneOffEntry)} == {"empty_wait", "naive"}

    fingerprint = load(write_entries(journal, tmp_path / "imported.json").path)
    assert {record.caller for record in fingerprint.records} == {"browser"}
    complete = fingerprint.records[0].figure("complete")
    assert complete is not None
    assert complete.value == pytest.approx(1000), "ns a unit in the rows of the download"


def test_import_file_records_how_long_a_polling_wait_takes_between_two_looks(
    tmp_path: Path,
) -> None:
    slow = [[n, issue_ns, total_ns + 100_000_000] for n, issue_ns, total_ns in ROWS]
    case = entry({"pattern": "per-submit"}, trial=slow)
    journal = import_file(write(tmp_path, download([case])))
    # The wait for no units takes 2 us, and here 100 ms more: once for each of three replicates.
    quanta = [one.values for one in of_kind(journal, OneOffEntry) if one.name == "wait_quantum"]
    assert quanta == [[100_002_000.0], [100_002_000.0], [100_002_000.0]]


def test_import_file_flags_the_cases_of_a_hidden_page(tmp_path: Path) -> None:
    hidden = download([entry({"pattern": "fused"})], hidden=True)
    opened = of_kind(import_file(write(tmp_path, hidden)), OpenedEntry)
    assert opened
    for case in opened:
        assert "hidden-page" in case.flags


@pytest.mark.parametrize(
    ("one", "status", "reason"),
    [
        (entry({"pattern": "per-submit"}, lost=1), "unverified", "units-differ"),
        (entry({"pattern": "per-submit"}, values=[]), "unverified", "buffers-read-back"),
        (entry({"pattern": "per-submit"}, values=[[0] * 256]), "unverified", "values-disagree"),
        (
            entry({"pattern": "one-pass"}, kind="failed", error="the device was lost"),
            "failed",
            "the device was lost",
        ),
        (
            entry({"pattern": "one-pass"}, kind="unverified", error="rejected"),
            "unverified",
            "rejected",
        ),
        (
            entry({"pattern": "one-pass"}, kind="unsupported", error="no such"),
            "unavailable",
            "no such",
        ),
        (entry({"pattern": "per-k"}), "unavailable", "per-k-in-page"),
    ],
)
def test_import_file_records_status_and_reason_of_a_failed_case(
    tmp_path: Path, one: dict[str, Any], status: str, reason: str
) -> None:
    content = download([one, entry({"pattern": "fused"})], 1)
    journal = import_file(write(tmp_path, content))
    (failed,) = of_kind(journal, FailedEntry)
    assert failed.status == status
    assert reason in (codes_of(failed.reason) or {failed.reason})
    assert len(of_kind(journal, OpenedEntry)) == 1


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"format": "overhead-browser"},
        download([], 0),
        download([], version=2),
        download([], format="other"),
        download([], created="yesterday"),
        download([], more=1),
        download([], 101),
        download([entry({"pattern": "replay"})]),
        download([entry({"pattern": "fused", "k": -1})]),
        download([entry({"pattern": "fused"}, trial=[[1, 2]])]),
        download([entry({"pattern": "fused"}, rounds=[[[0, 0, -1]]])]),
        download([], page={"adapter": None}),
        download([], page={"kernels": {}}),
        download([], page={"cores": -1}),
        download([], page={"user_agent": "x" * 401}),
    ],
)
def test_import_file_refuses_a_file_that_is_no_valid_download(tmp_path: Path, content: Any) -> None:
    path = write(tmp_path, content)
    with pytest.raises(BadFile) as refused:
        import_file(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)


def test_import_file_refuses_a_file_that_is_cut_off_missing_or_no_text(tmp_path: Path) -> None:
    whole = json.dumps(download([entry({"pattern": "fused"})])).encode()
    for name, raw in (
        ("cut", whole[:-10]),
        ("empty", b""),
        ("deep", b"[" * 100_000),
        ("bytes", b"\xff\xfe"),
    ):
        path = tmp_path / name
        path.write_bytes(raw)
        with pytest.raises(BadFile):
            import_file(path)
    with pytest.raises(BadFile):
        import_file(tmp_path / "missing")


def test_the_page_is_one_text_that_refers_to_no_other_file() -> None:
    text = page_files.single_file_page()
    assert re.search(
        r"content=\"default-src 'none'; script-src data:;(?!.*connect-src).*form-action 'none'\"",
        text,
    )
    assert not re.search(r"""(?:src|href)=["'](?!data:)""", text)
    assert "http:" not in text.replace("http-equiv", "")
    embedded = re.search(r'<script type="application/json" id="page-data">(.*?)</script>', text)
    assert embedded is not None
    found = json.loads(embedded[1])
    assert set(found["kernels"]) == set(kernel_hashes())
    assert found["plan"]["cases"]
