"""What to do here: the findings, those that save most first."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.blocks.parts import Listing, Part, Text
from overhead.reading.findings import findings_of
from overhead.reading.view import View
from overhead.report.core.registry import register


@register("to-do", "What to do here", 10, brief=True)
def to_do(view: View) -> Iterator[Part]:
    found = view.once(findings_of)
    if not found:
        yield Text(["No rule found a saving that this run resolves."])
        return
    yield Listing([(finding.title, finding.detail) for finding in found])
