"""Test the set-up script: what it installs on each kind of machine, and its one-line errors."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
Calls = list[list[str]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("EXTRAS", "SYSTEM_PACKAGES", "SYSTEM", "BROWSERS", "VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(name, raising=False)
    spec = importlib.util.spec_from_file_location("bootstrap", ROOT / "scripts" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def calls(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The commands that the script runs, recorded by a fake that lets each succeed."""
    made: Calls = []

    def call(command: list[str], **more: object) -> int:
        made.append(command)
        return 0

    monkeypatch.setattr(script, "call", call)
    return made


def clone(tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the repository with the script alone, so that the real one stays unchanged."""
    root = tmp_path / "clone"
    for name in ("pyproject.toml", "scripts/bootstrap.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name, path in (("ROOT", root), ("VENV", root / ".venv"), ("STAMP", root / ".venv" / "overhead-setup.json")):
        monkeypatch.setattr(script, name, path)
    return root


# The choice of packages


@pytest.mark.parametrize(
    ("target", "cuda", "chosen", "extras"),
    [
        ("report", None, "", "report torch wgpu"),
        ("test", None, "", "dev jax onnx report torch wgpu"),
        ("lint", 13000, "", "dev"),
        ("report", 13010, "", "cuda13 report torch wgpu"),
        ("report", 14000, "", "cuda13 report torch wgpu"),
        ("report", 12080, "", "cuda12 report torch wgpu"),
        ("report", 11080, "", "report torch wgpu"),
        ("report", 13000, "wgpu", "report wgpu"),
        ("test", None, "none", "dev report"),
        ("report", None, "jax, torch", "jax report torch"),
    ],
)
def test_extras_by_machine(script: ModuleType, target: str, cuda: int | None, chosen: str, extras: str) -> None:
    assert script.wanted_extras(target, cuda, chosen) == set(extras.split())


def test_every_extra_that_is_chosen_exists(script: ModuleType) -> None:
    known = set(script.project()["optional-dependencies"])
    for target in set(script.TARGETS) - {"clean"}:
        assert script.wanted_extras(target, 13000) | script.wanted_extras(target, 12000) <= known


@pytest.mark.parametrize(
    ("loader", "driver", "browsers", "distribution", "packages"),
    [
        (True, True, False, "debian", set()),
        (False, False, False, "debian", {"libvulkan1", "mesa-vulkan-drivers"}),
        (True, True, True, "debian", {"chromium", "firefox-esr"}),
        (True, True, True, "ubuntu", {"chromium-browser", "firefox"}),
    ],
)
def test_missing_system_packages_are_found(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    loader: bool,
    driver: bool,
    browsers: bool,
    distribution: str,
    packages: set[str],
) -> None:
    monkeypatch.setattr(script, "has_vulkan_loader", lambda: loader)
    monkeypatch.setattr(script, "has_vulkan_driver", lambda: driver)
    monkeypatch.setattr(script, "has_venv", lambda: True)
    monkeypatch.setattr(script.shutil, "which", lambda name: None)
    assert set(script.system_needs("report", browsers, distribution)) == packages
    assert set(script.system_needs("lint", False, distribution)) == set()


def test_a_missing_venv_module_is_named_by_its_package(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "has_venv", lambda: False)
    assert set(script.system_needs("lint", False, "debian")) == {"python{}.{}-venv".format(*sys.version_info)}


@pytest.mark.parametrize(("debian", "advice"), [(True, "sudo apt-get install"), (False, "your distribution's")])
def test_without_root_the_install_command_is_printed(
    script: ModuleType,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    debian: bool,
    advice: str,
) -> None:
    monkeypatch.setattr(script, "as_root", lambda: None)
    script.install_system({"libvulkan1": "the loader"}, debian)
    assert calls == []
    assert advice in capsys.readouterr().out


# torch


def fetched(version: str, *needs: str) -> list[dict[str, Any]]:
    url = f"file:///wheels/torch-{version}.whl"
    return [{"download_info": {"url": url}, "metadata": {"version": version, "requires_dist": list(needs)}}]


@pytest.fixture
def sources(script: ModuleType, calls: Calls, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """A function that runs ``install_torch`` with simulated sources and returns the requested sources in order."""

    def ask(local: Any = (), index: Any = (), cuda: int | None = None) -> list[str]:
        asked: list[str] = []

        def resolve(arguments: list[str]) -> list[dict[str, Any]]:
            asked.append(arguments[3] if "--index-url" in arguments else "local")
            return list(index if "--index-url" in arguments else local)

        monkeypatch.setattr(script, "resolve", resolve)
        monkeypatch.setattr(script, "in_venv", lambda code: False)
        monkeypatch.setattr(script.sys, "platform", "linux")
        asked.append(f"settled: {script.install_torch(cuda)}")
        return asked

    return ask


def test_a_local_cpu_wheel_of_torch_needs_no_network(sources: Callable[..., list[str]], calls: Calls) -> None:
    assert sources(local=fetched("2.13.0+cpu", "sympy")) == ["local", "settled: True"]
    assert calls[-1][-1] == "file:///wheels/torch-2.13.0+cpu.whl"


def test_without_a_local_wheel_pytorchs_index_is_asked(sources: Callable[..., list[str]]) -> None:
    cpu = "https://download.pytorch.org/whl/cpu"
    assert sources(index=fetched("2.13.0+cpu")) == ["local", cpu, "settled: True"]


def test_a_build_that_needs_cuda_is_refused_without_a_gpu(sources: Callable[..., list[str]], calls: Calls) -> None:
    heavy = fetched("2.14.0", "sympy", "nvidia-cudnn-cu13==9; platform_system == 'Linux'")
    assert sources(local=heavy, index=heavy)[-1] == "settled: False"
    assert not any("install" in command for command in calls)


def test_set_up_continues_without_torch_if_the_index_is_unreachable(
    script: ModuleType, sources: Callable[..., list[str]], calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sources()[-1] == "settled: False"
    assert "out of reach" in capsys.readouterr().out
    assert script.install({"report", "torch", "wgpu"}, None) == {"torch"}
    assert calls[-1][-1] == ".[report,wgpu]"


@pytest.mark.parametrize(("cuda", "asked"), [(13000, []), (12060, ["https://download.pytorch.org/whl/cu126"])])
def test_a_gpu_machine_gets_the_torch_build_for_its_driver(
    sources: Callable[..., list[str]], cuda: int, asked: list[str]
) -> None:
    assert sources(index=fetched("2.13.0+cu126", "nvidia-cudnn-cu12"), cuda=cuda) == [*asked, "settled: True"]


# Set-up as a whole


def test_set_up_is_done_once(
    script: ModuleType,
    calls: Calls,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = clone(tmp_path, script, monkeypatch)
    (root / ".venv").mkdir()
    monkeypatch.setenv("SYSTEM", "skip")
    monkeypatch.setattr(script, "cuda_version", lambda: None)
    monkeypatch.setattr(script, "install_torch", lambda cuda: False)
    script.set_up("test")
    stamp = json.loads((root / ".venv" / "overhead-setup.json").read_text())
    assert stamp["extras"] == ["dev", "jax", "onnx", "report", "torch", "wgpu"]
    assert stamp["left_out"] == ["torch"]
    calls.clear()
    script.set_up("report")
    assert calls == []
    assert "left out at set-up: torch" in capsys.readouterr().out
    with (root / "pyproject.toml").open("a") as file:
        file.write("\n")
    script.set_up("lint")
    assert calls


@pytest.mark.parametrize("text", ["", "{", "[]", "[1]", "5", "null"])
def test_a_damaged_record_of_the_set_up_is_ignored(
    script: ModuleType, calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    root = clone(tmp_path, script, monkeypatch)
    (root / ".venv").mkdir()
    monkeypatch.setenv("SYSTEM", "skip")
    (root / ".venv" / "overhead-setup.json").write_text(text)
    script.set_up("lint")
    assert calls
    assert json.loads((root / ".venv" / "overhead-setup.json").read_text())["extras"]


def test_a_failing_pip_is_reported_in_one_line(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (clone(tmp_path, script, monkeypatch) / ".venv").mkdir()
    monkeypatch.setenv("SYSTEM", "skip")
    monkeypatch.setenv("EXTRAS", "none")
    monkeypatch.setattr(script, "call", lambda command, **more: 1 if "pip" in command else 0)
    assert script.main(["test"]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("overhead: test failed: pip could not install")


def test_an_environment_that_was_not_made_to_its_end_is_made_anew(
    script: ModuleType, calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv = clone(tmp_path, script, monkeypatch) / ".venv"
    venv.mkdir()
    version = ".".join(map(str, sys.version_info[:3]))
    (venv / "pyvenv.cfg").write_text(f"version = {version}\ninclude-system-site-packages = false\n")
    monkeypatch.setattr(script, "in_venv", lambda code: True)
    script.make_venv(system_packages=False)
    assert [command[1:3] for command in calls] == [["-m", "venv"]]
    script.make_venv(system_packages=False)
    assert len(calls) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="most users may not create links there")
def test_clean_removes_a_linked_environment_and_not_its_target(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = clone(tmp_path, script, monkeypatch)
    (tmp_path / "elsewhere").mkdir()
    (root / ".venv").symlink_to(tmp_path / "elsewhere")
    (root / "dist").mkdir()
    assert script.clean() == 0
    assert (tmp_path / "elsewhere").is_dir()
    assert not (root / ".venv").is_symlink()
    assert not (root / "dist").exists()


def test_unknown_targets_and_extras_and_an_old_python_are_refused(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script.main([]) == script.main(["deploy"]) == 2
    monkeypatch.setenv("EXTRAS", "tochr")
    assert script.main(["report"]) == 1
    assert "EXTRAS names tochr; there are" in capsys.readouterr().out.splitlines()[-1]
    monkeypatch.setattr(script, "MINIMUM", (99, 0))
    assert script.main(["lint"]) == 1


def test_system_packages_need_no_network(tmp_path: Path) -> None:
    """In a real clone without pip: missing packages are named, and the repository can be imported."""
    root = tmp_path / "clone"
    shutil.copytree(ROOT / "overhead", root / "overhead", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "scripts").mkdir()
    for name in ("pyproject.toml", "scripts/bootstrap.py"):
        shutil.copy(ROOT / name, root / name)
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV", "EXTRAS"))}
    settings |= {"SYSTEM_PACKAGES": "1", "SYSTEM": "skip", "PIP_NO_INDEX": "1"}

    def bench(**more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(root / "scripts" / "bootstrap.py"), "bench"]
        return subprocess.run(command, capture_output=True, text=True, env=settings | more, timeout=60)

    (root / "scripts" / "bench").mkdir(exist_ok=True)
    (root / "scripts" / "bench" / "main.py").write_text("import overhead; print(overhead.__file__)\n")
    site = tmp_path / "site"
    for name in ("msgspec", "numpy", "psutil", "rich", "scipy"):
        (site / name).mkdir(parents=True)
        (site / name / "__init__.py").touch()
    done = bench(PYTHONPATH=str(site))
    assert done.stdout.split()[-1] == str(root / "overhead" / "__init__.py"), done.stdout + done.stderr
    shutil.rmtree(root / ".venv")
    without = bench(PYTHONPATH=os.devnull)
    if without.returncode:  # a system that happens to hold them all has nothing to name
        assert "SYSTEM_PACKAGES=1, and" in without.stdout.splitlines()[-1]


# The targets


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        ([], ["-m", "not slow"]),
        (["tests/machine/test_machine.py"], ["-m", "not slow", "tests/machine/test_machine.py"]),
        (["-m", "slow or not slow"], ["-m", "slow or not slow"]),
        (["-mslow", "--maxfail=1"], ["-mslow", "--maxfail=1"]),
    ],
)
def test_slow_tests_are_left_out_unless_the_caller_selects_by_marker(
    script: ModuleType, calls: Calls, monkeypatch: pytest.MonkeyPatch, arguments: list[str], passed_on: list[str]
) -> None:
    monkeypatch.setattr(script, "in_venv", lambda code: True)
    assert script.test(arguments) == 0
    assert calls[-1][2:] == ["pytest", "-n", "2", "--dist", "loadfile", *passed_on]


def test_a_failing_step_keeps_its_exit_code(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "call", lambda command, **more: 130)
    assert script.report([]) == 130
    assert "'overhead run" in capsys.readouterr().out
    codes = iter([0, 1, 0, 0, 0])
    monkeypatch.setattr(script, "call", lambda command, **more: next(codes, 0))
    assert script.lint([]) == 1


@pytest.mark.parametrize("installed", [True, False])
def test_lint_checks_the_code_of_every_system_and_the_workflows(
    script: ModuleType, calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    monkeypatch.setattr(script, "venv_python", lambda: str(tmp_path / "python"))
    if installed:
        (tmp_path / ("zizmor.exe" if sys.platform == "win32" else "zizmor")).touch()
    assert script.lint([]) == 0
    assert {"--platform=darwin", "--platform=win32"} <= {word for call in calls for word in call}
    assert (calls[-1][-1] == ".github/workflows") == installed
    calls.clear()
    assert script.lint(["overhead/cli.py"]) == 0
    assert {call[2] for call in calls} == {"ruff", "mypy"}


def test_clean_keeps_measurements(script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = clone(tmp_path, script, monkeypatch)
    made = (".venv/x", ".mypy_cache/x", "reports/index.html", "overhead/__pycache__/a.pyc")
    for name in (*made, "reports/local/a.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert script.main(["clean"]) == script.main(["clean"]) == 0
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {"pyproject.toml", "scripts/bootstrap.py", "reports/local/a.json"}


def test_an_interrupted_child_is_waited_for(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    class Child:
        waits = 0

        def wait(self) -> int:
            self.waits += 1
            if self.waits == 1:
                raise KeyboardInterrupt
            return 0

    child = Child()
    monkeypatch.setattr(script.subprocess, "Popen", lambda *_, **__: child)
    assert script.call(["x"]) == 130
    assert child.waits == 2


@pytest.mark.needs("make")
def test_the_makefile_only_calls_the_script(script: ModuleType) -> None:
    for target in script.TARGETS:
        command = ["make", "--dry-run", "--no-print-directory", target, "PYTHON=py", "ARGS=a b"]
        printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert printed.split() == ["py", "scripts/bootstrap.py", target, "a", "b"]
