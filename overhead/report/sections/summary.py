"""The opening: what one unit costs per stack, how far a single timed one misleads, what is missing; the key figures."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.keyfigures import key_figures
from overhead.reading.sentences import opening
from overhead.reading.view import View
from overhead.report.parts import Cards, Part, Text
from overhead.report.registry import register


@register("summary", "In short", 10, brief=True)
def summary(view: View) -> Iterator[Part]:
    yield Text(opening(view) or ["No stack could be measured on this machine; the reasons are below."])
    yield Cards(key_figures(view.fingerprint))
