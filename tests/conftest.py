"""The marker ``needs``: ``@pytest.mark.needs("wgpu", "lavapipe")`` skips a test where a part is missing.

``OVERHEAD_REQUIRED`` (comma-separated part names) turns such skips into failures, so that CI cannot pass by skipping.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from tests.fakes.no_network import UNSHARE

os.environ.setdefault("MPLBACKEND", "Agg")
if sys.platform != "win32" and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # of nohup; programs under test would inherit it

TOOLS = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
"""Where programs are that pip installs, also if the virtual environment is not active."""
_MANIFESTS = ("/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d")
_CHROMIUM_FOLDERS = ("/usr/lib/chromium", "/usr/lib/chromium-browser", "/opt/google/chrome")


def _module(name: str) -> str:
    return "" if importlib.util.find_spec(name) else f"the Python package {name} is not installed"


def _program(*names: str) -> str:
    return "" if any(map(shutil.which, names)) else f"no program {' or '.join(names)} on PATH"


def _library(name: str) -> str:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return ""


def _file(pattern: str, *folders: str) -> str:
    found = any(next(Path(folder).glob(pattern), None) for folder in folders)
    return "" if found else f"no {pattern} in {', '.join(folders)}"


def _vulkan_loader() -> str:
    names = {"win32": "vulkan-1.dll", "darwin": "libvulkan.1.dylib"}
    return _library(names.get(sys.platform, "libvulkan.so.1"))


def _cuda_driver() -> str:
    return _library("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _namespaces() -> str:
    try:
        command = [*UNSHARE, "mount", "--bind", "/etc/resolv.conf", "/etc/resolv.conf"]
        return subprocess.run(command, capture_output=True, text=True).stderr.strip()
    except OSError as error:
        return str(error)


PARTS: dict[str, Callable[[], str]] = {
    **{name: functools.partial(_module, name) for name in (
        "check_jsonschema", "cupy", "cutlass", "hatchling", "jax", "jinja2", "jsonschema", "material", "matplotlib",
        "mlx", "numba", "numba_cuda", "onnxruntime", "onnxscript", "pandas", "pip", "pocl_binary_distribution",
        "pyopencl", "ray", "seaborn", "torch", "triton", "vulkan", "warp", "wgpu", "wgpudawn",
    )},
    "chromium": lambda: _program("chromium", "chromium-browser", "google-chrome"),
    "firefox": lambda: _program("firefox-esr", "firefox"),
    "bash": lambda: _program("bash"),
    "make": lambda: _program("make"),
    "cxx": lambda: _program("g++", "clang++"),
    "shellcheck": lambda: "" if shutil.which("shellcheck", path=TOOLS) else "no program shellcheck",
    "glslang": lambda: _program("glslangValidator", "glslang"),
    "cuda": _cuda_driver,
    "namespaces": _namespaces,
    "vulkan-loader": _vulkan_loader,
    "lavapipe": lambda: _vulkan_loader() or _file("lvp_icd*.json", *_MANIFESTS),
    "swiftshader": lambda: _vulkan_loader() or _file("vk_swiftshader_icd.json", *_CHROMIUM_FOLDERS),
}  # fmt: skip
"""For each part a check that returns the reason why it is missing, empty where it is present."""

missing = functools.cache(lambda part: PARTS[part]())
REQUIRED = frozenset(filter(None, os.environ.get("OVERHEAD_REQUIRED", "").replace(" ", "").split(",")))
_our_skip = pytest.StashKey[bool]()


def _parts(item: pytest.Item) -> list[str]:
    return [part for mark in item.iter_markers("needs") for part in mark.args]


def pytest_configure() -> None:
    if unknown := REQUIRED - set(PARTS):
        raise pytest.UsageError(f"OVERHEAD_REQUIRED names no part of tests/conftest.py: {', '.join(sorted(unknown))}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if unknown := [part for part in _parts(item) if part not in PARTS]:
            raise pytest.UsageError(f"{item.nodeid}: needs names no part of tests/conftest.py: {', '.join(unknown)}")


def pytest_runtest_setup(item: pytest.Item) -> None:
    lacking = {part: reason for part in _parts(item) if (reason := missing(part))}
    if required := REQUIRED & set(lacking):
        pytest.fail("; ".join(f"{part} is required here: {lacking[part]}" for part in sorted(required)), pytrace=False)
    if lacking:
        item.stash[_our_skip] = True
        pytest.skip("; ".join(f"needs {part}: {reason}" for part, reason in lacking.items()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that skips itself although all its parts are required and present."""
    report = yield
    parts = set(_parts(item))
    skipped_itself = report.skipped and not hasattr(report, "wasxfail") and _our_skip not in item.stash
    if skipped_itself and parts and parts <= REQUIRED:
        report.outcome = "failed"
        report.longrepr = f"skipped itself although its parts are required: {report.longrepr}"
    return report
