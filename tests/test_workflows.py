"""The workflows for a public CI service name what the repository has, and their shell steps do what
they should.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from scripts import bootstrap
from tests.conftest import PARTS
from tests.runner.test_two_pythons import PLUGIN, two_builds

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
COPIED = ROOT / "docs" / "examples" / "pull-request.yml"
SHORT = f"""
import sys
from overhead.cli import main
from overhead.profiles import PROFILES, Plan
times = dict(sampling_s=1.0, wall_s=60.0, case_s=0.02)
PROFILES["quick"] = Plan(processes=2, precision=0.5, max_rounds=6, **times)
words = sys.argv[1:]
sys.exit(main([*words, "--plugin", {str(PLUGIN)!r}] if "steady" in words else words))
"""
"""The command line, with a quick profile of seconds and the simulated stack ``steady``."""
pytestmark = [
    pytest.mark.needs("bash", "check_jsonschema"),
    pytest.mark.skipif(
        sys.platform == "win32", reason="the stand-ins for programs are shell scripts"
    ),
]


def steps(path: Path) -> list[dict[str, Any]]:
    """The steps of all jobs that run a command."""
    from ruamel.yaml import YAML

    jobs = YAML(typ="safe").load(path.read_text("utf-8"))["jobs"].values()
    return [step for job in jobs for step in job["steps"] if "run" in step]


def run_step(
    path: Path, name: str, folder: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the step that has this beginning of its name or command. As on the service, each command
    must succeed.
    """
    (step,) = [one for one in steps(path) if one.get("name", one["run"]).startswith(name)]
    own = {name: str(folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    own |= {
        "PYTHONPATH": str(ROOT),
        "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
        **environment,
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    options: Any = {"capture_output": True, "text": True, "timeout": 120}
    return subprocess.run(command, cwd=folder, env={**os.environ, **own}, **options)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/env bash\n{text}\n", "utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize("path", [*WORKFLOWS, COPIED], ids=lambda path: path.name)
def test_the_shell_steps_of_a_workflow_are_valid_and_name_what_exists(path: Path) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    assert steps(path)
    for command in (step["run"] for step in steps(path)):
        checked = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, ""), command
        for names in re.findall(r"\.\[([\w,]+)\]", command):
            assert set(names.split(",")) <= set(extras), command
        if "pytest" in command:
            assert (ROOT / command.split()[-1]).is_dir(), command
        if command.startswith("make "):
            assert command.split()[1] in bootstrap.TARGETS


def test_the_workflows_have_only_keys_and_values_that_the_service_knows() -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
    ]
    done = subprocess.run(
        [*command, *map(str, [*WORKFLOWS, COPIED])], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["OVERHEAD_REQUIRED", "adapters"])
def test_the_parts_that_a_workflow_requires_exist(name: str) -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    found = re.findall(rf'{name}: "?([\w,]+)', text)
    assert found
    for names in found:
        assert set(names.strip(",").split(",")) <= set(PARTS)


@pytest.mark.slow
def test_the_fingerprint_of_a_hosted_runner_says_what_was_measured(tmp_path: Path) -> None:
    """The simulated stack stands in for both libraries."""
    build = two_builds(tmp_path)[0]
    stand_in = 'set -- "${@//wgpu-native/steady}" && set -- "${@//dawn/steady}"'
    program(tmp_path / "python", f'{stand_in} && exec {build} -c {shlex.quote(SHORT)} "${{@:3}}"')
    tests = ROOT / ".github" / "workflows" / "tests.yml"
    done = run_step(tests, "Measure WebGPU", tmp_path, DEVICES="hosted runner: WARP is software")
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert found["environment"] == {"MEASURED_ON": "hosted runner: WARP is software"}
    assert "WARP is software" in run_step(tests, "python -m overhead show", tmp_path).stdout


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the copied workflow measured a library, and a build of it that costs 1.5
    times as much.
    """
    folder = tmp_path_factory.mktemp("workflow")
    for side, build in zip(("base", "new"), two_builds(folder), strict=True):
        program(folder / f"env-{side}" / "bin" / "python", f'exec {build} "$@"')
        overhead = f'exec {shlex.quote(sys.executable)} -c {shlex.quote(SHORT)} "$@"'
        program(folder / f"env-{side}" / "bin" / "overhead", overhead)
    done = run_step(COPIED, "Measure both", folder, STACK="steady", RUNS="1")
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "untested", "code", "said"),
    [
        # The new build is 50 % slower.
        pytest.param("90", "fail", 0, "", id="below the limit"),
        pytest.param("10", "warn", 1, "::error::", id="over the limit"),
    ],
)
def test_the_copied_workflow_ends_as_its_gate_says_and_shows_the_table(
    measured: Path, limit: str, untested: str, code: int, said: str
) -> None:
    done = run_step(COPIED, "Compare", measured, STACK="steady", LIMIT=limit, UNTESTED=untested)
    assert done.returncode == code, done.stderr
    assert done.stdout.startswith(said)
    summary = (measured / "GITHUB_STEP_SUMMARY").read_text("utf-8")
    assert re.search(r"\| steady: .* \| slower", summary)


@pytest.mark.parametrize(
    ("ended", "untested", "code", "posted"),
    [
        pytest.param(3, "warn", 0, True, id="the gate could not see: a warning"),
        pytest.param(3, "fail", 3, True, id="the gate could not see: a failure"),
        pytest.param(2, "warn", 2, False, id="the comparison itself failed"),
    ],
)
def test_the_copied_workflow_warns_or_fails_if_the_gate_could_not_see_and_posts_only_a_comparison(
    tmp_path: Path, ended: int, untested: str, code: int, posted: bool
) -> None:
    program(
        tmp_path / "env-new" / "bin" / "overhead",
        f"{'echo a table;' if posted else ''} exit {ended}",
    )
    done = run_step(COPIED, "Compare", tmp_path, STACK="steady", LIMIT="10", UNTESTED=untested)
    assert done.returncode == code
    assert done.stdout.startswith("::warning::") == posted
    assert (tmp_path / "GITHUB_OUTPUT").exists() == posted


@pytest.mark.parametrize(
    ("listed", "request_"),
    [
        pytest.param("", "issues/7/comments", id="no comment yet: a new one"),
        pytest.param("41\n42", "PATCH issues/comments/42", id="two: the last one is replaced"),
    ],
)
def test_the_copied_workflow_replaces_its_last_comment(
    tmp_path: Path, listed: str, request_: str
) -> None:
    program(
        tmp_path / "gh",
        f'case "$*" in *--paginate*) echo "{listed}" ;; *) echo "$*" >>asked ;; esac',
    )
    (tmp_path / "summary.md").write_text("<!-- overhead -->\n")
    done = run_step(
        COPIED, "Write the comment", tmp_path, GITHUB_REPOSITORY="a/b", NUMBER="7", GH_TOKEN="none"
    )
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked").read_text().replace("repos/a/b/", "")
    assert re.fullmatch(f".*{request_} .*body=@summary.md\n", asked)


def test_the_copied_workflow_takes_the_branch_that_a_pull_request_is_merged_into_as_its_base(
    tmp_path: Path,
) -> None:
    who = "-c user.name=a -c user.email=a@example.com"
    commit = f"git {who} commit --quiet --allow-empty --message"
    merge = (
        f"git checkout --quiet -b pr && {commit} change && git checkout --quiet - && {commit} base"
    )
    made = (
        f"git init --quiet new && cd new && {commit} first && {merge} && git {who} merge --quiet"
        " --no-edit pr"
    )
    subprocess.run(["bash", "-ec", made], cwd=tmp_path, check=True)
    assert run_step(COPIED, "Get the base", tmp_path).returncode == 0
    shown = ["git", "-C", str(tmp_path / "base"), "log", "--format=%s", "-1"]
    assert subprocess.run(shown, capture_output=True, text=True).stdout == "base\n"
