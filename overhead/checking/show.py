"""How a terminal shows what a check found, and how a program gets it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from overhead.blocks.parts import Part, StatusLine, Text, Tone
from overhead.checking.findings import CheckFinding, CheckRow, Level, Result
from overhead.results import Why
from overhead.words import checking as words
from overhead.words.reasons import sentence

_TONES: dict[Result, Tone] = {
    "verified": "good",
    "opened": "good",
    "failed": "bad",
    "hung": "bad",
    "crashed": "bad",
}
_LEVEL_TONES: dict[Level, Tone] = {"error": "bad", "warning": "unsure"}


def row_blocks(row: CheckRow, told: set[tuple[str, Why, str]]) -> Iterator[Part]:
    """The line of one case in a terminal, with a line for each finding. Nothing for a case that was
    not checked: ``summary_blocks`` counts those.

    ``told``: the findings shown so far, with other cases; this call adds its own.
    """
    if row.result != "not checked":
        reason = f": {sentence(row.reason)}" if row.reason else ""
        findings = [_finding(finding, told) for finding in row.findings]
        tone = _TONES.get(row.result, "")
        yield StatusLine(words.result(row.result), f"{row.what}{reason}", findings, tone)


def _finding(finding: CheckFinding, told: set[tuple[str, Why, str]]) -> StatusLine:
    """The line of a finding (an error or a warning), with the lines of its traceback. One that was
    ``told`` before, with another case, says so instead of showing the traceback again.
    """
    key = (finding.level, finding.message, finding.where)
    where = f" ({finding.where})" if finding.where else ""
    again = words.AS_ABOVE if key in told else ""
    # ``where``: the line of the stack's code that raised it. A trace of one line is that line.
    trace: Sequence[str] = finding.trace
    if again or len(trace) < 2:
        trace = ()
    told.add(key)
    # The level and the call of the stack, such as ``open()``; ``names``: a colon stands after it.
    head = words.finding_in_step(finding)
    message = f"{sentence(finding.message)}{where}{again}"
    return StatusLine(head, message, trace, _LEVEL_TONES[finding.level], names=True)


def summary_blocks(rows: Sequence[CheckRow]) -> Iterator[Part]:
    """The last lines of a check: how many cases have each result and how many warnings there were,
    and how to check the cases that were left out.
    """
    counts = Counter(row.result for row in rows)
    # Cases for which there was no time are told in a sentence of their own.
    left = counts.pop("not checked", 0)
    warnings = 0
    for row in rows:
        warnings += [finding.level for finding in row.findings].count("warning")
    yield Text([words.summary(counts, warnings)], lead=True)
    if left:
        yield Text([words.not_checked(left)])
