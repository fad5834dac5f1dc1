"""In the base install every command works, or names in one line the extra that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overhead.extras import install_command
from tests.trials import LIBRARIES

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example-fingerprint.json"
BLOCK = """
import importlib.util, sys

class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Block())
find_spec = importlib.util.find_spec
def find_allowed(name, *more):
    return None if name.partition(".")[0] in {blocked!r} else find_spec(name, *more)
importlib.util.find_spec = find_allowed
"""
EXTRAS = (
    *LIBRARIES,
    "cloudpickle",
    "jinja2",
    "markupsafe",
    "matplotlib",
    "onnx",
    "onnxscript",
    "pandas",
    "ray",
    "scipy",
    "seaborn",
    "shtab",
)
"""Every module of the extras, and SciPy, which some of them bring."""
STEP = "def build():\n    numbers = list(range(1000))\n    return lambda: sum(numbers)\n"


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with an environment in which neither a command nor its children import
    an extra.
    """
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(BLOCK.format(blocked=EXTRAS))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), str(ROOT)]))
    shutil.copy(EXAMPLE, tmp_path / "run.json")
    (tmp_path / "step.py").write_text(STEP)
    return tmp_path


def said(folder: Path, *words: str) -> tuple[int, str, str]:
    """The exit code, the output and the errors of a command."""
    command = [sys.executable, "-m", "overhead", *words]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "package", "extra"),
    [
        (["report", "run.json"], "jinja2", "report"),
        (["explain", "step.py:build", "--html", "page.html"], "jinja2", "report"),
        (["show", "run.json", "values=8", "--plot"], "matplotlib", "report"),
        (["completion", "bash"], "shtab", "completion"),
        (["run", "--ray", "--out", "nodes"], "ray", "ray"),
    ],
    ids=lambda words: words[0] if isinstance(words, list) else "",
)
def test_a_command_that_needs_an_extra_names_it_in_one_line_before_any_work(
    base: Path, words: list[str], package: str, extra: str
) -> None:
    before = sorted(base.iterdir())
    code, printed, errors = said(base, *words)
    assert (code, printed) == (2, "")
    assert errors == f"overhead: {package} is not installed: {install_command(extra)}\n"
    assert sorted(base.iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["doctor"],
        ["show", "run.json"],
        ["compare", "run.json", "run.json"],
        ["claims", "run.json"],
        ["export", "run.json", "--format", "csv"],
        ["fleet", "--sbatch"],
        ["check", "-p", "floor"],
        pytest.param(["check", "-p", "numpy"], marks=pytest.mark.slow),
        pytest.param(
            ["run", "-p", "floor", "--profile", "quick", "--out", "new.json"],
            marks=pytest.mark.slow,
        ),
        pytest.param(["time", "--quick", "sum([1, 2])"], marks=pytest.mark.slow),
        pytest.param(
            ["explain", "step.py:build", "--no-alternatives", "--seconds", "1"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda words: words[0],
)
def test_every_other_command_works_in_the_base_install(base: Path, words: list[str]) -> None:
    code, printed, errors = said(base, *words)
    assert code == 0, errors
    assert "Traceback" not in printed + errors
    assert "ModuleNotFoundError" not in printed + errors
