"""Without a slice, and without the slices that import it, the rest of the package works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overhead.slices import SLICES

ROOT = Path(__file__).resolve().parents[1]
DEPENDENTS = {"decode": ("claims",), "timing": ("explaining",), "traces": ("explaining",)}
"""The slices that import a slice; tests/test_architecture.py holds them to this."""
LIST = """
from overhead.cli import main
from overhead.probes import registry
assert main(["--help"]) == 0 and main(["list", "-p", "floor"]) == 0
print(*registry())
"""
MEASURE = """
import sys
from overhead.cli import main
from overhead.runner.run import run
fingerprint, out = sys.argv[1:]
for command in (["show", fingerprint], ["report", fingerprint, "--out", out]):
    assert main(command) == 0, command
assert run(["floor"], profile="quick", out=f"{out}/run.json").measured
"""


def package_without(gone: set[str], folder: Path) -> Path:
    """A folder with a copy of the package without these slices."""
    source = ROOT / "overhead"
    shutil.copytree(
        source,
        folder / "overhead",
        ignore=lambda at, _: gone if Path(at) == source else {"__pycache__"},
    )
    return folder


def python(package: Path, *arguments: str) -> str:
    """The output of Python with this package."""
    # The installed entry point of the pytest plugin is in a slice.
    environment = os.environ | {"PYTHONPATH": str(package), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("gone", SLICES)
def test_a_package_without_one_slice_lacks_only_its_commands_and_stacks(
    gone: str, tmp_path: Path
) -> None:
    left = {*SLICES} - {gone, *DEPENDENTS.get(gone, ())}
    shown = python(package_without({*SLICES} - left, tmp_path), "-c", LIST)
    assert "\n  report " in shown
    assert ("\n  explain " in shown) == ("explaining" in left)
    assert ("\n  time " in shown) == ("timing" in left)
    assert ("\n  claims " in shown) == ("claims" in left)
    assert ("onnxruntime" in shown.split()) == ("decode" in left)


@pytest.mark.slow
def test_a_package_without_slices_still_measures_and_reports(tmp_path: Path) -> None:
    package = package_without({*SLICES}, tmp_path / "package")
    python(
        package,
        "-c",
        MEASURE,
        str(next((ROOT / "reports" / "data").glob("*.json"))),
        str(tmp_path / "pages"),
    )
