"""The Python API: its names, its forgiving arguments, and the examples of docs/python-api.md."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import overhead
from overhead.errors import BadFile
from overhead.results import codes_of

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "example-fingerprint.json"


@pytest.mark.needs("torch")
def test_the_public_names_of_the_package_exist() -> None:
    assert all(getattr(overhead, name) for name in overhead.__all__)
    assert overhead.__all__ == ["__version__", "compare", "explain", "load", "lower", "run", "time", "to_pandas"]


@pytest.mark.needs("pandas")
def test_the_examples_of_the_documentation_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python-api.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 3
    scope: dict[str, object] = {}
    for block in blocks:
        exec(block, scope)


def test_load_accepts_text_a_path_or_a_folder(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path / "run.json")
    assert overhead.load(str(EXAMPLE)) == overhead.load(EXAMPLE) == overhead.load(tmp_path)
    with pytest.raises(BadFile) as refused:
        overhead.load(tmp_path / ".." / tmp_path.name / "..")
    assert "no-run-here" in codes_of(refused.value.fault)
