"""Sentences on a whole run: the processor's speed, software adapters, what is missing."""

from __future__ import annotations

from overhead.reading.format import MICRO, count, listed, percent
from overhead.reading.view import View

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
    """A sentence on the stacks that this machine lacks and the commands that add them; '' where none is missing.

    ``where``: where the reader finds the reasons.
    """
    absent = [u for u in view.fingerprint.unavailable if u.stack not in {t.stack for t in view.targets}]
    if not absent:
        return ""
    stacks = list(dict.fromkeys(u.stack for u in absent))
    mends = list(dict.fromkeys(u.mend for u in absent if u.mend))
    adds = f" What adds them: {'; '.join(mends)}." if mends else ""
    return f"Missing on this machine: {listed(stacks)}; the reasons are {where}.{adds}"


def left_out(number_of: int) -> str:
    """How many cases the run left out, as a sentence; '' for none."""
    return f"Left out of this run: {count(number_of, 'case')}." if number_of else ""
