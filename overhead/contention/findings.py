"""Rules on several processes or threads that do less together than one of them alone."""

from __future__ import annotations

from dataclasses import dataclass

from overhead.contention.rows import LEAST_WORK, RatioAt, losses, rows_of
from overhead.reading.findings import Finding, rule
from overhead.reading.view import View
from overhead.results import Value, Way


@dataclass(frozen=True)
class DoLessTogether:
    """Cases in which all together surely do less than ``below`` times as much as one alone, the
    worst first.

    ``processes``: for threads, the work of as many processes through the worst one's stack, where
    these surely do more than one alone in the same run.
    """

    way: Way
    below: float
    losses: tuple[RatioAt, ...]
    processes: Value | None = None


@rule("threads-together")
def launching_threads(view: View) -> Finding | None:
    """Advise one launching thread where several together surely do less than 0.8 times as much as
    one; else None.
    """
    return _finding(view, "threads")


@rule("processes-together")
def sharing_processes(view: View) -> Finding | None:
    """Advise a process a device where several on one surely do less than 0.9 times as much as one;
    else None.
    """
    return _finding(view, "processes")


def _finding(view: View, way: Way) -> Finding | None:
    """The finding that several peers of this way (threads, or processes) do less together than one
    alone, with the cases in which they do; None without any. How many times less the worst one does
    decides its place among the findings.
    """
    # One alone is advised where all together do less than so many times as much as one.
    below = LEAST_WORK[way]
    losing = losses(way, rows_of(view, way), below)
    if not losing:
        return None
    # The worst comes first. Of threads it is told what processes do in the same case.
    worst = losing[0]
    processes = _work_of_processes(view, worst) if way == "threads" else None
    keys = tuple(loss.row.records[loss.peers].key for loss in losing)
    fact = DoLessTogether(way, below, tuple(losing), processes)
    return Finding(fact, 1 / worst.ratio.value, keys)


def _work_of_processes(view: View, like: RatioAt) -> Value | None:
    """What as many processes do in the same case as these threads, relative to one alone: if that
    is surely more, they are what to use instead. Else None.
    """
    # ``resolved``: by the number of peers, values that are ``ok`` with an interval above zero.
    for row in rows_of(view, "processes"):
        if row.first.key != like.row.first.key:
            continue
        work = row.resolved("work").get(like.peers)
        if work is not None and work.floor > 1:
            return work
    return None
