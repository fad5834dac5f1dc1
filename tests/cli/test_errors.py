"""Test what the command line says of errors that no module expects: one line, and never the exit
code of a gate.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from overhead import comparing as versus
from overhead.cli import main
from tests.cli.test_gate import pair

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example-fingerprint.json"


def fail_with(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def compare(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(versus, "compare", compare)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(24, "Too many open files", "a.json"), "overhead: a.json: Too many open files\n"),
        (OSError(24, "Too many open files"), "overhead: OSError: [Errno 24] Too many open files\n"),
        (
            ImportError("libx.so: failed to map segment"),
            "overhead: ImportError: libx.so: failed to map segment\n",
        ),
        (
            MemoryError(),
            (
                "overhead: out of memory; free some or raise the limit; a run's journal holds what"
                " it measured\n"
            ),
        ),
    ],
)
def test_an_error_of_the_operating_system_gives_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    line: str,
) -> None:
    paths = pair(tmp_path)
    fail_with(monkeypatch, error)
    assert main(["compare", *paths, "--fail-over", "10"]) == 2
    assert capsys.readouterr().err == line


@pytest.mark.parametrize(
    "error",
    [
        ZeroDivisionError("a mistake"),
        ImportError("a mistake", name="overhead.reading"),
        ModuleNotFoundError("a mistake", name="overhead.gone"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_overhead_itself_does_not_exit_with_the_code_of_a_failed_gate(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
) -> None:
    paths = pair(tmp_path)
    fail_with(monkeypatch, error)
    assert main(["compare", *paths, "--fail-over", "10"]) == 70
    said = capsys.readouterr().err
    assert f"{type(error).__name__}: a mistake" in said
    assert said.endswith(
        "this is an error of overhead itself; please report it with the lines above\n"
    )


@pytest.mark.parametrize("command", [["show"], ["report"], ["browser", "--import"]])
def test_a_file_name_that_is_too_long_gives_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*command, "a" * 300 + ".json"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "a" * 300 in said


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "a\u202eb", "a\nb"])
def test_the_name_of_a_file_cannot_control_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", name]) == 2
    said = capsys.readouterr().err
    assert said.endswith("\n")
    assert said[:-1].isprintable()


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="other systems do not enforce a limit of the address space"
)
def test_too_little_memory_for_the_libraries_gives_one_line(tmp_path: Path) -> None:
    program = f'ulimit -v 80000; exec "{sys.executable}" -m overhead show "{EXAMPLE}"'
    done = subprocess.run(
        ["sh", "-c", program], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert "out of memory" in done.stderr
    assert done.stderr.count("\n") == 1
