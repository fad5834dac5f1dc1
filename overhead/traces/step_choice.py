"""What a person names as the steps of a recording."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepChoice:
    """What the person says is a step; empty where nothing is said, so that the recording decides.

    ``name``: of a range of the program. ``begin_s``, ``end_s``: seconds since the start of the
    recording, between which the steps are looked for; None for no limit. ``process``: the process
    whose steps these are, of a recording of several. ``keeps_slow``: whether steps count that take
    far longer than the others. Where several ranks are compared, they show which one is late.
    """

    name: str = ""
    begin_s: float | None = None
    end_s: float | None = None
    process: str = ""
    keeps_slow: bool = True

    @property
    def has_times(self) -> bool:
        """Whether the person limits the time in which the steps are looked for."""
        return self.begin_s is not None or self.end_s is not None


ANY_STEPS = StepChoice()
"""The recording decides what its steps are."""
