"""``overhead explain --trace``: explain a step from traces that somebody recorded, one file for
each rank.
"""

from __future__ import annotations

import dataclasses
import hashlib
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from overhead.errors import UsageError
from overhead.explaining.device_time import (
    device_time_rows,
    devices_said,
    split_of,
)
from overhead.explaining.device_verdict import (
    in_turn,
    never_idle,
    too_few_launches,
    with_device_causes,
)
from overhead.explaining.explaining import explanation
from overhead.explaining.export import save_replay
from overhead.explaining.host_places import HostPlaces, host_places, places_reasons
from overhead.explaining.host_work import AS_RECORDED, HostTimes, ProfilerCost, call_rows
from overhead.explaining.profiling import StepProfile
from overhead.explaining.rank_steps import paired_steps
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
from overhead.explaining.replay import StepParts, step_parts
from overhead.explaining.start_up import MOST_START_UP, StartUp, start_up_of, start_up_reasons
from overhead.explaining.steps import between_steps_reasons, is_bound_between, why_too_little
from overhead.explaining.trace_sentences import ADVICE_OF_A_STEP, with_causes
from overhead.explaining.verdict import LEAST_IDLE, UNCHECKED, WITHIN, bound_of
from overhead.loading.outputs import same_file
from overhead.numerics import find_root
from overhead.reading.plain_text import plain
from overhead.results import Figure, Machine, Reason, Why, because, code_of, codes_of, together
from overhead.timing.call_spec import FoundCall
from overhead.timing.steps import StepSource
from overhead.timing.timing import Timing, untimed
from overhead.traces.device_split import DeviceSplit, TimeSplit
from overhead.traces.formats import read_trace_file
from overhead.traces.garbage import without_garbage_collection
from overhead.traces.opened_ranges import with_opened_ranges
from overhead.traces.processes import ProcessTime
from overhead.traces.recording import caveats, left_out, why_no_verdict
from overhead.traces.step_choice import ANY_STEPS, StepChoice
from overhead.traces.trace import Trace, busiest_ns

_NOT_KNOWN = Machine(id=UNKNOWN_MACHINE, cpu="unknown", cores=0, memory_gib=0)
_MOST_COST_NS = 5000.0
"""The most that a profiler costs an operation."""
_LITTLE = 0.1
"""A call of the runtime, or collectives, are named from this share of a step on, as operations
are.
"""
_APART = 1.3
"""Steps differ if the ratio of host to device differs by this factor, as a gain that is named."""
_MUCH_START_UP = 0.25
"""From this share of a step on, start-up makes it another step than those after it. Chosen, not
measured.
"""
_TRUE_OF_START_UP = {
    "device-is-idle",
    "launch-latency",
    "first-launches-take-long",
    "most-host-time",
    "processor-only",
    "kernels-inside-operations",
}
"""What is said of a step and holds for start-up too."""
_WRONG_OF_WAITING = {
    "predicted-gains",
    "fewer-launches-save-little",
    "most-host-time",
}
"""What is wrong of a step that waits for the workers of a DataLoader."""
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
    if len(paths) == 1:
        choice = dataclasses.replace(choice, keeps_slow=False)
    traces = [read_trace_file(path, choice) for path in paths]
    rank = same_ranks(traces)
    if rank:
        raise UsageError(
            f"two of these traces are of rank {plain(rank, 60)}; give one of each rank"
        )
    traces = _with_names(traces, paths)
    # A range that holds most of a step says nothing of what takes its time.
    trace, opened = with_opened_ranges(traces[0])
    if chrome is not None and not trace.has_device:
        raise UsageError(f"{chrome}: no replay to write: {paths[0].name} has no work on a device")
    # Times are in ns here.
    host = host_times(trace, 1e6 * step_ms)
    # First the first trace is explained as any step is; then the ranks are compared.
    found = _explained_as_a_step(trace, host, paths[0].name, 1e6 * step_ms)

    paired = paired_steps(traces)
    ranks = compare_ranks(paired.traces) if len(traces) > 1 else None
    between_ranks = _said_of_ranks(ranks, traces, paired.said) if ranks else []
    waits_known = ranks is not None and ranks.collectives > 0
    split = split_of(trace, ranks)
    verdict = _verdict(found, trace, host, ranks, between_ranks, opened, split)
    found = msgspec.structs.replace(
        found,
        not_seen=[*_not_in_a_trace(trace), *_not_read(trace), *found.not_seen],
        verdict=verdict,
        ranks=list(ranks.rows) if ranks else [],
        calls=call_rows(trace.counted),
        processes=_process_rows(trace),
        device_time=device_time_rows(split, waits_known=waits_known),
        steps_taken=trace.steps_taken,
    )
    if not trace.recording.memory_recorded:  # then 0 allocations would be wrong
        unknown = missing("allocations", because("allocations-unknown"), "count")
        counts = msgspec.structs.replace(found.per_step, allocations=unknown)
        found = msgspec.structs.replace(found, per_step=counts)
    if chrome is not None:
        save_replay(chrome, trace.typical, host)
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


