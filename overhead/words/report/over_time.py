"""The key figures of one machine from run to run, in words."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.reading.beside import Pair
from overhead.results import exactly
from overhead.words.format import TIMES, count, listed, number, whole
from overhead.words.key_figures import label, value_text

OVER_TIME_TITLE = "Key figures from run to run"
RUNS_TABLE_TITLE = "Key figures of each run"
VERSIONS_TITLE = "Versions that changed"
VERSIONS_COLUMNS = ("run", "changes since the run before")
FIGURE_COLUMN = "figure"
RATIO_COLUMN = "newest over first"
VERDICT_COLUMN = "more than run-to-run variation"
FIRST_TO_NEWEST = "first → newest:"
OVER_TIME_UNIT = "divided by the figure of the first run; left of 1: costs less"
OVER_TIME_CAPTION = (
    "A mark is a run, relative to the first run that has the figure. Blue area: the run-to-run"
    " range, which holds 9 of 10 runs. Red: outside of this range. Hollow: noisy, so not judged."
    " Rented machines of one kind can have different boards, so the board can be the cause of a"
    " change too."
)


def answer(shown: int, all_runs: int, newest: Sequence[Pair]) -> str:
    """The sentence that the section opens with: which figures of the newest run differ from the
    first by more than runs differ anyway.
    """
    if shown == all_runs:
        runs = count(shown, "run", exactly(shown).origin)
    else:
        runs = f"the newest {_whole(shown)} of {_whole(all_runs)} runs"
    outside = []
    for pair in newest:
        if pair.outside:
            outside.append(f"{label(pair.this)} ({number(pair.ratio)}{TIMES})")
    judged = sum(pair.band is not None for pair in newest)
    if not judged:
        return (
            f"Over {runs}, no key figure can be judged: the figures are noisy, or it is not known"
            " how much runs differ."
        )
    of_judged = count(judged, "key figure", exactly(judged).origin)
    known = f"the {of_judged} that can be judged"
    if not outside:
        return f"Over {runs}, none of {known} changed by more than run-to-run variation."
    return (
        f"Over {runs}, {_whole(len(outside))} of {known} changed by more than run-to-run variation:"
        f" {listed(outside)}."
    )


def _whole(number_of: int) -> str:
    return whole(number_of, exactly(number_of).origin)


def panel_title(first: str) -> str:
    """The title of the picture's panel. ``first``: the time of the first run."""
    return f"Relative to the run of {first}"


def from_first_to_newest(pair: Pair) -> str:
    """The values of the first and of the newest run, at the end of a row."""
    return f"{value_text(pair.other)} → {value_text(pair.this)}"


def verdict(pair: Pair) -> str:
    """Whether the newest run differs from the first by more than runs differ anyway."""
    if pair.band is None:
        return "not judged: noisy" if pair.ratio.status != "ok" else "not known"
    return "yes" if pair.outside else "no"
