"""Figures in a file that contradict themselves, that nothing proves, or that no measurement can
be.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.cli import main
from overhead.errors import BadFile
from overhead.explaining.record import encode_explanation
from overhead.explaining.saved import read_explanation
from overhead.loading.files import read_fingerprint
from overhead.reading.dispatch_costs import over_undisturbed
from overhead.results import VALUED, Figure
from tests.fakes.explanations import decode_explained

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "example-fingerprint.json"


def changed(
    path: Path, change: Callable[[dict[str, Any]], object], records: dict[str, Any] | None = None
) -> Path:
    """A copy of the example in which each figure with a value, and each record, is changed."""
    found = json.loads(EXAMPLE.read_bytes())
    for row in found["records"]:
        row.update(records or {})
        for figure in row["figures"]:
            if figure.get("value"):
                change(figure)
    path.write_text(json.dumps(found), "utf-8")
    return path


CONTRADICTIONS = {
    "interval": {"low": 5.0, "high": 4.0},
    "reach": {"holds_from": 5000, "holds_to": 10},
    "unit": {"unit": "s"},
}


@pytest.mark.parametrize("fault", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_file_with_a_figure_that_contradicts_itself_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: dict[str, Any]
) -> None:
    path = changed(tmp_path / "run.json", lambda figure: figure.update(fault))
    with pytest.raises(BadFile) as refused:
        read_fingerprint(path)
    assert str(refused.value).startswith(str(path))
    assert main(["show", str(path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("value", [1e-300, 1e300, -1e200])
def test_a_value_that_no_measurement_can_be_has_no_status_of_a_value(
    tmp_path: Path, value: float
) -> None:
    path = changed(
        tmp_path / "run.json", lambda figure: figure.update(value=value, low=None, high=None)
    )
    figures: list[Figure] = []
    for record in read_fingerprint(path).records:
        figures += record.figures
    assert not [figure for figure in figures if figure.status in VALUED and figure.value is None]
    assert not any(figure.value == value for figure in figures)
    assert all(figure.reason for figure in figures if figure.status == "unavailable")


def test_figures_of_a_case_that_is_not_proved_are_no_costs(tmp_path: Path) -> None:
    path = changed(
        tmp_path / "run.json",
        lambda figure: None,
        {"status": "unverified", "reason": "3 and not 4"},
    )
    found = read_fingerprint(path)
    assert found.records
    for record in found.records:
        assert not [figure.name for figure in record.figures if figure.measured]
    for comparison in found.comparisons:
        assert not [figure.name for figure in comparison.figures if figure.measured]
    assert {
        figure.reason for figure in found.records[0].figures if figure.status == "unverified"
    } == {"3 and not 4"}


def test_figures_that_are_zero_are_shown_without_an_error(tmp_path: Path) -> None:
    path = changed(tmp_path / "run.json", lambda figure: figure.update(value=0, low=0, high=0))
    for row in read_fingerprint(path).records:
        assert over_undisturbed(row) is None
        assert row.measured("complete") is None
    assert main(["show", str(path)]) == 0
    path = changed(tmp_path / "run.json", lambda figure: figure.update(value=0, low=0, high=1.0))
    assert main(["show", str(path)]) == 0


def test_the_figures_of_a_saved_explanation_are_checked_too(tmp_path: Path) -> None:
    found, path = decode_explained(), tmp_path / "explained.json"
    for fault in ({"low": 5.0, "high": 4.0}, {"unit": "s"}):
        wall = msgspec.structs.replace(found.step.wall, **fault)
        bad = msgspec.structs.replace(found, step=msgspec.structs.replace(found.step, wall=wall))
        path.write_bytes(encode_explanation(bad))
        with pytest.raises(BadFile):
            read_explanation(path)
    wall = msgspec.structs.replace(found.step.wall, value=1e-300, low=None, high=None)
    tiny = msgspec.structs.replace(found, step=msgspec.structs.replace(found.step, wall=wall))
    path.write_bytes(encode_explanation(tiny))
    assert read_explanation(path).step.wall.status == "unavailable"


def test_committed_runs_are_read_without_a_change() -> None:
    for path in sorted((ROOT / "reports" / "data").rglob("*.json")):
        if b'"schema_version"' not in path.read_bytes():
            continue
        found = read_fingerprint(path)
        unchanged = msgspec.json.decode(path.read_bytes(), type=type(found))
        assert found.records == unchanged.records, path
        assert found.comparisons == unchanged.comparisons, path
