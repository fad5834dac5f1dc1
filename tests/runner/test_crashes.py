"""A run that is killed, or whose disk is full, at each kind of change of its files: what was
measured is not lost.

The workers are simulated, so the same figures come out whatever happened.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import CannotWrite, UsageError
from overhead.loading.reduce import load
from overhead.runner.output import Outcome
from tests.fakes.disk import Disk, Fault, Killed, measured_lines
from tests.fakes.simulated import simulated_run

PLANNED_LINES = 2
_FIRST, _LAST = 14, 20
"""The steps before and after the measurement. Between them the same few steps repeat with every
round.
"""
PAIR: dict[str, Any] = {"env": ["COMMON=x"], "env_new": ["STEADY_FACTOR=1.5"]}


def start(folder: Path, options: dict[str, Any]) -> Outcome:
    return simulated_run(stacks=["steady"], out=folder / "r.json", **options)


def contents(folder: Path) -> dict[Path, bytes]:
    return {
        path: path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".overhead-part"
    }


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, PAIR], ids=["one journal", "a pair"])
@pytest.mark.parametrize("fault", ["kill", "full"])
def test_a_crash_while_files_are_written_loses_no_sample(
    tmp_path: Path, options: dict[str, Any], fault: Fault
) -> None:
    (tmp_path / "whole").mkdir()
    with Disk().installed() as whole:
        start(tmp_path / "whole", options)
    count, before = len(whole.steps), 0
    for at in [*range(_FIRST), *range(_FIRST, count - _LAST, 11), *range(count - _LAST, count)]:
        folder = tmp_path / f"{at}"
        folder.mkdir()
        with Disk(at, fault).installed() as disk, contextlib.suppress(Killed, CannotWrite):
            start(folder, options)
        sides = [folder / side / "r.jsonl" for side in (("base", "new") if options else ("",))]
        measured = [max(0, measured_lines(path).total() - PLANNED_LINES) for path in sides]
        assert sum(measured) >= before, f"lost at {disk.steps[at]}"
        before = sum(measured)
        for path, lines in zip(sides, measured, strict=True):
            if lines:
                found = load(path if path.exists() else path.with_suffix(".json"))
                assert found.records
        if not any(measured) and not any(path.exists() for path in sides):
            start(folder, options)
            continue
        kept = contents(folder)
        with pytest.raises(UsageError):
            start(folder, options)
        assert contents(folder) == kept


@pytest.mark.parametrize("unmeasured", ["base", "new"])
def test_a_new_run_does_not_change_the_files_of_an_unfinished_comparison(
    tmp_path: Path, unmeasured: str
) -> None:
    with Disk(("write r.jsonl", 12)).installed(), pytest.raises(Killed):
        start(tmp_path, PAIR)
    without = tmp_path / unmeasured / "r.jsonl"
    header_and_plan = without.read_bytes().splitlines(keepends=True)[: 1 + PLANNED_LINES]
    without.write_bytes(b"".join(header_and_plan))
    before = contents(tmp_path)
    assert [measured_lines(path).total() > PLANNED_LINES for path in before].count(True) == 1
    with pytest.raises(UsageError):
        start(tmp_path, PAIR)
    assert contents(tmp_path) == before
