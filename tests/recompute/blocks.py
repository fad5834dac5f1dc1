"""The blocks of a page: paragraphs, cells, items and the texts of drawings, each with its place.

A place is the name of the section and the number of the block in it.
"""

from __future__ import annotations

import base64
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

BLOCK_TAGS = frozenset(
    {"p", "li", "td", "th", "dt", "dd", "figcaption", "caption", "summary", "h1", "h3", "div"}
)
UNSEEN = frozenset({"script", "style", "title"})
SVG_TEXT = "{http://www.w3.org/2000/svg}text"
SVG_DATA = "data:image/svg+xml;base64,"


class PageBlocks(HTMLParser):
    """Collects place and text of each block in ``found``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self.section = "head"
        self.count: dict[str, int] = defaultdict(int)
        self.text: list[str] = []
        self.unseen = 0
        self.rows: dict[str, int] = {}
        """By the place of the title of a table that can be opened: how many rows the table has."""
        self.title = ""
        self.in_body = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.unseen += tag in UNSEEN
        if tag in BLOCK_TAGS or tag == "section":
            self.end_block()
        if tag == "tbody":
            self.in_body = True
            self.rows.setdefault(self.title, 0)
        if tag == "tr" and self.in_body:
            self.rows[self.title] += 1
        if tag == "section":
            self.section = values.get("aria-labelledby") or ""
        source = values.get("src") or ""
        if tag == "img" and source.startswith(SVG_DATA):
            self.end_block()
            for text in drawn_texts(base64.b64decode(source.removeprefix(SVG_DATA)).decode()):
                self.add(text)

    def handle_endtag(self, tag: str) -> None:
        self.unseen -= tag in UNSEEN
        if tag in BLOCK_TAGS or tag == "section":
            self.end_block()
        if tag == "tbody":
            self.in_body = False
            self.title = ""
        if tag == "section":
            self.section = "foot"
        if tag == "summary":
            self.title = f"{self.section} {self.count[self.section]}"

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.text.append(data)

    def end_block(self) -> None:
        self.add(" ".join("".join(self.text).split()))
        self.text.clear()

    def add(self, text: str) -> None:
        if text:
            self.count[self.section] += 1
            self.found.append((f"{self.section} {self.count[self.section]}", text))


def drawn_texts(svg: str) -> Iterator[str]:
    """The texts of a drawing, without the numbers on its axes."""
    root = ET.fromstring(svg)
    on_axes = set()
    for group in root.iter():
        if re.match(r"[xy]tick", group.get("id") or ""):
            on_axes |= {
                text
                for text in group.iter(SVG_TEXT)
                if re.fullmatch(r"[\d.,/µs %×−-]*", text.text or "")
            }
    for text in root.iter(SVG_TEXT):
        if text not in on_axes:
            yield " ".join((text.text or "").split())


class Block(NamedTuple):
    """A piece of a document's text. ``rows``: of the table of which it is the title; None for any
    other block.
    """

    place: str
    text: str
    rows: int | None = None


def blocks_of(document: Path) -> list[Block]:
    """The blocks of a document; of one in Markdown a line is a block, without its links and its
    code.
    """
    text = document.read_text("utf-8")
    if document.suffix == ".html":
        page = PageBlocks()
        page.feed(text)
        page.close()
        return [Block(place, text, page.rows.get(place)) for place, text in page.found]
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.startswith("    "):
            without_links = re.sub(r"\]\([^)]*\)", "]", line)
            found.append(Block(f"line {number}", re.sub(r"`[^`]*`", "", without_links)))
    return found
