"""What each number of a page is: the figures and the arithmetic behind it, as JSON beside the page.

A number stands in a *block* of the page: a paragraph, a cell, an item, or a text of a drawing. Its
place is the name of the section and the number of the block in it. ``tests/recompute`` forms each
number again from the files of the runs.
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

from overhead.results import Fingerprint, Origin
from overhead.words.printed import Printed

BLOCK_TAGS = frozenset(
    {"p", "li", "td", "th", "dt", "dd", "figcaption", "caption", "summary", "h1", "h3", "div"}
)
_NUMBER = re.compile(r"(?<![\w.,:/−-])[−-]?\d[\d,]*(?:\.\d+)?(?![\w]|[-:/]\d)")
"""A number that is no part of a name, a date or a time."""
BEFORE_SECTIONS, AFTER_SECTIONS = "head", "foot"
"""What stands for the name of a section in the place of a block outside of all sections."""
_NUMBER_ON_AXIS = re.compile(r"[\d.,/µs %×−-]*")
"""The label of a tick that is no name: ``10 µs``, ``1/4``, ``2×``."""
_SVG_TEXT = "{http://www.w3.org/2000/svg}text"
_SVG_DATA = "data:image/svg+xml;base64,"


@dataclasses.dataclass(frozen=True)
class Block:
    """A piece of a page's text: the name of its section, its number there, and the text."""

    section: str
    number: int
    text: str

    @property
    def place(self) -> str:
        """Section and number in one text."""
        return f"{self.section} {self.number}"


