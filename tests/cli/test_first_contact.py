"""What somebody meets first: no command, a misspelt word, a folder in which nothing was
measured.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from overhead import first_steps
from overhead.arguments import make_parser
from overhead.cli import main
from overhead.command_parser import Question, WrongArguments
from overhead.errors import UnknownName, nearest, unknown_name
from overhead.first_steps import FirstSteps
from overhead.loading.example_run import example_path, example_run
from overhead.loading.files import read_fingerprint
from overhead.loading.reduce import load
from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.typical_run import place_of
from overhead.reading.view import View
from overhead.report.one_case import find_case
from overhead.runner import run as runner
from overhead.words.first_steps import first_steps_text

ROOT = Path(__file__).resolve().parents[2]
WORDS_OF_PYTHON = """
import sys
from overhead.cli import main
assert main([]) == 0
heavy = {"numpy", "torch", "msgspec", "rich", "psutil", "importlib.metadata"} & sys.modules.keys()
assert not heavy, heavy
"""


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the home of the user too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_no_command_says_what_to_type_and_loads_nothing_heavy(empty: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORDS_OF_PYTHON], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == first_steps_text(first_steps.first_steps()).splitlines()


@pytest.mark.parametrize(
    "here", [FirstSteps("torch", on_gpu=True), FirstSteps("torch"), FirstSteps("numpy")], ids=str
)
def test_each_first_command_is_one_that_the_parser_takes(here: FirstSteps) -> None:
    text = first_steps_text(here)
    typed = [line for line in text.splitlines() if line.startswith("    overhead ")]
    commands = [shlex.split(line)[1:] for line in typed]
    calls = {make_parser().parse_args(command).call for command in commands}
    assert len(calls) == len(commands) == 5
    assert ("device='cuda'" in text) == here.on_gpu
    assert ("torch" in text) == (here.library == "torch")
    assert max(map(len, text.splitlines())) <= 100


def test_a_gpu_is_in_the_example_only_where_pytorch_can_reach_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "torch"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    monkeypatch.setattr(first_steps, "_has_gpu", lambda: True)
    assert first_steps.first_steps() == FirstSteps("torch")
    (package / "lib" / "libtorch_cuda.so").touch()
    assert first_steps.first_steps() == FirstSteps("torch", on_gpu=True)
    monkeypatch.setattr(first_steps, "_has_gpu", lambda: False)
    assert first_steps.first_steps() == FirstSteps("torch")


def test_the_help_lists_each_command_once_below_its_question(
    capsys: pytest.CaptureFixture[str],
) -> None:
    parser = make_parser()
    commands = parser._commands().choices
    assert all(isinstance(one.question, Question) for one in commands.values())
    assert main(["help"]) == main(["--help"]) == 0
    printed = capsys.readouterr().out.splitlines()
    indented_once = [line for line in printed if line.startswith(" ") and line[:3].strip()]
    listed = [line.split()[0] for line in indented_once]
    assert sorted(set(listed) & set(commands)) == sorted(commands)


@pytest.mark.parametrize(
    ("typed", "near", "command"),
    [
        (["tiem", "x"], "time", "time"),
        (["shwo"], "show", "show"),
        (["time", "--quik", "x"], "--quick", "time"),
        (["time", "--quik"], "--quick", "time"),
        (["explain", "a.py:f", "--againts=b.py:f"], "--against", "explain"),
        (["run", "--profile", "quik"], "quick", "run"),
        (["export", "--format", "cvs", "runs"], "csv", "export"),
        (["contention", "--way", "thread"], "threads", "contention"),
        (["completion", "bsh"], "bash", "completion"),
        (["--verison"], "--version", ""),
        (["xyzzy"], "", ""),
        (["time", "-Q", "x"], "", "time"),
        (["time", "x", "-s", "x = 1", "y"], "", "time"),
        (["show", "--all=yes"], "", "show"),
    ],
)
def test_a_misspelt_word_is_told_with_the_right_one_and_the_usage_of_its_command(
    typed: list[str], near: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(WrongArguments) as wrong:
        make_parser().parse_args(typed)
    assert wrong.value.near == near
    assert wrong.value.usage.startswith(f"usage: overhead {command or '[-h]'}")
    assert main(typed) == 2
    said = capsys.readouterr().err
    assert said.startswith(wrong.value.usage)
    assert said.removeprefix(wrong.value.usage).count("\n") == 1
    assert near in said


@pytest.mark.parametrize(
    "typed",
    [
        ["time", "--", "-x"],
        ["time", "-s", "x = 1", "- x"],
        ["time", "-1"],
        ["time", "-sx = 1", "x + 1"],
        ["time", "--wait=none", "--vary", "n=-1,2", "x"],
        ["run", "--prof", "quick", "-pnumpy"],
    ],
)
def test_what_argparse_understands_is_not_refused(typed: list[str]) -> None:
    assert make_parser().parse_args(typed).call


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("tourch", "torch"),
        ("TORCH", "torch"),
        ("nump", "numpy"),
        ("per-submt", "per-submit"),
        ("q", ""),
    ],
)
def test_the_nearest_name_is_found(name: str, near: str) -> None:
    known = ["torch", "numpy", "per-submit", "per-pass"]
    assert nearest(name, known) == unknown_name("name", name, known).near == near


def test_names_differ_in_their_letters_only_keep_their_own() -> None:
    assert nearest("vulcan", ["Vulkan"]) == "Vulkan"


@pytest.mark.parametrize(
    ("command", "near"),
    [
        (["run", "-p", "nump"], "numpy"),
        (["run", "-p", "numpy", "--pattern", "per-submt"], "per-submit"),
        (["run", "-p", "numpy", "--workload", "recurence"], "recurrence"),
        (["contention", "-p", "nump"], "numpy"),
        (["check", "-p", "nump"], "numpy"),
        (["list", "-p", "nump"], "numpy"),
        (["browser", "--browser", "chrmium"], "chromium"),
        (["time", "1 + x", "-s", "x = 1", "--wait", "toch"], "torch"),
    ],
)
def test_a_misspelt_name_is_corrected_in_one_line(
    command: list[str],
    near: str,
    empty: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def look_for_devices(*_: object, **__: object) -> None:
        raise AssertionError("the name is wrong whatever is found")

    monkeypatch.setattr(runner, "discover", look_for_devices)
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert repr(near) in said


@pytest.mark.parametrize(
    ("words", "near"), [("cuda-drver per-submit", "cuda-driver"), ("per-submt", "per-submit")]
)
def test_a_misspelt_case_is_corrected(words: str, near: str) -> None:
    with pytest.raises(UnknownName) as unknown:
        find_case(example_run(), words)
    assert unknown.value.near == near


def test_words_that_no_case_has_together_get_no_correction() -> None:
    with pytest.raises(UnknownName) as unknown:
        find_case(example_run(), "numpy cuda-driver")
    assert unknown.value.near == ""


def test_the_example_is_a_committed_run_and_says_that_it_is_an_example() -> None:
    committed = read_fingerprint(ROOT / "reports" / "data" / example_path().name)
    assert not committed.example
    assert example_run().example
    assert {**vars_of(example_run()), "example": False} == vars_of(committed)


def vars_of(run: object) -> dict[str, object]:
    return {name: getattr(run, name) for name in run.__struct_fields__}  # type: ignore[attr-defined]


def test_the_example_is_a_typical_run_with_what_readers_ask_for() -> None:
    costs = dispatch_costs(View(example_run()))
    assert costs is not None
    place = place_of(costs)
    assert place is not None
    assert not place.is_fast
    assert not place.is_slow
    stacks = {record.stack for record in example_run().records}
    assert stacks >= {
        "cuda-driver",
        "cuda-graph",
        "cupy",
        "dawn",
        "jax",
        "numpy",
        "torch",
        "torch-compile",
        "triton",
    }
    assert any(record.measured("met") for record in example_run().records)


def test_show_without_a_run_shows_the_example_and_says_so(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["example"] is True
    assert len(shown["records"]) == len(example_run().records)
    assert main(["show"]) == 0
    printed = capsys.readouterr().out
    assert main(["show", str(example_path())]) == 0
    assert printed.endswith(capsys.readouterr().out)
    assert "example" in printed.splitlines()[0]


def test_a_case_of_the_example_says_so_too(empty: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "cuda-driver", "per-submit", "native", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["example"] is True


def test_show_with_a_run_of_this_machine_shows_that_one(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = empty / "reports" / "local"
    local.mkdir(parents=True)
    own = json.loads((ROOT / "docs" / "example-fingerprint.json").read_text("utf-8"))
    (local / "run.json").write_text(json.dumps(own), "utf-8")
    assert main(["show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["machine"] == own["machine"]
    assert "example" not in shown


@pytest.mark.needs("jinja2", "matplotlib", "seaborn")
@pytest.mark.slow
def test_report_without_a_run_draws_the_example_and_says_so(
    empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["example"] is True
    assert example_run().machine.gpus[0].name in Path(told["page"]).read_text("utf-8")
    (kept,) = Path("reports", "downloads").glob(f"{example_run().machine.id}.json")
    assert load(kept).example


@pytest.mark.parametrize(
    "command", [["claims"], ["compare"], ["report", "--reference", "x"]], ids=" ".join
)
def test_what_needs_a_run_says_in_one_line_what_to_type(
    command: list[str], empty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "overhead run" in said
