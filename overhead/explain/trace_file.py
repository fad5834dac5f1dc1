"""``overhead explain --trace``: explain a step from traces that somebody recorded, one file for each rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from overhead.bounded_files import first_bytes, read_whole
from overhead.errors import BadFile
from overhead.explain.call_spec import FoundCall
from overhead.explain.chrome_trace import chrome_events, steps_of
from overhead.explain.explaining import explanation
from overhead.explain.host_work import BETWEEN, HostTimes
from overhead.explain.nsys_export import FIRST_BYTES, nsys_events
from overhead.explain.profiling import StepProfile
from overhead.explain.ranks import late_rank, rank_rows
from overhead.explain.record import NOT_IN_A_TRACE, Explanation
from overhead.explain.replay_file import save_replay
from overhead.explain.steps import StepSource
from overhead.explain.timing import CallTiming, Timing
from overhead.explain.trace import Trace
from overhead.reading.format import count
from overhead.results import Figure, Machine

_MOST_BYTES, _MOST_FILE_BYTES = 1 << 30, 8 << 30
"""Most bytes of JSON, decompressed, and of a database, of which only some tables are read."""
_NOT_KNOWN = Machine(id="0" * 12, cpu="not known", cores=0, memory_gib=0)
_GIVEN = "given by --step-ms"
_NOT_SEEN = "A trace does not show lines of the program, times without the profiler, or alternatives."


@dataclass(frozen=True)
class RecordedTrace:
    """A trace that was read. ``remarks``: what the reader must know of it, in sentences."""

    path: Path
    trace: Trace
    rank: str
    device: str
    remarks: Sequence[str]


def read_trace_file(path: Path) -> RecordedTrace:
    """The trace in a file: PyTorch's JSON, or a database of Nsight Systems. Raises ``BadFile``, one line."""
    is_database = first_bytes(path, len(FIRST_BYTES), _MOST_FILE_BYTES) == FIRST_BYTES
    events = nsys_events(path) if is_database else chrome_events(read_whole(path, _MOST_BYTES), str(path))
    steps = steps_of(events, str(path))
    remarks = []
    if not events.of["steps"]:
        remarks.append("No steps are marked (ProfilerStep#N, or NVTX ranges step N): all is one step.")
    if events.left_out:
        remarks.append(f"{count(events.left_out, 'event')} without valid times left out.")
    if events.other_processes:
        remarks.append(f"Only the process with most device work was read, not {events.other_processes} more.")
    if not events.of["work"]:
        raise BadFile(f"{path}: no device work in this trace; record the device too")
    if not any(step.device for step in steps):
        raise BadFile(f"{path}: no calls that launch the device work in this trace; record the host too")
    trace = Trace([step for step in steps if step.device])
    return RecordedTrace(path, trace, events.rank, events.device or "a device", remarks)


def explain_traces(paths: Sequence[Path], step_ms: float = 0.0, chrome: Path | None = None) -> Explanation:
    """Explain the step of the first trace, and compare the ranks if there are several traces.

    ``step_ms``: the time of a step without the profiler; 0 if it is not known. ``chrome``: a file to write, the
    replayed step for Perfetto. Raises ``BadFile``, one line.
    """
    read = [read_trace_file(path) for path in paths]
    first = read[0]
    found = _explained(first, 1e6 * step_ms)
    if chrome is not None:
        save_replay(chrome, first.trace.quiet(), HostTimes())
    if len(read) == 1:
        return found
    names = [each.rank or str(index) for index, each in enumerate(read)]
    if len(set(names)) < len(names):
        names = [f"{index}: {each.path.name}"[:200] for index, each in enumerate(read)]
    rows = rank_rows({name: each.trace for name, each in zip(names, read, strict=True)})
    said = [*found.verdict.sentences, f"The rest is rank {names[0]}'s.", late_rank(rows)]
    verdict = msgspec.structs.replace(found.verdict, sentences=said)
    return msgspec.structs.replace(found, ranks=rows, verdict=verdict)


def _explained(read: RecordedTrace, step_ns: float) -> Explanation:
    steps = count(len(read.trace.steps), "step")
    source = StepSource(setup="", file=read.path.name[:4000], function=steps)
    found = FoundCall(one_ns=0, waits=[], said="", api="", adapter=read.device)
    profile = StepProfile(found, "none", read.device, trace=read.trace, step_ns=step_ns, step_rule=_GIVEN)
    figures = [Figure(name="complete", value=step_ns, rule=_GIVEN)] if step_ns > 0 else []
    call = CallTiming(
        call="step", status="unavailable", reason=NOT_IN_A_TRACE, wait="", on=read.device, flags=[], figures=figures
    )
    result = explanation(source, profile, Timing(created="", setup="", machine=_NOT_KNOWN, versions={}, calls=[call]))
    operations = result.operations if any(row.name != BETWEEN for row in result.operations) else []
    seen = [each for each in result.not_seen if "profiled without CUPTI" not in each]
    return msgspec.structs.replace(result, operations=operations, not_seen=[_NOT_SEEN, *read.remarks, *seen])
