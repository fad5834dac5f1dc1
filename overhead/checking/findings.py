"""What a check found, and how a terminal shows it. The child process sends it as JSON lines."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from overhead.blocks.parts import Part, StatusLine, Text, Tone
from overhead.errors import OutOfTime, UsageError, stack_code_of
from overhead.measure.sampling.events import reason_of, status_of

Level = Literal["error", "warning"]
Result = Literal["verified", "opened", "unavailable", "failed", "hung", "crashed", "not checked"]
"""``verified``: every unit was counted from values. ``opened``: a null backend, which runs nothing."""
FAULTS: frozenset[str] = frozenset({"failed", "hung", "crashed"})
_TONES: dict[Result, Tone] = {
    "verified": "good",
    "opened": "good",
    "failed": "bad",
    "hung": "bad",
    "crashed": "bad",
}
_LEVEL_TONES: dict[Level, Tone] = {"error": "bad", "warning": "unsure"}
_WORDS = {"opened": "opened (the device runs nothing)"}


class CheckFinding(Struct, frozen=True, omit_defaults=True):
    """An error or a warning. ``step``: the call of the stack. ``where``: its line of code. ``trace``: its frames."""

    level: Level
    step: str
    message: str
    where: str = ""
    trace: list[str] = []


class CheckRow(Struct, frozen=True, omit_defaults=True):
    """One case, or the ``targets`` of a stack.

    ``reason``: why it is unavailable, or what the case was compared with.
    """

    what: str
    result: Result
    reason: str = ""
    findings: list[CheckFinding] = []
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the result is a fault."""
        return self.result in FAULTS


class Findings:
    """Collects the findings of one row. ``doing`` gets the name of each step (a call of the stack) before it runs."""

    def __init__(self, doing: Callable[[str], None] = lambda step: None) -> None:
        self._doing = doing
        self.found: list[CheckFinding] = []
        self.step = ""
        self.judge: Callable[[Exception], Exception | None] = lambda error: None
        """Gives ``Unavailable`` in place of an error, where the machine is its cause; until a unit has run."""
        self.unavailable = ""
        """The reason, if the stack says that it cannot run the case, or has not the time to tell."""

    def error(self, message: str) -> None:
        """Add an error in the current step."""
        self.found.append(CheckFinding("error", self.step, message))

    def warn(self, message: str) -> None:
        """Add a warning in the current step."""
        self.found.append(CheckFinding("warning", self.step, message))

    def expect(self, true: bool, message: str) -> bool:
        """Add an error with this message unless ``true``; returns ``true``."""
        if not true:
            self.error(message)
        return true

    @property
    def failed(self) -> bool:
        """Whether there is an error; warnings do not count."""
        return any(one.level == "error" for one in self.found)

    @contextmanager
    def catching(self, step: str) -> Iterator[None]:
        """A context that runs one step; an exception becomes an error with the line of the stack's code."""
        self.step = step
        self._doing(step)
        try:
            yield
        except (Exception, SystemExit) as error:
            self.caught(error)

    def caught(self, error: BaseException) -> None:
        """Add an exception that a stack raised as an error; one that says unavailable becomes the reason instead."""
        if isinstance(error, Exception):
            error = self.judge(error) or error
        words = " ".join(str(error).split())
        if status_of(error) == "unavailable" or isinstance(error, OutOfTime):
            self.unavailable = reason_of(error)
            return
        named = words if isinstance(error, UsageError) else f"{type(error).__name__}: {words}".rstrip(": ")
        self.found.append(CheckFinding("error", self.step, named, stack_code_of(error), _trace(error)))


def _trace(error: BaseException) -> list[str]:
    """The lines of the traceback, without the frames of the suite that called the stack."""
    frames = traceback.extract_tb(error.__traceback__)
    where = stack_code_of(error).partition(":")[0]
    own = [i for i, frame in enumerate(frames) if where and frame.filename.endswith(where)]
    kept = frames[own[0] : own[-1] + 1] if own else []
    return [f"{frame.filename.replace(chr(92), '/').rpartition('/')[2]}:{frame.lineno}: {frame.line}" for frame in kept]


def row_blocks(row: CheckRow, told: set[tuple[str, str, str]]) -> Iterator[Part]:
    """The line of one case with its findings. ``told``: findings shown before, which have no traceback again."""
    if row.result != "not checked":
        reason = f": {row.reason}" if row.reason else ""
        findings = [_finding(finding, told) for finding in row.findings]
        tone = _TONES.get(row.result, "")
        yield StatusLine(_WORDS.get(row.result, row.result), f"{row.what}{reason}", findings, tone)


def _finding(finding: CheckFinding, told: set[tuple[str, str, str]]) -> StatusLine:
    key = (finding.level, finding.message, finding.where)
    where = f" ({finding.where})" if finding.where else ""
    again = " (as above)" if key in told else ""
    trace = () if again or len(finding.trace) < 2 else finding.trace
    told.add(key)
    head, tone = f"{finding.level} in {finding.step}", _LEVEL_TONES[finding.level]
    return StatusLine(head, f"{finding.message}{where}{again}", trace, tone, names=True)


def summary_blocks(rows: Sequence[CheckRow]) -> Iterator[Part]:
    """How many cases have each result, and how to check the cases that were left out."""
    counts = Counter(row.result for row in rows)
    left = counts.pop("not checked", 0)
    warnings = sum(finding.level == "warning" for row in rows for finding in row.findings)
    words = [f"{count} {result}" for result, count in counts.items()] + [f"{warnings} warnings"] * (warnings > 0)
    yield Text([f"{', '.join(words) or 'nothing was checked'}."], lead=True)
    if left:
        yield Text([f"{left} more cases were not checked for lack of time; --all checks them too."])
