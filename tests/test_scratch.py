"""The temporary folder of a process is removed at its end, and that of a killed child at the end of
its parent.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from overhead import scratch

OWNER = """
import sys
from overhead import scratch
(scratch.folder() / "inside").mkdir()
(scratch.folder() / "inside" / "file").write_text("text")
print(scratch.folder(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv(scratch.PARENT, raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def owner() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen([sys.executable, "-c", OWNER], stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_the_temporary_folder_of_a_process_is_removed_when_it_ends(folder: Path) -> None:
    process, path = owner()
    assert path.parent == folder
    process.communicate("\n")
    assert not list(folder.iterdir())


def test_the_temporary_folder_of_a_killed_child_is_removed_with_that_of_its_parent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch.remove()
    monkeypatch.setenv(scratch.PARENT, str(scratch.folder()))
    killed, left = owner()
    killed.kill()
    killed.communicate()
    assert left.parent == scratch.folder()
    scratch.remove()
    assert not list(folder.iterdir())


def test_a_sweep_removes_only_old_temporary_folders_of_killed_processes(folder: Path) -> None:
    old, new = f"{scratch.PREFIX}a1b2c3_4", f"{scratch.PREFIX}a1b2c3_5"
    of_a_user = f"{scratch.PREFIX}of-a-user"
    for name, age_s in (
        (old, 8 * 86400),
        (new, 86400),
        ("another", 8 * 86400),
        (of_a_user, 8 * 86400),
    ):
        (folder / name).mkdir()
        os.utime(folder / name, (time.time() - age_s,) * 2)
    scratch.sweep()
    assert {path.name for path in folder.iterdir()} == {new, "another", of_a_user}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_does_not_remove_the_temporary_folder_of_its_parent(folder: Path) -> None:
    code = "; ".join(
        (
            "import os",
            "from overhead import scratch",
            "path = scratch.folder()",
            "os.fork() or exit()",
            "os.wait()",
            "print(path.exists())",
        )
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
