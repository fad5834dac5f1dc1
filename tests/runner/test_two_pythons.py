"""Two builds in one run: the workers of two interpreters take turns. The results are two files and
a comparison.
"""

from __future__ import annotations

import functools
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import overhead
from overhead import __version__, scratch
from overhead.cli import main
from overhead.comparing import Verdicts, compare
from overhead.errors import UsageError
from overhead.loading.reduce import load, reduce_journal
from overhead.profiles import Plan
from overhead.results import Fingerprint, code_of
from overhead.runner.events import MeasuringProcess, RunStep
from overhead.runner.interpreter import find_interpreters
from overhead.runner.output import Outcome
from overhead.runner.progress import Listener
from overhead.runner.run import Interrupted
from tests.cli.test_base_install import BLOCK, EXTRAS
from tests.fakes.workers import run_with

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform == "win32", reason="the stand-ins for interpreters are shell scripts"
    ),
]
PLUGIN = Path(__file__).parents[1] / "fakes" / "stacks" / "steady.py"
PROCESSES = 2
PLAN = Plan(
    processes=PROCESSES, precision=0.5, sampling_s=1.0, wall_s=60.0, case_s=0.05, max_rounds=6
)
short_run = functools.partial(run_with, plan=PLAN)
"""A run with a small budget."""


def interpreter(folder: Path, name: str, *, flags: str = "", **packages: str) -> str:
    """A Python with additional packages. Each ``name=version`` becomes a module and an installed
    distribution.
    """
    own = folder / f"{name}-packages"
    for package, version in packages.items():
        own.mkdir(exist_ok=True)
        info = own / f"{package}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n"
        )
        cost = 1_000.0 * float(version)
        (own / f"{package}.py").write_text(f"__version__, COST = {version!r}, {cost}\n")
    script = folder / name
    paths = shlex.quote(str(own))
    python = (
        f'PYTHONPATH="$PYTHONPATH${{PYTHONPATH:+:}}"{paths} exec {shlex.quote(sys.executable)}'
        f' {flags} "$@"'
    )
    script.write_text(f"#!/bin/sh\n{python}\n")
    script.chmod(0o755)
    return str(script)


def two_builds(folder: Path) -> list[str]:
    """Two interpreters. The library of the second one has 1.5 times the cost."""
    return [
        interpreter(folder, "one", steadylib="1.0"),
        interpreter(folder, "two", steadylib="1.5"),
    ]


@pytest.fixture
def builds(tmp_path: Path) -> list[str]:
    return two_builds(tmp_path)


def measure(tmp_path: Path, pythons: list[str], **more: Any) -> Outcome:
    out = tmp_path / "r.json"
    return short_run(
        ["steady"], profile="quick", plugins=[PLUGIN], out=out, pythons=pythons, **more
    )


def both(outcome: Outcome) -> tuple[Fingerprint, Fingerprint]:
    assert outcome.second is not None
    return outcome.fingerprint, outcome.second.fingerprint


def verdicts(outcome: Outcome) -> Verdicts:
    assert outcome.second is not None
    return compare(outcome.path, outcome.second.path)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("two")
    return measure(folder, two_builds(folder))


def test_the_files_of_two_interpreters_have_their_versions_and_a_common_id(
    measured: Outcome,
) -> None:
    outcome, folder = measured, measured.path.parents[1]
    base, new = both(outcome)
    assert outcome.path == folder / "base" / "r.json"
    assert outcome.second is not None
    assert outcome.second.path == folder / "new" / "r.json"
    assert base.versions["steadylib"] == "1.0"
    assert new.versions["steadylib"] == "1.5"
    assert (
        base.versions.get("overhead", __version__)
        == new.versions.get("overhead", __version__)
        == __version__
    )
    assert base.together is not None
    assert new.together is not None
    assert base.together.id == new.together.id
    assert base.together.side == "base"
    assert new.together.side == "new"
    assert load(outcome.path) == base
    assert reduce_journal(outcome.second.samples) == new
    assert str(folder) not in outcome.path.read_text() + outcome.second.path.read_text()


def test_a_comparison_of_two_interpreters_pairs_their_processes(measured: Outcome) -> None:
    found = verdicts(measured)
    assert {case.verdict for case in found.cases} == {"slower"}
    assert len(found.cases) == 2
    for case in found.cases:
        assert case.ratio
        assert case.ratio.value == pytest.approx(1.5, rel=0.02)
        assert case.processes == (PROCESSES, PROCESSES)
    assert found.yardstick.kind == "in-turn"
    assert found.base == ("base/r.json",)
    assert {d.field for d in found.differences} == {"steadylib"}


