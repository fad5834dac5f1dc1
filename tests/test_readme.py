"""README.md is short, and what it tells to type exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts import write_docs
from tests.documents import code_of

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text("utf-8")
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
LINK = re.compile(r"\[([^\[\]]*)\]\([^)]*\)")


def rendered_words(text: str) -> list[str]:
    """The words that a reader of the rendered text sees, also those of tables and code."""
    seen = LINK.sub(r"\1", PICTURE.sub("", COMMENT.sub("", text)))
    return [word for word in seen.split() if re.search(r"\w", word)]


def test_the_readme_is_read_in_three_minutes() -> None:
    assert 600 <= len(rendered_words(README)) <= 800


def test_its_first_sentence_is_the_question_that_the_program_answers() -> None:
    _, question, *_ = README.split("\n\n")
    assert question.strip("*").endswith("?")


@pytest.mark.parametrize("target", ["report", "test"])
def test_the_two_commands_of_the_checkout_are_there(target: str) -> None:
    assert any(code.startswith(f"make {target}") for code in code_of(README))


def test_it_has_an_install_line_for_the_checkout_and_one_that_waits_for_the_release() -> None:
    assert "pip install ." in {code.partition("#")[0].strip() for code in code_of(README)}
    assert "<!-- release: pip install overhead -->" in README


def test_every_block_is_generated() -> None:
    names = re.findall(r"^<!-- (?!end |release)([\w-]+) -->$", README, re.MULTILINE)
    assert set(names) <= write_docs.BLOCKS.keys()
    assert {"first-answer", "picture", "findings"} <= set(names)


def test_its_files_name_no_folder_of_the_machine_that_made_them() -> None:
    for path in (ROOT / "docs" / "explain.svg", *(ROOT / "docs" / "examples" / "readme").iterdir()):
        text = path.read_text("utf-8")
        assert not re.search(r"/(?:root|home|tmp|work|Users)\b", text), path.name
        assert "@font-face" not in text, "a picture loads nothing from the network"
