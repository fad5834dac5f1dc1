"""Where a run lies among the committed runs of its kind of machine, in words."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.typical_run import Place, place_of
from overhead.results import formed
from overhead.words.format import count, number, whole, within

_NEAREST = (
    "Of the published runs on this kind of machine with the usual stacks, this one lies nearest to"
    " the median"
)


def place_sentence(costs: DispatchCosts, *, is_chosen: bool = False) -> str:
    """Where this run lies among the committed runs of its kind of machine; '' where that is not
    known. ``is_chosen``: it was chosen as the most typical of published runs.
    """
    place = place_of(costs)
    return _sentence(place, is_chosen) if place is not None else ""


def _sentence(place: Place, is_chosen: bool) -> str:
    """Whether this run is fast, slow or typical beside the published runs on boards of its kind: in
    how many of its CPU-bound costs it lies outside of theirs, and how they compare in the median.

    ``place``: how many of the costs are lower and higher than in all those runs.
    """
    # The origins of the costs, by which the check of the page's numbers counts them again.
    counted = place.counted
    boards = count(place.boards, "other board", formed("boards", *counted))
    costs = whole(place.costs, formed("count", *counted))
    times = number(within(place.times, 0.01))  # three digits
    median = f"In the median, the other boards take {times} times as long."
    # ``lowest``: how many costs lie below those of all other boards; ``highest``: above them.
    if not place.lowest and not place.highest:
        if is_chosen:
            within_all = f"all {costs} of its CPU-bound costs lie within the range of {boards}"
            return f"{_NEAREST}: {within_all}. {median}"
        return (
            f"This run is typical: all {costs} of its CPU-bound costs lie within the range of"
            f" published runs on {boards} of this kind. {median}"
        )

    # A run that is slow in most costs is told by these alone, even if a few are low; a fast one
    # likewise.
    outside = []
    if place.lowest and not place.is_slow:
        lowest = whole(place.lowest, formed("below other boards", *counted))
        outside.append(f"{lowest} of its {costs} CPU-bound costs are lower")
    if place.highest and not place.is_fast:
        highest = whole(place.highest, formed("above other boards", *counted))
        outside.append(f"{highest} of its {costs} CPU-bound costs are higher")
    run = f"{_NEAREST}. It" if is_chosen else "This run"
    # _speed(): "fast", "slow" or "typical".
    return (
        f"{run} is {_speed(place)}: {', and '.join(outside)} than in all published runs on"
        f" {boards} of this kind. {median}"
    )


def _speed(place: Place) -> str:
    if place.is_fast:
        return "fast"
    return "slow" if place.is_slow else "typical"