def _not_in_a_trace(trace: Trace) -> list[Reason]:
    """What no trace tells, and how to learn it of a program of Python."""
    said = [because("not-in-any-trace")]
    if trace.maker == "pytorch":
        said.append(because("run-the-program"))
    return said


def _not_read(trace: Trace) -> list[Reason]:
    """What the result does not hold of this trace: memory, records left out."""
    said = []
    if not trace.recording.memory_recorded and trace.maker == "pytorch":
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
            others.append(
                because("other-process", process=_called(process), device_ns=process.device_ns)
            )
    if read is None or not others:
        return []
    return [
        because(
            "one-process-read",
            processes=len(trace.processes),
            process=_called(read),
            device_ns=read.device_ns,
            others=together(*others[:_MOST_PROCESSES]),
        )
    ]


def _called(process: ProcessTime) -> Why:
    """The number of a process, and its name if the recording tells it."""
    if not process.name:
        return process.process
    return because("process-with-name", process=process.process, name=process.name)


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


def _said_of_ranks(
    ranks: RankComparison, traces: Sequence[Trace], pairing: Sequence[Why]
) -> list[Why]:
    """What is said of several ranks: how their steps belong together (``pairing``) and which one is
    late; or that they cannot be compared, since a recording has lost too much.
    """
    for trace in traces:
        why = why_no_verdict(trace.recording)
        if why:
            lost = because("recording-of-rank", rank=trace.rank, why=why)
            return [because("ranks-not-comparable", why=lost)]
    return [*pairing, *rank_reasons(ranks)]


def _verdict(
    found: Explanation,
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
    between_ranks: Sequence[Why],
    opened: Sequence[str],
    split: DeviceSplit,
) -> StepVerdict:
    """The verdict of the explanation ``found``, or none where this recording does not allow one:
    it lost records, its steps differ, or collectives may wait for other ranks. Its sentences begin
    with what a reader must know of the recording, and end with the ranks.

    ``between_ranks``: what is said of several ranks. ``opened``: the names of the ranges that are
    replaced by what runs in them. ``split``: where the time of the devices goes.
    """
    verdict = found.verdict
    # ``first``: what a reader must know of the recording. ``said``: the sentences of the verdict.
    first: list[Why] = [*_process_read(trace), *caveats(trace.recording)]
    if ranks is not None and len(ranks.rows) < trace.ranks:
        first.append(because("traces-of-some-ranks", given=len(ranks.rows), ranks=trace.ranks))
    said = list(verdict.sentences)
    lost_records = why_no_verdict(trace.recording) or why_too_little(trace)
    if lost_records:
        verdict = StepVerdict(kind="unclear", overhead_share=None, sentences=[])
        no_verdict = because("no-verdict", why=lost_records)
        first = [no_verdict, *first, because("times-of-what-was-recorded")]
        said = []
    else:
        verdict, said = _verdict_and_causes(found, trace, host, ranks, opened, split)
        between = between_steps_reasons(trace.steps_taken)
        # Where the host bounds a step, it also bounds the time between two of them.
        if is_bound_between(trace.steps_taken) and verdict.kind != "host":
            verdict = msgspec.structs.replace(verdict, kind="unclear", factor=None)
        if between:
            # It is true of a step alone, and wrong of the program.
            said = [each for each in said if code_of(each) != "less-host-work-saves-nothing"]
        first = [*between, *first]
    if ranks is not None:
        said.append(because("rest-is-of-rank", rank=ranks.rows[0].rank))
        said += between_ranks
    reasons = [*first, *said]
    # A file holds so many. The last one, which is of the ranks, is kept.
    if len(reasons) > _MOST_SENTENCES:
        reasons = reasons[: _MOST_SENTENCES - 1] + reasons[-1:]
    return msgspec.structs.replace(verdict, sentences=reasons)


