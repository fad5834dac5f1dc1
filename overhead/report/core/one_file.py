"""All pages of a report in one file: each link between pages becomes a link inside of the file.

The pages are our own HTML, whose template escapes ``<``, ``>`` and quotes in every text and
attribute. So what looks like a tag or an attribute here is one.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Mapping, Sequence

from overhead.blocks.html import PageBody, markup

_TAG = re.compile(r"<[a-z][^>]*>")
_ID = re.compile(r' id="([^"]*)"')
_ATTRIBUTE = re.compile(r' (id|aria-labelledby|href)="([^"]*)"')
_OUTSIDE = ("https://", "data:")
"""How the addresses begin that stay as they are."""


def joined(bodies: Sequence[PageBody], ids_by_path: Mapping[str, str]) -> list[PageBody]:
    """The pages with ids that are unique in the file, and with links to these.

    ``ids_by_path``: by the path that a page has in a report of several files, its id.
    """
    new_ids = _unique_ids(bodies)
    links = _Links(ids_by_path, new_ids)
    pages = []
    for body in bodies:
        text = _TAG.sub(functools.partial(links.in_tag, body.id), body.text)
        pages.append(dataclasses.replace(body, text=markup(text)))
    return pages


def _unique_ids(bodies: Sequence[PageBody]) -> dict[str, dict[str, str]]:
    """By page, and by each id on it, the id that is unique in the file.

    An id stays as it is where it can, so that a link to ``FILE.html#figure-headline`` or
    ``FILE.html#claims`` is right in each such file. The ids of the pages come first, then those on
    the pages in order; one that is taken gets the name of its page in front.
    """
    taken = {body.id for body in bodies}
    new_ids: dict[str, dict[str, str]] = {}
    for body in bodies:
        of_page: dict[str, str] = {}
        for tag in _TAG.findall(body.text):
            for old in _ID.findall(tag):
                new = old
                while new in taken:
                    new = f"{body.id}-{new}"
                taken.add(new)
                of_page[old] = new
        new_ids[body.id] = of_page
    return new_ids


class _Links:
    """Puts the ids and links of a file of several pages in place of those of several files."""

    def __init__(
        self, ids_by_path: Mapping[str, str], new_ids: Mapping[str, Mapping[str, str]]
    ) -> None:
        """``new_ids``: see ``_unique_ids``."""
        self._ids_by_path = ids_by_path
        self._new_ids = new_ids

    def in_tag(self, page: str, tag: re.Match[str]) -> str:
        """A tag of this page, as the file has it."""
        return _ATTRIBUTE.sub(functools.partial(self._attribute, page), tag[0])

    def _attribute(self, page: str, found: re.Match[str]) -> str:
        """An attribute as the file has it, with a space before it; '' for a link to what the file
        does not have.
        """
        name, value = found.groups()
        if name != "href":
            return f' {name}="{self._new_ids[page].get(value, value)}"'
        if value.startswith(_OUTSIDE):
            return f' href="{value}"'
        path, _, anchor = value.removeprefix("../").partition("#")
        linked_page = self._ids_by_path.get(path) if path else page
        if linked_page is None:
            return ""
        # Without an anchor, or with one for the filter of a table, the page itself is meant.
        target = self._new_ids[linked_page].get(anchor, linked_page)
        return f' href="#{target}"'
