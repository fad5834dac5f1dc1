"""What each number of a page is: the figures and the arithmetic behind it, as JSON beside the page.

A number stands in a *block* of the page: a paragraph, a cell, an item, or a text of a drawing. Its place is the name of
the section and the number of the block in it. ``tests/recompute`` forms each number again from the files of the runs.
"""

from __future__ import annotations

import base64
import dataclasses
import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html.parser import HTMLParser
from typing import Any

from overhead.reading.printed import Printed
from overhead.reading.view import View
from overhead.results import Origin

BLOCK_TAGS = frozenset({"p", "li", "td", "th", "dt", "dd", "figcaption", "caption", "summary", "h1", "h3", "div"})
_NUMBER = re.compile(r"(?<![\w.,:/−-])[−-]?\d[\d,]*(?:\.\d+)?(?![\w]|[-:/]\d)")
"""A number that is no part of a name, a date or a time."""
_SVG_TEXT = "{http://www.w3.org/2000/svg}text"
_SVG_DATA = "data:image/svg+xml;base64,"


@dataclasses.dataclass(frozen=True)
class Block:
    """A piece of a page's text. ``place``: the name of its section and its number there."""

    place: str
    text: str


class _Blocks(HTMLParser):
    """Cuts a page into blocks: text between the tags of ``BLOCK_TAGS``, and the texts of drawings."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Block] = []
        self._section = "head"
        self._numbers: dict[str, int] = defaultdict(int)
        self._text: list[str] = []
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in ("script", "style", "title"):
            self._skipped += 1
        if tag in BLOCK_TAGS or tag == "section":
            self._end_block()
        if tag == "section":
            self._section = values.get("aria-labelledby") or ""
        source = values.get("src") or ""
        if tag == "img" and source.startswith(_SVG_DATA):
            self._end_block()
            drawing = base64.b64decode(source.removeprefix(_SVG_DATA)).decode()
            for text in drawn_texts(drawing):
                self._add(text)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "title"):
            self._skipped -= 1
        if tag in BLOCK_TAGS or tag == "section":
            self._end_block()

    def handle_data(self, data: str) -> None:
        if not self._skipped:
            self._text.append(data)

    def _end_block(self) -> None:
        self._add(" ".join("".join(self._text).split()))
        self._text.clear()

    def _add(self, text: str) -> None:
        if text:
            self._numbers[self._section] += 1
            self.found.append(Block(f"{self._section} {self._numbers[self._section]}", text))


def drawn_texts(svg: str) -> Iterator[str]:
    """The texts of a drawing, without the numbers on its axes."""
    root = ET.fromstring(svg)
    on_axes = set()
    for group in root.iter():
        if re.match(r"[xy]tick", group.get("id") or ""):
            on_axes |= {text for text in group.iter(_SVG_TEXT) if re.fullmatch(r"[\d.,µs %−-]*", text.text or "")}
    for text in root.iter(_SVG_TEXT):
        if text not in on_axes:
            yield " ".join((text.text or "").split())


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order."""
    parser = _Blocks()
    parser.feed(page)
    parser.close()
    return parser.found


def facts(page: str, printed: Sequence[Printed], views: Iterable[View]) -> list[dict[str, Any]]:
    """For each number of the page that shows a figure: its place, text, value, interval and origin."""
    sources = _sources(views)
    by_text: dict[str, list[Printed]] = defaultdict(list)
    for one in printed:
        by_text[one.text].append(one)
    # By the number that a text begins with: a page has thousands of texts, and each is looked for in each block.
    by_start: dict[str, list[str]] = defaultdict(list)
    for text in sorted(by_text, key=len, reverse=True):
        start = _NUMBER.match(text)
        if start is not None:
            by_start[start[0]].append(text)
    found = []
    for block in blocks(page):
        for text in _shown(block.text, by_start):
            found.append({"place": block.place, **_fact(_best(by_text[text]), sources)})
    return found


def _shown(block: str, by_start: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The texts of figures that a block has, in their order; of several that begin alike, the longest."""
    at = 0
    while number := _NUMBER.search(block, at):
        candidates = by_start.get(number[0], ())
        text = next((one for one in candidates if _stands_at(one, block, number.start())), "")
        if text:
            yield text
        at = number.start() + len(text) if text else number.end()


def _stands_at(text: str, block: str, at: int) -> bool:
    """Whether the text stands there as a whole, and not as the beginning of a longer number or word."""
    return block.startswith(text, at) and re.match(r"[\w]|[.,:/-]\d", block[at + len(text) :]) is None


def _best(candidates: Sequence[Printed]) -> Printed:
    """One whose origin is known, if there is one."""
    return next((one for one in candidates if one.value.origin is not None), candidates[0])


def _fact(one: Printed, sources: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    value = one.value
    numbers = {"value": value.value, "low": value.low, "high": value.high}
    origin = value.origin
    return {"text": one.text, **numbers, "of": _as_json(origin, sources) if origin is not None else None}


def _as_json(origin: Origin, sources: Mapping[int, dict[str, Any]]) -> dict[str, Any] | None:
    if origin.figure is not None:
        source = sources.get(id(origin.figure))
        if source is None:
            return None
        return {**source, "mode": origin.mode} if origin.mode is not None else source
    curve = sources.get(id(origin.record), {}) if origin.record is not None else {}
    parts = [_as_json(part, sources) if isinstance(part, Origin) else part for part in origin.parts]
    words = {"words": origin.words} if origin.words else {}
    return {"operation": origin.operation, "parts": parts, **curve, **words}


def _sources(views: Iterable[View]) -> dict[int, dict[str, Any]]:
    """By identity of a figure: its run, the key of what has it, and its name."""
    found: dict[int, dict[str, Any]] = {}
    for view in views:
        run = view.fingerprint
        name = f"{run.created} {run.machine.id}"
        for record in run.records:
            found[id(record)] = {"run": name, "record": record.key}
            for figure in record.figures:
                found[id(figure)] = {"run": name, "record": record.key, "figure": figure.name}
        for comparison in run.comparisons:
            about = {"comparison": comparison.name, "record": comparison.of, "against": comparison.against}
            for figure in comparison.figures:
                found[id(figure)] = {"run": name, **about, "figure": figure.name}
        for peers in run.contention:
            about = {"record": peers.key, "way": peers.way, "peers": peers.peers, "placement": peers.placement}
            for figure in peers.figures:
                found[id(figure)] = {"run": name, **about, "figure": figure.name}
    return found
