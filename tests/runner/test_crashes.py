"""A run that is killed, or whose disk is full, at each change of its files: nothing is lost, resume ends it.

The workers are simulated, so the same figures come out whatever happened, except for the process that was cut off.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from overhead.errors import CannotWrite, UsageError
from overhead.loading import files
from overhead.results import EndedLine, OpenedLine, Record
from overhead.runner.journal import NameTaken
from overhead.runner.output import Outcome
from tests.fakes.disk import Disk, Fault, Killed, measured_lines
from tests.fakes.simulated import PLAN, simulated_run

ONE: dict[str, Any] = {}
PLANNED_LINES = 2
_FIRST, _LAST = 14, 20
"""The steps before and after the measurement. Between them the same few steps repeat with every round."""
PAIR: dict[str, Any] = {"env": ["COMMON=x"], "env_new": ["STEADY_FACTOR=1.5"]}


def sides(options: dict[str, Any]) -> tuple[str, ...]:
    return ("base", "new") if options else ("",)


def journals(folder: Path, options: dict[str, Any]) -> list[Path]:
    return [folder / side / "r.jsonl" for side in sides(options)]


def go_on(folder: Path, options: dict[str, Any]) -> Outcome:
    """Start the run, or resume it where a journal says that it can be resumed."""
    left = [path for path in journals(folder, options) if path.exists()]
    for journal in left:
        try:
            return simulated_run(resume=journal, **options)
        except UsageError as error:
            if isinstance(error, CannotWrite) or "start it again" not in str(error):
                raise
    return simulated_run(stacks=["steady"], out=folder / "r.json", **options)


def steps_of_a_run(folder: Path, options: dict[str, Any], faults: Sequence[tuple[int, Fault]] = ()) -> list[str]:
    """The steps of the run after these faults, which has none itself."""
    folder.mkdir()
    for at, fault in faults:
        end_at(folder, options, at, fault)
    with Disk().installed() as disk:
        go_on(folder, options)
    return disk.steps


def end_at(folder: Path, options: dict[str, Any], at: int, fault: Fault) -> bool:
    """Run, or go on, until the fault. Returns whether the run came so far. No line may be lost."""
    before = [measured_lines(journal) for journal in journals(folder, options)]
    with Disk(at, fault).installed() as disk:
        try:
            go_on(folder, options)
            ended = True
        except (Killed, CannotWrite):
            ended = False
    for journal, lines in zip(journals(folder, options), before, strict=True):
        assert not lines - measured_lines(journal), f"lost at {disk.steps[-1]}"
    return not ended


def check_end(folder: Path, options: dict[str, Any], before: Sequence[Counter[bytes]]) -> None:
    """The files of a whole run are there, no others, and every line that was on the disk."""
    wanted = {folder / side / name for side in sides(options) for name in ("r.json", "r.samples.jsonl.gz")}
    assert {path for path in folder.rglob("*") if path.is_file()} == wanted
    for journal, lines in zip(journals(folder, options), before, strict=True):
        assert not lines - measured_lines(journal)
        found = list(files.read_journal(journal.with_suffix(".samples.jsonl.gz")))
        assert sum(isinstance(line, EndedLine) for line in found) == PLAN.processes
        opened = [(line.case, line.process) for line in found if isinstance(line, OpenedLine)]
        assert len(opened) == len(set(opened)), "each process has its own number"


def complete(record: Record) -> tuple[float, float, float]:
    figure = next(f for f in record.figures if f.name == "complete")
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    assert figure.processes == PLAN.processes, "a process that was cut off does not count"
    return figure.low, figure.value, figure.high


def check_figures(found: Outcome, unbroken: Outcome) -> None:
    """Each figure of a resumed run equals that of the unbroken run within an interval."""
    for mine, other in ((found, unbroken), (found.second, unbroken.second)):
        if mine is None or other is None:
            assert mine is other
            continue
        for one, two in zip(mine.fingerprint.records, other.fingerprint.records, strict=True):
            (low, value, high), (its_low, its_value, its_high) = complete(one), complete(two)
            assert low <= its_value <= high or its_low <= value <= its_high


def survives(folder: Path, options: dict[str, Any], faults: Sequence[tuple[int, Fault]], unbroken: Outcome) -> None:
    """The run has these faults one after the other, and ends whole after them."""
    folder.mkdir()
    for at, fault in faults:
        if not end_at(folder, options, at, fault):
            break
    left = journals(folder, options)
    before = [measured_lines(journal) for journal in left]
    if any(journal.exists() for journal in left) or not list(folder.rglob("*.json")):
        check_figures(go_on(folder, options), unbroken)
    check_end(folder, options, before)


@pytest.fixture(scope="module", params=[ONE, PAIR], ids=["one journal", "a pair"])
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = request.param
    return found


@pytest.fixture(scope="module")
def unbroken_pair(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return simulated_run(stacks=["steady"], out=tmp_path_factory.mktemp("unbroken") / "r.json", **PAIR)


@pytest.fixture(scope="module")
def unbroken(options: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("unbroken")
    return simulated_run(stacks=["steady"], out=folder / "r.json", **options)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill", "full"])
def test_a_fault_at_each_kind_of_step_of_a_new_run(
    tmp_path: Path, options: dict[str, Any], unbroken: Outcome, fault: Fault
) -> None:
    steps = steps_of_a_run(tmp_path / "steps", options)
    for at in [*range(_FIRST), *range(_FIRST, len(steps) - _LAST, 11), *range(len(steps) - _LAST, len(steps))]:
        survives(tmp_path / f"{at}", options, [(at, fault)], unbroken)


@pytest.mark.parametrize("seed", range(6))
def test_faults_at_random_steps_of_a_run_and_of_its_resumes(
    tmp_path: Path, options: dict[str, Any], unbroken: Outcome, seed: int
) -> None:
    rng = random.Random(seed)
    faults: list[tuple[int, Fault]] = []
    for number in range(rng.randint(2, 4)):
        steps = steps_of_a_run(tmp_path / f"steps {number}", options, faults)
        faults.append((rng.randrange(len(steps)), rng.choice(("kill", "full"))))
    survives(tmp_path / "run", options, faults, unbroken)


@pytest.mark.parametrize("resumed", ["base", "new"])
def test_a_pair_that_was_killed_while_it_removed_its_journals_ends_by_either_name(
    tmp_path: Path, unbroken_pair: Outcome, resumed: str
) -> None:
    steps = steps_of_a_run(tmp_path / "steps", PAIR)
    folder = tmp_path / "run"
    folder.mkdir()
    assert end_at(folder, PAIR, len(steps) - 1, "kill")
    assert not (folder / "base" / "r.jsonl").exists()
    found = simulated_run(resume=folder / resumed / "r.jsonl")
    check_end(folder, PAIR, [Counter(), Counter()])
    assert found.path == folder / "base" / "r.json"
    check_figures(found, unbroken_pair)


@pytest.mark.parametrize("unmeasured", ["base", "new"])
def test_a_new_run_does_not_touch_a_pair_of_which_one_side_has_measured(tmp_path: Path, unmeasured: str) -> None:
    with Disk(("write r.jsonl", 12)).installed(), pytest.raises(Killed):
        simulated_run(stacks=["steady"], out=tmp_path / "r.json", **PAIR)
    without = tmp_path / unmeasured / "r.jsonl"
    header_and_plan = without.read_bytes().splitlines(keepends=True)[: 1 + PLANNED_LINES]
    without.write_bytes(b"".join(header_and_plan))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert [measured_lines(path).total() > PLANNED_LINES for path in before].count(True) == 1
    with pytest.raises(NameTaken, match="--resume goes on with it"):
        simulated_run(stacks=["steady"], out=tmp_path / "r.json", **PAIR)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")} == before
