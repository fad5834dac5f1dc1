"""What ``overhead check`` says beside its findings, whose sentences are those of reasons."""

from __future__ import annotations

from collections.abc import Mapping

from overhead.checking.findings import CheckFinding, Result
from overhead.words.format import count

AS_ABOVE = " (as above)"


def result(of_case: Result) -> str:
    """The result of a case."""
    return "started (this device runs nothing)" if of_case == "opened" else of_case


def finding_in_step(finding: CheckFinding) -> str:
    """The level of a finding, and the call of the stack that it is about."""
    return f"{finding.level} in {finding.step}"


def summary(counts: Mapping[Result, int], warnings: int) -> str:
    """The last line of ``overhead check``: how many cases have each result, and how many warnings
    there were.
    """
    texts = [f"{number_of} {of_case}" for of_case, number_of in counts.items()]
    if warnings > 0:
        texts.append(count(warnings, "warning"))
    if not texts:
        return "nothing was checked."
    return f"{', '.join(texts)}."


def not_checked(cases: int) -> str:
    """How to check the cases that were left out."""
    return f"Not checked to save time: {count(cases, 'more case')}; --all checks all of them."
