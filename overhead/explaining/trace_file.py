"""``overhead explain --trace``: explain a step from traces that somebody recorded, one file for
each rank.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from overhead.errors import UsageError
from overhead.explaining.explaining import explanation
from overhead.explaining.export import save_replay
from overhead.explaining.host_work import HostTimes, ProfilerCost
from overhead.explaining.profiling import StepProfile
from overhead.explaining.ranks import RankComparison, compare_ranks, rank_reasons, same_ranks
from overhead.explaining.record import (
    NOT_IN_A_TRACE,
    UNKNOWN_MACHINE,
    Explanation,
    StepVerdict,
    missing,
)
from overhead.explaining.replay import StepParts, mean_parts, step_parts
from overhead.explaining.verdict import UNCHECKED, WITHIN, bound_of
from overhead.loading.outputs import same_file
from overhead.numerics import find_root
from overhead.reading.plain_text import plain
from overhead.results import Figure, Machine, Reason, Why, because, together
from overhead.timing.call_spec import FoundCall
from overhead.timing.steps import StepSource
from overhead.timing.timing import Timing, untimed
from overhead.traces.doubts import working_threads
from overhead.traces.formats import read_trace_file
from overhead.traces.recording import caveats, left_out, why_no_verdict
from overhead.traces.trace import DeviceWork, StepTrace, Trace, busy_by_device, busy_ns

_NOT_KNOWN = Machine(id=UNKNOWN_MACHINE, cpu="unknown", cores=0, memory_gib=0)
_MOST_COST_NS = 5000.0
"""The most that a profiler costs an operation."""
_LITTLE = 0.1
"""A call of the runtime, or collectives, are named from this share of a step on, as operations
are.
"""
_FEW_STEPS = 3
"""Of more steps than these the first one does not count where steps are compared."""
_APART = 1.3
"""Steps differ if the ratio of host to device differs by this factor, as a gain that is named."""
_MOST_SENTENCES, _MOST_DEVICES = 20, 32
"""What the file of an explanation can hold."""


def explain_traces(
    paths: Sequence[Path], step_ms: float = 0.0, chrome: Path | None = None
) -> Explanation:
    """Explain the step of the first trace, and compare the ranks if there are several traces.

    ``step_ms``: the time of a step without the profiler; 0 if it is not known. ``chrome``: a file
    to write, the replayed step for Perfetto. Raises ``UsageError``, one line.
    """
    _check_different(paths)
    traces = [read_trace_file(path) for path in paths]
    if rank := same_ranks(traces):
        raise UsageError(
            f"two of these traces are of rank {plain(rank, 60)}; give one of each rank"
        )
    traces = _with_names(traces, paths)
    trace, given = traces[0], because("given-by-step-ms") if step_ms else ""
    if chrome is not None and not trace.has_device:
        raise UsageError(f"{chrome}: no replay to write: {paths[0].name} has no work on a device")
    host = host_times(trace, 1e6 * step_ms)
    source = StepSource(setup="", file=paths[0].name, function=_steps(len(trace.steps)))
    tried = FoundCall(one_ns=0, waits=[], said="", api="", adapter=trace.device)
    profile = StepProfile(
        tried, "none", trace.device, trace=trace, host=host, step_ns=1e6 * step_ms, step_rule=given
    )
    figures = [Figure(name="complete", value=1e6 * step_ms, rule=given)] if given else []
    call = untimed(tried, NOT_IN_A_TRACE, figures)
    found = explanation(
        source, profile, Timing(created="", setup="", machine=_NOT_KNOWN, versions={}, calls=[call])
    )
    ranks = compare_ranks(traces) if len(traces) > 1 else None
    lost = [
        because("recording-of-rank", rank=each.rank, why=why)
        for each in traces
        if (why := why_no_verdict(each.recording))
    ]
    found = msgspec.structs.replace(
        found,
        not_seen=[because("not-in-any-trace"), *_not_read(trace), *found.not_seen],
        verdict=_verdict(found, trace, host, ranks, lost),
        ranks=list(ranks.rows) if ranks else [],
    )
    if not trace.recording.memory_recorded:
        unknown = missing("allocations", because("allocations-unknown"), "count")
        found = msgspec.structs.replace(
            found, per_step=msgspec.structs.replace(found.per_step, allocations=unknown)
        )
    if chrome is not None:
        save_replay(chrome, trace.quiet(), host)
    return found


def _steps(number: int) -> str:
    """What stands in place of the name of a function, which a trace does not have."""
    return "1 step" if number == 1 else f"{number:,} steps"


def _check_different(paths: Sequence[Path]) -> None:
    """Raise ``UsageError`` for a file that is given twice, also as a copy: it would be compared
    with itself.
    """
    for index, path in enumerate(paths):
        for other in paths[:index]:
            if same_file(path, other):
                raise UsageError(
                    f"{path}: given twice, also as {other}; give one trace of each rank"
                )
    if len(paths) < 2:
        return
    contents: dict[bytes, Path] = {}
    for path in paths:
        if not path.is_file():
            continue  # reading it says why
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        if digest in contents:
            raise UsageError(
                f"{path}: the same content as {contents[digest]}; give one trace of each rank"
            )
        contents[digest] = path


def _with_names(traces: Sequence[Trace], paths: Sequence[Path]) -> list[Trace]:
    """The traces, each with a name of its rank: its file, with the folder where files have one
    name.
    """
    names = Counter(path.name for path in paths)
    files = [
        path.name if names[path.name] == 1 else f"{path.resolve().parent.name}/{path.name}"
        for path in paths
    ]
    return [
        dataclasses.replace(trace, rank=trace.rank or file[:200])
        for trace, file in zip(traces, files, strict=True)
    ]


def _not_read(trace: Trace) -> list[Reason]:
    said = []
    if trace.processes > 1:
        said.append(because("one-process-read", processes=trace.processes))
    if not trace.recording.memory_recorded:
        said.append(because("allocations-not-recorded"))
    return [*left_out(trace.recording), *said]


def _verdict(
    found: Explanation,
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
    lost_by_rank: Sequence[Reason],
) -> StepVerdict:
    """The verdict with what the recording allows to say, and what a reader must know first.

    ``lost_by_rank``: why a rank's recording allows none.
    """
    verdict = found.verdict
    shown_ns = sum(step.end - step.start for step in trace.steps)
    first: list[Why] = [*caveats(trace.recording, shown_ns)]
    if ranks is not None and len(ranks.rows) < trace.ranks:
        first.append(because("traces-of-some-ranks", given=len(ranks.rows), ranks=trace.ranks))
    said = list(verdict.sentences)
    if lost := why_no_verdict(trace.recording):
        verdict = StepVerdict(kind="unclear", overhead_share=None, sentences=[])
        first = [because("no-verdict", why=lost), *first, because("times-of-what-was-recorded")]
        said = []
    elif not trace.has_device:
        said = _on_processor_only(found, said)
    elif verdict.kind != "unclear":
        why = _other_steps(trace, host) or _calls_without_work(verdict, trace)
        if why is not None:
            verdict, said = StepVerdict(kind="unclear", sentences=[]), [why]
        else:
            verdict, said = _without_waits_for_ranks(verdict, said, trace, host, ranks)
    if not lost:
        said += _several_devices(found, trace) + _runtime_call(found, trace)
        said += _chosen_cost(host)
    if ranks is not None:
        said.append(because("rest-is-of-rank", rank=ranks.rows[0].rank))
        if lost_by_rank:
            said.append(because("ranks-not-comparable", why=lost_by_rank[0]))
        else:
            said += rank_reasons(ranks)
    # The first ones say what the others are true of; the last ones are of the ranks.
    reasons = [*first, *said]
    if len(reasons) > _MOST_SENTENCES:
        reasons = reasons[: _MOST_SENTENCES - 1] + reasons[-1:]
    return msgspec.structs.replace(verdict, sentences=reasons)


def _other_steps(trace: Trace, host: HostTimes) -> Reason | None:
    """Why the quiet steps stand not for all of them; None if the same bounds both.

    The first step alone may differ: programs warm up in it.
    """
    first = 1 if len(trace.steps) > _FEW_STEPS else 0
    quiet, mean = step_parts(trace.quiet(), host), mean_parts(trace, host, first)
    if _same_bound(quiet, mean):
        return None
    times = {"host_ns": quiet.host, "device_ns": quiet.device, "bound": bound_of(quiet)[0]}
    times |= {
        "mean_host_ns": mean.host,
        "mean_device_ns": mean.device,
        "mean_bound": bound_of(mean)[0],
    }
    steps = len(trace.steps) - first
    if first:
        return because("steps-after-the-first-differ", steps=steps, **times)
    return because("steps-differ", steps=steps, **times)


def _same_bound(first: StepParts, second: StepParts) -> bool:
    """Whether the same bounds both steps, or their parts are alike."""
    if bound_of(first)[0] == bound_of(second)[0]:
        return True
    one, other = first.host * second.device, second.host * first.device
    alike = max(one, other) <= _APART * min(one, other)
    return alike and abs(first.synchronisation_share - second.synchronisation_share) <= _LITTLE


def _calls_without_work(verdict: StepVerdict, trace: Trace) -> Reason | None:
    """Why calls that last without host work forbid a verdict; None if they do not.

    A wait that counts as host work makes a step look bound by the host, or mixed.
    """
    found = trace.recording
    if verdict.kind not in ("host", "mixed"):
        return None
    if found.profiler_ns >= _LITTLE * found.steps_ns > 0:
        return because("no-verdict-beside-the-profiler", share=found.profiler_ns / found.steps_ns)
    if found.may_wait_ns < _LITTLE * found.steps_ns:
        return None
    mean_ns = found.may_wait_ns / max(1, len(trace.steps))
    return because(
        "no-verdict-with-calls-that-may-wait",
        call=found.may_wait,
        mean_ns=mean_ns,
        share=found.may_wait_ns / found.steps_ns,
    )


def _chosen_cost(host: HostTimes) -> list[Reason]:
    if not host.cost.operation_ns:
        return []
    return [because("cost-chosen-by-step-ms", operation_ns=host.cost.operation_ns)]


def _on_processor_only(found: Explanation, said: Sequence[Why]) -> list[Why]:
    """The verdict on a trace of operations on the processor only."""
    if found.verdict.kind == "unclear":
        return [*said]
    took = found.replay.measured
    if took.value is None:
        first = because("processor-only-without-a-time")
    else:
        first = because("processor-only", step_ns=took.value, how=took.rule)
    return [first, *said[1:]]


def _without_waits_for_ranks(
    verdict: StepVerdict,
    said: list[Why],
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
) -> tuple[StepVerdict, list[Why]]:
    """The verdict where kernels of collectives, which may wait for other ranks, count as work.

    Where it would be another one without these waits, it is not given; with several ranks the waits
    are known.
    """
    exposed = [busy_ns(step.device) - busy_ns(_computing(step)) for step in trace.steps]
    if not any(exposed):
        return verdict, said
    known = ranks is not None and ranks.collectives > 0
    waits = ranks.waits[0] if ranks is not None and known else {}
    steps = list(trace.steps)
    if ranks is not None and known:
        steps = [
            step for index, step in enumerate(trace.steps) if _number(step, index) in ranks.shared
        ]
    shortened = [_shortened(step, waits, unknown=0.0) for step in steps]
    none_waits = [_shortened(step, waits, unknown=math.inf) for step in steps]
    parts, least = (step_parts(Trace(each).quiet(), host) for each in (shortened, none_waits))
    collective_ns = statistics.median(
        busy_ns(step.device) - busy_ns(_computing(step)) for step in steps
    )
    device_ns = statistics.median(busy_ns(step.device) for step in steps)
    waiting_ns = statistics.median(
        busy_ns(step.device) - busy_ns(without.device)
        for step, without in zip(steps, shortened, strict=True)
    )
    mostly = because("collectives-may-wait", device_ns=device_ns, collective_ns=collective_ns)
    if known:
        times = {"device_ns": device_ns, "collective_ns": collective_ns, "waiting_ns": waiting_ns}
        mostly = because("collectives-wait", **times)
        if len(steps) < len(trace.steps):
            mostly = because(
                "collectives-wait-in-shared-steps",
                shared=len(steps),
                steps=len(trace.steps),
                **times,
            )
    kinds = [bound_of(each)[0] for each in (parts, least)]
    if kinds[0] == kinds[1] == verdict.kind:
        return verdict, [*said, mostly] if collective_ns >= _LITTLE * device_ns else said
    if known and kinds[0] == kinds[1]:
        unchecked = [UNCHECKED] if UNCHECKED in said else []
        without = because("step-without-these-waits", **_bounds(parts))
        return _bound_without_waits(verdict, parts), [*unchecked, mostly, without]
    why = because("no-verdict-of-one-rank")
    if known:
        why = because("no-verdict-with-other-collectives")
    elif ranks is not None:
        why = because("no-verdict-without-comparing-ranks")
    without = because("step-without-collectives", **_bounds(least))
    return StepVerdict(kind="unclear", sentences=[]), [why, mostly, without]


def _bounds(parts: StepParts) -> dict[str, float | str]:
    """The times of a step and what bounds it, as values of a reason."""
    kind, _ = bound_of(parts)
    return {"host_ns": parts.host, "device_ns": parts.device, "bound": kind}


def _bound_without_waits(verdict: StepVerdict, parts: StepParts) -> StepVerdict:
    """The verdict on a step of which the waits for other ranks are known."""
    kind, times = bound_of(parts)
    share = max(0.0, 1 - parts.device / parts.step) if parts.step > 0 else None
    factor = times if times < float("inf") else None
    return msgspec.structs.replace(verdict, kind=kind, factor=factor, overhead_share=share)


def _number(step: StepTrace, index: int) -> int:
    return index if step.number is None else step.number


def _computing(step: StepTrace) -> list[DeviceWork]:
    return [work for work in step.device if not work.communicates]


def _shortened(step: StepTrace, waits: Mapping[DeviceWork, float], unknown: float) -> StepTrace:
    """The step with each collective shorter by its wait, ns. ``unknown``: that of one whose wait is
    not known.
    """
    device = []
    for work in step.device:
        if work.communicates:
            wait = min(waits.get(work, unknown), work.end - work.start)
            work = dataclasses.replace(work, end=work.end - wait)
        device.append(work)
    return dataclasses.replace(step, device=device)


def _several_devices(found: Explanation, trace: Trace) -> list[Reason]:
    """How long each device works, where there are several."""
    steps = [busy_by_device(step.device) for step in trace.steps]
    devices = sorted(set().union(*steps))
    if len(devices) < 2:
        return []
    length = found.replay.measured.value or statistics.fmean(
        step.end - step.start for step in trace.steps
    )
    works = []
    for device in devices:
        busy = statistics.fmean(step.get(device, 0.0) for step in steps)
        idle = max(0.0, 1 - busy / length)
        works.append(because("device-works", device=device, busy_ns=busy, idle=idle))
    return [because("several-devices", devices=len(devices), each=together(*works[:_MOST_DEVICES]))]


def _runtime_call(found: Explanation, trace: Trace) -> list[Reason]:
    """The call of the runtime that takes most of the host's time outside of operations, if that is
    much.
    """
    whole = sum(row.host_ns for row in found.operations)
    times: dict[str, float] = {}
    for step in trace.steps:
        working = working_threads(step.operations, step.calls)
        for call in step.calls:
            if call.operation is None and call.thread in working:
                times[call.name] = times.get(call.name, 0.0) + call.end - call.start - call.no_work
    if not times or not found.replay.ok:
        return []
    name = max(times, key=times.__getitem__)
    mean_ns = times[name] / len(trace.steps)
    if mean_ns < _LITTLE * whole:
        return []
    return [because("call-outside-of-operations", call=name, mean_ns=mean_ns)]


def host_times(trace: Trace, step_ns: float) -> HostTimes:
    """The times of the host. If the replay takes longer than ``step_ns``, a cost of the profiler is
    subtracted.

    ``step_ns``: a step without a profiler; 0 if it is not known.
    """
    quiet = trace.quiet()

    def beyond(cost_ns: float) -> float:
        return step_parts(quiet, HostTimes(cost=ProfilerCost(cost_ns))).step - step_ns

    if not step_ns or beyond(0.0) <= WITHIN * step_ns or beyond(_MOST_COST_NS) > 0:
        return HostTimes()
    return HostTimes(cost=ProfilerCost(find_root(beyond, 0.0, _MOST_COST_NS, tolerance=10.0)))
