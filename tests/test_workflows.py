"""Check what can be checked here of the workflows for a public CI service: each runs only what the repository has."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from scripts import bootstrap
from tests.conftest import PARTS

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def commands(text: str) -> list[str]:
    return re.findall(r"^\s*(?:- )?run: (.+)$", text, re.M)


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
        if command.startswith("make "):
            assert command.split()[1] in bootstrap.TARGETS


@pytest.mark.parametrize("name", ["OVERHEAD_REQUIRED", "adapters"])
def test_the_parts_that_a_workflow_requires_exist(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    found = re.findall(rf'{name}: "?([\w,]+)', text)
    assert found
    for names in found:
        assert set(names.strip(",").split(",")) <= set(PARTS)
