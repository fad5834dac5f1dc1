"""Further processes: which cases are measured in one more because they are noisy still."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from overhead.loading.reduce import noisy
from overhead.runner.schedule import Task

TIMES = 3.0
"""A case gets at most this many times the seconds that it had in a planned process."""


def widths(tasks: Sequence[Sequence[Task]], journals: Iterable[Path]) -> dict[str, float]:
    """The tasks' own cases that are noisy in any journal, by key, with their largest relative half-width."""
    among = {a.key for own in tasks for task in own for a in task.own}
    found: dict[str, float] = {}
    for journal in journals:
        for key, width in noisy(journal, among).items():
            found[key] = max(width, found.get(key, 0.0))
    return found


def chosen(tasks: Sequence[Sequence[Task]], noisy: Mapping[str, float], seconds: float) -> list[list[Task]]:
    """What one more process of each of these tasks measures, lane by lane: of the noisy cases, with their half-widths,
    those nearest their target first, as many as fit so many seconds of sampling; where few are left, each has more."""
    cost = {a.key: task.seconds / len(task.assignments) for own in tasks for task in own for a in task.own}
    taken: set[str] = set()
    spent = 0.0
    for key in sorted(noisy.keys() & cost.keys(), key=noisy.__getitem__):
        if spent + cost[key] <= seconds:
            spent += cost[key]
            taken.add(key)
    times = min(TIMES, seconds / spent) if spent and math.isfinite(seconds) else 1.0
    made = [[one for task in own if (one := task.only(taken)).assignments] for own in tasks]
    return [[dataclasses.replace(one, seconds=times * one.seconds) for one in own] for own in made]
