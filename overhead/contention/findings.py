"""Rules on several processes or threads that do less together than one of them alone."""

from __future__ import annotations

from overhead.contention.show import PEER_WORDS, losses, rows_of
from overhead.reading.findings import Finding, OwnWords, rule
from overhead.reading.format import factor_spread, number
from overhead.reading.view import View
from overhead.results import Way


@rule("threads-together")
def launching_threads(view: View) -> Finding | None:
    """Advise one launching thread where several together surely do less than 0.8 times as much as one; else None."""
    return _finding(view, "threads", "The threads share one context; each runs its own chain.")


@rule("processes-together")
def sharing_processes(view: View) -> Finding | None:
    """Advise a process a device where several on one surely do less than 0.9 times as much as one; else None."""
    return _finding(view, "processes", "It applies where every process keeps the device or its driver busy.")


def _finding(view: View, way: Way, condition: str) -> Finding | None:
    """The finding on the rows that lose: the worst in the title, all with their intervals, the condition.

    For threads it names processes too where these surely do more than one alone in the same run.
    """
    bound = PEER_WORDS[way].least
    if not (found := losses(way, rows_of(view, way), bound)):
        return None
    worst, peers, work = found[0]
    processes = [row for row in rows_of(view, "processes") if row.first.key == worst.first.key]
    ratios = [ratio for row in processes if (ratio := row.resolved("work").get(peers)) is not None and ratio.floor > 1]
    better = ratios[0] if way == "threads" and ratios else None
    advice = f"Use {PEER_WORDS[way].advice}{', or processes' if better else ''}"
    said = [f"{row.name} {row.called}, {k} {way}: {factor_spread(ratio)}" for row, k, ratio in found]
    said += [f"{peers} processes through {worst.name}: {factor_spread(better)}"] if better else []
    title = f"{advice}: {peers} {way} together do {number(work)} times as much as one alone through {worst.name}"
    condition = f"Named where the whole interval is below {bound:g}. {condition}"
    keys = tuple(row.records[k].key for row, k, _ in found)
    own = OwnWords(f"{title}, {worst.called}.", f"{'; '.join(said)}. {condition}")
    return Finding(own, 1 / work.value, keys)
