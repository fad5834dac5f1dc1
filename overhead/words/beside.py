"""How this run compares with another, in words."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.beside import Apart, Beside, VersionChange, steady_ratios
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
    """How the figures of the host and of the device compare with those of the run ``name``, and
    what is outside.
    """
    said = " and ".join(filter(None, (_range(found, limit) for limit in _WHERE)))
    over = [pair for pair in found.pairs.values() if pair.outside]
    outside = [f"{label(pair.this)} ({number(within(pair.ratio, 0.01))} times)" for pair in over]
    beyond = (
        f" These figures differ by more than run-to-run variation: {'; '.join(outside)}."
        if outside
        else ""
    )
    compared = f"takes {said}" if said else "has no cost in common that is not noisy"
    return f"Compared with {name}, this machine {compared}.{beyond}"


def _range(found: Beside, limit: str) -> str:
    """``0.97 to 1.3 times as long where the host is the limit (3 figures)``; '' where all are
    noisy.
    """
    times = steady_ratios(found, limit)
    if not times:
        return ""
    ends = [times[0]] if times[0].value == times[-1].value else [times[0], times[-1]]
    shown = " to ".join(number(within(end, 0.01)) for end in ends)
    number_of = count(len(times), "figure", formed("count", *(one.origin for one in times)))
    return f"{shown} times as long where {_WHERE[limit]} ({number_of})"


def version_changes_text(changes: Sequence[VersionChange]) -> str:
    """``nvidia-driver 580.1 → 590.2; torch 2.11 → 2.12``."""
    return "; ".join(f"{change.name} {change.before} → {change.after}" for change in changes)
