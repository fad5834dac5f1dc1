"""Test the set-up script: what it installs on each kind of machine, and its one-line errors."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from overhead.report.core.machines import DOWNLOADS_FOLDER, EXAMPLE_FOLDER
from overhead.report.core.page_list import PAGES_FOLDER

ROOT = Path(__file__).resolve().parents[2]
REPORT_FOLDERS = ("figures", PAGES_FOLDER, DOWNLOADS_FOLDER, EXAMPLE_FOLDER)
Calls = list[list[str]]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in (
        "EXTRAS",
        "SYSTEM_PACKAGES",
        "SYSTEM",
        "BROWSERS",
        "VK_DRIVER_FILES",
        "VK_ICD_FILENAMES",
    ):
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
    monkeypatch.setattr(
        script, "pip_install", lambda arguments: call(["pip", "install", *arguments])
    )
    return made


@pytest.fixture
def root(tmp_path: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the repository with the script alone and an empty environment, so that the real one
    stays unchanged.
    """
    root = tmp_path / "clone"
    for name in ("pyproject.toml", "scripts/bootstrap.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name, path in (
        ("ROOT", root),
        ("VENV", root / ".venv"),
        ("STAMP", root / ".venv" / "overhead-setup.json"),
    ):
        monkeypatch.setattr(script, name, path)
    (root / ".venv").mkdir()
    monkeypatch.setenv("SYSTEM", "skip")
    return root


