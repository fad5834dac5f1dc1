"""Further processes: which cases are measured in one more because they are noisy still."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from overhead.reduce import noisy
from overhead.runner.schedule import Task


def chosen(tasks: Sequence[Sequence[Task]], journals: Sequence[Path], seconds: float) -> list[list[Task]]:
    """What one more process of each of these tasks measures, by journal: what is noisy in any of them.

    Those nearest their target first, as many as fit so many seconds of sampling.
    """
    widths: dict[str, float] = {}
    for journal in journals:
        for key, width in noisy(journal).items():
            widths[key] = max(width, widths.get(key, 0.0))
    cost = {a.key: task.seconds / len(task.assignments) for own in tasks for task in own for a in task.own}
    taken: set[str] = set()
    for key in sorted(widths.keys() & cost.keys(), key=widths.__getitem__):
        if cost[key] <= seconds:
            seconds -= cost[key]
            taken.add(key)
    return [[one for task in own if (one := task.only(taken)).assignments] for own in tasks]
