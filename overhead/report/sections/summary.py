"""The opening: what one unit costs per stack, how far a single timed one misleads, what is missing; the key figures."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.keyfigures import key_figures
from overhead.report.parts import Cards, Part, Text
from overhead.report.registry import register
from overhead.sentences import opening
from overhead.view import View


@register("summary", "In short", 10, brief=True)
def summary(view: View) -> Iterator[Part]:
    yield Text(opening(view) or ["No stack could be measured on this machine; the reasons are below."])
    yield Cards(key_figures(view.fingerprint))
