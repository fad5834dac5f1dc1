"""Test what the command line says of errors that no module expects: one line, and never the exit
code of a gate.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from overhead import comparing as versus
from overhead.cli import main
from overhead.extras import install_command
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


def run_in(module: str, statement: str) -> Callable[..., None]:
    """A function that runs a statement as if it stood in the module of this name."""

    def compare(*arguments: object, **options: object) -> None:
        exec(statement, {"__name__": module})

    return compare


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("overhead.comparing", "from overhead.errors import gone"),
        ("overhead.comparing", "import overhead.gone"),
        ("plugin", "from overhead.errors import gone"),
        ("overhead.comparing", "from msgspec import gone"),
        ("overhead.comparing", "import msgspec.gone"),
    ],
)
def test_a_name_that_ours_or_an_installed_library_lacks_is_an_error_of_overhead_itself(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    statement: str,
) -> None:
    paths = pair(tmp_path)
    monkeypatch.setattr(versus, "compare", run_in(module, statement))
    assert main(["compare", *paths]) == 70
    printed = capsys.readouterr().err
    assert printed.startswith("Traceback")
    assert "gone" in printed
    assert printed.endswith(
        "this is an error of overhead itself; please report it with the lines above\n"
    )


@pytest.mark.parametrize(
    ("module", "statement", "line"),
    [
        (
            "msgspec.inside",
            "from msgspec import gone",
            "ImportError: cannot import name 'gone' from 'msgspec'",
        ),
        (
            "overhead.comparing",
            "import no_such_package",
            "ModuleNotFoundError: No module named 'no_such_package'",
        ),
        (
            "overhead.comparing",
            "raise ImportError('libx.so.1: not found', name='x', path='/site/x/core.so')",
            "ImportError: libx.so.1: not found",
        ),
    ],
    ids=["a broken library", "a package that is missing", "a compiled module that does not load"],
)
def test_a_library_that_does_not_import_gives_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: str,
    statement: str,
    line: str,
) -> None:
    paths = pair(tmp_path)
    monkeypatch.setattr(versus, "compare", run_in(module, statement))
    assert main(["compare", *paths]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"overhead: {line}")
    assert printed.count("\n") == 1


@pytest.mark.parametrize("name", ["matplotlib", "matplotlib.axes"])
def test_a_missing_package_of_an_extra_gives_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    paths = pair(tmp_path)
    fail_with(monkeypatch, ModuleNotFoundError(f"No module named {name!r}", name=name))
    assert main(["compare", *paths]) == 2
    command = install_command("report")
    assert capsys.readouterr().err == f"overhead: matplotlib is not installed: {command}\n"


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
