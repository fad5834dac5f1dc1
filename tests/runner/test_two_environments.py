"""Two sets of environment variables in one run: one interpreter, workers that take turns, two
files, a comparison.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import msgspec
import pytest

from overhead.cli import main
from overhead.comparing import compare
from overhead.comparing.show import change_lines
from overhead.loading import files
from overhead.results import HeaderEntry, because
from overhead.runner.events import RunNote
from overhead.runner.interpreter import HERE, variables_for_file, with_variables
from overhead.runner.progress import Listener
from overhead.words.reasons import sentence
from tests.fakes.simulated import PLUGIN, TARGET, simulated_run
from tests.fakes.workers import runs_changed
from tests.runner.test_two_pythons import PLAN

RUN = ["run", "--profile", "quick", "--plugin", str(PLUGIN), "-p", "steady"]


def test_a_run_with_two_sets_of_variables_measures_both_and_compares_them_pair_by_pair(
    tmp_path: Path,
) -> None:
    env, env_new = ["STEADY_FACTOR=1", "COMMON=x"], ["STEADY_FACTOR=1.5"]
    outcome = simulated_run(stacks=["steady"], out=tmp_path / "r.json", env=env, env_new=env_new)
    assert outcome.second is not None
    base, new = outcome.fingerprint, outcome.second.fingerprint
    assert base.environment == {"STEADY_FACTOR": "1", "COMMON": "x"}
    assert new.environment == {"STEADY_FACTOR": "1.5", "COMMON": "x"}
    assert base.versions == new.versions
    assert any("STEADY_FACTOR=1.5 COMMON=x" in sentence(flag) for flag in new.flags)
    header = next(iter(files.read_journal(outcome.second.samples)))
    assert isinstance(header, HeaderEntry)
    assert header.environment == new.environment
    found = compare(outcome.path, outcome.second.path)
    assert {case.verdict for case in found.cases} == {"slower"}
    assert all(
        case.ratio and case.ratio.value == pytest.approx(1.5, rel=0.02) for case in found.cases
    )
    assert found.yardstick.kind == "in-turn"
    (difference,) = found.differences
    assert difference.field == "variable STEADY_FACTOR"
    assert difference.base == "1"
    assert difference.new == "1.5"
    assert "STEADY_FACTOR 1 \N{RIGHTWARDS ARROW} 1.5" in change_lines(found)[0]


def test_the_option_env_alone_sets_the_variable_in_an_ordinary_run(tmp_path: Path) -> None:
    env = ["STEADY_FACTOR=2", "MY_API_TOKEN=opensesame"]
    outcome = simulated_run(stacks=["steady"], out=tmp_path / "r.json", env=env)
    assert outcome.second is None
    assert outcome.path == tmp_path / "r.json"
    assert outcome.fingerprint.environment == {
        "STEADY_FACTOR": "2",
        "MY_API_TOKEN": "<hidden d9fb>",
    }
    for written in (outcome.path.read_bytes(), gzip.decompress(outcome.samples.read_bytes())):
        assert b"MY_API_TOKEN" in written
        assert b"opensesame" not in written
    small = next(r for r in outcome.fingerprint.records if r.params == {"size": "small"})
    # The small case of the stack takes 1 us, times the factor.
    assert small.value("complete") == pytest.approx(2_000.0, rel=0.05)


@pytest.mark.slow
def test_the_variables_reach_real_workers_and_the_command_ends_with_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "steadylib.py").write_text("__version__, COST = '1.0', 1000.0\n")
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    )
    with runs_changed(PLAN):
        assert main([*RUN, "--out", str(tmp_path), "--env-new", "STEADY_FACTOR=0.5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {case["verdict"] for case in found["cases"]} == {"faster"}
    assert [(d["field"], d["base"]) for d in found["differences"]] == [
        ("variable STEADY_FACTOR", "absent")
    ]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--env", "A"], "--env A: not of the form NAME=VALUE"),
        (["--env", "A=1\n2"], "control character"),
        (["--env-new", "B\x1b=1"], "control character"),
        (["--env-new", "=1"], "--env-new =: not of the form NAME=VALUE"),
        (["--env", "A=\udcff"], "not of the form NAME=VALUE, in UTF-8"),
        (
            ["--env", "PYTHONPATH=/x"],
            "--env PYTHONPATH: this variable changes the packages; use --python",
        ),
        (["--env", "A=" + "x" * 5000], "--env: too many or too long variables"),
        (
            [word for i in range(40) for word in ("--env", f"A{i}=1")],
            "--env: too many or too long variables",
        ),
    ],
)
def test_invalid_variables_give_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], words: str
) -> None:
    assert main([*RUN, "--out", str(tmp_path), *options]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert words in said
    assert not list(tmp_path.rglob("*.json*"))


def test_a_variable_that_the_stack_sets_itself_gives_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = msgspec.structs.replace(TARGET, environment={"STEADY_FACTOR": "3"})
    monkeypatch.setattr("tests.fakes.simulated.TARGET", target)
    notes, listener = list[RunNote](), Listener()
    monkeypatch.setattr(listener, "note", notes.append)
    outcome = simulated_run(
        stacks=["steady"], out=tmp_path / "r.json", env="STEADY_FACTOR=2", progress=listener
    )
    assert because("stack-sets-variable", target=target.key, variable="STEADY_FACTOR") in notes
    assert {r.environment["STEADY_FACTOR"] for r in outcome.fingerprint.records} == {"3"}


def test_the_files_have_no_secret_and_no_absolute_path_of_the_variables_that_the_workers_get() -> (
    None
):
    given = {"LAYERS": "/opt/private/layer.so", "MY_API_TOKEN": "first"}
    base, new = with_variables(
        [HERE], [f"{k}={v}" for k, v in given.items()], ["MY_API_TOKEN=second"]
    )
    assert base.variables == given
    assert base.environment["MY_API_TOKEN"] == "first"
    assert new.environment["MY_API_TOKEN"] == "second"
    assert variables_for_file(base)["LAYERS"] == "…/layer.so"
    assert variables_for_file(base)["MY_API_TOKEN"] != variables_for_file(new)["MY_API_TOKEN"]
    assert "first" not in str(variables_for_file(base))


def test_two_interpreters_may_differ_in_variables_too() -> None:
    base, new = with_variables([HERE, HERE], ["A=1", "B=1"], ["B=2"])
    assert base.variables == {"A": "1", "B": "1"}
    assert new.variables == {"A": "1", "B": "2"}
    assert base.python_command == (sys.executable,)
