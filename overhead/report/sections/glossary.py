"""The glossary: every term of the figures in one line."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Part, Terms
from overhead.reading.glossary import GLOSSARY
from overhead.reading.view import View
from overhead.report.core.registry import register


@register("glossary", "Terms", 200)
def glossary(_: View) -> Iterator[Part]:
    yield Terms(GLOSSARY)
