"""Facts on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

import dataclasses

from overhead.reading.missing_values import by_mend
from overhead.reading.view import View
from overhead.results import Machine, MissingStack, Why

_STEADY_RATIO = 1.05
"""Slowest over fastest canary up to which the processor counts as steady."""


@dataclasses.dataclass(frozen=True)
class CanaryRange:
    """The shortest and the longest time of the canary, in microseconds, over the processes of a
    run.
    """

    least_us: float
    most_us: float


def speed_change(view: View) -> CanaryRange | None:
    """How the processor's speed changed between processes; None where it was steady or is not
    known.
    """
    state = view.fingerprint.volatile
    least, most = state.get("canary_us_least"), state.get("canary_us_most")
    if (
        not isinstance(least, float | int)
        or not isinstance(most, float | int)
        or not 0 < least * _STEADY_RATIO < most
    ):
        return None
    return CanaryRange(least, most)


def is_software_only(view: View) -> bool:
    """Whether there are adapters and every one computes on the CPU."""
    devices = [t for t in view.without_floor if t.first.api != "CPU"]
    return bool(devices) and all(t.software for t in devices)


@dataclasses.dataclass(frozen=True)
class MissingStacks:
    """The stacks that a machine lacks. ``addable``: those that it could have.

    ``for_nvidia``: those of an NVIDIA GPU where it has none, so that no command adds them.
    """

    addable: tuple[MissingStack, ...]
    for_nvidia: tuple[MissingStack, ...]

    @property
    def by_command(self) -> dict[Why, list[str]]:
        """The names of stacks by the command that adds them, where that is known."""
        found = by_mend(self.addable).items()
        return {mend: [one.stack for one in own] for mend, own in found if mend}


def missing_stacks(view: View) -> MissingStacks:
    """The stacks that this machine lacks, in the order of the file."""
    measured = {target.stack for target in view.targets}
    absent = {
        one.stack: one
        for one in reversed(view.fingerprint.unavailable)
        if one.stack not in measured
    }
    lacks_gpu = not _has_nvidia(view.fingerprint.machine)
    nvidia_only = view.in_role("nvidia-only") if lacks_gpu else ()
    addable: list[MissingStack] = []
    for_nvidia: list[MissingStack] = []
    for stack in reversed(absent):
        (for_nvidia if stack in nvidia_only else addable).append(absent[stack])
    return MissingStacks(tuple(addable), tuple(for_nvidia))


def _has_nvidia(machine: Machine) -> bool:
    return any("nvidia" in gpu.name.lower() and not gpu.software for gpu in machine.gpus)