def _verdict_and_causes(
    found: Explanation,
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
    opened: Sequence[str],
    split: DeviceSplit,
) -> tuple[StepVerdict, list[Why]]:
    """The verdict on a recording that has lost little, and its sentences: what bounds the step
    first, then where the time goes, then what a reader must know of these times.
    """
    verdict, said = _judged(found, trace, host, ranks, split)
    of_devices = devices_said(split)
    if any(each.code == "devices-in-turn" for each in of_devices):
        verdict, said, of_devices = in_turn(verdict, said, of_devices, split)

    # A replay that fails its check shows that the times of the host are not right, and calls that
    # may wait are no work. Beside a device that bounds the step the host's time tells nothing.
    places: list[Reason] = []
    may_wait = "no-verdict-with-calls-that-may-wait" in codes_of(together(*said))
    if _shows_the_device(trace) and found.replay.ok and not may_wait and verdict.kind != "device":
        by_place = host_places(trace.typical, host, opened)
        places = places_reasons(by_place, has_device=trace.has_device)
        said = _bound_by_workers(by_place, verdict, said)
        places += _opened_reasons(found, opened)
        said = _without_what_places_tell(said, opened, places)
    verdict, said = _with_start_up(verdict, said, places, trace, host)
    if verdict.kind == "device":
        said = with_device_causes(said, trace, split)
    said += of_devices
    # ``_chosen_cost``: what ``host_times`` has taken off each operation, if it has.
    said += _chosen_cost(host)
    if UNCHECKED in said:  # a remark on all times, which comes after them
        said.remove(UNCHECKED)
        said.append(UNCHECKED)
    if trace.recording.stacks and verdict.kind != "device":
        said.append(because("stacks-recorded"))
    return verdict, said


def _judged(
    found: Explanation,
    trace: Trace,
    host: HostTimes,
    ranks: RankComparison | None,
    split: DeviceSplit,
) -> tuple[StepVerdict, list[Why]]:
    """The verdict and its sentences, from the replay, from the recorded times alone, or none."""
    verdict = _with_idle_share(found.verdict, split)
    if verdict.kind in ("synchronisation", "mixed"):
        verdict = never_idle(verdict, split)
    said = list(verdict.sentences)
    if not _shows_the_device(trace):
        no_verdict = because("no-verdict", why=because("cuda-not-traced"))
        verdict = StepVerdict(kind="unclear", sentences=[])
        return verdict, [no_verdict, because("trace-cuda-too")]
    if not trace.has_device:
        return verdict, _on_processor_only(found, trace, said)
    if verdict.kind == "unclear":
        return _as_recorded(found, split, said)
    why = (
        too_few_launches(verdict, trace)
        or _other_steps(trace, host)
        or _calls_without_work(verdict, trace, host)
    )
    if why is not None:
        return StepVerdict(kind="unclear", sentences=[]), [why]
    return without_waits_for_ranks(verdict, said, trace, host, ranks)


def _without_what_places_tell(
    said: Sequence[Why], opened: Sequence[str], places: Sequence[Reason]
) -> list[Why]:
    """What is said, without what the places of the host's time (``places``) tell better."""
    told = {"data-loader"}
    if any(each.code == "runtime-calls-take" for each in places):
        # These calls tell more than what graphs would not save.
        told.add("fewer-launches-save-little")
    return [each for each in _without_names(said, opened) if code_of(each) not in told]


def _with_start_up(
    verdict: StepVerdict,
    said: list[Why],
    places: Sequence[Reason],
    trace: Trace,
    host: HostTimes,
) -> tuple[StepVerdict, list[Why]]:
    """The verdict and its sentences with the causes on the host (``places``) and the start-up among
    them. There is no verdict where start-up bounds the step.
    """
    start_up = start_up_of(trace.typical, host, trace.steps)
    bounds = _start_up_bounds(start_up, trace, verdict)
    started = start_up_reasons(start_up, bounds=bounds)
    if start_up.share >= MOST_START_UP:
        # What such a recording says of its launches does not hold for the steps after it.
        said = [reason for reason in said if code_of(reason) not in ADVICE_OF_A_STEP]
    if not bounds:
        return verdict, with_causes(said, [*started, *places])
    verdict = msgspec.structs.replace(verdict, kind="unclear", factor=None)
    facts = [reason for reason in said if code_of(reason) in _TRUE_OF_START_UP]
    # What allocates for the first time also starts the runtime.
    kept = [reason for reason in places if reason.code != "allocate-once"]
    return verdict, [*started, *kept, *facts]


