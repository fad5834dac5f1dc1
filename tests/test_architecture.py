"""The order of imports, one meaning for each public name, and what an import loads."""

from __future__ import annotations

import ast
import builtins
import collections
import contextlib
import functools
import graphlib
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from overhead.slices import CORE_FEATURES, SLICES
from tests.trials import LIBRARIES

ROOT = Path(__file__).resolve().parents[1]
ORDER = (
    {
        "errors",
        "bounded_files",
        "extras",
        "fields",
        "locks",
        "numerics",
        "profiles",
        "public",
        "registry",
        "scratch",
        "slices",
        "windows_job",
    },
    {"results"},
    {"child"},
    {"measure.fitting"},
    {"measure.sampling"},
    {"devices", "named_comparisons"},
    {"machine"},
    {"workloads"},
    {"probes", "reading"},
    {"words"},
    {"blocks"},
    {"loading"},
    {"runner", "comparing", "checking"},
    {"report", "export"},
    {"display"},
    {"terminal", "first_steps", "commands"},
    {"command_parser"},
    {"arguments"},
    {*CORE_FEATURES},
    {*SLICES},
    {"cli"},
)
"""Packages of one set may import each other, except those of ``APART``. docs/architecture.md
describes them.
"""
APART = ({"probes", "reading"}, {"runner", "comparing"})
SLICE_ARROWS = {
    ("claims", "decode"): "some claims are about tokens",
    ("explaining", "timing"): "the cost of a step is measured as that of a call",
    ("explaining", "traces"): "a step is explained by a trace of it",
}
"""Which slice may import which other one, and why."""
TYPES_ONLY = {
    ("overhead.errors", "overhead.results.reason"): "an error holds the reason that others made",
    (
        "overhead.results.origin",
        "overhead.results.records",
    ): "an origin holds the figure that others made",
}
"""Which module imports another one for its annotations alone, and why."""
HEAVY = {"numpy", "scipy", "pandas", "matplotlib", *LIBRARIES}

