"""``overhead explain --trace``: explain a step from traces that somebody recorded, one file for
each rank.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from overhead.errors import UsageError
from overhead.explaining.device_time import device_time_rows, devices_said, split_of
from overhead.explaining.explaining import explanation
from overhead.explaining.export import save_replay
from overhead.explaining.host_work import AS_RECORDED, HostTimes, ProfilerCost, call_rows
from overhead.explaining.profiling import StepProfile
from overhead.explaining.rank_waits import without_waits_for_ranks
from overhead.explaining.ranks import RankComparison, compare_ranks, rank_reasons, same_ranks
from overhead.explaining.record import (
    MOST_ROWS,
    NOT_IN_A_TRACE,
    UNKNOWN_MACHINE,
    Explanation,
    ProcessRow,
    StepVerdict,
    missing,
)
from overhead.explaining.replay import StepParts, mean_parts, step_parts
from overhead.explaining.verdict import WITHIN, bound_of
from overhead.loading.outputs import same_file
from overhead.numerics import find_root
from overhead.reading.plain_text import plain
from overhead.results import Figure, Machine, Reason, Why, because, together
from overhead.timing.call_spec import FoundCall
from overhead.timing.steps import StepSource
from overhead.timing.timing import Timing, untimed
from overhead.traces.device_split import DeviceSplit
from overhead.traces.doubts import working_threads
from overhead.traces.formats import read_trace_file
from overhead.traces.garbage import without_garbage_collection
from overhead.traces.recording import caveats, left_out, why_no_verdict
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import Trace

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
_MOST_PROCESSES = 8
"""A sentence names at most so many other processes."""
_MOST_SENTENCES = 20
"""What the file of an explanation can hold."""


def explain_traces(
    paths: Sequence[Path],
    step_ms: float = 0.0,
    chrome: Path | None = None,
    choice: StepChoice = ANY_STEPS,
) -> Explanation:
    """Explain the step of the first trace, for ``overhead explain --trace``. Several traces are of
    several ranks (processes of one program), which are compared.

    ``step_ms``: the time of a step without the profiler; 0 if it is not known. ``chrome``: a file
    to write, the replayed step for Perfetto. ``choice``: what the user names as steps, in all
    traces. Raises ``UsageError``, one line.
    """
    with without_garbage_collection():
        return _explain_traces(paths, step_ms, chrome, choice)


def _explain_traces(
    paths: Sequence[Path], step_ms: float, chrome: Path | None, choice: StepChoice
) -> Explanation:
    """The explanation, made without pauses of the garbage collector."""
    _check_different(paths)
    traces = [read_trace_file(path, choice) for path in paths]
    rank = same_ranks(traces)
    if rank:
        raise UsageError(
            f"two of these traces are of rank {plain(rank, 60)}; give one of each rank"
        )
    traces = _with_names(traces, paths)
    trace = traces[0]
    if chrome is not None and not trace.has_device:
        raise UsageError(f"{chrome}: no replay to write: {paths[0].name} has no work on a device")
    # Times are in ns here.
    host = host_times(trace, 1e6 * step_ms)
    # First the first trace is explained as any step is; then the ranks are compared.
    found = _explained_as_a_step(trace, host, paths[0].name, 1e6 * step_ms)

    ranks = compare_ranks(traces) if len(traces) > 1 else None
    # Ranks whose recording lost so much that it allows no comparison.
    lost_by_rank = []
    for each in traces:
        why = why_no_verdict(each.recording)
        if why:
            lost_by_rank.append(because("recording-of-rank", rank=each.rank, why=why))
    split = split_of(trace, ranks)
    found = msgspec.structs.replace(
        found,
        not_seen=[because("not-in-any-trace"), *_not_read(trace), *found.not_seen],
        verdict=_verdict(found, trace, host, ranks, lost_by_rank, split),
        ranks=list(ranks.rows) if ranks else [],
        calls=call_rows(trace),
        processes=_process_rows(trace),
        device_time=device_time_rows(
            split, waits_known=ranks is not None and ranks.collectives > 0
        ),
        steps_taken=trace.steps_taken,
    )
    if not trace.recording.memory_recorded:  # then 0 allocations would be wrong
        unknown = missing("allocations", because("allocations-unknown"), "count")
        counts = msgspec.structs.replace(found.per_step, allocations=unknown)
        found = msgspec.structs.replace(found, per_step=counts)
    if chrome is not None:
        save_replay(chrome, trace.quiet(), host)
    return found


def _explained_as_a_step(trace: Trace, host: HostTimes, file: str, step_ns: float) -> Explanation:
    """The explanation of a trace from a file (named ``file``), made as that of a step that runs
    here: what only running it would tell, such as its times, is missing.

    ``step_ns``: the time of a step that the user gives; 0 if he gives none.
    """
    given = because("given-by-step-ms") if step_ns else ""
    # Nothing was run: the program, its trial and its times are stand-ins, with what the trace
    # tells.
    source = StepSource(setup="", file=file, function=_steps(len(trace.steps)))
    # ``adapter``: the name of the device. "none" below: the library of the program is not known.
    tried = FoundCall(one_ns=0, waits=[], said="", api="", adapter=trace.device)
    profile = StepProfile(
        tried, "none", trace.device, trace=trace, host=host, step_ns=step_ns, step_rule=given
    )
    figures = [Figure(name="complete", value=step_ns, rule=given)] if given else []
    call = untimed(tried, NOT_IN_A_TRACE, figures)
    timing = Timing(created="", setup="", machine=_NOT_KNOWN, versions={}, calls=[call])
    return explanation(source, profile, timing)


def _steps(number: int) -> str:
    """What stands in place of the name of a function, which a trace does not have."""
    return "1 step" if number == 1 else f"{number:,} steps"


def _check_different(paths: Sequence[Path]) -> None:
    """Raise ``UsageError`` for a trace that is given twice, also as a copy under another name: it
    would count as two ranks, and be compared with itself.
    """
    # First by path, which needs no reading; then by content.
    for index, path in enumerate(paths):
        for other in paths[:index]:
            if same_file(path, other):
                raise UsageError(
                    f"{path}: given twice, also as {other}; give one trace of each rank"
                )
    if len(paths) < 2:  # no need to read a large file for this
        return
    contents: dict[bytes, Path] = {}
    for path in paths:
        if not path.is_file():
            continue  # reading the trace will raise, and say why
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").digest()
        if digest in contents:
            raise UsageError(
                f"{path}: the same content as {contents[digest]}; give one trace of each rank"
            )
        contents[digest] = path


def _with_names(traces: Sequence[Trace], paths: Sequence[Path]) -> list[Trace]:
    """The traces, each with a name of its rank: the one that it says itself, else the name of its
    file, with the folder if several files have the same name.
    """
    files_of_name = Counter(path.name for path in paths)
    named = []
    for trace, path in zip(traces, paths, strict=True):
        file = path.name
        if files_of_name[file] > 1:
            file = f"{path.resolve().parent.name}/{file}"
        named.append(dataclasses.replace(trace, rank=trace.rank or file[:200]))
    return named


def _not_read(trace: Trace) -> list[Reason]:
    """What the result does not hold of this trace: memory, records left out."""
    said = []
    if not trace.recording.memory_recorded:
        said.append(because("allocations-not-recorded"))
    return [*left_out(trace.recording), *said]


def _process_read(trace: Trace) -> list[Reason]:
    """Which process of the recording is explained, and which others there are."""
    others = []
    read = None
    for process in trace.processes:
        if process.is_read:
            read = process
        else:
            name = because("process-with-name", process=process.process, name=process.name)
            called = name if process.name else process.process
            others.append(because("other-process", process=called, device_ns=process.device_ns))
    if read is None or not others:
        return []
    return [
        because(
            "one-process-read",
            processes=len(trace.processes),
            process=read.process,
            name=read.name,
            device_ns=read.device_ns,
            others=together(*others[:_MOST_PROCESSES]),
        )
    ]


def _process_rows(trace: Trace) -> list[ProcessRow]:
    """The processes of the recording as the file holds them."""
    rows = []
    for process in trace.processes[:MOST_ROWS]:
        rows.append(
            ProcessRow(
                process=process.process,
                name=process.name,
                device_ns=process.device_ns,
                explained=process.is_read,
            )
        )
    return rows


def _verdict(
    found: Explanation,
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
    lost_by_rank: Sequence[Reason],
    split: DeviceSplit,
) -> StepVerdict:
    """The verdict of the explanation ``found``, or none where this recording does not allow one:
    it lost records, its steps differ, or collectives may wait for other ranks. Its sentences begin
    with what a reader must know of the recording, and end with the ranks.

    ``lost_by_rank``: why the recordings of some ranks allow no comparison. ``split``: where the
    time of the devices goes.
    """
    verdict = found.verdict
    # ``first``: what a reader must know of the recording. ``said``: the sentences of the verdict.
    first: list[Why] = [*_process_read(trace), *caveats(trace.recording)]
    if ranks is not None and len(ranks.rows) < trace.ranks:
        first.append(because("traces-of-some-ranks", given=len(ranks.rows), ranks=trace.ranks))
    said = list(verdict.sentences)
    lost_records = why_no_verdict(trace.recording)
    if lost_records:
        verdict = StepVerdict(kind="unclear", overhead_share=None, sentences=[])
        no_verdict = because("no-verdict", why=lost_records)
        first = [no_verdict, *first, because("times-of-what-was-recorded")]
        said = []
    elif not trace.has_device:
        said = _on_processor_only(found, trace.recording.other_device, said)
    elif verdict.kind != "unclear":
        why = _other_steps(trace, host) or _calls_without_work(verdict, trace)
        if why is not None:
            verdict = StepVerdict(kind="unclear", sentences=[])
            said = [why]
        else:
            verdict, said = without_waits_for_ranks(verdict, said, trace, host, ranks)
    # What else the trace tells, if it is complete enough.
    if not lost_records:
        said += devices_said(split)
        said += _runtime_call(found, trace)
        # ``_chosen_cost``: what ``host_times`` has taken off each operation, if it has.
        said += _chosen_cost(host)
    if ranks is not None:
        said.append(because("rest-is-of-rank", rank=ranks.rows[0].rank))
        if lost_by_rank:
            said.append(because("ranks-not-comparable", why=lost_by_rank[0]))
        else:
            said += rank_reasons(ranks)
    reasons = [*first, *said]
    # A file holds so many. The last one, which is of the ranks, is kept.
    if len(reasons) > _MOST_SENTENCES:
        reasons = reasons[: _MOST_SENTENCES - 1] + reasons[-1:]
    return msgspec.structs.replace(verdict, sentences=reasons)


def _other_steps(trace: Trace, host: HostTimes) -> Reason | None:
    """Why a verdict on the quiet steps, the quarter that took the host least, does not hold for all
    steps: on average something else bounds them. None if the same bounds both.

    The first step alone may differ: programs warm up in it.
    """
    # How many steps the mean leaves out: the first one, unless there are few. Few are three or
    # less.
    left_out = 1 if len(trace.steps) > _FEW_STEPS else 0
    quiet = step_parts(trace.quiet(), host)
    mean = mean_parts(trace, host, left_out)
    if _same_bound(quiet, mean):
        return None
    quiet_bound, _ = bound_of(quiet)
    mean_bound, _ = bound_of(mean)
    # What bounds the quiet steps, and what bounds the mean step, with their times.
    times = {
        "host_ns": quiet.host,
        "device_ns": quiet.device,
        "bound": quiet_bound,
        "mean_host_ns": mean.host,
        "mean_device_ns": mean.device,
        "mean_bound": mean_bound,
    }
    steps = len(trace.steps) - left_out
    if left_out:
        return because("steps-after-the-first-differ", steps=steps, **times)
    return because("steps-differ", steps=steps, **times)


def _same_bound(first: StepParts, second: StepParts) -> bool:
    """Whether the same bounds both steps, or their parts are so alike that two steps close to a
    limit of the rules lie on different sides of it.
    """
    if bound_of(first)[0] == bound_of(second)[0]:
        return True
    # The ratios of host to device, compared without a division: a device time may be 0.
    one = first.host * second.device
    other = second.host * first.device
    # At most a factor of ``_APART`` between the two ratios. ``_APART`` is 1.3, from which on a gain
    # is named too. ``synchronisation_share``: of the step, what its waits for the device cost; both
    # shares must be within a tenth of each other.
    alike = max(one, other) <= _APART * min(one, other)
    return alike and abs(first.synchronisation_share - second.synchronisation_share) <= _LITTLE


def _calls_without_work(verdict: StepVerdict, trace: Trace) -> Reason | None:
    """Why a verdict that the host bounds the step is not sure: calls of the runtime take long, and
    perhaps not by work of the host. The profiler may delay them, or they may wait for the device.
    None if they do not take a tenth of the steps.

    A wait that counts as host work makes a step look bound by the host, or mixed.
    """
    recording = trace.recording
    if verdict.kind not in ("host", "mixed"):
        return None
    # ``profiler_ns``: how long the profiler itself held up calls, in all steps; ``steps_ns``: all
    # steps together.
    if recording.profiler_ns >= _LITTLE * recording.steps_ns > 0:
        share = recording.profiler_ns / recording.steps_ns
        return because("no-verdict-beside-the-profiler", share=share)
    if recording.may_wait_ns < _LITTLE * recording.steps_ns:
        return None
    # ``may_wait``: a call that lasts while the device works, and so may wait for it;
    # ``may_wait_ns``: how long all such calls last together.
    mean_ns = recording.may_wait_ns / max(1, len(trace.steps))
    return because(
        "no-verdict-with-calls-that-may-wait",
        call=recording.may_wait,
        mean_ns=mean_ns,
        share=recording.may_wait_ns / recording.steps_ns,
    )


def _chosen_cost(host: HostTimes) -> list[Reason]:
    """That a cost of the profiler was chosen so that the replay fits ``--step-ms``, if it was."""
    if not host.cost.operation_ns:
        return []
    return [because("cost-chosen-by-step-ms", operation_ns=host.cost.operation_ns)]


def _on_processor_only(found: Explanation, category: str, said: Sequence[Why]) -> list[Why]:
    """The sentences of a verdict on a trace without device work. The first one is replaced: it
    names the measured time of the step, which a trace has not. ``category``: of device work that is
    not read; empty for none.
    """
    if found.verdict.kind == "unclear":
        return [*said]
    took = found.replay.measured
    if took.value is None:
        first = because("processor-only-without-a-time")
    else:
        first = because("processor-only", step_ns=took.value, how=took.rule)
    # A device took part, whose work has no numbers of calls.
    if category:
        first = because("other-device-not-read", category=category)
    return [first, *said[1:]]


def _runtime_call(found: Explanation, trace: Trace) -> list[Reason]:
    """The call of the CUDA runtime that takes most of the host's time outside of operations, if
    that is a tenth of all host work or more: the table of operations does not show it.
    """
    # Of a mean step: the rows hold means over the steps.
    all_work_ns = sum(row.host_ns for row in found.operations)
    work_ns_by_name: dict[str, float] = {}
    for step in trace.steps:
        # Threads that only wait, beside the program, do not count. By name: how long the calls
        # outside of operations work on the host, over all steps.
        working = working_threads(step.operations, step.calls)
        for call in step.calls:
            # ``no_work``: the part of a call that is a wait.
            if call.operation is None and call.thread in working:
                earlier_ns = work_ns_by_name.get(call.name, 0.0)
                work_ns_by_name[call.name] = earlier_ns + call.end - call.start - call.no_work
    # A replay that fails its check shows that the times of the host are not right.
    if not work_ns_by_name or not found.replay.ok:
        return []
    name = max(work_ns_by_name, key=work_ns_by_name.__getitem__)
    mean_ns = work_ns_by_name[name] / len(trace.steps)
    if mean_ns < _LITTLE * all_work_ns:
        return []
    # A program in C++ without ranges has no operations, of which these would be outside.
    if not any(step.operations for step in trace.steps):
        return [because("call-with-most-time", call=name, mean_ns=mean_ns)]
    return [because("call-outside-of-operations", call=name, mean_ns=mean_ns)]


def host_times(trace: Trace, step_ns: float) -> HostTimes:
    """The times of the host in a recorded trace, which contain the time that its profiler added. If
    the replayed step takes too long beside ``step_ns``, so much is subtracted from each operation
    that the two agree.

    ``step_ns``: a step without a profiler, as the user gives it; 0 if it is not known.
    """
    quiet = trace.quiet()

    def replayed_too_long_ns(cost_ns: float) -> float:
        """How much longer than ``step_ns`` the replay takes, if the profiler costs so much."""
        return step_parts(quiet, HostTimes(cost=ProfilerCost(cost_ns))).step - step_ns

    if not step_ns or replayed_too_long_ns(0.0) <= WITHIN * step_ns:
        return AS_RECORDED
    # Even the highest cost would not explain the time, so none is taken off.
    if replayed_too_long_ns(_MOST_COST_NS) > 0:
        return AS_RECORDED
    # The cost, between 0 and 5 us and to 10 ns, at which the replay takes as long as the step.
    cost_ns = find_root(replayed_too_long_ns, 0.0, _MOST_COST_NS, tolerance=10.0)
    return HostTimes(cost=ProfilerCost(cost_ns))
