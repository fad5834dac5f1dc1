"""Published files agree with the code: requirements, generated documents, the schema, links."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

from scripts import explain_picture, write_docs

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
INSTALLED_WITH = {
    "llvmlite": "numba",
    "markupsafe": "jinja2",
    "triton": "torch",
    "PIL": "matplotlib",
}
DISTRIBUTIONS = {
    "cuda": "cuda-bindings",
    "cupy": "cupy-cuda13x",
    "cutlass": "nvidia-cutlass-dsl",
    "onnxruntime_ep_webgpu": "onnxruntime-ep-webgpu",
    "warp": "warp-lang",
}


def imported(path: Path) -> set[str]:
    """The top-level names of the third-party packages that a file imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"overhead"}


def links(page: Path) -> list[str]:
    """The targets of the links of a page, without those in code."""
    prose = re.sub(
        r"```.*?```|`[^`]*`|^ {4}[^\n]*$", "", page.read_text("utf-8"), flags=re.S | re.M
    )
    return re.findall(r"\]\(([^)#]+)[^)]*\)", prose)


def test_the_base_install_needs_four_packages_that_are_small_beside_numpy() -> None:
    """Together with what they need these are wheels of 20 MB. Another one costs every user its
    seconds.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {re.split(r"[^\w-]", line)[0] for line in project["dependencies"]} == {
        "msgspec",
        "numpy",
        "psutil",
        "rich",
    }


def test_every_package_that_is_imported_is_declared() -> None:
    """Not only by the extras for developers. The fixtures for pytest run inside it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [
        needed
        for name, needed in project["optional-dependencies"].items()
        if name not in ("dev", "site")
    ]
    requirements = sum(extras, project["dependencies"])
    declared = {re.split(r"[^\w-]", line)[0] for line in requirements} | {"pytest"}
    for path in (ROOT / "overhead").rglob("*.py"):
        for name in imported(path):
            distribution = DISTRIBUTIONS.get(name, INSTALLED_WITH.get(name, name))
            assert distribution in declared, f"{path.relative_to(ROOT)} imports {name}"


@pytest.mark.slow
def test_generated_documents_are_up_to_date() -> None:
    """``python scripts/write_docs.py`` writes them."""
    texts = {str(path): path.read_text("utf-8") for path in write_docs.DOCUMENTS}
    stale = [name for name, text in texts.items() if write_docs.filled(text) != text]
    if (DOCS / "fingerprint.schema.json").read_text("utf-8") != write_docs.schema():
        stale.append("schema")
    for document in write_docs.DOCUMENTS_WITH_FACTS:
        facts = write_docs.facts_file(document)
        if facts.read_text("utf-8") != write_docs.facts(document):
            stale.append(facts.name)
    if explain_picture.PICTURE.read_text("utf-8") != explain_picture.picture():
        stale.append(explain_picture.PICTURE.name)
    assert not stale
    assert "| `numpy` |" in texts[str(DOCS / "installing.md")]


@pytest.mark.slow
@pytest.mark.needs("matplotlib", "seaborn")
def test_the_pictures_of_the_documents_show_what_the_committed_data_gives() -> None:
    """``python scripts/write_docs.py`` writes them. Each carries the text that was drawn into
    it.
    """
    from PIL import Image

    drawn = {name: write_docs.drawn_text(figure) for name, figure in write_docs.figures()}
    committed = {}
    for path in DOCS.glob("*.png"):
        with Image.open(path) as picture:
            committed[path.name] = picture.info.get("Description")
    assert committed == drawn
    assert len(
        {text for text in drawn.values() if "CUDA driver" in text and "from Python" in text}
    ) == len(drawn)


@pytest.mark.needs("jsonschema")
def test_the_example_file_satisfies_the_schema() -> None:
    import jsonschema

    schema = json.loads((DOCS / "fingerprint.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    example = json.loads((DOCS / "example-fingerprint.json").read_text("utf-8"))
    jsonschema.Draft202012Validator(schema).validate(example)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(example | {"machine": {"id": "short"}})


@pytest.mark.parametrize(
    "page", [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))], ids=lambda page: page.name
)
def test_links_between_pages_have_targets(page: Path) -> None:
    for target in links(page):
        assert "://" in target or (page.parent / target).is_file(), f"{page.name} links to {target}"
