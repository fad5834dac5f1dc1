"""Facts on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

import dataclasses

from overhead.reading.missing_values import by_mend
from overhead.reading.view import View
from overhead.results import Machine, MissingStack, Reason, StackFacts, Why
from overhead.results.stack_facts import LAST_ROW

_STEADY_RATIO = 1.05
"""Slowest over fastest reference loop up to which the processor counts as steady. Chosen, not
measured.
"""


_INSTALLS_ON_CPU = ("install-extras", "install-mlx")
"""The remedies that are a command of pip, so that several are one command."""
_MOST_EXTRAS = 3
"""Chosen, not measured."""


@dataclasses.dataclass(frozen=True)
class CanaryRange:
    """The shortest and the longest time, in microseconds, that the reference loop took in the
    processes of a run: always the same work of the CPU, so it shows how fast the CPU ran.
    """

    least_us: float
    most_us: float


def speed_change(view: View) -> CanaryRange | None:
    """How much the processor's speed changed between the processes of the run, by the times of a
    loop that is always the same; None where it was steady or is not known.
    """
    state = view.fingerprint.volatile
    # The names of the reference loop's times in files.
    least = state.get("canary_us_least")
    most = state.get("canary_us_most")
    # A file may hold anything under these names.
    if not isinstance(least, float | int) or not isinstance(most, float | int):
        return None
    # Up to 5 % more (``_STEADY_RATIO``) it counts as steady.
    if not 0 < least * _STEADY_RATIO < most:
        return None
    return CanaryRange(least, most)


def is_software_only(view: View) -> bool:
    """Whether there are adapters and every one computes on the CPU."""
    on_adapters = [target for target in view.without_floor if target.first.api != "CPU"]
    return bool(on_adapters) and all(target.software for target in on_adapters)


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
        names: dict[Why, list[str]] = {}
        for command, stacks in by_mend(self.addable).items():
            if command:
                names[command] = [missing.stack for missing in stacks]
        return names


@dataclasses.dataclass(frozen=True)
class AddableOnCpu:
    """Stacks that compute on the CPU and are missing, those that most people use first.
    ``extras``: the optional sets of packages that add them.
    """

    stacks: tuple[str, ...]
    extras: tuple[str, ...]


def addable_on_cpu(view: View) -> AddableOnCpu:
    """What one command would add to a run on this machine without a GPU: stacks of at most
    ``_MOST_EXTRAS`` extras. A software adapter is no reason to install anything.
    """
    absent = missing_stacks(view).addable
    stacks = []
    extras: list[str] = []
    for missing in sorted(absent, key=lambda one: _least_order(view.facts(one.stack))):
        mend = missing.mend
        if not isinstance(mend, Reason) or mend.code not in _INSTALLS_ON_CPU:
            continue
        # The rows of a WebGPU library would be of a software adapter.
        if any(row.group == "webgpu" for row in view.facts(missing.stack).rows):
            continue
        extra = str(mend.values["extras"])
        if extra not in extras:
            if len(extras) == _MOST_EXTRAS:
                continue
            extras.append(extra)
        stacks.append(missing.stack)
    return AddableOnCpu(tuple(stacks), tuple(extras))


def _least_order(facts: StackFacts) -> int:
    """The place of a stack among others by how many people use it: the first of its rows."""
    return min([row.order for row in facts.rows], default=LAST_ROW)


def missing_stacks(view: View) -> MissingStacks:
    """The stacks that this machine lacks, in the order of the file: those that it could have, and
    those that need an NVIDIA GPU where it has none.

    A stack counts as lacking only if none of its devices was measured: on another device, or with
    other environment variables, it may have failed.
    """
    # Stacks with records; of the others the file says why they are missing.
    measured = {target.stack for target in view.targets}
    # A stack that the file names twice keeps its first reason, at the place of its last one.
    absent: dict[str, MissingStack] = {}
    for missing in reversed(view.fingerprint.unavailable):
        if missing.stack not in measured:
            absent[missing.stack] = missing
    nvidia_only: tuple[str, ...] = ()
    if not _has_nvidia(view.fingerprint.machine):
        nvidia_only = view.in_role("nvidia-only")
    addable = []
    for_nvidia = []
    for stack, missing in reversed(absent.items()):
        if stack in nvidia_only:
            for_nvidia.append(missing)
        else:
            addable.append(missing)
    return MissingStacks(tuple(addable), tuple(for_nvidia))


def _has_nvidia(machine: Machine) -> bool:
    return any("nvidia" in gpu.name.lower() and not gpu.software for gpu in machine.gpus)
