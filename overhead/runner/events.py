"""What a run tells while it measures: its steps, and notes for the user. ``overhead.words.runner``
has their words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from overhead.results import Status, Why


@dataclass(frozen=True)
class AnswersCame:
    """So many of the stacks that were asked for their devices have answered; the others run or
    wait.
    """

    answered: int
    asked: int
    running: Sequence[str]


@dataclass(frozen=True)
class Opening:
    """A worker opens the cases of this target. ``side``: of a comparison, or ''."""

    target: str
    side: str = ""


@dataclass(frozen=True)
class MeasuringProcess:
    """A worker measures a target. ``process``: from 0. ``side``: of a comparison, or ''."""

    target: str
    process: int
    side: str = ""


RunStep = AnswersCame | Opening | MeasuringProcess | Why
"""What a run does now. A text is shown as it is."""


@dataclass(frozen=True)
class CaseFailed:
    """A case that failed."""

    target: str
    case: str
    status: Status
    reason: Why
    side: str = ""


@dataclass(frozen=True)
class MoreFailedAlike:
    """Further cases of the target fail for the cause that a ``CaseFailed`` told."""

    target: str
    status: Status
    side: str = ""


@dataclass(frozen=True)
class MeasuredAgain:
    """A worker died, and another one takes its place. ``process``: from 0."""

    target: str
    process: int
    reason: Why
    side: str = ""


@dataclass(frozen=True)
class CasesLeftOut:
    """Cases, or whole targets, that are not measured for one reason."""

    reason: Why
    names: Sequence[str]


@dataclass(frozen=True)
class WorkNeeds:
    """What a run of this work takes."""

    workload: str
    needs: Why


@dataclass(frozen=True)
class MeasuredSoFar:
    """The run broke off; the files hold everything measured until then."""

    files: Sequence[Path]


RunNote = (
    CaseFailed | MoreFailedAlike | MeasuredAgain | CasesLeftOut | WorkNeeds | MeasuredSoFar | Why
)
"""A line for the user. A text is shown as it is."""
