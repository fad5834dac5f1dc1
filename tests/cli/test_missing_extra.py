"""Test that the base install names the extra that a command or function needs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

import overhead
from overhead.cli import main
from overhead.errors import UsageError
from overhead.extras import install_command

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "example-fingerprint.json"


def hide(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda n, *a: None if n == name else real(n, *a)
    )


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib", "seaborn"])
def test_report_without_packages_names_the_extra(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    hide(missing, monkeypatch)
    assert main(["report", str(EXAMPLE), "--out", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"overhead: {missing} is not installed: {install_command('report')}\n"
    )


def test_to_pandas_without_its_packages_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hide("pandas", monkeypatch)
    run: Any = overhead.load(EXAMPLE)
    with pytest.raises(UsageError, match=f"pandas is not installed: {install_command('report')}"):
        overhead.to_pandas(run)
