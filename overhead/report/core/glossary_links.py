"""Link the first place of each glossary term on a page to the glossary on the front page."""

from __future__ import annotations

import functools
import re

from markupsafe import Markup, escape

from overhead.reading.glossary import GLOSSARY, Term
from overhead.report.core.page_list import FRONT


class GlossaryLinks:
    """Called with a text of a page, it returns the text escaped, with a link at the first place of each term."""

    def __init__(self, path: str) -> None:
        up = "../" if "/" in path else ""
        self._glossary = "" if path == FRONT.path else up + FRONT.path
        self._linked: set[str] = set()

    def __call__(self, text: str) -> Markup:
        return Markup(_pattern().sub(self._link, str(escape(text))))  # escaped above; the links hold our own terms

    def _link(self, found: re.Match[str]) -> str:
        term = _by_form()[found[0].lower()]
        if term.id in self._linked:
            return found[0]
        self._linked.add(term.id)
        return f'<a class="term" href="{self._glossary}#{term.id}">{found[0]}</a>'


@functools.cache
def _by_form() -> dict[str, Term]:
    """Terms by the lower-case forms in which texts have them, escaped as in the page."""
    return {str(escape(form)).lower(): term for term in GLOSSARY for form in (term.name, *term.forms)}


@functools.cache
def _pattern() -> re.Pattern[str]:
    forms = sorted(_by_form(), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, forms))})(?![\w-])", re.IGNORECASE)
