"""What to do here: the findings, those that save most first."""

from __future__ import annotations

from collections.abc import Iterator

from overhead.reading.findings import Finding, findings_of
from overhead.reading.format import run_time
from overhead.reading.view import View
from overhead.report.core.parts import Listing, Part, Text
from overhead.report.core.registry import register


@register("to-do", "What to do here", 10, brief=True)
def to_do(view: View) -> Iterator[Part]:
    found = view.once(findings_of)
    if not found:
        yield Text(["No rule found a saving that this run resolves."])
        return
    yield Listing([(finding.title, _detail(view, finding)) for finding in found])


def _detail(view: View, finding: Finding) -> str:
    other = finding.created != view.fingerprint.created
    return finding.detail + (f" Measured in the run of {run_time(finding.created)}." if other else "")
