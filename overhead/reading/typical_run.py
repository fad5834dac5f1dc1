"""Where the costs of a run lie among those of the committed runs on other boards of its kind of
machine.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
from collections.abc import Iterable

from overhead.reading.dispatch_costs import DispatchCosts, dispatch_costs
from overhead.reading.next_run import case_of, class_of, committed_table, kind_of
from overhead.reading.view import View, boards_of
from overhead.results import Origin, Record, Value, formed

LEAST_OTHER_BOARDS = 3
"""A cost that fewer other boards have is not placed among theirs."""
_LEAST_COSTS = 5
"""Fewer costs tell nothing of a run."""
_MOST = 0.75
"""A run is called fast or slow if this share of its costs lies beyond those of every other board.
The run ``nvidia-h100-stacks`` has 9 of 11 below all others, two runs of one board have 10 of 10 and
11 of 11 above; of the other committed H100 runs none has any.
"""


@dataclasses.dataclass(frozen=True)
class Place:
    """The CPU-bound costs of the headline figure (``costs``) among those of other boards.

    ``lowest``, ``highest``: how many lie below or above those of every other board. ``times``: the
    median over the costs of the other boards' median over the cost here. ``boards``: the number of
    other boards.
    """

    costs: int
    lowest: int
    highest: int
    times: Value
    boards: int
    counted: tuple[Origin, ...] = ()
    """Of each cost that is placed."""

    @property
    def is_fast(self) -> bool:
        """Whether so many of the costs lie below those of every other board that the run is no
        typical one.
        """
        return self.lowest >= _MOST * self.costs

    @property
    def is_slow(self) -> bool:
        """Whether so many of the costs lie above those of every other board that the run is no
        typical one.
        """
        return self.highest >= _MOST * self.costs


def placed_records(costs: DispatchCosts) -> list[Record]:
    """The records of single dispatches in the headline figure that the CPU bounds, from Python and
    compiled code.
    """
    single = [
        row.records[kind]
        for row in costs.rows
        for kind in ("python", "compiled")
        if kind in row.marks
    ]
    return [record for record in single if class_of(record) == "host" and not record.software]


def place_of(costs: DispatchCosts) -> Place | None:
    """The place of this run; None where too few other boards of its kind have its costs."""
    committed = committed_table().costs.get(kind_of(costs.view.fingerprint.machine), {})
    own_boards = boards_of(costs.view.fingerprint.records)
    lowest = highest = 0
    times: list[Value] = []
    boards: set[str] = set()
    placed: list[Origin | None] = []
    for record in placed_records(costs):
        found = record.measured("complete")
        by_board = committed.get(case_of(record), {})
        others = {board: cost for board, cost in by_board.items() if board not in own_boards}
        if found is None or found.value <= 0 or len(others) < LEAST_OTHER_BOARDS:
            continue
        lowest += found.value < min(others.values())
        highest += found.value > max(others.values())
        origin = formed("times of other boards", found.origin)
        times.append(Value(statistics.median(others.values()) / found.value, origin=origin))
        placed.append(found.origin)
        boards |= others.keys()
    if len(times) < _LEAST_COSTS:
        return None
    origin = formed("median", *(one.origin for one in times))
    median = Value(statistics.median(one.value for one in times), origin=origin)
    counted = tuple(one for one in placed if one is not None)
    return Place(len(times), lowest, highest, median, len(boards), counted)


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A run whose place is known. ``stacks``: of the rows of the headline figure."""

    costs: DispatchCosts
    place: Place
    stacks: frozenset[str]

    @property
    def distance(self) -> float:
        """How far the costs lie from the median of the other boards, as a logarithm."""
        return abs(math.log(self.place.times.value))


def most_typical(runs: Iterable[View]) -> DispatchCosts | None:
    """The costs of that run, of some on one kind of machine, which lies nearest to the median of
    the other boards.

    Only a run counts that has the headline stacks, which are those that at least half of these runs
    have, and that was measured with the newest method of these runs. None where the place of no run
    is known.
    """
    candidates = [one for run in runs if (one := _candidate(run)) is not None]
    if not candidates:
        return None
    runs_with = collections.Counter(stack for one in candidates for stack in one.stacks)
    headline = {stack for stack, count in runs_with.items() if count >= len(candidates) / 2}
    whole = [one for one in candidates if headline <= one.stacks] or candidates
    newest = max(one.costs.view.fingerprint.method_version for one in whole)
    by_newest = [one for one in whole if one.costs.view.fingerprint.method_version == newest]
    return min(by_newest, key=lambda one: one.distance).costs


def _candidate(run: View) -> _Candidate | None:
    costs = dispatch_costs(run)
    place = place_of(costs) if costs is not None else None
    if costs is None or place is None:
        return None
    return _Candidate(costs, place, frozenset(row.stack for row in costs.rows))
