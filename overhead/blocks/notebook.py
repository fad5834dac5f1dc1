"""Blocks as HTML for a cell of a notebook: every text escaped, no template, styles that suit light and dark pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from html import escape

from overhead.blocks.parts import (
    Cell,
    Heading,
    Listing,
    Part,
    StatusLine,
    Table,
    Terms,
    Text,
    Tone,
    cell_text,
    without_pictures,
)
from overhead.reading.plain_text import plain
from overhead.words.blocks import more_rows

_MOST_TEXT = 2000
_SHORT_TEXT = 26
"""A cell with so many characters does not wrap."""
_QUIET = "opacity:.7;font-size:90%"
_COLOURS: Mapping[Tone, str] = {"": "", "good": "#2e8b57", "unsure": "#b8860b", "bad": "#cd3c3c"}
"""Each can be read on white and on black."""


def notebook_html(blocks: Iterable[Part]) -> str:
    """The blocks as one element of HTML, in which no dollar sign begins a formula."""
    shown = "\n".join(line for block in without_pictures(blocks) for line in _of_block(block))
    return f'<div class="overhead tex2jax_ignore mathjax_ignore" style="max-width:60em">\n{shown}\n</div>'


def _escaped(text: str) -> str:
    return escape(plain(text, _MOST_TEXT))


def _element(name: str, inside: str, style: str = "") -> str:
    """An element around HTML that is escaped already."""
    styled = f' style="{style}"' if style else ""
    return f"<{name}{styled}>{inside}</{name}>"


def _of_block(block: Part) -> Iterator[str]:
    match block:
        case Heading():
            yield _element("h4", _escaped(block.text), "margin:.8em 0 .2em")
        case Text():
            yield from _text(block)
        case Table():
            yield from _table(block)
        case StatusLine():
            yield _element("ul", _status(block), "margin:.2em 0")
        case Listing():
            items = [f"{_escaped(title)} {_element('span', _escaped(said), _QUIET)}" for title, said in block.items]
            yield _element("ol", "".join(_element("li", item) for item in items), "margin:.2em 0")
        case Terms():
            terms = [f"{_element('b', _escaped(term.name))}: {_escaped(term.meaning)}" for term in block.terms]
            yield _element("ul", "".join(_element("li", term) for term in terms), "margin:.2em 0")


def _text(block: Text) -> Iterator[str]:
    style = "margin:.3em 0"
    if block.quiet:
        style += f";{_QUIET}"
    if block.lead:
        style += ";font-weight:bold"
    for paragraph in () if block.folded else block.paragraphs:
        yield _element("p", _escaped(paragraph), style)


def _table(table: Table) -> Iterator[str]:
    """The table; one that a page folds can be opened."""
    rows = table.rows[: table.most or None]
    head = [_cell("th", heading, column in table.numeric) for column, heading in enumerate(table.columns)]
    lines = [_element("tr", "".join(head))]
    for row in rows:
        cells = [_cell("td", value, column in table.numeric) for column, value in enumerate(row)]
        lines.append(_element("tr", "".join(cells)))
    drawn = _element("table", "\n".join(lines), "border-collapse:collapse;margin:.2em 0")
    if table.folded:
        yield _element("details", _element("summary", _escaped(table.caption)) + drawn)
    else:
        if table.caption:
            yield _element("p", _element("b", _escaped(table.caption)), "margin:.8em 0 .2em")
        yield _element("div", drawn, "overflow-x:auto")
    if left := len(table.rows) - len(rows):
        yield _element("p", _escaped(more_rows(left)), _QUIET)
    for _, meaning in sorted(table.meanings.items()):
        yield _element("p", _escaped(meaning), f"margin:.2em 0;{_QUIET}")


def _cell(name: str, value: str | Cell, is_number: bool) -> str:
    text = cell_text(value)
    style = "text-align:right" if is_number else "text-align:left"
    if is_number or len(text) <= _SHORT_TEXT:
        style += ";white-space:nowrap"
    style += ";padding:.15em .6em;vertical-align:top"
    if name == "th":
        style += ";border-bottom:1px solid #888"
    colour = _COLOURS[value.tone] if isinstance(value, Cell) else ""
    if colour:
        style += f";color:{colour}"
    return _element(name, _escaped(text), style)


def _status(line: StatusLine | str) -> str:
    """A line of a list, with the lists of its details inside."""
    if isinstance(line, str):
        return _element("li", _escaped(line), _QUIET)
    colour = _COLOURS[line.tone]
    head = _element("b", _escaped(line.head), f"color:{colour}" if colour else "")
    details = "".join(_status(detail) for detail in line.details)
    return _element("li", f"{head} {_escaped(line.text)}" + (_element("ul", details) if details else ""))
