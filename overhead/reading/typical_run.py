"""Where the costs of a run lie among those of the committed runs on other boards of its kind of
machine.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
from collections.abc import Iterable, Mapping

from overhead.reading.dispatch_costs import DispatchCosts, Kind, dispatch_costs
from overhead.reading.next_run import case_of, class_of, committed_table, kind_of
from overhead.reading.view import View, boards_of
from overhead.results import Origin, Record, Value, formed

LEAST_OTHER_BOARDS = 3
"""A cost that fewer other boards have is not placed among theirs. Chosen, not measured."""
_LEAST_COSTS = 5
"""Fewer costs tell nothing of a run. Chosen, not measured."""
_MOST = 0.75
"""A run is called fast or slow if this share of its costs lies beyond those of every other board.
The run ``nvidia-h100-stacks`` has 9 of 11 below all others, two runs of one board have 10 of 10 and
11 of 11 above; of the other committed H100 runs none has any.
"""


_SINGLE_DISPATCHES: tuple[Kind, ...] = ("python", "compiled")


@dataclasses.dataclass(frozen=True)
class Place:
    """Whether a run is a typical one of its kind of machine: where its costs lie among the same
    costs on other boards (GPUs), of committed runs. ``costs``: how many costs were placed, those of
    the headline figure that the CPU bounds.

    ``lowest``, ``highest``: how many lie below or above those of every other board. ``times``: the
    median, over these costs, of the other boards' median cost over the cost here. ``boards``: the
    number of other boards.
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


def drawn_records(costs: DispatchCosts) -> list[Record]:
    """The cases of the headline figure that a GPU ran: those whose costs on other boards the
    figure shows.
    """
    drawn = []
    for row in costs.rows:
        for kind in row.marks:
            record = row.records[kind]
            if record.api != "CPU" and not record.software:
                drawn.append(record)
    return drawn


def placed_records(costs: DispatchCosts) -> list[Record]:
    """The cases that tell how a run lies among others: the single dispatches of the headline
    figure, from Python and compiled code, whose cost the CPU of a machine with a GPU bounds.
    """
    bound_by_cpu = []
    for row in costs.rows:
        for kind in _SINGLE_DISPATCHES:
            if kind in row.marks:
                record = row.records[kind]
                # "host": the CPU bounds the cost. ``marks``: the row has a cost of this kind.
                if class_of(record) == "host" and not record.software:
                    bound_by_cpu.append(record)
    return bound_by_cpu


@dataclasses.dataclass(frozen=True)
class OtherBoards:
    """What a case costs on other boards (GPUs) of the same kind of machine. ``costs_us``: of the
    committed runs, by board, in microseconds.
    """

    costs_us: Mapping[str, float]

    @property
    def low_us(self) -> float:
        """The lowest cost on any of these boards."""
        return min(self.costs_us.values())

    @property
    def high_us(self) -> float:
        """The highest cost on any of these boards."""
        return max(self.costs_us.values())

    @property
    def median_us(self) -> float:
        """The median over the boards."""
        return statistics.median(self.costs_us.values())


def other_boards(view: View, record: Record) -> OtherBoards | None:
    """What the case costs in committed runs on other boards of the run's kind of machine; None
    where fewer than 3 other boards have it.
    """
    fingerprint = view.fingerprint
    # By case, the cost that each board had in committed runs of this kind of machine.
    committed = committed_table().costs.get(kind_of(fingerprint.machine), {})
    # A committed run of this very board would make the run look typical.
    own_boards = boards_of(fingerprint.records)
    costs_us = {}
    for board, cost_ns in committed.get(case_of(record), {}).items():
        if board not in own_boards:
            costs_us[board] = cost_ns / 1e3
    # Among fewer than 3 other boards a cost has no place.
    return OtherBoards(costs_us) if len(costs_us) >= LEAST_OTHER_BOARDS else None


