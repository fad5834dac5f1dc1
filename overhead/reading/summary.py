"""Sentences on a whole run: how far a single timing misleads, what was verified, what is missing."""

from __future__ import annotations

from overhead.reading.format import MICRO, count, factor, listed, percent
from overhead.reading.key_figures import overstatement
from overhead.reading.view import CALLER_WORDS, TargetView, View

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


def overstatement_sentence(targets: list[TargetView]) -> str:
    """A sentence on how many times the cost of a unit a single timing, T(1), is; '' where no target has both.

    Targets on the CPU and ratios without an upper end count only where there are no others.
    """
    targets = [t for t in targets if t.first.api != "CPU"] or targets
    found = [(ratio, t) for t in targets if (ratio := overstatement(t.base, "naive")) is not None]
    found = [f for f in found if f[0].high is not None] or found
    if not found:
        return ""
    (low, least), (high, most) = min(found, key=lambda f: f[0].value), max(found, key=lambda f: f[0].value)
    start = "Timing a single unit and its wait, as most benchmarks do, would have given"
    if least is most:
        return f"{start} {factor(low)} that for {_called(most)}."
    return f"{start} {factor(low)} ({_called(least)}) to {factor(high)} ({_called(most)}) as much."


def _called(target: TargetView) -> str:
    return f"{target.label}, {CALLER_WORDS[target.base.caller]}"


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
