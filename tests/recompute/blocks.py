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
NUMBER_ON_AXIS = re.compile(r"[\d.,/µs %×−-]*")
"""The label of a tick that is no name: ``10 µs``, ``1/4``, ``2×``."""
SVG_TEXT = "{http://www.w3.org/2000/svg}text"
SVG_DATA = "data:image/svg+xml;base64,"


class PageBlocks(HTMLParser):
    """Collects place and text of each block in ``found``."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        """Place and text of each block."""
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
        if tag in UNSEEN:
            self.unseen += 1
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
            drawing = base64.b64decode(source.removeprefix(SVG_DATA)).decode()
            for text in drawn_texts(drawing):
                self.add(text)

    def handle_endtag(self, tag: str) -> None:
        if tag in UNSEEN:
            self.unseen -= 1
        if tag in BLOCK_TAGS or tag == "section":
            self.end_block()
        if tag == "tbody":
            self.in_body = False
            self.title = ""
        if tag == "section":
            self.section = "foot"
        if tag == "summary":
            self.title = self.place

    def handle_data(self, data: str) -> None:
        if not self.unseen:
            self.text.append(data)

    def end_block(self) -> None:
        """Add the text since the last block."""
        self.add(" ".join("".join(self.text).split()))
        self.text.clear()

    def add(self, text: str) -> None:
        if text:
            self.count[self.section] += 1
            self.found.append((self.place, text))

    @property
    def place(self) -> str:
        """The place of the last block: the name of its section, and its number there."""
        return f"{self.section} {self.count[self.section]}"


def drawn_texts(svg: str) -> Iterator[str]:
    """The texts of a drawing, without the numbers on its axes."""
    root = ET.fromstring(svg)
    on_axes = set()
    for group in root.iter():
        is_tick = re.match(r"[xy]tick", group.get("id") or "")
        if is_tick:
            for text in group.iter(SVG_TEXT):
                if NUMBER_ON_AXIS.fullmatch(text.text or ""):
                    on_axes.add(text)
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
    lines = []
    for number, line in enumerate(text.splitlines(), start=1):
        is_code = line.startswith("    ")
        if not is_code:
            without_links = re.sub(r"\]\([^)]*\)", "]", line)
            without_code = re.sub(r"`[^`]*`", "", without_links)
            lines.append(Block(f"line {number}", without_code))
    return lines
