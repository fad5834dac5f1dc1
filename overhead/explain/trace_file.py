"""``overhead explain --trace``: explain a step from traces that somebody recorded, one file for each rank.

In a collective every rank waits for the last one. So the kernel of the rank that arrives last is the shortest. Clocks
of different machines are not compared.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np

from overhead.bounded_files import read_whole
from overhead.errors import BadFile
from overhead.explain.call_spec import FoundCall
from overhead.explain.chrome_trace import MOST_TRACE_BYTES, read_chrome_trace
from overhead.explain.explaining import explanation
from overhead.explain.host_work import HostTimes, ProfilerCost
from overhead.explain.nsys_export import read_nsys_export
from overhead.explain.profiling import StepProfile
from overhead.explain.record import NOT_IN_A_TRACE, Explanation, RankRow
from overhead.explain.replay import save_replay, step_parts
from overhead.explain.steps import StepSource
from overhead.explain.timing import Timing, untimed
from overhead.explain.trace import Trace, busy_ns
from overhead.explain.verdict import WITHIN
from overhead.reading.format import count, micro_of, percent, plain
from overhead.results import Figure, Machine

_NOT_KNOWN = Machine(id="0" * 12, cpu="not known", cores=0, memory_gib=0)
_NOT_SEEN = "A trace does not show lines of the program, times without the profiler, or alternatives."
_COLLECTIVE = re.compile(r"(?:nccl|rccl)(?!.*send_?recv)", re.I)
"""Kernels of collectives. Those between two ranks are left out: the other ranks have no part in them."""
_MOST_COST_NS = 5000.0
"""The most that a profiler costs an operation."""
_SMALL, _MOST = 0.05, 2 / 3
"""A rank is named if the others wait for a 20th of a step or more, two thirds of it for this rank."""


def read_trace_file(path: Path) -> Trace:
    """The steps with device work in PyTorch's JSON or in a database of Nsight Systems. Raises ``BadFile``, one line."""
    is_json = path.suffix in (".json", ".gz")
    trace = read_chrome_trace(read_whole(path, MOST_TRACE_BYTES), str(path)) if is_json else read_nsys_export(path)
    steps = [step for step in trace.steps if step.device]
    if not steps:
        raise BadFile(f"{path}: no device work in this trace that a call launched; record both host and device")
    return Trace(steps, trace.device or "a device", trace.rank or path.name[:200], trace.processes)


def explain_traces(paths: Sequence[Path], step_ms: float = 0.0, chrome: Path | None = None) -> Explanation:
    """Explain the step of the first trace, and compare the ranks if there are several traces.

    ``step_ms``: the time of a step without the profiler; 0 if it is not known. ``chrome``: a file to write, the
    replayed step for Perfetto. Raises ``BadFile``, one line.
    """
    traces = [read_trace_file(path) for path in paths]
    trace, given = traces[0], "given by --step-ms" if step_ms else ""
    host = host_times(trace, 1e6 * step_ms)
    source = StepSource(setup="", file=paths[0].name, function=count(len(trace.steps), "step"))
    tried = FoundCall(one_ns=0, waits=[], said="", api="", adapter=trace.device)
    profile = StepProfile(tried, "none", trace.device, trace=trace, host=host, step_ns=1e6 * step_ms, step_rule=given)
    figures = [Figure(name="complete", value=1e6 * step_ms, rule=given)] if given else []
    call = untimed(tried, NOT_IN_A_TRACE, figures)
    found = explanation(source, profile, Timing(created="", setup="", machine=_NOT_KNOWN, versions={}, calls=[call]))
    others = [f"Only one process was read, of {trace.processes} with device work."] if trace.processes > 1 else []
    found = msgspec.structs.replace(found, not_seen=[_NOT_SEEN, *others, *found.not_seen])
    if host.cost.operation_ns:
        found.verdict.sentences.append(
            f"The profiler's cost is set to {micro_of(host.cost.operation_ns)} µs an operation: then the replay takes "
            "as long as --step-ms says, which so does not check it."
        )
    if chrome is not None:
        save_replay(chrome, trace.quiet(), host)
    if len(traces) == 1:
        return found
    rows = rank_rows(traces)
    said = [*found.verdict.sentences, f"The rest is rank {rows[0].rank}'s.", late_rank(rows)]
    verdict = msgspec.structs.replace(found.verdict, sentences=said)
    return msgspec.structs.replace(found, ranks=rows, verdict=verdict)


def host_times(trace: Trace, step_ns: float) -> HostTimes:
    """The times of the host. If the replay takes longer than ``step_ns``, a cost of the profiler is subtracted.

    ``step_ns``: a step without a profiler; 0 if it is not known.
    """
    from scipy.optimize import brentq

    quiet = trace.quiet()

    def beyond(cost_ns: float) -> float:
        return step_parts(quiet, HostTimes(cost=ProfilerCost(cost_ns))).step - step_ns

    if not step_ns or beyond(0.0) <= WITHIN * step_ns or beyond(_MOST_COST_NS) > 0:
        return HostTimes()
    return HostTimes(cost=ProfilerCost(float(brentq(beyond, 0.0, _MOST_COST_NS, xtol=10.0))))


def rank_rows(traces: Sequence[Trace]) -> list[RankRow]:
    """A row for each rank."""
    spans = [_collectives(trace) for trace in traces]
    shared = set.intersection(*map(set, spans))
    times = np.array([[own[key] for key in shared] for own in spans])
    beyond = times - times.min(axis=0)
    rows = []
    for trace, waits in zip(traces, beyond, strict=True):
        parts = step_parts(trace.quiet(), HostTimes())
        device = [busy_ns(work for work in step.device if not _COLLECTIVE.match(work.name)) for step in trace.steps]
        rows.append(
            RankRow(
                rank=trace.rank,
                step_ns=parts.step,
                host_ns=parts.host,
                device_ns=statistics.median(device),
                waits_ns=float(waits.sum()) / len(trace.steps),
                last_share=float((waits == 0).sum()) / max(1, len(shared)),
            )
        )
    return rows


def _collectives(trace: Trace) -> Mapping[tuple[int, str, int], float]:
    """How long each collective takes: by its step, its kernel, and its number among these."""
    found, seen = {}, Counter[tuple[int, str]]()
    for index, step in enumerate(trace.steps):
        for work in step.device:
            if _COLLECTIVE.match(work.name):
                kind = index, work.name.partition("(")[0]
                found[*kind, seen[kind]] = work.end - work.start
                seen[kind] += 1
    return found


def late_rank(rows: Sequence[RankRow]) -> str:
    """A sentence: which rank the others wait for, and how much longer its host and its device work; or that none is."""
    late = max(rows, key=lambda row: row.last_share)
    others = [row for row in rows if row is not late]
    waits = statistics.median(row.waits_ns for row in others)
    if late.last_share < _MOST or waits < _SMALL * late.step_ns:
        return "No rank is clearly late in the collectives that are in all traces."
    host = late.host_ns - statistics.median(row.host_ns for row in others)
    device = late.device_ns - statistics.median(row.device_ns for row in others)
    return (
        f"Rank {plain(late.rank, 30)} is late: last in {percent(late.last_share)} of the collectives. The others wait "
        f"{micro_of(waits)} µs a step. Its host works {micro_of(host)} µs longer than theirs, its device "
        f"{micro_of(device)} µs."
    )
