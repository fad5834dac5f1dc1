"""The documents of the repository, and the code in them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
_INLINE = re.compile(r"`([^`\n]+)`")


def code_of(text: str) -> Iterator[str]:
    """The code of a document: each line of a block, without the prompt, and what stands between
    backticks.
    """
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield line.strip().removeprefix("$ ")
        else:
            yield from _INLINE.findall(line)


def prose_of(text: str) -> str:
    """The text of a document without code, comments and the targets of links."""
    lines = []
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            lines.append(_INLINE.sub("", line))
    without_comments = re.sub(r"<!--.*?-->|<a id=[^>]*>", "", "\n".join(lines), flags=re.DOTALL)
    return re.sub(r"\]\([^)]*\)", "]", without_comments)


def commands_of(text: str) -> Iterator[list[str]]:
    """The commands of ``overhead`` in the code of a document, each as its words without the
    program's name.

    What may be left out (between brackets) counts too.
    """
    for code in code_of(text):
        start = re.match(r"(?:\S*/)?overhead (?=[\w-])", code)
        if start is not None:
            command = code[start.end() :].partition(" > ")[0]
            yield shlex.split(re.sub(r"[\[\]|]", " ", command), comments=True)
