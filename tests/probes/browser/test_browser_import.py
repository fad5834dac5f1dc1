"""The download of a page becomes a journal after strict checks, and the single-file page needs no
other file.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

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
    OneOffEntry,
    OpenedEntry,
    PlannedEntry,
    RoundEntry,
    codes_of,
)
from overhead.runner.output import write_entries
from tests.fakes.download import ROWS, download, entry


def write(folder: Path, content: Any) -> Path:
    path = folder / "overhead-browser.json"
    path.write_text(json.dumps(content, separators=(",", ":")))
    return path


def test_import_file_converts_a_download_of_the_page_to_a_journal(tmp_path: Path) -> None:
    cases: list[dict[str, Any]] = [
        {"pattern": "per-submit"},
        {"pattern": "fused"},
        {"pattern": "per-k", "k": 16},
        {"pattern": "per-submit", "dependency": "independent", "bindgroup": "rotated"},
        {"pattern": "per-submit", "wait": "map"},
    ]
    path = write(tmp_path, download([entry(case) for case in cases]))
    lines = import_file(path)
    assert isinstance(lines[0], HeaderEntry)
    assert lines[0].machine.cpu == "not told to a browser (MacIntel)"
    planned = [line for line in lines if isinstance(line, PlannedEntry)]
    assert [line.case.key for line in planned] == [
        "step per-submit browser chained",
        "step fused browser chained",
        "step per-k browser chained k=16",
        "step per-submit browser independent bindgroup=rotated",
        "step per-submit browser chained wait=map",
    ]
    assert (planned[0].target.stack, planned[0].target.api, planned[0].target.software) == (
        "safari",
        "Metal",
        False,
    )
    assert not [line for line in lines if isinstance(line, FailedEntry)]
    assert len([line for line in lines if isinstance(line, RoundEntry)]) == 3 * 5 * 4
    assert [line.process for line in lines if isinstance(line, EndedEntry)] == [0, 1, 2]
    opened = [line for line in lines if isinstance(line, OpenedEntry)]
    assert set(opened[0].flags) == {"page-not-isolated", "replicates-in-one-browser"}
    assert {line.name for line in lines if isinstance(line, OneOffEntry)} == {"empty_wait", "naive"}

    fingerprint = load(write_entries(lines, tmp_path / "imported.json").path)
    assert {record.caller for record in fingerprint.records} == {"browser"}
    complete = fingerprint.records[0].figure("complete")
    assert complete is not None
    assert complete.value == pytest.approx(1000)


def test_import_file_records_how_long_a_polling_wait_takes_between_two_looks(
    tmp_path: Path,
) -> None:
    slow = [[row[0], row[1], row[2] + 100_000_000] for row in ROWS]
    one = entry({"pattern": "per-submit"}, trial=slow)
    quanta = [
        line
        for line in import_file(write(tmp_path, download([one])))
        if isinstance(line, OneOffEntry)
    ]
    assert [line.values for line in quanta if line.name == "wait_quantum"] == [[100_002_000.0]] * 3


def test_import_file_flags_the_cases_of_a_hidden_page(tmp_path: Path) -> None:
    lines = import_file(write(tmp_path, download([entry({"pattern": "fused"})], hidden=True)))
    assert all("hidden-page" in line.flags for line in lines if isinstance(line, OpenedEntry))


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
    lines = import_file(write(tmp_path, download([one, entry({"pattern": "fused"})], 1)))
    (failed,) = [line for line in lines if isinstance(line, FailedEntry)]
    assert failed.status == status
    assert reason in (codes_of(failed.reason) or {failed.reason})
    assert len([line for line in lines if isinstance(line, OpenedEntry)]) == 1


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