def _shows_the_device(trace: Trace) -> bool:
    """Whether the recording shows what the device does, or is of a profiler that was told to leave
    it out: Nsight Systems records ranges alone where it does not trace CUDA.
    """
    return trace.has_device or trace.maker != "nsight"


def _bound_by_workers(places: HostPlaces, verdict: StepVerdict, said: Sequence[Why]) -> list[Why]:
    """The sentences of a verdict on a step that is host-bound because it waits for the workers of a
    DataLoader: that is no work of its own, so no prediction and no advice on CPU work holds.
    """
    if verdict.kind != "host" or 2 * places.workers_ns < places.whole_ns:
        return [*said]
    kept: list[Why] = []
    for reason in said:
        if isinstance(reason, Reason) and reason.code == "host-bound":
            times = {name: reason.values[name] for name in ("host_ns", "device_ns")}
            kept.append(because("bound-by-data-loader", waits_ns=places.workers_ns, **times))
        elif code_of(reason) not in _WRONG_OF_WAITING:
            kept.append(reason)
    return kept


def _with_idle_share(verdict: StepVerdict, split: DeviceSplit) -> StepVerdict:
    """The verdict with the share of a step in which its device is idle as it was recorded. Work of
    the step before, which goes on in this one, is no idle time.
    """
    busiest = max(split.devices, key=_busy_of, default=None)
    if busiest is None or split.step_ns <= 0 or verdict.overhead_share is None:
        return verdict
    idle_share = min(1.0, max(0.0, busiest.idle / split.step_ns))
    said = []
    for reason in verdict.sentences:
        if code_of(reason) != "device-is-idle":
            said.append(reason)
        # A device that bounds the step and seems idle works on what was issued before.
        elif idle_share >= LEAST_IDLE and (verdict.kind != "device" or idle_share <= WITHIN):
            said.append(because("device-is-idle", share=idle_share))
    return msgspec.structs.replace(verdict, overhead_share=idle_share, sentences=said)


def _busy_of(device: TimeSplit) -> float:
    return device.busy


def _start_up_bounds(start_up: StartUp, trace: Trace, verdict: StepVerdict) -> bool:
    """Whether start-up bounds the step: it is most of the host's work, and longer than the device
    works; or, where the device does not bound the step, so much of its time that other steps are
    not like it.
    """
    device_ns = statistics.fmean(busiest_ns(step.device) for step in trace.counted.steps)
    if start_up.share >= MOST_START_UP and start_up.ns > device_ns:
        return True
    step_ns = statistics.fmean(step.end - step.start for step in trace.counted.steps)
    return verdict.kind != "device" and start_up.ns >= _MUCH_START_UP * step_ns


def _without_names(said: Sequence[Why], names: Sequence[str]) -> list[Why]:
    """What is said, without the sentence that one of these ranges takes most of the host's time:
    another one says what is in it.
    """
    kept = []
    for reason in said:
        is_most = isinstance(reason, Reason) and reason.code == "most-host-time"
        name = reason.values.get("name") if isinstance(reason, Reason) else None
        if not is_most or str(name) not in names:
            kept.append(reason)
    return kept


def _opened_reasons(found: Explanation, opened: Sequence[str]) -> list[Reason]:
    """Which ranges hold a quarter of the steps or more, and how long the host works in them outside
    of the operations that they hold.
    """
    own_ns = {row.name: row.host_ns for row in found.operations}
    return [
        because("range-holds-operations", name=name, own_ns=own_ns.get(name, 0.0))
        for name in opened
        if own_ns.get(name, 0.0) >= _LITTLE * sum(own_ns.values())
    ]