SAME_NAME = {
    "REGISTERS": "each family of stacks names its modules that register one",
    "ROOT": (
        "the folder of the repository; bootstrap.py imports nothing of the project, so each script"
        " has its own"
    ),
    "TEMPLATES": "each module of words.reasons has the sentences of its codes",
    "T": "the usual name of a type variable",
}
"""Public names that two or more modules may define, each with the reason."""


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file. Many tests here walk over all of them."""
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {
    name_of(path): path
    for top in ("overhead", "scripts")
    for path in sorted((ROOT / top).rglob("*.py"))
}


@functools.cache
def imports(path: Path, *, only_at_import: bool = False) -> set[str]:
    """The modules of the project that a file imports; without those inside functions if
    ``only_at_import``.
    """
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

    visit(parsed(path))
    for_types = {imported for importer, imported in TYPES_ONLY if MODULES[importer] == path}
    return (found & MODULES.keys()) - for_types


def package(module: str) -> str:
    """The entry of ``ORDER`` for a module of ``overhead``; the module itself where there is none.

    The words of a package have an entry of their own: ``words.comparing``.
    """
    inside = module.removeprefix("overhead").removeprefix(".")
    found = next(
        (name for entry in ORDER for name in entry if f"{inside}.".startswith(f"{name}.")), inside
    )
    if found == "words" and worded_package(inside):
        return f"words.{worded_package(inside)}"
    return found


def worded_package(inside: str) -> str:
    """Of a module of ``words``: the package whose facts it puts into words; '' where it is about
    none.
    """
    name = inside.partition(".")[2].partition(".")[0]
    return name if any(name in entry for entry in ORDER) else ""


def place(name: str) -> int:
    """The place in ``ORDER``. The words of a package stand beside the package, and not before the
    other words.
    """
    of_words = next(index for index, entry in enumerate(ORDER) if "words" in entry)
    if worded := worded_package(name) if name.startswith("words.") else "":
        return max(of_words, place(worded))
    return next(index for index, entry in enumerate(ORDER) if name in entry)


OURS = [
    module
    for module in MODULES
    if package(module) not in ("", "__main__", "measure") and module[:8] == "overhead"
]


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
    """The classes, constants and type aliases that a module defines at its top level, without
    underscored names.
    """
    for node in parsed(path).body:
        if isinstance(node, ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                part.id
                for target in targets
                for part in ast.walk(target)
                if isinstance(part, ast.Name)
            ]
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
        for module in getattr(
            importlib.import_module(f"overhead.probes.{path.parent.name}"), "REGISTERS", ()
        )
    }
    registered = {type(probe).__module__ for probe in registry().values()}
    assert named <= registered
    others = {module for module in registered if module.startswith("overhead.probes.")} - named
    in_one_file = {
        f"overhead.probes.{path.stem}" for path in (ROOT / "overhead" / "probes").glob("*.py")
    }
    assert others <= in_one_file, (
        "a module in the folder of a family registers a stack, and the family does not name it"
    )


STACK_WORDS = {
    "arguments.py": ({"chromium"}, "a kind of browser"),
    "decode": ({"torch"}, "the package, and who makes a graph"),
    "decode/arms/__init__.py": (
        {
            "chromium",
            "cuda-driver",
            "cuda-graph",
            "dawn",
            "firefox",
            "torch-compile",
            "wgpu-native",
        },
        "how each stack computes a token, which is code",
    ),
    "devices.py": ({"vulkan"}, "a word in the names of adapters"),
    "first_steps.py": ({"numpy", "torch"}, "packages that may be installed"),
    "timing": (
        {"cupy", "jax", "mlx", "numpy", "torch", "triton"},
        "packages that a person's program imports",
    ),
    "words/first_steps.py": ({"numpy"}, "the package"),
    "explaining": (
        {"cupy", "jax", "numpy", "torch", "triton"},
        "packages that a person's program imports",
    ),
    "probes/browser": ({"vulkan"}, "what a browser calls an API"),
    "probes/cuda": ({"torch"}, "the package, and who makes a graph"),
    "probes/torch": ({"triton"}, "the package"),
    "probes/triton": ({"torch"}, "the package"),
    "reading/findings/options.py": ({"torch-compile"}, "the name of a rule, which files have"),
    "runner/interpreter.py": ({"numpy"}, "the package"),
    "workloads": ({"floor", "triton"}, "a function, and a language of kernels"),
}
"""Where a string that is the name of a stack may stand outside the stack's own folder, and what it
is there.
"""


def is_inside(path: Path, place: str) -> bool:
    return f"{relative(path)}/".startswith(f"{place}/")


def stack_homes() -> dict[str, str]:
    """By name of each stack the file or folder in ``overhead`` that is its own."""
    from overhead.probes import registry

    homes = {}
    for name, probe in registry().items():
        path = MODULES.get(type(probe).__module__)
        if path is not None:  # a plugin is none of ours
            alone = path.parent == ROOT / "overhead" / "probes"
            homes[name] = relative(path if alone else path.parent)
    return homes


def stacks_named() -> Iterator[tuple[Path, int, str]]:
    """Each string outside a stack's own folder that is the name of the stack, with its file and
    line.
    """
    homes = stack_homes()
    for path in MODULES.values():
        if not path.is_relative_to(ROOT / "overhead"):
            continue
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
                continue
            name = node.value
            if name in homes and not is_inside(path, homes[name]):
                yield path, node.lineno, name


def test_the_name_of_a_stack_stands_in_its_own_folder_and_among_the_facts_alone() -> None:
    unexplained: list[str] = []
    needed: set[tuple[str, str]] = set()
    for path, line, name in stacks_named():
        places = [
            place
            for place, (names, _) in STACK_WORDS.items()
            if name in names and is_inside(path, place)
        ]
        needed.update((place, name) for place in places)
        if not places:
            unexplained.append(f"{relative(path)}:{line}: {name}")
    assert unexplained == [], "a fact of a stack belongs into results/stack_facts.toml"
    allowed = {(place, name) for place, (names, _) in STACK_WORDS.items() for name in names}
    assert needed == allowed, "remove what is not there"


def test_every_stack_of_the_suite_has_facts() -> None:
    from overhead.results import own_stacks

    assert stack_homes().keys() <= own_stacks().keys()


PRESENTERS = {
    "across", "arguments", "blocks", "brief", "cli", "commands", "display", "export", "figure",
    "listing", "page", "page_list", "pages", "progress", "pytest_plugin", "report", "saved",
    "sections", "show", "terminal",
}  # fmt: skip
"""Packages, and modules of other packages, that show something. They take their sentences from
``words``.
"""
OTHER_LANGUAGES = ("workloads", "decode/lowering", "probes/kernels", "traces/nsys_queries")
"""Where strings are programs for a device or a database."""
HELP = ("about", "description", "epilog", "help")
"""Arguments that the help of the command line shows."""
MOST_WORDS = 4
"""A string of more words than this is a sentence."""


def is_presenter(path: Path) -> bool:
    parts = path.relative_to(ROOT / "overhead").with_suffix("").parts
    return parts[0] not in ("probes", "words") and not PRESENTERS.isdisjoint(parts)


def literal(node: ast.AST) -> str | None:
    """The text of a string; ``{}`` stands for what is not constant, and strings that are added are
    joined.
    """
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(literal(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = literal(node.left), literal(node.right)
        return None if left is None and right is None else (left or "{}") + (right or "{}")
    return None


def is_program(text: str) -> bool:
    """Whether a string is Python for another process or for ``compile``: a call, an assignment, an
    import, or lines.

    The head of a loop or of a function counts, and markup, which begins with an angle bracket.
    """
    if text.lstrip().startswith("<"):
        return True
    if not re.search(r"\bimport\b|\n|\w\(|[\w}] :?= ", text):
        return False
    for whole in (text, f"{text}\n    pass", f"{text}\ndef f(): pass"):
        with contextlib.suppress(SyntaxError):
            ast.parse(whole.replace("{}", "x"))
            return True
    return False


def docstrings(tree: ast.AST) -> set[int]:
    """The ids of strings that are statements of their own: docstrings of modules, functions, fields
    and constants.
    """
    return {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }


@functools.cache
def errors_of_wrong_use() -> frozenset[str]:
    """The names of the classes of errors of wrong use, with Python's own for a mistake in the
    code.
    """
    own = (ValueError, TypeError, OSError, AttributeError, NotImplementedError)
    found = {
        name
        for name, kind in vars(builtins).items()
        if isinstance(kind, type) and issubclass(kind, own)
    }
    found |= {"ArgumentTypeError", "raising_cannot_write", "unknown_name"}
    bases: dict[str, set[str]] = {}
    for path in MODULES.values():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(node.name, set()).update(
                    ast.unparse(base).rpartition(".")[2] for base in node.bases
                )
    while more := {name for name, own in bases.items() if own & found} - found:
        found |= more
    return frozenset(found)


def is_wrong_use(made: ast.Call) -> bool:
    """Whether a call makes an error of wrong use, or one of Python's own for a mistake in the
    code.
    """
    return ast.unparse(made.func).rpartition(".")[2] in errors_of_wrong_use()


def is_pattern(made: ast.Call) -> bool:
    """Whether a call compiles or searches a regular expression."""
    return ast.unparse(made.func).startswith("re.")


def sentences(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module that is a sentence: no docstring, no help, no error
    of wrong use.
    """
    tree = parsed(path)
    documented = docstrings(tree)

    def visit(node: ast.AST) -> Iterator[tuple[int, str]]:
        if id(node) in documented or (isinstance(node, ast.keyword) and node.arg in HELP):
            return
        if isinstance(node, ast.Call) and (is_wrong_use(node) or is_pattern(node)):
            return
        if isinstance(node, ast.ClassDef) and node.name in errors_of_wrong_use():
            return
        text = literal(node)
        if text is not None:
            words = re.findall(r"[A-Za-zµ']{2,}|\{\}", text)
            if len(words) > MOST_WORDS and " " in text.strip() and not is_program(text):
                yield getattr(node, "lineno", 0), text
            return
        for child in ast.iter_child_nodes(node):
            yield from visit(child)

    yield from visit(tree)


