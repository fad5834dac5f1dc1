"""What the documents tell to type exists, and they use the words that readers know."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from overhead.arguments import make_parser
from overhead.report.core.registry import registered, registered_across
from tests.documents import DOCUMENTS, ROOT, commands_of, prose_of
from tests.words.not_used import not_used_in


def subcommands() -> Mapping[str, argparse.ArgumentParser]:
    for action in make_parser()._actions:
        if isinstance(action, argparse._SubParsersAction):
            return action.choices
    raise AssertionError("no commands")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_its_commands_and_their_options_exist(document: Path) -> None:
    known = subcommands()
    for name, *words in commands_of(document.read_text("utf-8")):
        assert name in known, name
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= known[name]._option_string_actions.keys(), (name, *words)


def test_every_command_has_a_place_in_the_documents() -> None:
    text = "\n".join(path.read_text("utf-8") for path in DOCUMENTS)
    named = {words[0] for words in commands_of(text)}
    assert subcommands().keys() - named <= {"completion"}


def test_the_readme_answers_each_question_with_a_command() -> None:
    named = {words[0] for words in commands_of((ROOT / "README.md").read_text("utf-8"))}
    assert {"time", "explain", "compare", "contention", "fleet", "run", "show"} <= named


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, ROOT / "reports" / "data" / "README.md"], ids=lambda path: path.name
)
def test_it_has_one_name_for_each_thing(document: Path) -> None:
    """The names of fields stand in code, and the others are those of the glossary."""
    assert not [*not_used_in(prose_of(document.read_text("utf-8")))]


def test_a_word_that_is_not_used_is_found() -> None:
    assert [*not_used_in("Its quiet cost is low, beside the canary.")]
    assert not [*not_used_in(prose_of("The file calls it `naive`.\n\n    print(naive, canary)\n"))]


@pytest.mark.needs("jinja2", "matplotlib")
def test_the_sections_of_the_front_page_have_the_titles_that_the_documents_tell() -> None:
    text = (ROOT / "docs" / "report.md").read_text("utf-8")
    about_front = text.partition("## The front page")[2].partition("## ")[0]
    told = set(re.findall(r"\*\*(.+?)\*\*", about_front))
    titles = {
        *(section.title for section in registered()),
        *(section.title for section in registered_across()),
    }
    assert told
    assert told <= titles


def anchors_of(document: Path) -> set[str]:
    """The anchors of a document: its headings as MkDocs and GitHub write them, and those that are
    set by hand.
    """
    text = document.read_text("utf-8")
    found = set(re.findall(r'<a id="([^"]+)">', text))
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
        found.add(re.sub(r"[\s-]+", "-", plain))
    return found


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name
)
def test_its_links_into_pages_have_targets(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:\s]*\.md)?#([\w-]+)\)", document.read_text("utf-8"))
    for page, anchor in links:
        target = (document.parent / page).resolve() if page else document
        assert anchor in anchors_of(target), f"{target.name}#{anchor}"
