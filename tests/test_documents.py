"""What the documents tell to type exists."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import pytest

from overhead.arguments import make_parser
from tests.documents import DOCUMENTS, ROOT, commands_of


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
