"""A rule on how figures are measured: what a stopwatch around one launch shows."""

from __future__ import annotations

import dataclasses

from overhead.reading.dispatch_costs import dispatch_costs
from overhead.reading.findings import Finding, rule
from overhead.reading.headline import Overstated, most_overstated
from overhead.reading.view import View


@dataclasses.dataclass(frozen=True)
class SingleShotOverstates:
    """The time of one launch with its wait is so many times the cost of one more launch."""

    most: Overstated


@rule("single-shot", "figures", place=2, page="synchronisation")
def single_shot(view: View) -> Finding | None:
    """Warn of the time of a single launch where it surely overstates the cost of a launch."""
    costs = view.once(dispatch_costs)
    most = most_overstated(costs) if costs is not None and costs.hardware else None
    if most is None:
        return None
    return Finding(SingleShotOverstates(most), 1.0, (most.record.key,))
