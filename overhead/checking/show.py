"""What ``overhead check`` shows: a line for each case, and under it what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Part, StatusLine, Text
from overhead.checking.findings import CheckFinding, CheckRow

_WORDS = {"opened": "opened (the device runs nothing)"}


def row_blocks(row: CheckRow, told: set[tuple[str, str, str]]) -> Iterator[Part]:
    """The line of one case. A finding of which another case told in full, ``told``, is told without its trace."""
    if row.result != "not checked":
        reason = f": {row.reason}" if row.reason else ""
        findings = [_finding(finding, told) for finding in row.findings]
        yield StatusLine(_WORDS.get(row.result, row.result), f"{row.what}{reason}", findings)


def _finding(finding: CheckFinding, told: set[tuple[str, str, str]]) -> StatusLine:
    key = (finding.level, finding.message, finding.where)
    where = f" ({finding.where})" if finding.where else ""
    again = " (as above)" if key in told else ""
    trace = () if again or len(finding.trace) < 2 else finding.trace
    told.add(key)
    return StatusLine(f"{finding.level} in {finding.step}:", f"{finding.message}{where}{again}", trace)


def summary_blocks(rows: Sequence[CheckRow]) -> Iterator[Part]:
    """The counts, and how to check the cases that were left out."""
    counts = Counter(row.result for row in rows)
    left = counts.pop("not checked", 0)
    warnings = sum(finding.level == "warning" for row in rows for finding in row.findings)
    words = [f"{count} {result}" for result, count in counts.items()] + [f"{warnings} warnings"] * (warnings > 0)
    yield Text([f"{', '.join(words) or 'nothing was checked'}."], lead=True)
    if left:
        yield Text([f"{left} more cases were not checked for lack of time; --all checks them too."])