@pytest.mark.parametrize(
    ("target", "cuda", "chosen", "extras"),
    [
        ("report", None, "", "report torch wgpu"),
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
def test_make_chooses_the_extras_by_machine(
    script: ModuleType, target: str, cuda: int | None, chosen: str, extras: str
) -> None:
    assert script.wanted_extras(target, cuda, chosen) == set(extras.split())


def test_the_tests_have_every_extra_that_needs_no_gpu(script: ModuleType) -> None:
    extras = script.wanted_extras("test", None)
    assert extras >= {
        "dev",
        "jax",
        "mlx",
        "onnx",
        "opencl",
        "ray",
        "report",
        "torch",
        "warp",
        "wgpu",
    }
    assert extras.isdisjoint({"cuda12", "cuda13", "cute", "numba-cuda", "site"})
    assert extras | script.NOT_FOR_TESTS == set(script.project()["optional-dependencies"])


@pytest.mark.parametrize(
    ("registered", "extras", "missing"),
    [
        ({}, {"opencl"}, True),
        ({"pocl.icd": "libpocl.so.2.10.0\n"}, {"opencl"}, False),
        ({"intel64.icd": "/opt/intel/lib/libintelocl.so\n"}, {"opencl"}, False),
        ({"nvidia.icd": "libnvidia-opencl.so.1\n"}, {"opencl"}, True),
        ({}, {"wgpu"}, False),
    ],
    ids=["none", "PoCL", "Intel's", "a GPU's alone", "without PyOpenCL"],
)
def test_pyopencl_gets_a_driver_for_the_processor_unless_there_is_one(
    script: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    registered: dict[str, str],
    extras: set[str],
    missing: bool,
) -> None:
    for name, library in registered.items():
        (tmp_path / name).write_text(library)
    monkeypatch.setattr(script, "OPENCL_DRIVERS", tmp_path)
    assert ("pocl-opencl-icd" in script.system_needs("test", extras, False, "debian")) == missing


@pytest.mark.parametrize(
    ("version", "needs", "installed"),
    [
        ("2.13.0+cpu", "sympy", True),
        ("2.14.0", "nvidia-cudnn-cu13==9; platform_system == 'Linux'", False),
    ],
    ids=["CPU build", "build for CUDA"],
)
def test_without_a_gpu_only_a_cpu_build_of_torch_is_installed(
    script: ModuleType,
    calls: Calls,
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    needs: str,
    installed: bool,
) -> None:
    wheel = f"file:///wheels/torch-{version}.whl"
    answer = [
        {
            "download_info": {"url": wheel},
            "metadata": {"version": version, "requires_dist": [needs]},
        }
    ]
    monkeypatch.setattr(script, "resolve", lambda arguments: answer)
    monkeypatch.setattr(script, "in_venv", lambda code: False)
    monkeypatch.setattr(script.sys, "platform", "linux")
    assert script.install_torch(None) is installed
    assert [command[-1] for command in calls] == ([wheel] if installed else [])


needs_ensurepip = pytest.mark.skipif(
    importlib.util.find_spec("ensurepip") is None,
    reason="this Python has no ensurepip, as its embedded package",
)


@needs_ensurepip
def test_make_sets_up_the_environment_only_once(
    script: ModuleType,
    calls: Calls,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "cuda_version", lambda: None)
    monkeypatch.setattr(script, "install_torch", lambda cuda: False)
    script.set_up("test")
    stamp = json.loads((root / ".venv" / "overhead-setup.json").read_text())
    assert stamp["extras"] == sorted(script.wanted_extras("test", None))
    assert stamp["left_out"] == ["torch"]
    calls.clear()
    script.set_up("report")
    assert calls == []
    assert "left out at set-up: torch" in capsys.readouterr().out
    with (root / "pyproject.toml").open("a") as file:
        file.write("\n")
    script.set_up("lint")
    assert calls


@needs_ensurepip
def test_a_failing_pip_is_reported_in_one_line(
    script: ModuleType,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("EXTRAS", "none")
    monkeypatch.setattr(script, "call", lambda command, **more: 0)
    monkeypatch.setattr(
        script,
        "pip",
        lambda *arguments: [sys.executable, "-c", "print('no network'); raise SystemExit(1)"],
    )
    assert script.main(["test"]) == 1
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .startswith("overhead: test failed: pip could not install")
    )


@pytest.mark.parametrize(
    ("line", "names"),
    [
        (
            "  Downloading numpy-2.4.0-cp311-cp311-manylinux_2_28_x86_64.whl (16.6 MB)",
            ["numpy", "16.6 MB"],
        ),
        (
            "  Downloading https://example.org/whl/torch-2.13.0-cp311-none.whl (1.2 GB)",
            ["torch", "1.2 GB"],
        ),
        ("Installing collected packages: a, b, c", ["3 packages"]),
        ("  Downloading six-1.17.0-py2.py3-none-any.whl (11 kB)", []),
        ("  Downloading small-1.0-py3-none-any.whl (0.4 MB)", []),
        ("Requirement already satisfied: torch>=2.6 in /x", []),
        ("", []),
    ],
)
def test_set_up_says_what_pip_downloads(script: ModuleType, line: str, names: list[str]) -> None:
    step = script.pip_step(line)
    assert bool(step) == bool(names)
    assert all(name in step for name in names)


@needs_ensurepip
def test_an_environment_is_made_once_and_replaced_only_with_the_reason(
    script: ModuleType,
    calls: Calls,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(script, "in_venv", lambda code: True)

    def said(version: str, system: str = "false") -> str:
        settings = f"include-system-site-packages = {system}\nversion = {version}\n"
        (root / ".venv" / "pyvenv.cfg").write_text(settings)
        calls.clear()
        script.make_venv(False)
        out = capsys.readouterr().out
        assert bool(calls) == bool(out)
        return out

    here = "{}.{}.{}".format(*sys.version_info)
    shutil.rmtree(root / ".venv")
    (root / ".venv").mkdir()
    assert "whole" in said(here)
    assert said(here) == ""
    assert "3.2.1" in (other := said("3.2.1"))
    assert sys.executable in other
    assert "SYSTEM_PACKAGES" in said(here, "true")


def test_git_ignores_what_a_report_writes() -> None:
    lines = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"reports/{folder}/" for folder in REPORT_FOLDERS} <= set(lines)


def test_make_clean_does_not_remove_measurements(script: ModuleType, root: Path) -> None:
    made = (".venv/x", ".mypy_cache/x", "reports/index.html", "overhead/__pycache__/a.pyc")
    pages = [f"reports/{folder}/x" for folder in REPORT_FOLDERS]
    for name in (*made, *pages, "reports/local/a.json"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    assert script.main(["clean"]) == script.main(["clean"]) == 0
    left = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert left == {"pyproject.toml", "scripts/bootstrap.py", "reports/local/a.json"}
