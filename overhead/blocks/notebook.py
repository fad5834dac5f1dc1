"""Blocks as HTML for a cell of a notebook, such as Jupyter's. Every text is escaped.

A notebook removes scripts and may share a page with other output, so each element has its own
style, and there is no style sheet. Colours suit light and dark pages.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from html import escape

from overhead.blocks.parts import (
    Cell,
    GroupedAdvice,
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
from overhead.words.glossary import Term

_MOST_TEXT = 2000
"""A longer text is cut, so that a text of the user cannot fill the notebook."""
_SHORT_TEXT = 26
"""A text cell of at most so many characters does not wrap. Chosen by eye, as the other widths
here.
"""
_QUIET = "opacity:.7;font-size:90%"
_COLOURS: Mapping[Tone, str] = {"": "", "good": "#2e8b57", "unsure": "#b8860b", "bad": "#cd3c3c"}
"""Each can be read on white and on black. In a terminal the same tones are green, yellow and
red.
"""


def notebook_html(blocks: Iterable[Part]) -> str:
    """The blocks as one element of HTML, which a notebook shows for an object."""
    lines: list[str] = []
    for block in without_pictures(blocks):
        lines += _of_block(block)
    shown = "\n".join(lines)
    # Notebooks take text between two dollar signs for a formula, except in elements of these
    # classes.
    return (
        '<div class="overhead tex2jax_ignore mathjax_ignore"'
        f' style="max-width:60em">\n{shown}\n</div>'
    )


def _escaped(text: str) -> str:
    return escape(plain(text, _MOST_TEXT))


def _element(name: str, inside: str, style: str = "") -> str:
    """An element around HTML that is escaped already: ``<p style="margin:0">…</p>``."""
    styled = f' style="{style}"' if style else ""
    return f"<{name}{styled}>{inside}</{name}>"


def _of_block(block: Part) -> Iterator[str]:
    """The elements of HTML that show a block. A ``Listing`` has numbered items with a title each,
    ``Terms`` has words with their meanings, and a ``StatusLine`` is a word such as ``failed`` with
    a sentence.
    """
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
            items = [_listed(title, details) for title, details in block.items]
            yield _list("ol", items)
        case GroupedAdvice():
            for group in block.groups:
                yield _element("p", _element("b", _escaped(group.reader)), "margin:.8em 0 .2em")
                found = (*group.first, *group.more)
                yield _list("ol", [_listed(advice.title, advice.detail) for advice in found])
        case Terms():
            yield _list("ul", [_term(term) for term in block.terms])


def _list(name: str, items: Sequence[str]) -> str:
    inside = "".join(_element("li", item) for item in items)
    return _element(name, inside, "margin:.2em 0")


def _listed(title: str, details: str) -> str:
    small = _element("span", _escaped(details), _QUIET)
    return f"{_escaped(title)} {small}"


def _term(term: Term) -> str:
    name = _element("b", _escaped(term.name))
    return f"{name}: {_escaped(term.meaning)}"


def _text(block: Text) -> Iterator[str]:
    """The paragraphs of a text as elements. A text that a page folds (shows only on a click) is
    left out, as in a terminal. ``quiet`` text is smaller and paler; ``lead`` text is bold.
    """
    if block.folded:
        return
    style = "margin:.3em 0"
    if block.quiet:
        style += f";{_QUIET}"
    if block.lead:
        style += ";font-weight:bold"
    for paragraph in block.paragraphs:
        yield _element("p", _escaped(paragraph), style)


def _table(table: Table) -> Iterator[str]:
    """The elements of a table, and below it how many rows are left out and what its columns mean. A
    table that a page folds is folded here too, and can be opened. ``most``: how many rows are
    shown; ``meanings``: by column what it means.
    """
    rows = table.rows[: table.most or None]  # 0 stands for all
    lines = [_row("th", table.columns, table.numeric)]
    lines += [_row("td", row, table.numeric) for row in rows]
    drawn = _element("table", "\n".join(lines), "border-collapse:collapse;margin:.2em 0")
    if table.folded:
        summary = _element("summary", _escaped(table.caption))
        yield _element("details", summary + drawn)
    else:
        if table.caption:
            caption = _element("b", _escaped(table.caption))
            yield _element("p", caption, "margin:.8em 0 .2em")
        yield _element("div", drawn, "overflow-x:auto")
    left_out = len(table.rows) - len(rows)
    if left_out:
        yield _element("p", _escaped(more_rows(left_out)), _QUIET)
    for _, meaning in sorted(table.meanings.items()):
        yield _element("p", _escaped(meaning), f"margin:.2em 0;{_QUIET}")


def _row(name: str, values: Sequence[str | Cell], numeric: Collection[int]) -> str:
    cells = [_cell(name, value, column in numeric) for column, value in enumerate(values)]
    return _element("tr", "".join(cells))


def _cell(name: str, value: str | Cell, is_number: bool) -> str:
    """A cell as an element of HTML. ``name``: ``th`` in the heading, else ``td``. Numbers and short
    texts do not wrap. ``tone``: how good the value is, such as ``bad``, which has a colour.
    """
    text = cell_text(value)
    # Each element has its own style: a sheet would also change other output of the notebook.
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
    """A status as an item of a list: its word in its colour, the sentence, and inside a list of its
    details, which may be of the same kind.
    """
    if isinstance(line, str):
        return _element("li", _escaped(line), _QUIET)
    # ``tone``: how it stands, good or bad; '' for neither, without a colour.
    colour = _COLOURS[line.tone]
    style = f"color:{colour}" if colour else ""
    head = _element("b", _escaped(line.head), style)
    items = "".join(_status(detail) for detail in line.details)
    details = _element("ul", items) if items else ""
    return _element("li", f"{head} {_escaped(line.text)}{details}")
