"""Parse a page of the report for the tests."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """The ids, tags, links and figures (SVG) of a page, in their order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.drawings: list[str] = []
        self.text = text
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if (tag, name) == ("img", "src") and str(value).startswith(
                "data:image/svg+xml;base64,"
            ):
                self.drawings.append(base64.b64decode(str(value).partition(",")[2]).decode())
            elif name in ("href", "src", "xlink:href") and value:
                self.links.append(value)


def numbers(text: str) -> list[str]:
    """All numbers in the text, as printed and in order."""
    return re.findall(r"−?\d[\d,.]*\d|−?\d", text)
