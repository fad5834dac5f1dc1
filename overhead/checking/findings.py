"""What a check found. The child process sends it as JSON lines."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from overhead.errors import UsageError, message_of, stack_code_of, stack_line_of
from overhead.measure.sampling.events import reason_of, status_of
from overhead.results import Why, because, reason_given

Level = Literal["error", "warning"]
Result = Literal["verified", "opened", "unavailable", "failed", "hung", "crashed", "not checked"]
"""``verified``: every unit was counted from values. ``opened``: a null backend, which runs
nothing.
"""
FAULTS: frozenset[str] = frozenset({"failed", "hung", "crashed"})


class CheckFinding(Struct, frozen=True, omit_defaults=True):
    """An error or a warning that a check found. ``step``: the call of the stack in which it was
    found. ``where``: the line of the stack's code that raised it. ``trace``: the lines from there
    on.
    """

    level: Level
    step: str
    message: Why
    where: str = ""
    trace: list[str] = []


class CheckRow(Struct, frozen=True, omit_defaults=True):
    """What a check found of one case, or of the ``targets`` of a stack: a row of its report.

    ``what``: the name of the case. ``reason``: why it is unavailable, or what the case was compared
    with.
    """

    what: str
    result: Result
    reason: Why = ""
    findings: list[CheckFinding] = []
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether the result is a fault."""
        return self.result in FAULTS


class Findings:
    """Collects what a check finds wrong with one case, the findings of its row.

    A step is one call of the stack, such as ``open()``. ``doing`` gets the name of each step before
    it runs.
    """

    def __init__(self, doing: Callable[[str], None] = lambda step: None) -> None:
        self._doing = doing
        self.found: list[CheckFinding] = []
        self.step = ""
        self.judge: Callable[[Exception], Exception | None] = lambda error: None
        """Takes an error of the stack, and gives ``Unavailable`` in its place if the machine is the
        cause (a missing library), else None. Once a unit has run, the machine cannot be the cause.
        """
        self.unavailable: Why = ""
        """The reason, if the stack says that it cannot run the case, or has not the time to
        tell; '' else.
        """

    def error(self, message: Why) -> None:
        """Add an error in the current step."""
        self.found.append(CheckFinding("error", self.step, message))

    def warn(self, message: Why) -> None:
        """Add a warning in the current step."""
        self.found.append(CheckFinding("warning", self.step, message))

    def expect(self, true: bool, message: Why) -> bool:
        """Add an error with this message unless ``true``; returns ``true``."""
        if not true:
            self.error(message)
        return true

    @property
    def failed(self) -> bool:
        """Whether there is an error; warnings do not count."""
        return any(finding.level == "error" for finding in self.found)

    @contextmanager
    def catching(self, step: str) -> Iterator[None]:
        """A context in which one step of the stack runs, such as ``open()``. An exception does not
        leave it, but becomes a finding; ``SystemExit`` too, which would end the process.
        """
        self.step = step
        self._doing(step)
        try:
            yield
        except (Exception, SystemExit) as error:
            self.caught(error)

    def caught(self, error: BaseException) -> None:
        """Add an exception that a stack raised: as an error with the line of the stack's code, or,
        if it says that the stack cannot run here, as the reason why the case is ``unavailable``.
        """
        # ``judge`` gives another error if this machine is the cause, and not the stack.
        if isinstance(error, Exception):
            error = self.judge(error) or error
        # That is: ``Unavailable`` or ``Unsupported``, with which a stack says what it cannot do.
        if status_of(error) == "unavailable":
            self.unavailable = reason_of(error)
            return
        finding = CheckFinding(
            level="error",
            step=self.step,
            message=_message(error),
            where=stack_code_of(error),
            trace=_trace(error),
        )
        self.found.append(finding)


def _message(error: BaseException) -> Why:
    """What to say of an exception: the reason that it carries if the suite made it, else its
    message. The name of its class is added.
    """
    kind = type(error).__name__
    reason = reason_given(error)
    if reason is not None:
        return because("raised", why=reason, kind=kind)
    message = message_of(error)
    # Such a message is a sentence about a mistake of the user, which needs no class.
    if isinstance(error, UsageError):
        return message
    # An exception without a message is its class alone, without the colon.
    return f"{kind}: {message}".rstrip(": ")


def _trace(error: BaseException) -> list[str]:
    """The lines of the traceback that concern the author of the stack: those of the stack's file
    and of what it called, without the frames of the suite. Empty if the error came from no code of
    the stack.
    """
    line = stack_line_of(error)
    if line is None:
        return []
    frames = traceback.extract_tb(error.__traceback__)
    # ``line``: the last line of the stack's code. ``of_stack``: where frames of its file stand.
    of_stack = [i for i, frame in enumerate(frames) if frame.filename.endswith(line.file)]
    if not of_stack:
        return []
    # From the first to the last frame of the stack's file, with what is called in between.
    lines = []
    for frame in frames[of_stack[0] : of_stack[-1] + 1]:
        file = frame.filename.replace("\\", "/").rpartition("/")[2]
        lines.append(f"{file}:{frame.lineno}: {frame.line}")
    return lines
