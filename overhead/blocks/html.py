"""Blocks as a page of HTML, from a Jinja template. Every text is escaped; a missing variable is an
error.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from overhead.blocks.parts import Table
from overhead.reading.plain_text import plain
from overhead.words.printed import Printed

if TYPE_CHECKING:
    from jinja2 import Template
    from markupsafe import Markup


@dataclasses.dataclass(frozen=True)
class PageSection:
    """A section of a page. ``parts``: its blocks; in place of a ``Drawing`` one whose SVG is
    ready.
    """

    name: str
    title: str
    parts: Sequence[Any]
    printed: Sequence[Printed] = ()
    """The figures that became text while the parts were made."""


def page(sections: Sequence[PageSection], **values: Any) -> str:
    """The text of one page in HTML. ``values``: what else the template names, such as its
    ``heading``.
    """
    # A page without a table to sort needs no script.
    has_sortable = any(_has_sortable_table(section) for section in sections)
    script = _text("tables.js") if has_sortable else markup("")
    shown = {
        "sections": sections,
        "css": _text("page.css"),
        "script": script,
        # The policy of the page (a meta element) allows the script with this hash and no other.
        "script_hash": _hash(script),
    }
    return str(_template().render(values, **shown))


def _has_sortable_table(section: PageSection) -> bool:
    return any(isinstance(part, Table) and part.sortable for part in section.parts)


def markup(text: str) -> Markup:
    """The text, marked so that the template does not escape it: only our own styles and script."""
    from markupsafe import Markup

    return Markup(text)


@functools.cache
def _template() -> Template:
    """The template of a page: it escapes every text, and raises where a variable is missing. Its
    filter ``plain`` makes a text one line without control characters.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    return environment.get_template("page.html.j2")


@functools.cache
def _text(name: str) -> Markup:
    """A file of this folder, which is not escaped."""
    path = Path(__file__).parent / name
    text = path.read_text(encoding="utf-8")
    return markup(text.strip())


@functools.cache
def _hash(script: str) -> str:
    """The hash by which the page's policy allows this script and no other."""
    digest = hashlib.sha256(script.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()
