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
    below = LEAST_WORK[way]
    found = losses(way, rows_of(view, way), below)
    if not found:
        return None
    processes = _work_of_processes(view, found[0]) if way == "threads" else None
    keys = tuple(one.row.records[one.peers].key for one in found)
    return Finding(
        DoLessTogether(way, below, tuple(found), processes), 1 / found[0].ratio.value, keys
    )


def _work_of_processes(view: View, like: RatioAt) -> Value | None:
    """The work of as many processes in the same case; None where they do not surely do more than
    one alone.
    """
    for row in rows_of(view, "processes"):
        work = row.resolved("work").get(like.peers)
        if row.first.key == like.row.first.key and work is not None and work.floor > 1:
            return work
    return None
