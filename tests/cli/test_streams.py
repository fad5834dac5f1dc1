"""Test the output of commands in any encoding, into closed pipes, full devices and closed
descriptors.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.test_gate import SLOWER, pair
from tests.fakes.runs import Made

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = str(ROOT / "docs" / "example-fingerprint.json")
COMMANDS = {
    "a table": ["show", EXAMPLE],
    "JSON": ["show", EXAMPLE, "--json"],
    "the help": ["--help"],
}
full_device = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full on this system"
)
posix = pytest.mark.skipif(sys.platform == "win32", reason="descriptors of POSIX")


def overhead(
    arguments: Sequence[str],
    out: object = subprocess.PIPE,
    error: object = subprocess.PIPE,
    **environment: str,
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "overhead", *arguments]
    inherited = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(command, stdout=out, stderr=error, cwd=ROOT, env=inherited, timeout=120)  # type: ignore[call-overload]


def into_closed_pipe(arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    read, write = os.pipe()
    os.close(read)
    try:
        return overhead(arguments, out=write)
    finally:
        os.close(write)


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@full_device
def test_a_command_whose_output_device_is_full_prints_one_line_and_exits_with_74(
    arguments: list[str],
) -> None:
    with open("/dev/full", "w") as full:
        done = overhead(arguments, out=full)
    assert (done.returncode, done.stderr) == (
        74,
        b"overhead: standard output: No space left on device\n",
    )


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
@posix
def test_a_command_whose_output_pipe_is_closed_prints_nothing_and_exits_with_141(
    arguments: list[str],
) -> None:
    done = into_closed_pipe(arguments)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("name", "encoding"), [*((name, "ascii") for name in COMMANDS), ("a table", "utf-16")]
)
def test_a_command_replaces_characters_that_the_encoding_of_the_output_lacks(
    name: str, encoding: str
) -> None:
    done = overhead(COMMANDS[name], PYTHONIOENCODING=encoding, PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).strip()


@posix
def test_a_gate_exits_with_its_verdict_although_its_output_cannot_be_written(
    tmp_path: Path,
) -> None:
    gate = ["compare", *pair(tmp_path, Made(seed=2, costs=SLOWER)), "--fail-over", "10"]
    assert into_closed_pipe([*gate, "--json"]).returncode == 1
    if Path("/dev/full").exists():
        with open("/dev/full", "w") as full:
            assert overhead(gate, out=full, error=full).returncode == 1


@full_device
@pytest.mark.slow
def test_a_run_continues_although_its_output_is_closed(tmp_path: Path) -> None:
    run = ["run", "-p", "numpy", "--profile", "quick", "--pattern", "per-submit", "--out"]
    with open("/dev/full", "w") as full:
        assert overhead([*run, str(tmp_path / "a.json")], error=full).returncode == 0
        assert overhead([*run, str(tmp_path / "b.json")], out=full, error=full).returncode == 74
    assert (tmp_path / "a.json").exists()
    assert (tmp_path / "b.json").exists()


@posix
def test_a_command_with_closed_outputs_writes_no_output_into_another_file(tmp_path: Path) -> None:
    code = (
        "import os, sys; os.closerange(0, 3); os.execv(sys.executable, [sys.executable,"
        " *sys.argv[1:]])"
    )
    command = [
        sys.executable,
        "-c",
        code,
        "-m",
        "overhead",
        "report",
        EXAMPLE,
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120
    )
    assert done.returncode == 74
    assert (tmp_path / "index.html").read_bytes().startswith(b"<!")
