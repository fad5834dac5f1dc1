"""Where a run lies among the committed runs of its kind of machine, in words."""

from __future__ import annotations

from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.typical_run import Place, place_of
from overhead.results import formed
from overhead.words.format import count, number, whole, within


def place_sentence(costs: DispatchCosts) -> str:
    """Where this run lies among the committed runs of its kind of machine; '' where that is not
    known.
    """
    place = place_of(costs)
    return _sentence(place) if place is not None else ""


def _sentence(place: Place) -> str:
    boards = count(place.boards, "other board", formed("boards", *place.counted))
    others = f"the published runs on {boards} of this kind"
    costs = whole(place.costs, formed("count", *place.counted))
    median = (
        f"In the median, the other runs take {number(within(place.times, 0.01))} times as long as"
        " this run."
    )
    if not place.lowest and not place.highest:
        return f"All {costs} CPU-bound costs of this run lie within the range of {others}. {median}"
    said = []
    if place.lowest and not place.is_slow:
        lowest = whole(place.lowest, formed("below other boards", *place.counted))
        said.append(f"{lowest} of its {costs} CPU-bound costs are lower than in all those runs")
    if place.highest and not place.is_fast:
        highest = whole(place.highest, formed("above other boards", *place.counted))
        said.append(f"{highest} of its {costs} CPU-bound costs are higher than in all those runs")
    how = "faster than" if place.is_fast else "slower than" if place.is_slow else "about as fast as"
    return f"This run is {how} {others}: {', and '.join(said)}. {median}"
