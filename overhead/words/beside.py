"""How this run compares with another, in words."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.beside import (
    MEASURING_METHOD,
    Apart,
    Beside,
    VersionChange,
    steady_ratios,
)
from overhead.results import formed
from overhead.words.format import count, number, within
from overhead.words.key_figures import label

WHY_APART: dict[Apart, str] = {
    "only-here": "measured only in this run",
    "only-there": "measured only in the other run",
    "software": "on a software adapter in one of the runs",
    "parameters": "measured through another API or with other parameters",
    "not-above-zero": "not above zero",
}
"""Why two figures are no pair."""
_WHERE = {"host": "the CPU is the limit", "device": "the device, or both, are the limit"}


def beside_sentence(found: Beside, name: str) -> str:
    """A sentence on how this run compares with the run ``name``: from which to which ratio its
    costs lie, those that the CPU limits and those that the device limits apart.
    """
    # ``_WHERE``: the limits, CPU and device, in words.
    ranges = [_range(found, limit) for limit in _WHERE]
    ranges = [text for text in ranges if text]
    compared = "has no cost in common that is not noisy"
    if ranges:
        compared = f"takes {' and '.join(ranges)}"
    return f"Compared with {name}, this machine {compared}."


def outside_sentence(found: Beside, name: str) -> str:
    """A sentence on the figures that differ from those of the run ``name`` by more than two runs of
    one machine do; '' without any.
    """
    outside = []
    for pair in found.pairs.values():
        # ``outside``: the ratio lies outside of the range in which two runs of one machine differ.
        # ``this``: the figure of this run.
        if pair.outside:
            times = number(within(pair.ratio, 0.01))  # three digits
            outside.append(f"{label(pair.this)} ({times} times)")
    if not outside:
        return ""
    return f"More than run-to-run variation, against {name}: {'; '.join(outside)}."


def _range(found: Beside, limit: str) -> str:
    """The lowest to the highest ratio of the figures with this limit, ``0.97 to 1.3 times as long
    where the CPU is the limit (3 figures)``; '' where all are noisy. ``limit``: what bounds a
    figure in both runs, "host" or "device".
    """
    times = steady_ratios(found, limit)
    if not times:
        return ""
    lowest, highest = times[0], times[-1]  # they are sorted
    shown = number(within(lowest, 0.01))  # three digits
    if highest.value != lowest.value:
        shown = f"{shown} to {number(within(highest, 0.01))}"
    # The origins of what is counted, by which the check of a page's numbers counts them again.
    origin = formed("count", *(ratio.origin for ratio in times))
    figures = count(len(times), "figure", origin)
    # Noisy ones are drawn beside them, so a reader who counts the rows must know.
    if any(pair.limit == limit and pair.ratio.status != "ok" for pair in found.pairs.values()):
        figures += " that are not noisy" if len(times) > 1 else " that is not noisy"
    return f"{shown} times as long where {_WHERE[limit]} ({figures})"


def version_changes_text(changes: Sequence[VersionChange]) -> str:
    """``nvidia-driver 580.1 → 590.2; torch 2.11 → 2.12``."""
    return "; ".join(_changed(change) for change in changes)


def _changed(change: VersionChange) -> str:
    """``torch 2.11 → 2.12``; ``method 1 → method 4``, since a bare number looks like a figure."""
    if change.name == MEASURING_METHOD:
        return f"method {change.before} → method {change.after}"
    return f"{change.name} {change.before} → {change.after}"
