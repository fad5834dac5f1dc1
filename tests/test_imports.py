"""What may import what: the start is light, measuring and results stand alone, readers load no probe."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "overhead"
HEAVY = {
    "numpy",
    "scipy",
    "pandas",
    "matplotlib",
    "numba",
    "torch",
    "wgpu",
    "wgpudawn",
    "vulkan",
    "cupy",
    "jax",
    "triton",
}


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not modules_after("import overhead") & (HEAVY | {"msgspec", "rich"})


def test_help_loads_nothing_heavy_and_scans_no_entry_points() -> None:
    code = "import contextlib\nfrom overhead.cli import main\nwith contextlib.suppress(SystemExit): main(['--help'])"
    assert not modules_after(code) & (HEAVY | {"msgspec", "rich", "importlib.metadata", "overhead.probes"})


def test_asking_for_the_registry_loads_no_gpu_library() -> None:
    assert not modules_after("from overhead.probes import registry; registry()") & (HEAVY - {"numpy"})


def imports(path: Path) -> set[str]:
    """The project's modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name for name in found if name.startswith("overhead.")}


@pytest.mark.parametrize("path", sorted((PACKAGE / "measure").glob("*.py")), ids=lambda p: p.name)
def test_measure_imports_nothing_else_of_ours(path: Path) -> None:
    assert all(name.startswith("overhead.measure") for name in imports(path))


def test_results_imports_nothing_else_of_ours() -> None:
    assert imports(PACKAGE / "results.py") <= {"overhead.errors", "overhead.errors.UsageError"}


FOLDERS = ("claims", "reading", "report", "versus")
READERS = [PACKAGE / "reduce.py", *(path for folder in FOLDERS for path in (PACKAGE / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", sorted(READERS), ids=lambda p: p.name)
def test_readers_of_results_load_no_probe(path: Path) -> None:
    assert not any(name.startswith(("overhead.probes", "overhead.runner")) for name in imports(path))
