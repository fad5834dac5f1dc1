"""Where steps begin and end, and how they were found."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from overhead.traces.steps_taken import StepsTaken


class StepWindow(NamedTuple):
    """Start and end of a step, ns, and the number of its mark; None without one."""

    start: float
    end: float
    number: int | None = None


@dataclasses.dataclass(frozen=True)
class FoundSteps:
    """The steps of a recording, by start, and how they were found. ``family``: of the ranges that
    are the steps, their name with ``N`` for numbers; empty if the steps are no ranges.
    """

    windows: Sequence[StepWindow]
    taken: StepsTaken
    family: str = ""
