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
from overhead.results import Fingerprint
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
    run: Fingerprint | None = None
    """The run that all parts are of, if it is one."""


@dataclasses.dataclass(frozen=True)
class PageBody:
    """The head, the sections and the foot of a page, as HTML. ``id``: the page's anchor in a file
    of several pages. ``scripted``: whether it has a table to sort, which needs the script.
    """

    id: str
    text: Markup
    scripted: bool


def body(sections: Sequence[PageSection], *, id: str = "", **values: Any) -> PageBody:
    """The body of one page. ``values``: what else the template names, such as its ``heading``.

    ``address_of``, one of them, gives the address of a file that a reader can download, by its
    path; '' if there is none, and then the page has no link to it.
    """
    text = _template("body.html.j2").render(values, sections=sections)
    scripted = any(_has_sortable_table(section) for section in sections)
    return PageBody(id, markup(text), scripted)


def document(bodies: Sequence[PageBody], *, heading: str, about: str, command: str) -> str:
    """The text of an HTML file. It holds one page or several, and shows one of them at a time.
    ``command``: the command of ours that writes it, by which the file is known again.
    """
    script = _text("tables.js") if any(one.scripted for one in bodies) else markup("")
    text = _template("page.html.j2").render(
        bodies=bodies,
        heading=heading,
        about=about,
        command=command,
        css=_text("page.css"),
        script=script,
        # The policy of the page (a meta element) allows the script with this hash and no other.
        script_hash=_hash(script),
    )
    return str(text)


def _has_sortable_table(section: PageSection) -> bool:
    return any(isinstance(part, Table) and part.sortable for part in section.parts)


def markup(text: str) -> Markup:
    """The text, marked so that the template does not escape it: only our own styles and script."""
    from markupsafe import Markup

    return Markup(text)


@functools.cache
def _template(name: str) -> Template:
    """A template of this folder: it escapes every text, and raises where a variable is missing. Its
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
    return environment.get_template(name)


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
