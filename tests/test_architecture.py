"""The order of imports, one meaning for each public name, and what an import loads."""

from __future__ import annotations

import ast
import collections
import functools
import graphlib
import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from overhead.slices import SLICES

ROOT = Path(__file__).resolve().parents[1]
ORDER = (
    {"errors", "bounded_files", "child", "fields", "locks", "profiles", "registry", "scratch", "slices", "windows_job"},
    {"results"},
    {"measure.fitting"},
    {"measure.sampling"},
    {"devices", "named_comparisons"},
    {"machine"},
    {"workloads"},
    {"probes", "reading"},
    {"blocks"},
    {"loading"},
    {"runner", "comparing", "checking"},
    {"report", "export"},
    {"terminal", "commands"},
    {"arguments"},
    {*SLICES},
    {"cli"},
)
"""Packages of one set may import each other, except those of ``APART``. docs/architecture.md describes them."""
APART = ({"probes", "reading"}, {"runner", "comparing"})
SLICE_ARROWS = {("claims", "decode"): "some claims are about tokens"}
"""Which slice may import which other one, and why."""
HEAVY = {
    "numpy", "scipy", "pandas", "matplotlib", "numba", "torch", "wgpu", "wgpudawn", "vulkan", "cupy", "jax", "triton",
    "onnxruntime", "warp", "pyopencl", "mlx",
}  # fmt: skip

SAME_NAME = {
    "REGISTERS": "each family of stacks names its modules that register one",
    "ROOT": "the folder of the repository; bootstrap.py imports nothing of the project, so each script has its own",
    "T": "the usual name of a type variable",
}
"""Public names that two or more modules may define, each with the reason."""


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for top in ("overhead", "scripts") for path in sorted((ROOT / top).rglob("*.py"))}


@functools.cache
def imports(path: Path, *, only_at_import: bool = False) -> set[str]:
    """The modules of the project that a file imports; without those inside functions if ``only_at_import``."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if only_at_import and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found.update(inner & MODULES.keys())
            if not inner <= MODULES.keys():
                found.add(node.module)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found & MODULES.keys()


def package(module: str) -> str:
    """The entry of ``ORDER`` for a module of ``overhead``; the module itself where there is none."""
    inside = module.removeprefix("overhead").removeprefix(".")
    return next((name for entry in ORDER for name in entry if f"{inside}.".startswith(f"{name}.")), inside)


def place(name: str) -> int:
    return next(index for index, entry in enumerate(ORDER) if name in entry)


OURS = [module for module in MODULES if package(module) not in ("", "__main__", "measure") and module[:8] == "overhead"]


@pytest.mark.parametrize("module", OURS)
def test_a_module_imports_only_from_packages_earlier_in_the_order(module: str) -> None:
    own = package(module)
    for imported in imports(MODULES[module]) - {"overhead"}:
        other = package(imported)
        assert place(other) <= place(own), f"{module} imports {imported}"
        assert own == other or {own, other} not in APART, f"{module} imports {imported}"
        if {own, other} <= {*SLICES} and own != other:
            assert (own, other) in SLICE_ARROWS, f"{module} imports {imported}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = {module: imports(path) - {module} for module, path in MODULES.items()}
    packages = {module for module, path in MODULES.items() if path.name == "__init__.py"}
    # The __init__ of a package may import its modules in a function, to register what they define.
    for module in packages:
        graph[module] = imports(MODULES[module], only_at_import=True) - {module}
    try:
        tuple(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def public_names(path: Path) -> Iterator[str]:
    """The classes, constants and type aliases that a module defines at its top level, without underscored names."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        else:
            names = []
        yield from (name for name in names if name[0].isupper())


def test_every_public_name_is_defined_in_one_module_only() -> None:
    modules = collections.defaultdict[str, set[str]](set)
    for module, path in MODULES.items():
        for name in public_names(path):
            modules[name].add(module)
    repeated = {name: sorted(where) for name, where in modules.items() if len(where) > 1}
    assert {name: where for name, where in repeated.items() if name not in SAME_NAME} == {}
    assert SAME_NAME.keys() <= repeated.keys(), "remove the names that one module alone defines"


def test_the_modules_that_a_family_of_stacks_names_register_one() -> None:
    from overhead.probes import registry

    named = {
        f"overhead.probes.{path.parent.name}.{module}"
        for path in (ROOT / "overhead" / "probes").glob("*/__init__.py")
        for module in getattr(importlib.import_module(f"overhead.probes.{path.parent.name}"), "REGISTERS", ())
    }
    registered = {type(probe).__module__ for probe in registry().values()}
    assert named <= registered
    others = {module for module in registered if module.startswith("overhead.probes.")} - named
    in_one_file = {f"overhead.probes.{path.stem}" for path in (ROOT / "overhead" / "probes").glob("*.py")}
    assert others <= in_one_file, (
        "a module in the folder of a family registers a stack, and the family does not name it"
    )


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_heavy_library() -> None:
    assert not modules_after("import overhead") & (HEAVY | {"msgspec", "rich"})


def test_printing_the_help_loads_no_heavy_library_and_reads_no_entry_points() -> None:
    code = "import contextlib\nfrom overhead.cli import main\nwith contextlib.suppress(SystemExit): main(['--help'])"
    assert not modules_after(code) & (HEAVY | {"msgspec", "rich", "importlib.metadata", "overhead.probes"})


def test_the_blocks_of_a_page_load_a_library_only_in_the_renderer_that_needs_it() -> None:
    loaded = modules_after("import overhead.blocks.parts, overhead.blocks.html, overhead.blocks.markdown")
    assert not loaded & (HEAVY | {"rich", "jinja2"})
    assert not modules_after("import overhead.blocks.terminal, overhead.report.brief") & (HEAVY | {"jinja2"}) - {
        "numpy"
    }