def _as_recorded(
    found: Explanation, split: DeviceSplit, said: list[Why]
) -> tuple[StepVerdict, list[Why]]:
    """The verdict that the recorded times alone allow where the replay does not explain them: a
    device that works for almost all of the step bounds it, unless it may wait for other ranks. Else
    none; then it is said for which share the device works, and what waits longest.
    """
    busiest = max(split.devices, key=_busy_of, default=None)
    if busiest is None or split.step_ns <= 0 or not found.replay.unchecked:
        return found.verdict, said
    share = min(1.0, busiest.busy / split.step_ns)
    times = {"device_ns": busiest.busy, "step_ns": split.step_ns, "share": share}
    may_wait = busiest.collective + busiest.waiting > _LITTLE * split.step_ns
    if share >= 1 - WITHIN and not may_wait:
        verdict = StepVerdict(kind="device", overhead_share=1 - share, sentences=[])
        return verdict, [because("device-bound-as-recorded", **times), UNCHECKED]

    known: list[Why] = [because("device-works-as-recorded", **times)]
    # They come in the order of their waits.
    longest = next(iter(found.synchronisations), None)
    if longest is not None and longest.blocked_ns >= _LITTLE * split.step_ns:
        known.append(
            because(
                "longest-wait-as-recorded",
                what=longest.what,
                longest_ns=longest.blocked_ns,
                calls=max(1, round(longest.count)),
            )
        )
    return found.verdict, [*said, *known]


def _other_steps(trace: Trace, host: HostTimes) -> Reason | None:
    """Why a verdict on the mean step does not hold for all: something else bounds the quiet steps,
    the quarter that took the host least. None if the same bounds both.

    The first step may differ: programs warm up in it.
    """
    quiet = step_parts(trace.quiet(), host)
    mean = step_parts(trace.typical, host)
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
    return because("steps-after-the-first-differ", steps=len(trace.typical.steps), **times)


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


def _calls_without_work(verdict: StepVerdict, trace: Trace, host: HostTimes) -> Reason | None:
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
    # If they all wait, the host works so much less.
    parts = step_parts(trace.typical, host)
    return because(
        "no-verdict-with-calls-that-may-wait",
        call=recording.may_wait,
        mean_ns=mean_ns,
        share=recording.may_wait_ns / recording.steps_ns,
        host_ns=max(0.0, parts.host - mean_ns),
        device_ns=parts.device,
    )


def _chosen_cost(host: HostTimes) -> list[Reason]:
    """That a cost of the profiler was chosen so that the replay fits ``--step-ms``, if it was."""
    if not host.cost.operation_ns:
        return []
    return [because("cost-chosen-by-step-ms", operation_ns=host.cost.operation_ns)]


def _on_processor_only(found: Explanation, trace: Trace, said: Sequence[Why]) -> list[Why]:
    """The sentences of a verdict on a trace without device work. The first one is replaced: it
    names the measured time of the step, which a trace has not. ``category``: of device work that is
    not read; empty for none.
    """
    if found.verdict.kind == "unclear":
        return [*said]
    took = found.replay.measured
    first: list[Why] = []
    if took.value is None:
        first.append(because("processor-only-without-a-time"))
    else:
        first.append(because("processor-only", step_ns=took.value, how=took.rule))
    rest = said[1:]
    category = trace.recording.other_device
    if category:
        # A device took part, whose work has no numbers of calls.
        first = [because("other-device-not-read", category=category)]
        # What it computes is not in the operations of the host.
        rest = [why for why in rest if code_of(why) != "kernels-inside-operations"]
    elif trace.maker == "pytorch":
        first.append(because("record-the-device-too"))
    return [*first, *rest]


def host_times(trace: Trace, step_ns: float) -> HostTimes:
    """The times of the host in a recorded trace, which contain the time that its profiler added. If
    the replayed step takes too long beside ``step_ns``, so much is subtracted from each operation
    that the two agree.

    ``step_ns``: a step without a profiler, as the user gives it; 0 if it is not known.
    """
    typical = trace.typical

    def replayed_too_long_ns(cost_ns: float) -> float:
        """How much longer than ``step_ns`` the replay takes, if the profiler costs so much."""
        return step_parts(typical, HostTimes(cost=ProfilerCost(cost_ns))).step - step_ns

    if not step_ns or replayed_too_long_ns(0.0) <= WITHIN * step_ns:
        return AS_RECORDED
    # Even the highest cost would not explain the time, so none is taken off.
    if replayed_too_long_ns(_MOST_COST_NS) > 0:
        return AS_RECORDED
    # The cost, between 0 and 5 us and to 10 ns, at which the replay takes as long as the step.
    cost_ns = find_root(replayed_too_long_ns, 0.0, _MOST_COST_NS, tolerance=10.0)
    return HostTimes(cost=ProfilerCost(cost_ns))
