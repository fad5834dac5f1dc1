"""Test that only regular files are read, and never more than their limits in time and memory."""

from __future__ import annotations

import gzip
import os
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from overhead.bounded_files import read_lines, read_whole
from overhead.cli import main
from overhead.errors import BadFile
from overhead.loading.reduce import load
from overhead.results import about, because, encode_entry
from tests.fakes.runs import Made

posix = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices of POSIX")


def peak(call: Callable[[], object]) -> int:
    """The most bytes that Python held during the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@posix
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("r.json", ["show"]),
        ("r.jsonl", ["claims"]),
        ("r.samples.jsonl.gz", ["report"]),
        ("r.json", ["browser", "--import"]),
    ],
)
def test_reading_a_pipe_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, command: list[str]
) -> None:
    os.mkfifo(tmp_path / name)
    assert main([*command, str(tmp_path / name)]) == 2
    assert f"{name}: not a regular file" in capsys.readouterr().err


@posix
def test_reading_a_folder_skips_a_pipe_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Made(seed=1).write(tmp_path / "good.json")
    os.mkfifo(tmp_path / "pipe.json")
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert main(["claims", str(tmp_path)]) == 0
    assert "skipped pipe.json: not a regular file" in capsys.readouterr().err


@posix
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_reading_a_device_is_refused(tmp_path: Path, device: str) -> None:
    (tmp_path / "r.json").symlink_to(device)
    with pytest.raises(BadFile):
        load(tmp_path / "r.json")


def test_lines_are_whole_although_the_file_is_read_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    lines = [b"a" * 700_000 + b"\n", b"b" * 700_000 + b"\n", b"\n", b"cut"]
    path.write_bytes(b"".join(lines))
    assert list(read_lines(path, 10_000_000)) == lines
    assert read_whole(path, 10_000_000) == b"".join(lines)
    with pytest.raises(BadFile, match="larger than 1,000,000 bytes"):
        list(read_lines(path, 1_000_000))


def test_reading_a_file_with_an_endless_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b" " * (40 << 20))
    with pytest.raises(BadFile, match="a line larger than"):
        load(path)


@pytest.mark.parametrize(
    ("filler", "most"), [(b"\n", 20_000_000), (b" ", 40_000_000)], ids=["empty lines", "one line"]
)
@pytest.mark.parametrize(
    "first", [b"", encode_entry(Made().lines()[0])], ids=["alone", "after a header"]
)
def test_a_decompression_bomb_is_refused_before_it_fills_memory(
    tmp_path: Path, first: bytes, filler: bytes, most: int
) -> None:
    path = tmp_path / "r.samples.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write(first)
        for _ in range(100):
            file.write(filler * 1_000_000)

    def refused() -> None:
        with pytest.raises(BadFile, match="line"):
            load(path)

    assert path.stat().st_size < 200_000
    assert peak(refused) < most


def test_an_error_holds_the_file_and_what_is_wrong_with_it(tmp_path: Path) -> None:
    with pytest.raises(BadFile) as of_text:
        read_whole(tmp_path, 10)
    assert of_text.value.file == str(tmp_path)
    assert str(of_text.value) == f"{tmp_path}: {of_text.value.fault}"
    reason = because("no-run-here")
    copied = pickle.loads(pickle.dumps(BadFile(reason, tmp_path)))
    assert copied.file == str(tmp_path)
    assert copied.fault == reason
    assert copied.why == about(str(tmp_path), reason)
    assert BadFile(reason).why == reason
