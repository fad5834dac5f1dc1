"""Two explanations compared, in the terminal and from the command line."""

import json
import pathlib

import msgspec
import pytest

from overhead.cli import main
from overhead.explain.record import save_explanation
from tests.fakes.explained import explanation
from tests.fakes.report import H200


@pytest.fixture
def files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "200")
    paths = [tmp_path / "base.json", tmp_path / "new.json"]
    for path in paths:
        save_explanation(path, msgspec.structs.replace(explanation(), machine=H200))
    return [str(path) for path in paths]


def test_compare_takes_two_explanations(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files]) == 0
    printed = capsys.readouterr().out
    assert "BASE base.json: host-bound. NEW new.json: host-bound." in printed
    assert "no difference: another run may differ by" in printed


def test_compare_prints_json(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files, "--json"]) == 0
    assert {pair["name"] for pair in json.loads(capsys.readouterr().out)["pairs"]} >= {"wall", "launches"}


def test_a_gate_on_explanations_is_wrong_use(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *files, "--fail-over", "5"]) == 2
    assert "explanations have no --fail-over" in capsys.readouterr().err
