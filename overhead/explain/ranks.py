"""Who waits for whom in the traces of several ranks. Pure. Clocks of different machines are not compared.

In a collective every rank waits for the last one. So the kernel of the rank that arrives last is the shortest.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from overhead.explain.host_work import HostTimes
from overhead.explain.record import RankRow
from overhead.explain.replay import step_parts
from overhead.explain.trace import Trace, busy_ns
from overhead.reading.format import micro_of, percent, plain

_COLLECTIVE = re.compile(r"(?:nccl|rccl)(?!.*send_?recv)", re.I)
"""Kernels of collectives. Those between two ranks are left out: the other ranks have no part in them."""
_SMALL, _MOST = 0.05, 2 / 3
"""A rank is named if the others wait for a 20th of a step or more, two thirds of it for this rank."""
_Key = tuple[int, str, int]


def rank_rows(traces: Mapping[str, Trace]) -> list[RankRow]:
    """A row for each rank. ``traces``: by the name of the rank."""
    spans = {rank: _collectives(trace) for rank, trace in traces.items()}
    shared = set.intersection(*map(set, spans.values()))
    shortest = {key: min(each[key] for each in spans.values()) for key in shared}
    found = []
    for rank, trace in traces.items():
        parts, own = step_parts(trace.quiet(), HostTimes()), spans[rank]
        compute = [busy_ns(work for work in step.device if not _COLLECTIVE.match(work.name)) for step in trace.steps]
        found.append(
            RankRow(
                rank=rank,
                step_ns=parts.step,
                host_ns=parts.host,
                device_ns=parts.device,
                compute_ns=statistics.median(compute),
                waits_ns=sum(own[key] - shortest[key] for key in shared) / len(trace.steps) if shared else None,
                last_share=sum(own[key] == shortest[key] for key in shared) / len(shared) if shared else None,
            )
        )
    return found


def _collectives(trace: Trace) -> dict[_Key, float]:
    """How long each collective takes: by its step, its kernel, and its number among these."""
    found, seen = {}, defaultdict[int, Counter[str]](Counter)
    for index, step in enumerate(trace.steps):
        for work in step.device:
            if _COLLECTIVE.match(work.name):
                name = work.name.partition("(")[0]
                found[index, name, seen[index][name]] = work.end - work.start
                seen[index][name] += 1
    return found


def late_rank(rows: Sequence[RankRow]) -> str:
    """A sentence: which rank the others wait for, and whether its host or its device is slower; or that none is."""
    if any(row.waits_ns is None or row.last_share is None for row in rows):
        return "No collective is in all traces: who waits for whom is not known."
    late = max(rows, key=lambda row: row.last_share or 0.0)
    others = [row for row in rows if row is not late]
    waits = statistics.median(row.waits_ns or 0.0 for row in others)
    if (late.last_share or 0.0) < _MOST or waits < _SMALL * late.step_ns:
        return "No rank is clearly late."
    more = {
        side: getattr(late, f"{side}_ns") - statistics.median(getattr(row, f"{side}_ns") for row in others)
        for side in ("host", "compute")
    }
    side, other = sorted(more, key=lambda each: -more[each])
    said = (
        f"Rank {plain(late.rank, 30)} is late: last in {percent(late.last_share or 0.0)} of the collectives. "
        f"The others wait {micro_of(waits)} µs a step. "
    )
    if more[side] < waits / 2 or more[other] > more[side] / 2:
        return f"{said}Neither its host nor its device alone explains this."
    return f"{said}Its {'host' if side == 'host' else 'device'} works {micro_of(more[side])} µs longer than theirs."
