"""The page of the method: why no total is divided by a count, what makes a number valid, and the
terms.
"""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Table, Terms, Text
from overhead.reading.view import View
from overhead.report.core.registry import register
from overhead.words.glossary import GLOSSARY
from overhead.words.report.method import ANSWER, IDEA, RULES


@register("valid", "Nothing is divided by a count", 0, page="method")
def valid(_: View) -> Iterator[Part]:
    """Why the slope of T(n) is the cost, and a table of the rules that a number must pass."""
    yield Text([ANSWER], lead=True)
    yield Text(IDEA)
    yield Table("What makes a number valid", ["rule", "how it is checked"], RULES, prose=True)


@register("glossary", "Terms", 20, page="method")
def glossary(_: View) -> Iterator[Part]:
    """Every term of the figures with its meaning."""
    yield Terms(GLOSSARY)
