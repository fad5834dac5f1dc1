"""How code is written: what CONTRIBUTING.md asks for and a program can see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def compound_comprehensions(source: str) -> Iterator[int]:
    """The lines with a comprehension that a reader has to take apart.

    Such a comprehension has two loops, two conditions, or another comprehension inside.
    """
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, COMPREHENSIONS):
            continue
        inner = [child for child in ast.walk(node) if child is not node]
        holds_another = any(isinstance(child, COMPREHENSIONS) for child in inner)
        has_two_loops = len(node.generators) > 1
        has_two_conditions = any(len(loop.ifs) > 1 for loop in node.generators)
        if holds_another or has_two_loops or has_two_conditions:
            yield node.lineno


@pytest.mark.parametrize(
    "source",
    [
        "[cell for row in table for cell in row]",
        "[[2 * cell for cell in row] for row in table]",
        "sum(cell for cell in row if cell if cell > 1)",
        "{name: max(value for value in values) for name, values in table.items()}",
    ],
)
def test_a_comprehension_with_two_loops_or_conditions_or_another_inside_is_compound(
    source: str,
) -> None:
    assert list(compound_comprehensions(source)) == [1]


@pytest.mark.parametrize(
    "source", ["[2 * cell for cell in row]", "{name for name in names if name and name != 'x'}"]
)
def test_a_comprehension_with_one_loop_and_one_condition_is_none(source: str) -> None:
    assert list(compound_comprehensions(source)) == []


@pytest.mark.parametrize("folder", ["overhead", "scripts", "docs/examples"])
def test_no_comprehension_is_compound(folder: str) -> None:
    places = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        lines = compound_comprehensions(path.read_text(encoding="utf-8"))
        places += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert places == [], "use a loop, or name the inner list first"
