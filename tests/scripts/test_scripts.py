"""Test the shell scripts for offline machines, with a fake Python that prints its arguments."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.needs("bash"),
    pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for Python is a shell script"),
]
SCRIPTS = Path(__file__).resolve().parents[2] / "scripts" / "offline"
STAND_IN = """#!/usr/bin/env bash
echo "asked: $*"
case "$*" in
    *"overhead doctor") exit 3 ;;
    *"overhead run"*) echo '{}' >"${@: -1}/now.json"; exit "${RUN_CODE:-0}" ;;
esac
"""


def measure(
    tmp_path: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    python = tmp_path / "python"
    python.write_text(STAND_IN)
    python.chmod(0o755)
    (tmp_path / "wheels").mkdir(exist_ok=True)
    (tmp_path / "wheels" / "a.whl").touch()
    settings = {**os.environ, "PYTHON": str(python), **environment}
    command = ["bash", str(SCRIPTS / "measure_offline.sh"), *arguments]
    return subprocess.run(
        command, cwd=tmp_path, env=settings, capture_output=True, text=True, timeout=60
    )


def test_a_script_names_a_failing_step_and_runs_the_next_steps(tmp_path: Path) -> None:
    done = measure(tmp_path, "wheels", "results", "-p", "numpy")
    log = (tmp_path / "results" / "measure_offline.log").read_text()
    assert done.returncode == 0
    assert "overhead doctor FAILED with exit code 3" in log
    assert f"overhead run -p numpy --out {tmp_path}/results" in log
    assert f"overhead show {tmp_path}/results/now.json" in log
    assert "failed: overhead doctor (3)" in done.stdout
    assert "--no-index --no-deps --no-compile --no-cache-dir --upgrade --target" in log.replace(
        "\n", " "
    )
    assert f"{tmp_path}/wheels/a.whl" in log


def test_a_script_exits_with_the_code_of_the_measurement(tmp_path: Path) -> None:
    done = measure(tmp_path, "wheels", "results", RUN_CODE="130")
    assert done.returncode == 130
    assert "overhead show" in done.stdout


@pytest.mark.parametrize("arguments", [(), ("wheels",), ("no-such-folder", "results")])
def test_wrong_arguments_give_exit_code_2(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    assert measure(tmp_path, *arguments).returncode == 2
