"""Where a run lies among the committed runs of its kind of machine, in words."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.typical_run import Place, place_of
from overhead.results import formed
from overhead.words.format import count, number, whole, within


def place_sentence(costs: DispatchCosts) -> str:
    """Where this run lies among the committed runs of its kind of machine; '' where that is not known."""
    place = place_of(costs)
    return _sentence(place) if place is not None else ""


def _sentence(place: Place) -> str:
    boards = count(place.boards, "other board", formed("boards", *place.counted))
    others = f"the committed runs on {boards} of this kind"
    costs = whole(place.costs, formed("count", *place.counted))
    lowest = whole(place.lowest, formed("below other boards", *place.counted))
    highest = whole(place.highest, formed("above other boards", *place.counted))
    below = f"{lowest} of its {costs} CPU-bound costs are lower than all of theirs"
    above = f"{highest} of its {costs} CPU-bound costs are higher than all of theirs"
    if place.is_fast:
        where = f"This run is faster than {others}: {below}"
    elif place.is_slow:
        where = f"This run is slower than {others}: {above}"
    else:
        where = f"This run is like {others}: {below}, and {above}"
    return f"{where}. The others take {number(within(place.times, 0.01))} times as long (median)."
