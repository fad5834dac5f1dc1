"""Locks end with their process, and the lock of the devices does not depend on the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from overhead import locks
from overhead.cli import main
from overhead.errors import UsageError
from overhead.locks import device_lock, device_lock_holder, shared_folder, try_lock

HOLDER = """
import os, sys, time
from overhead.locks import try_lock
assert try_lock(os.open(sys.argv[1], os.O_RDWR))
print("locked", flush=True)
time.sleep(600)
"""


def no_wait(seconds: float) -> None:
    raise AssertionError("another run holds the lock")


def test_a_lock_is_released_when_its_process_ends(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDWR)
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline()
        assert not try_lock(descriptor)
        holder.kill()
    assert try_lock(descriptor)
    os.close(descriptor)


def test_a_second_run_waits_until_the_first_releases_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    first = device_lock(no_wait, tmp_path)
    first.__enter__()

    def sleep(seconds: float) -> None:
        said.append("slept")
        first.__exit__(None, None, None)

    monkeypatch.setattr("overhead.locks.time.sleep", sleep)
    with device_lock(lambda seconds: said.append("waits"), tmp_path):
        assert said == ["waits", "slept"]
    with device_lock(no_wait, tmp_path):
        pass


def test_the_lock_says_which_process_holds_it(tmp_path: Path) -> None:
    assert device_lock_holder(tmp_path) is None
    with device_lock(no_wait, tmp_path):
        assert device_lock_holder(tmp_path) == os.getpid()


@pytest.mark.parametrize("text", ["", "root", "-1", "1" * 30, "99999999999999999999", "12\n"])
def test_what_is_no_process_holds_no_lock(tmp_path: Path, text: str) -> None:
    (tmp_path / locks.DEVICE_LOCK).write_text(text)
    assert device_lock_holder(tmp_path) is None


@pytest.mark.skipif(sys.platform == "win32", reason="it has no FIFOs in folders")
def test_a_fifo_in_place_of_the_lock_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / locks.DEVICE_LOCK)
    assert device_lock_holder(tmp_path) is None


def test_the_device_lock_is_the_same_file_whatever_tmpdir_is(tmp_path: Path) -> None:
    code = "from overhead.locks import shared_folder; print(shared_folder())"
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "TEMP": str(tmp_path),
        "TMP": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(shared_folder()) != str(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="most users may not create links there")
@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_a_device_lock_that_is_not_a_file_gives_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / locks.DEVICE_LOCK
    {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to("/etc/passwd"),
        "fifo": lambda: os.mkfifo(path),
    }[kind]()
    with (
        pytest.raises(UsageError, match=r"overhead-device\.lock: "),
        device_lock(no_wait, tmp_path),
    ):
        pass
    monkeypatch.setattr(locks, "shared_folder", lambda: tmp_path)
    assert main(["run", "-p", "numpy", "--out", str(tmp_path / "r.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [found.name for found in tmp_path.iterdir()] == [locks.DEVICE_LOCK]
