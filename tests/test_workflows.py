"""Check what can be checked here of the workflows for a public CI service: each runs only what the repository has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def commands(text: str) -> list[str]:
    return re.findall(r"^\s*(?:- )?run: (.+)$", text, re.M)


def test_there_are_workflows() -> None:
    assert {path.name for path in WORKFLOWS} == {"release.yml", "tests.yml"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_extras_and_folders_of_a_workflow_exist(path: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    found = commands(path.read_text("utf-8"))
    assert found
    for command in found:
        for names in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(names.split(",")) <= set(extras), command
        if "pytest" in command:
            assert (ROOT / command.split()[-1]).is_dir(), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_no_more_permission_than_it_needs(path: Path) -> None:
    text = path.read_text("utf-8")
    assert "permissions: { contents: read }" in text
    assert text.count("id-token: write") == (path.name == "release.yml")
    assert "secrets." not in text