def place_of(costs: DispatchCosts) -> Place | None:
    """Where the costs of this run lie among those that committed runs measured on other boards of
    its kind of machine; None where too few other boards have its costs.
    """
    # Over the costs: how many are the lowest or highest of all boards, and by what factor the other
    # boards' median is above this cost.
    lowest = 0
    highest = 0
    times: list[Value] = []
    boards: set[str] = set()
    placed: list[Origin] = []
    for record in placed_records(costs):
        cost = record.measured("complete")
        others = other_boards(costs.view, record)
        if cost is None or cost.value <= 0 or others is None:
            continue
        cost_us = cost.value / 1e3
        if cost_us < others.low_us:
            lowest += 1
        if cost_us > others.high_us:
            highest += 1
        # Above 1: the median of the other boards is dearer than this run. A pure ratio; its origin
        # says that the numerator is of other boards.
        origin_of_times = formed("times of other boards", cost.origin)
        times.append(Value(others.median_us / cost_us, origin=origin_of_times))
        # What a reader can trace the answer back to, and how many boards it rests on.
        if cost.origin is not None:
            placed.append(cost.origin)
        boards |= others.costs_us.keys()
    # Fewer than 5 costs tell nothing of a run.
    if len(times) < _LEAST_COSTS:
        return None
    # The middle of these factors is the place of the run.
    origin = formed("median", *(each.origin for each in times))
    median = Value(statistics.median(each.value for each in times), origin=origin)
    return Place(len(times), lowest, highest, median, len(boards), tuple(placed))


@dataclasses.dataclass(frozen=True)
class _Candidate:
    """A run whose place is known. ``stacks``: of the rows of the headline figure."""

    costs: DispatchCosts
    place: Place
    stacks: frozenset[str]

    @property
    def method_version(self) -> int:
        """The method that measured the run."""
        return self.costs.view.fingerprint.method_version

    @property
    def distance(self) -> float:
        """How far the costs lie from the median of the other boards, as a logarithm."""
        return abs(math.log(self.place.times.value))


def most_typical(runs: Iterable[View]) -> DispatchCosts | None:
    """Of several runs on one kind of machine, the one to show for all: the costs of the run that
    lies nearest to the median of the other boards.

    Only a run counts that has the headline stacks, which are those that at least half of these runs
    have, that was measured with the newest method of these runs, and without environment variables
    of its own where there is such a run. None where it is known of no run how it lies among others.
    """
    candidates = []
    for run in runs:
        candidate = _candidate(run)
        if candidate is not None:
            candidates.append(candidate)
    if not candidates:
        return None
    # In how many runs each stack is.
    runs_with: collections.Counter[str] = collections.Counter()
    for candidate in candidates:
        runs_with.update(candidate.stacks)
    # The stacks that at least half of these runs have.
    headline = {stack for stack, count in runs_with.items() if count >= len(candidates) / 2}
    # Runs with all of these; without any such run, all runs.
    with_headline = [each for each in candidates if headline <= each.stacks]
    whole = with_headline or candidates
    # A variable may change what is measured.
    plain_runs = [each for each in whole if not each.costs.view.fingerprint.environment]
    usual = plain_runs or whole
    newest = max(each.method_version for each in usual)
    by_newest = [each for each in usual if each.method_version == newest]
    # ``distance``: how far its costs lie from the median of the other boards, as a logarithm.
    return min(by_newest, key=lambda candidate: candidate.distance).costs


def is_published(run: View) -> bool:
    """Whether the run is of a board that the table of committed runs knows: published data, and not
    a user's own run.
    """
    known: set[str] = set()
    for by_board in committed_table().costs.get(kind_of(run.fingerprint.machine), {}).values():
        known |= by_board.keys()
    return not known.isdisjoint(boards_of(run.fingerprint.records))


def _candidate(run: View) -> _Candidate | None:
    """The run, with where its costs lie among those of other boards; None where that is not
    known.
    """
    costs = dispatch_costs(run)
    if costs is None:
        return None
    place = place_of(costs)
    if place is None:
        return None
    return _Candidate(costs, place, frozenset(row.stack for row in costs.rows))
