"""What a check found. The child process sends it as JSON lines."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import Struct

from overhead.errors import OutOfTime, UsageError, stack_code_of
from overhead.measure.sampling.events import status_of

Level = Literal["error", "warning"]
Result = Literal["verified", "opened", "unavailable", "failed", "hung", "crashed", "not checked"]
"""``verified``: every unit was counted from values. ``opened``: a null backend, which runs nothing."""
FAULTS: frozenset[str] = frozenset({"failed", "hung", "crashed"})


class CheckFinding(Struct, frozen=True, omit_defaults=True):
    """``step``: the call that was made. ``where``: the line of the stack's code. ``trace``: the traceback from there."""  # noqa: E501

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
        return self.result in FAULTS


class Findings:
    """Collects the findings of one row. ``doing`` is called with the name of each step before it runs."""

    def __init__(self, doing: Callable[[str], None] = lambda step: None) -> None:
        self._doing = doing
        self.found: list[CheckFinding] = []
        self.step = ""
        self.unavailable = ""
        """The reason, if the stack says that it cannot run the case, or has not the time to tell."""

    def error(self, message: str) -> None:
        self.found.append(CheckFinding("error", self.step, message))

    def warn(self, message: str) -> None:
        self.found.append(CheckFinding("warning", self.step, message))

    def expect(self, true: bool, message: str) -> bool:
        """Add an error unless it is true; return it."""
        if not true:
            self.error(message)
        return true

    @property
    def failed(self) -> bool:
        return any(one.level == "error" for one in self.found)

    @contextmanager
    def catching(self, step: str) -> Iterator[None]:
        """Run one step; an exception becomes an error with the line of the stack's code."""
        self.step = step
        self._doing(step)
        try:
            yield
        except (Exception, SystemExit) as error:
            self.caught(error)

    def caught(self, error: BaseException) -> None:
        """Add an exception of the stack."""
        words = " ".join(str(error).split())
        if status_of(error) == "unavailable" or isinstance(error, OutOfTime):
            self.unavailable = words
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