def test_a_single_interpreter_gives_an_ordinary_run(tmp_path: Path, builds: list[str]) -> None:
    outcome = measure(tmp_path, builds[1:])
    assert outcome.second is None
    assert outcome.path == tmp_path / "r.json"
    assert outcome.fingerprint.together is None
    assert outcome.fingerprint.versions["steadylib"] == "1.5"


def test_a_run_with_two_interpreters_that_is_interrupted_has_both_journals(
    tmp_path: Path, builds: list[str]
) -> None:
    class Interrupting(Listener):
        def working(self, now: RunStep) -> None:
            if isinstance(now, MeasuringProcess) and now.process == 1:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted) as stopped:
        measure(tmp_path, builds, progress=Interrupting())
    assert [str(path.relative_to(tmp_path)) for path in stopped.value.journals] == [
        "base/r.jsonl",
        "new/r.jsonl",
    ]
    assert all(load(path).records for path in stopped.value.journals)


def test_a_case_that_crashes_with_one_of_two_interpreters_is_the_only_one_lost(
    tmp_path: Path, builds: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEADY_DIES", "1.5")
    found = verdicts(measure(tmp_path, builds))
    cases = {case.case.rpartition("size=")[2]: case for case in found.cases}
    assert cases["small"].verdict == "slower"
    assert min(cases["small"].processes) == PROCESSES
    assert cases["large"].verdict == "not tested"
    assert code_of(cases["large"].reason) == "no-value"


def test_an_unsuitable_interpreter_gives_a_one_line_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = interpreter(tmp_path, "bare", flags="-I -S")
    silent = tmp_path / "silent"
    silent.write_text("#!/bin/sh\necho nonsense >&2\nexit 7\n")
    silent.chmod(0o755)
    good = sys.executable
    wanted = {
        (bare, good): f"{bare} -m pip install msgspec numpy",
        (good, str(tmp_path / "nowhere")): "nowhere: no such program",
        (good, str(tmp_path)): "no such program",
        ("/bin/sh", good): "/bin/sh: is no Python interpreter",
        (str(silent), good): "this Python does not work: nonsense",
        (good, good, good): "3 interpreters",
    }
    for pythons, words in wanted.items():
        options: list[str] = []
        for python in pythons:
            options += ["--python", python]
        arguments = [
            "run",
            "--plugin",
            str(PLUGIN),
            "-p",
            "steady",
            "--out",
            str(tmp_path / "out"),
            *options,
        ]
        assert main(arguments) == 2, pythons
        said = capsys.readouterr().err
        assert said.count("\n") == 1, said
        assert words in said
        assert len(said) < 500, "the question is not part of the answer"
    assert not list((tmp_path / "out").rglob("*.json*"))


def test_a_stack_that_one_of_two_pythons_lacks_ends_the_run_without_files(
    tmp_path: Path, builds: list[str]
) -> None:
    without = interpreter(tmp_path, "without")
    with pytest.raises(UsageError, match="steady: there is no steadylib"):
        measure(tmp_path, [builds[0], without])
    assert not list(tmp_path.rglob("*.jsonl"))


@pytest.mark.parametrize("command", ["time", "run"])
def test_workers_in_another_python_need_numpy_and_msgspec_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    lean = interpreter(tmp_path, "lean", steadylib="1.0")
    absent = (*EXTRAS, "psutil", "rich", "pygments")
    (tmp_path / "lean-packages" / "sitecustomize.py").write_text(BLOCK.format(blocked=absent))
    if command == "time":
        assert main(["time", "--quick", "--python", lean, "--json", "sum([1, 2])"]) == 0
        assert json.loads(capsys.readouterr().out)["calls"]
        return
    outcome = measure(tmp_path, [lean])
    assert [record.status for record in outcome.fingerprint.records] == ["ok", "ok"]


def test_another_interpreter_sees_this_package_and_no_other_of_this_environment(
    tmp_path: Path,
) -> None:
    (one,) = find_interpreters([sys.executable])
    folder = Path(one.environment["PYTHONPATH"].split(os.pathsep)[0])
    assert [path.name for path in folder.iterdir()] == ["overhead"]
    assert (folder / "overhead").resolve() == Path(overhead.__file__).resolve().parent
    assert folder.parent == scratch.folder()
