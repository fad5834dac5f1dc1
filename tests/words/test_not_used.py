"""What the program prints, draws and helps with has none of the words that readers do not know."""

from __future__ import annotations

import argparse
import ast
import itertools
import re
from collections.abc import Iterator
from functools import partial
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
    PACKAGE / "explain" / "page.py",
    PACKAGE / "runner" / "listing.py",
})  # fmt: skip
"""The modules whose strings a person reads."""
_VALUE = re.compile(r"\{[^}]*\}")
"""The place of a value in a template."""
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
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in documents:
            continue
        if isinstance(node.value, str) and " " in node.value:
            yield _VALUE.sub("", node.value)


def texts_of(part: Part) -> Iterator[str]:
    """All that a reader of this part sees, but what is drawn."""
    match part:
        case Drawing():
            yield from (part.title, part.alt, part.caption)
            for shown in without_pictures([part]):
                yield from texts_of(shown)
        case Table():
            cells = itertools.chain.from_iterable(part.rows)
            yield from (
                part.caption,
                *part.columns,
                *part.meanings.values(),
                *map(cell_text, cells),
            )
        case Text():
            yield from (*part.paragraphs, part.folded)
        case Listing():
            yield from itertools.chain.from_iterable(part.items)
        case Heading():
            yield part.text
        case StatusLine():
            yield from (
                part.head,
                part.text,
                *(one for one in part.details if isinstance(one, str)),
            )
        case Terms():
            yield from itertools.chain.from_iterable(
                (term.name, term.meaning) for term in part.terms
            )


def complaints(texts: Iterator[str]) -> list[str]:
    """What the texts have of the words that are not used, each once."""
    found = dict.fromkeys(
        complaint for text in texts for complaint in not_used_in(text, NOT_PRINTED)
    )
    return list(found)


@pytest.mark.parametrize(
    "module", PRESENTERS, ids=lambda path: path.relative_to(PACKAGE).as_posix()
)
def test_the_strings_of_a_presenter(module: Path) -> None:
    assert complaints(strings_of(module)) == []


@pytest.mark.parametrize("template", sorted(PACKAGE.rglob("*.j2")), ids=lambda path: path.name)
def test_a_template(template: Path) -> None:
    text = re.sub(r"\{[{%].*?[%}]\}|<[^>]*>", " ", template.read_text("utf-8"), flags=re.DOTALL)
    assert complaints(iter([text])) == []


def test_the_help_of_all_commands() -> None:
    parser = make_parser()
    (commands,) = (
        action for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )
    helps = [parser.format_help(), *(one.format_help() for one in commands.choices.values())]
    assert complaints(iter(helps)) == []


@pytest.mark.parametrize("name", RUNS)
def test_a_run_in_the_terminal(name: str) -> None:
    blocks = brief_blocks(read_fingerprint(DATA / f"{name}.json"), all_cases=True)
    assert complaints(text for block in blocks for text in texts_of(block)) == []


def test_a_call_and_a_step_in_the_terminal() -> None:
    blocks = [*timing_blocks(two_calls()), *explanation_blocks(decode_explained())]
    assert complaints(text for block in blocks for text in texts_of(block)) == []


def test_a_comparison_and_claims() -> None:
    base, new = DATA / "nvidia-h100-default.json", DATA / "nvidia-h100-stacks.json"
    blocks = [
        *comparison_blocks(compare(base, new, 5)),
        *verdict_blocks(judge_runs([read_fingerprint(new)])),
    ]
    assert complaints(text for block in blocks for text in texts_of(block)) == []


@pytest.mark.needs("pandas")
def test_the_sections_of_the_pages_of_committed_runs() -> None:
    """Each section of each page, from several runs, without its drawings."""
    machines = from_paths([DATA / f"{name}.json" for name in RUNS])
    titles = [text for page in pages() for text in (page.title, page.answers)]
    builds = [
        partial(section.build, view)
        for section in registered()
        for view in (machines.own, *machines.others)
    ]
    builds += [partial(across.build, machines) for across in registered_across()]
    texts = [text for build in builds for part in build() for text in texts_of(part)]
    assert len(texts) > 1_000
    assert complaints(iter([*titles, *texts])) == []
