"""What the program prints, draws and helps with has none of the words that readers do not know."""

from __future__ import annotations

import argparse
import ast
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from overhead.arguments import make_parser
from overhead.blocks.parts import (
    Drawing,
    Heading,
    Listing,
    Part,
    StatusLine,
    Table,
    Terms,
    Text,
    cell_text,
    without_pictures,
)
from overhead.claims.judging import judge_runs
from overhead.claims.show import verdict_blocks
from overhead.comparing import compare
from overhead.comparing.show import comparison_blocks
from overhead.explaining.show import explanation_blocks
from overhead.loading.files import read_fingerprint
from overhead.report.brief import brief_blocks
from overhead.report.core.machines import from_paths
from overhead.report.core.page_list import pages
from overhead.report.core.registry import registered, registered_across
from overhead.timing.show import timing_blocks
from tests.fakes.explanations import decode_explained
from tests.fakes.timings import two_calls
from tests.words.not_used import NOT_PRINTED, not_used_in

PACKAGE = Path(__file__).resolve().parents[2] / "overhead"
DATA = PACKAGE.parent / "reports" / "data"
PRESENTERS = sorted({
    *PACKAGE.glob("words/**/*.py"),
    *PACKAGE.glob("report/**/*.py"),
    *PACKAGE.glob("blocks/*.py"),
    *PACKAGE.glob("*/show.py"),
    *PACKAGE.glob("*/sections.py"),
    *PACKAGE.glob("*/figure.py"),
    PACKAGE / "explaining" / "page.py",
    PACKAGE / "runner" / "listing.py",
})  # fmt: skip
"""The modules whose strings a person reads."""
_VALUE = re.compile(r"\{[^}]*\}")
"""The place of a value in a template."""
_MARKUP = re.compile(r"\{[{%].*?[%}]\}|<[^>]*>", re.DOTALL)
"""What a template does, and its tags."""
RUNS = (
    "nvidia-h100-stacks",
    "nvidia-h100-recurrence",
    "nvidia-h100-decode-0.5b",
    "nvidia-h100-contention-threads",
    "nvidia-h200-chromium",
)


def strings_of(module: Path) -> Iterator[str]:
    """The string constants that have more than one word. Docstrings are for programmers, and one
    word may be a code.
    """
    tree = ast.parse(module.read_text("utf-8"))
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield _VALUE.sub("", node.value)


def texts_of(part: Part) -> Iterator[str]:
    """All that a reader of this part sees, but what is drawn."""
    match part:
        case Drawing():
            yield part.title
            yield part.alt
            yield part.caption
            yield from texts_of_all(without_pictures([part]))
        case Table():
            yield from texts_of_table(part)
        case Text():
            yield from part.paragraphs
            yield part.folded
        case Listing():
            yield from itertools.chain.from_iterable(part.items)
        case Heading():
            yield part.text
        case StatusLine():
            yield part.head
            yield part.text
            yield from (detail for detail in part.details if isinstance(detail, str))
        case Terms():
            for term in part.terms:
                yield term.name
                yield term.meaning


def texts_of_table(table: Table) -> Iterator[str]:
    yield table.caption
    yield from table.columns
    yield from table.meanings.values()
    for row in table.rows:
        yield from map(cell_text, row)


def texts_of_all(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        yield from texts_of(part)


def complaints(texts: Iterable[str]) -> list[str]:
    """What the texts have of the words that are not used, each once."""
    found: dict[str, None] = {}
    for text in texts:
        found |= dict.fromkeys(not_used_in(text, NOT_PRINTED))
    return list(found)


@pytest.mark.parametrize(
    "module", PRESENTERS, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_the_strings_of_a_presenter(module: Path) -> None:
    assert complaints(strings_of(module)) == []


@pytest.mark.parametrize("template", sorted(PACKAGE.rglob("*.j2")), ids=lambda path: path.name)
def test_a_template(template: Path) -> None:
    without_markup = _MARKUP.sub(" ", template.read_text("utf-8"))
    assert complaints([without_markup]) == []


def test_the_help_of_all_commands() -> None:
    parser = make_parser()
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    helps = [parser.format_help()]
    for command in commands.choices.values():
        helps.append(command.format_help())
    assert complaints(helps) == []


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_the_terminal(name: str) -> None:
    blocks = brief_blocks(read_fingerprint(DATA / f"{name}.json"), all_cases=True)
    assert complaints(texts_of_all(blocks)) == []


def test_a_call_and_a_step_in_the_terminal() -> None:
    blocks = [*timing_blocks(two_calls()), *explanation_blocks(decode_explained())]
    assert complaints(texts_of_all(blocks)) == []


def test_a_comparison_and_claims() -> None:
    base, new = DATA / "nvidia-h100-default.json", DATA / "nvidia-h100-stacks.json"
    blocks = [
        *comparison_blocks(compare(base, new, 5)),
        *verdict_blocks(judge_runs([read_fingerprint(new)])),
    ]
    assert complaints(texts_of_all(blocks)) == []


@pytest.mark.needs("pandas")
def test_the_sections_of_the_pages_of_committed_runs() -> None:
    """Each section of each page, from several runs, without its drawings."""
    machines = from_paths([DATA / f"{name}.json" for name in RUNS])
    titles = []
    for page in pages():
        titles += [page.title, page.answers]
    texts: list[str] = []
    for section in registered():
        for view in (machines.own, *machines.others):
            texts += texts_of_all(section.build(view))
    for across in registered_across():
        texts += texts_of_all(across.build(machines))
    assert len(texts) > 1_000
    assert complaints([*titles, *texts]) == []
