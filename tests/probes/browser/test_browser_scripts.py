"""The scripts that install a browser on a machine. A script replaces Python here, and prints its arguments."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bash"),
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script"),
]
SCRIPTS = Path(__file__).resolve().parents[3] / "scripts" / "offline"
STAND_IN = """#!/usr/bin/env bash
echo "asked: $* with $OVERHEAD_BROWSER_FLAGS"
case "$*" in
    *browser_adapter.py*) [[ "$OVERHEAD_BROWSER_FLAGS" == *"$GOOD"* ]]; exit $? ;;
    *"overhead run"*) echo '{}' >"${@: -1}/now.json" ;;
esac
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with a script that replaces Python, a wheel, and Chromium in two compressed parts."""
    (tmp_path / "python").write_text(STAND_IN)
    (tmp_path / "python").chmod(0o755)
    for name in ("wheels", "parts", "chromium"):
        (tmp_path / name).mkdir()
    (tmp_path / "wheels" / "a.whl").touch()
    (tmp_path / "chromium" / "chromium.sh").write_text("#!/bin/sh\n")
    with tarfile.open(tmp_path / "whole", "w:xz") as whole:
        whole.add(tmp_path / "chromium", "chromium")
    raw = (tmp_path / "whole").read_bytes()
    for number, part in enumerate((raw[:50], raw[50:])):
        (tmp_path / "parts" / f"chromium.tar.xz.0{number}").write_bytes(part)
    return tmp_path


def trial(machine: Path, good: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(SCRIPTS / "browser_gpu.sh"), "parts", "wheels", "results", "--profile", "quick"]
    settings = {**os.environ, "PYTHON": str(machine / "python"), "GOOD": good, **environment}
    return subprocess.run(command, cwd=machine, env=settings, capture_output=True, text=True, timeout=60)


def test_the_first_set_of_flags_with_a_gpu_is_measured(machine: Path) -> None:
    done = trial(machine, "--use-angle=gl-egl")
    assert done.returncode == 0, done.stderr
    tried = [line.split(":")[0] for line in done.stdout.splitlines() if line.startswith("== headless")]
    assert tried == ["== headless-angle-vulkan", "== headless-vulkan-only", "== headless-egl"]
    assert "overhead run -p chromium -p dawn --profile quick" in done.stdout
    assert (machine / "results" / "chromium" / "now.json").exists()
    assert "== headless-egl" in (machine / "results" / "browser_gpu.log").read_text()
    assert (machine / "parts" / "chromium" / "chromium.sh").exists()


def test_without_a_gpu_the_exit_code_is_3_and_nothing_is_measured(machine: Path) -> None:
    done = trial(machine, "no such flag")
    assert done.returncode == 3
    assert "overhead run" not in done.stdout
    assert "browsers measured on a GPU: 0" in done.stdout