class _Blocks(HTMLParser):
    """Cuts a page into blocks: text between the tags of ``BLOCK_TAGS``, and the texts of
    drawings.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[Block] = []
        self._section = BEFORE_SECTIONS
        self._numbers: dict[str, int] = defaultdict(int)
        self._text: list[str] = []
        self._skipped = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """End the block before a tag that begins one; note which section begins; add the texts of a
        drawing, an image with its SVG inside.
        """
        values = dict(attrs)
        # A reader does not see what is inside of these: text is left out while one of them is open,
        # which ``_skipped`` counts.
        if tag in ("script", "style", "title"):
            self._skipped += 1
        if tag in BLOCK_TAGS or tag == "section":
            self._end_block()
        if tag == "section":
            self._section = values.get("aria-labelledby") or ""  # the section's name
        # A drawing is written into the page as an image with its data in the address.
        source = values.get("src") or ""
        if tag == "img" and source.startswith(_SVG_DATA):
            self._end_block()
            drawing = base64.b64decode(source.removeprefix(_SVG_DATA)).decode()
            for text in drawn_texts(drawing):
                self._add(text)

    def handle_endtag(self, tag: str) -> None:
        """End the block that the tag closes; behind a section, blocks count as the foot."""
        if tag in ("script", "style", "title"):
            self._skipped -= 1
        if tag == "summary":
            # The title of a table that can be opened: the number of rows behind it is no figure.
            self._end_title()
        if tag in BLOCK_TAGS or tag == "section":
            self._end_block()
        if tag == "section":
            self._section = AFTER_SECTIONS

    def handle_data(self, data: str) -> None:
        """Collect the text of a block, without scripts and styles."""
        if not self._skipped:
            self._text.append(data)

    def _end_title(self) -> None:
        """The title of a table ends with the number of its rows, which is no figure."""
        self._text = [re.sub(r" \([\d,]+\)\s*$", "", "".join(self._text))]

    def _end_block(self) -> None:
        """Add the text since the last block, in one line."""
        self._add(" ".join("".join(self._text).split()))
        self._text.clear()

    def _add(self, text: str) -> None:
        """Add a block with the next number of its section; nothing for an empty text."""
        if text:
            self._numbers[self._section] += 1
            number = self._numbers[self._section]
            self.found.append(Block(self._section, number, text))


def drawn_texts(svg: str) -> Iterator[str]:
    """The texts of a drawing, without the numbers on its axes, which are no measured figures.

    ``svg``: as matplotlib writes it, with ticks in groups whose ids begin with ``xtick`` and
    ``ytick``.
    """
    root = ET.fromstring(svg)
    # First find the numbers beside ticks; then give all other texts.
    on_axes = set()
    for group in root.iter():
        is_tick = re.match(r"[xy]tick", group.get("id") or "")
        if is_tick:
            for text in group.iter(_SVG_TEXT):
                if _NUMBER_ON_AXIS.fullmatch(text.text or ""):
                    on_axes.add(text)
    for text in root.iter(_SVG_TEXT):
        if text not in on_axes:
            yield " ".join((text.text or "").split())


def blocks(page: str) -> list[Block]:
    """The blocks of a page in their order."""
    parser = _Blocks()
    parser.feed(page)
    parser.close()
    return parser.found


Sources = Mapping[int, dict[str, Any]]
"""By identity of a figure, a record or a run: what it is in the files."""


def numbers_of_page(
    page: str, printed: Mapping[str, Sequence[Printed]], sources: Sources
) -> list[dict[str, Any]]:
    """The facts of a page, for the file beside it: for each number of the page that shows a figure
    its place, text, value, interval and origin (the figures and the arithmetic it comes from).

    ``printed``: by the name of a section the figures that became text while the section was made;
    ``sources``: what each figure is in the files.
    """
    everything: list[Printed] = []
    for section, printed_there in printed.items():
        # What became text for the head and the foot of the page is looked for only there.
        if section not in (BEFORE_SECTIONS, AFTER_SECTIONS):
            everything += printed_there
    # A section may show what was put into words for an earlier one: its own texts first, then those
    # of all.
    texts_by_section = {}
    for section, printed_there in printed.items():
        texts_by_section[section] = _PrintedTexts([*printed_there, *everything])

    found: list[dict[str, Any]] = []
    for block in blocks(page):
        texts = texts_by_section.get(block.section)
        if texts is not None:
            found += _numbers_of(block, texts, sources)
    return found


def numbers_of_lines(
    text: str, printed: Sequence[Printed], runs: Iterable[Fingerprint]
) -> list[dict[str, Any]]:
    """The facts of a document in Markdown: for each number that shows a figure its place, such as
    ``line 12``, its text, value, interval and origin. Lines of code, which are indented, have none.

    ``printed``: the figures that became text while the document was made, from these ``runs``.
    """
    sources = sources_of(runs)
    texts = _PrintedTexts(printed)
    found: list[dict[str, Any]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        is_code = line.startswith("    ")
        if not is_code:
            found += _numbers_of(Block("line", number, line), texts, sources)
    return found


def _numbers_of(block: Block, texts: _PrintedTexts, sources: Sources) -> Iterator[dict[str, Any]]:
    """The facts of one block (a paragraph, a cell, a text of a drawing): of each figure in it whose
    origin the files have.
    """
    for shown in texts.shown_in(block.text):
        value = shown.value
        # Only figures with an origin are looked for; without one there is nothing to say.
        if value.origin is None:
            continue
        origin = _as_json(value.origin, sources)
        if origin is not None:
            yield {
                "place": block.place,
                "text": shown.text,
                "value": value.value,
                "low": value.low,
                "high": value.high,
                "of": origin,
            }


class _PrintedTexts:
    """The figures that became text (``printed``) for one section, to be found again in its blocks,
    such as its paragraphs and cells.

    Figures are looked for in the finished page, because a mark in a text would count in the widths
    of drawings and terminals, and a text passes through sentences that know nothing of marks. Texts
    are made in about the order in which they stand. So of several figures with one text, that is
    meant which was made next after the figure found before. Where that guess is wrong, the fact
    names another figure that rounds to the same text.
    """

    def __init__(self, printed: Sequence[Printed]) -> None:
        """``printed``: the figures with their texts, in the order in which they became text."""
        self._printed = printed
        self._last = -1
        """Index of the figure found before."""
        self._indices: dict[str, list[int]] = defaultdict(list)
        """By text: which figures were put into these words."""
        for index, figure in enumerate(printed):
            # Of a figure without an origin there is nothing to say, so it is not looked for.
            if figure.value.origin is not None:
                self._indices[figure.text].append(index)
        # By the number that a text begins with, the longest text first: a section has hundreds of
        # texts, and looking for each of them in each block would take long.
        self._by_start: dict[str, list[str]] = defaultdict(list)
        for text in sorted(self._indices, key=len, reverse=True):
            start = _NUMBER.match(text)
            if start is not None:
                self._by_start[start[0]].append(text)

    def shown_in(self, block: str) -> Iterator[Printed]:
        """The figures whose texts the block has, in the order of the block; of several that begin
        alike, the one with the longest text.
        """
        # From number to number (no part of a name, a date or a time): each figure begins with one.
        position = 0
        while number := _NUMBER.search(block, position):
            text = self._text_at(block, number)
            if not text:  # a number that is no figure
                position = number.end()
                continue
            # Several figures can have the same text: which one it is, their order tells.
            self._last = self._next_with(text)
            yield self._printed[self._last]
            position = number.start() + len(text)

    def _text_at(self, block: str, number: re.Match[str]) -> str:
        """The text of a figure that begins with this number of the block; of several the longest,
        because ``12`` is a part of ``12 (11 to 13)``. '' if none does.
        """
        # They are sorted by length.
        for text in self._by_start.get(number[0], ()):
            if _stands_at(text, block, number.start()):
                return text
        return ""

    def _next_with(self, text: str) -> int:
        """The index of the figure that a text of the page shows. Figures became text in about the
        order in which they stand on the page, so of several with this text it is the next one after
        the figure found before; else the first.
        """
        indices = self._indices[text]
        for index in indices:
            if index > self._last:
                return index
        return indices[0]


def _stands_at(text: str, block: str, start: int) -> bool:
    """Whether the text of a figure stands at ``start`` of a block as a whole, and not as the
    beginning of a longer number or word: ``1.2`` does not stand in ``1.25`` or ``1.2x``.
    """
    if not block.startswith(text, start):
        return False
    # What follows must not continue a word or a number.
    behind = block[start + len(text) :]
    return re.match(r"[\w]|[.,:/-]\d", behind) is None


def _as_json(origin: Origin, sources: Sources) -> dict[str, Any] | None:
    """What a value was formed from, for the file of facts: where a figure stands in the files, or
    an operation and its parts, each formed from something in its turn. None if it is a figure that
    no file has.

    ``sources``: what each figure, record and run is in the files.
    """
    # A figure of a file: where it stands. ``mode``: for a figure with two speeds, which of the two
    # is meant.
    if origin.figure is not None:
        # By identity, because equal figures may stand in several places.
        source = sources.get(id(origin.figure))
        if source is None:
            return None
        return source if origin.mode is None else {**source, "mode": origin.mode}

    # An operation, such as a ratio: each part is an origin in its turn, or a plain number.
    parts = []
    for part in origin.parts:
        parts.append(_as_json(part, sources) if isinstance(part, Origin) else part)
    found: dict[str, Any] = {"operation": origin.operation, "parts": parts}
    # ``of``: a record or a run that the operation reads besides figures, such as a curve.
    if origin.of is not None:
        found |= sources.get(id(origin.of), {})
    # ``words``: what else one must know to repeat the operation, such as the class of a spread.
    if origin.words:
        found["words"] = origin.words
    return found


def sources_of(runs: Iterable[Fingerprint]) -> Sources:
    """For each figure of the runs, where it stands in their files: the run, the key of the record,
    comparison or contended case that has it, and its name. Also for each run and record.

    By ``id()``, because figures that are equal may stand in several places; so it holds only as
    long as the runs live.
    """
    found: dict[int, dict[str, Any]] = {}
    for run in runs:
        # Each level adds its names to those of the level above it.
        of_run = {"run": f"{run.created} {run.machine.id}"}
        found[id(run)] = of_run
        for record in run.records:
            of_record = {**of_run, "record": record.key}
            found[id(record)] = of_record
            for figure in record.figures:
                found[id(figure)] = {**of_record, "figure": figure.name}
        for comparison in run.comparisons:
            of_comparison = {
                **of_run,
                "comparison": comparison.name,
                "record": comparison.of,
                "against": comparison.against,
            }
            for figure in comparison.figures:
                found[id(figure)] = {**of_comparison, "figure": figure.name}
        for peers in run.contention:
            of_peers = {
                **of_run,
                "record": peers.key,
                "way": peers.way,
                "peers": peers.peers,
                "placement": peers.placement,
            }
            for figure in peers.figures:
                found[id(figure)] = {**of_peers, "figure": figure.name}
    return found
