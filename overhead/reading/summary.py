"""Sentences on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

from overhead.reading.format import MICRO, count, listed, percent
from overhead.reading.missing_values import by_mend
from overhead.reading.view import View
from overhead.results import Machine

_STEADY_RATIO = 1.05
"""Slowest over fastest canary up to which the processor counts as steady."""


def speed_change(view: View) -> str:
    """A sentence on how the processor's speed changed between processes; '' where it was steady or is not known."""
    state = view.fingerprint.volatile
    least, most = state.get("canary_us_least"), state.get("canary_us_most")
    if not isinstance(least, float | int) or not isinstance(most, float | int) or not 0 < least * _STEADY_RATIO < most:
        return ""
    return (
        f"The speed of the CPU changed by {percent(most / least - 1)} between processes: the canary, a fixed loop that "
        f"is timed beside every sample, took {least:.4g} to {most:.4g} {MICRO}. CPU-bound costs changed with it."
    )


def software_sentence(view: View) -> str:
    """A warning where every adapter is a software one, else ''."""
    devices = [t for t in view.without_floor if t.first.api != "CPU"]
    if not devices or not all(t.software for t in devices):
        return ""
    return (
        "Every adapter here is a software one: it computes on the caller's own cores, so these figures show that the "
        "measurement works and say nothing of a GPU."
    )


def missing_stacks(view: View, where: str = "below") -> str:
    """Sentences on the stacks that this machine lacks and the commands that add them; '' where none is missing.

    A stack of an NVIDIA GPU has no command where there is no such GPU. ``where``: where the reader finds the reasons.
    """
    measured = {target.stack for target in view.targets}
    absent = {one.stack: one for one in reversed(view.fingerprint.unavailable) if one.stack not in measured}
    if not absent:
        return ""
    lacks_gpu = not _has_nvidia(view.fingerprint.machine)
    nvidia_only = view.in_role("nvidia-only") if lacks_gpu else ()
    for_nvidia = [stack for stack in reversed(absent) if stack in nvidia_only]
    others = [absent[stack] for stack in reversed(absent) if stack not in for_nvidia]
    said = []
    if others:
        said.append(f"Missing on this machine: {listed([one.stack for one in others])}; the reasons are {where}.")
    adds = []
    for mend, own in by_mend(others).items():
        if mend:
            stacks = listed([one.stack for one in own])
            adds.append(f"{stacks}: {mend}")
    if adds:
        said.append(f"What adds them: {'; '.join(adds)}.")
    if for_nvidia:
        said.append(f"For an NVIDIA GPU, which this machine does not have: {listed(for_nvidia)}.")
    return " ".join(said)


def _has_nvidia(machine: Machine) -> bool:
    return any("nvidia" in gpu.name.lower() and not gpu.software for gpu in machine.gpus)


def left_out(number_of: int) -> str:
    """How many cases the run left out, as a sentence; '' for none."""
    return f"Left out of this run: {count(number_of, 'case')}." if number_of else ""