def relative(path: Path) -> str:
    return path.relative_to(ROOT / "overhead").as_posix()


PRESENTING = [
    path
    for path in MODULES.values()
    if path.is_relative_to(ROOT / "overhead") and is_presenter(path)
]
BELOW_WORDS = [
    path
    for path in MODULES.values()
    if path.is_relative_to(ROOT / "overhead")
    and not is_presenter(path)
    and "words" not in path.parts
    and not any(f"/{name}/" in f"{path.with_suffix('').as_posix()}/" for name in OTHER_LANGUAGES)
]
_WINDOW = "a name in the window of a record, which files hold"
_DEVICE = "a name of a device, which files hold"
_COMMAND = "a command for a shell"
_REFUSAL = "what a wrong request to the local server gets"
OTHER_STRINGS = {
    "command_parser.py": (3, "titles in the help"),
    "decode/chain.py": (4, _WINDOW),
    "decode/lowered.py": (1, "WGSL"),
    "decode/onnxruntime_chain.py": (1, _WINDOW),
    "machine/identity.py": (1, _COMMAND),
    "machine/state.py": (1, _COMMAND),
    "probes/browser/identity.py": (1, _DEVICE),
    "probes/browser/importing.py": (1, _DEVICE),
    "probes/browser/server.py": (5, f"{_REFUSAL}, and a security policy"),
    "probes/cuda/cupy.py": (1, _WINDOW),
    "probes/cuda/session.py": (1, _WINDOW),
    "probes/pyopencl.py": (1, _WINDOW),
    "probes/torch/bodies.py": (1, _WINDOW),
    "probes/torch/chains.py": (1, _WINDOW),
    "probes/torch/workload.py": (1, _WINDOW),
    "probes/vulkan/adapters.py": (3, f"{_COMMAND}, and a path"),
    "probes/vulkan/chains.py": (1, _WINDOW),
    "probes/vulkan/commands.py": (1, _WINDOW),
    "probes/vulkan/device_time.py": (2, _WINDOW),
    "probes/warp.py": (1, _WINDOW),
    "probes/webgpu/device_time.py": (1, _WINDOW),
    "probes/webgpu/webgpu.py": (1, "the title of a stack, which is its name"),
    "probes/webgpu/targets.py": (2, f"{_COMMAND}, and {_DEVICE}"),
}
"""How many strings of a module look like sentences and are none, and what they are."""


