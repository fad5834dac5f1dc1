"""The files of a run: the name is reserved before anything is measured, and no run uses a journal
in use.
"""

from __future__ import annotations

import errno
import os
import random
import sys
from pathlib import Path

import pytest

from overhead.cli import main
from overhead.errors import CannotWrite, UsageError
from overhead.loading import files
from overhead.loading.reduce import load
from overhead.runner.campaign import Campaign
from overhead.runner.output import reserve_journals, write_files
from overhead.runner.progress import Progress
from tests.fakes.disk import measured_lines
from tests.fakes.runs import Made
from tests.fakes.workers import run_with


def one_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The line that the command prints to standard error when it ends with exit code 2."""
    assert main(list(arguments)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_a_second_run_with_the_same_name_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (holder,) = reserve_journals(tmp_path / "r.json")
    assert "r.jsonl: exists" in one_line(
        capsys, "run", "-p", "numpy", "--out", str(tmp_path / "r.json")
    )
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
    holder.close()
    assert not list(tmp_path.iterdir()), "a run that planned nothing leaves no file"


@pytest.mark.parametrize("existing", ["r.json", "r.samples.jsonl.gz", "r.jsonl"])
def test_a_run_overwrites_no_existing_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], existing: str
) -> None:
    (tmp_path / existing).write_text('{"type":"measured by someone"}\n')
    assert f"{existing}: exists" in one_line(
        capsys, "run", "-p", "numpy", "--out", str(tmp_path / "r.json")
    )
    assert [path.name for path in tmp_path.iterdir()] == [existing]


def test_a_fingerprint_that_appears_during_a_run_is_not_overwritten(tmp_path: Path) -> None:
    (journal,) = reserve_journals(tmp_path / "r.json")
    journal.write(Made(seed=1).lines())
    Made(seed=2).write(tmp_path / "other.json")
    (tmp_path / "other.json").rename(tmp_path / "r.json")
    foreign = (tmp_path / "r.json").read_bytes()
    with pytest.raises(UsageError, match=r"not overwritten\. Everything measured is in .*r\.jsonl"):
        write_files([journal])
    journal.close()
    assert (tmp_path / "r.json").read_bytes() == foreign
    assert load(tmp_path / "r.jsonl").records


@pytest.mark.skipif(
    sys.platform == "win32", reason="other file systems allow names of other lengths"
)
@pytest.mark.parametrize(
    ("out", "words"),
    [("folder.json", "is a folder"), ("x" * 245 + ".json", "xxx"), ("y" * 240 + ".json", "yyy")],
)
def test_a_name_that_no_file_can_have_is_refused_before_anything_is_measured(
    tmp_path: Path, out: str, words: str
) -> None:
    """The system's own words for a name that is too long differ."""
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match=words):
        reserve_journals(tmp_path / out)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.json"]


def test_an_output_folder_may_have_a_dot_in_its_name(tmp_path: Path) -> None:
    (tmp_path / "results.v2").mkdir()
    assert reserve_journals(tmp_path / "results.v2")[0].path.parent.name == "results.v2"


def test_a_journal_is_empty_until_something_is_measured(tmp_path: Path) -> None:
    header, plan, *rest = Made().lines()
    (journal,) = reserve_journals(tmp_path / "r.json")
    journal.write([header, plan])
    journal.sync()
    assert (tmp_path / "r.jsonl").read_bytes() == b""
    journal.write(rest)
    journal.sync()
    assert len((tmp_path / "r.jsonl").read_bytes().splitlines()) == 2 + len(rest)
    journal.close()


def test_a_full_disk_at_the_end_leaves_no_part_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (journal,) = reserve_journals(tmp_path / "r.json")
    journal.write(Made().lines())

    def full(part: Path, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(
        CannotWrite, match=r"No space left on device; everything measured is in .*r\.jsonl"
    ):
        write_files([journal])
    journal.close()
    assert [path.name for path in tmp_path.iterdir()] == ["r.jsonl"]
    assert load(tmp_path / "r.jsonl").records


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
def test_a_pipe_in_the_place_of_a_file_is_refused_before_the_measurement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(files.part_path(tmp_path / "r.json"))
    assert "special file" in one_line(
        capsys, "run", "-p", "numpy", "--out", str(tmp_path / "r.json")
    )


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and links of POSIX")
def test_a_run_writes_nothing_through_a_link_or_a_pipe(tmp_path: Path) -> None:
    (journal,) = reserve_journals(tmp_path / "r.json")
    journal.write(Made().lines())
    (tmp_path / "precious").write_text("text")
    files.part_path(tmp_path / "r.json").symlink_to("precious")
    os.mkfifo(files.part_path(tmp_path / "r.samples.jsonl.gz"))
    outcome = write_files([journal])
    assert load(outcome.path) == load(outcome.samples)
    assert (tmp_path / "precious").read_text() == "text"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "precious",
        "r.json",
        "r.samples.jsonl.gz",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has file names that are not UTF-8")
def test_a_run_writes_a_file_whose_name_is_not_utf_8(tmp_path: Path) -> None:
    out = tmp_path / os.fsdecode(b"r\xff.json")
    seen: list[random.Random] = []

    class NotMeasured(Campaign):
        def run(self) -> None:
            seen.append(self.rng)
            raise UsageError("not measured")

    with pytest.raises(UsageError, match="not measured"):
        run_with("numpy", patterns="per-submit", out=out, campaign=NotMeasured)
    assert seen


def test_a_run_that_fails_prints_the_path_of_its_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken(Campaign):
        def run(self) -> None:
            self.runs[0].journal.write(Made().lines()[1:])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_with(
            "numpy",
            patterns="per-submit",
            out=tmp_path / "r.json",
            campaign=Broken,
            progress=Progress(),
        )
    said = " ".join(capsys.readouterr().err.split())
    assert f"everything measured is in {tmp_path / 'r.jsonl'}" in said
    assert measured_lines(tmp_path / "r.jsonl")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open file")
@pytest.mark.parametrize("removed", ["file", "folder"])
def test_a_journal_that_somebody_removes_during_the_run_is_made_again(
    tmp_path: Path, removed: str
) -> None:
    (journal,) = reserve_journals(tmp_path / "out" / "r.json")
    first, *rest = Made().lines()
    journal.write([first, *rest[:10]])
    journal.sync()
    journal.path.unlink()
    if removed == "folder":
        journal.path.parent.rmdir()
    journal.write(rest[10:])
    journal.sync()
    with pytest.raises(UsageError, match="exists"):
        reserve_journals(tmp_path / "out" / "r.json")
    assert load(write_files([journal]).path) == load(Made().journal(tmp_path / "whole.jsonl"))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows removes no open file")
def test_a_file_that_somebody_puts_in_the_place_of_the_journal_is_not_removed(
    tmp_path: Path,
) -> None:
    (journal,) = reserve_journals(tmp_path / "r.json")
    journal.path.unlink()
    journal.path.write_text("another file")
    journal.write(Made().lines())
    with pytest.raises(UsageError, match="exists"):
        journal.sync()
    journal.close()
    assert journal.path.read_text() == "another file"