@pytest.mark.parametrize("path", BELOW_WORDS, ids=relative)
def test_below_the_words_there_are_no_sentences(path: Path) -> None:
    found = [f"{path.name}:{line}: {text}" for line, text in sentences(path)]
    others, _ = OTHER_STRINGS.get(relative(path), (0, ""))
    assert len(found) == others, "\n".join(found)


@pytest.mark.parametrize("path", PRESENTING, ids=relative)
def test_what_shows_something_makes_no_sentence_of_figures(path: Path) -> None:
    found = [f"{path.name}:{line}: {text}" for line, text in sentences(path) if "{}" in text]
    assert found == []


@pytest.mark.parametrize("path", BELOW_WORDS, ids=relative)
def test_below_the_words_nothing_imports_them(path: Path) -> None:
    assert [name for name in imports(path) if f"{name}.".startswith("overhead.words.")] == []


def modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_the_package_loads_no_heavy_library() -> None:
    assert not modules_after("import overhead") & (HEAVY | {"msgspec", "rich"})


def test_printing_the_help_loads_no_heavy_library_and_reads_no_entry_points() -> None:
    code = (
        "import contextlib\nfrom overhead.cli import main\nwith contextlib.suppress(SystemExit):"
        " main(['--help'])"
    )
    assert not modules_after(code) & (
        HEAVY | {"msgspec", "rich", "importlib.metadata", "overhead.probes"}
    )


def test_the_blocks_of_a_page_load_a_library_only_in_the_renderer_that_needs_it() -> None:
    loaded = modules_after(
        "import overhead.blocks.parts, overhead.blocks.html, overhead.blocks.markdown"
    )
    assert not loaded & (HEAVY | {"rich", "jinja2"})
    assert not modules_after("import overhead.blocks.terminal, overhead.report.brief") & (
        HEAVY | {"jinja2"}
    ) - {"numpy"}
