"""Profile a PyTorch step in a process of its own, and join the lines of its operations with their
times.

After a process has once profiled with CUPTI, each launch takes 2.7 to 6 us longer, even when the
profiler is off again (four programs on an H200, driver 580.159). So host times come from profiles
without CUPTI, in turn with times of the step without a profiler. Later, one profile with CUPTI
records the device's work, and another one the lines. Host times with CUPTI count only where the
host waits and they are shorter, or if the profiles have different operations.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overhead import scratch
from overhead.bounded_files import read_whole
from overhead.child import ChildEnded, Send, serve
from overhead.errors import BadFile, UsageError, one_line
from overhead.explaining.conditions import Condition, HostMeasurement, other_threads
from overhead.explaining.host_work import HostTimes, ReturnTimes, profiler_cost
from overhead.explaining.marked_sites import marked_sites
from overhead.explaining.record import LIBRARIES
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.quiet_processor import QuietProcessor
from overhead.probes.common.statements import StatementLoop
from overhead.results import Reason, Why, because
from overhead.timing.call_spec import CallSpec, FoundCall
from overhead.timing.steps import (
    CALLING_THE_FUNCTION,
    FoundStep,
    StepSource,
    error_text,
    refuse_long,
    refuse_unfinished,
    telling_first_call,
)
from overhead.timing.user_statement import (
    SILENCE_S,
    DoesNext,
    TrialRefused,
    child_answers,
    refusal,
    try_call,
)
from overhead.traces.chrome_trace import MOST_TRACE_BYTES, read_chrome_trace
from overhead.traces.marks import STEP_MARK
from overhead.traces.operations import DISPATCH_MODE
from overhead.traces.trace import HostOperation, StepTrace, Trace, quiet_mean

LONGEST_STEP_S = 1.0
"""The longest step that is explained."""
_DEVICE_FILE, _SITES_FILE = "device.json", "sites.json"
_WARM_STEPS = 3
_PROFILED_S, _FEWEST, _MOST = 0.6, 3, 20
"""Steps are profiled for this long in all. The profile of the device has at least and at most so
many steps, each one of the host at most so many. One more step runs before them.
"""
_HOST_TRACES, _FEW_TRACES = 6, 2
"""Profiles of the host, with times of the step between them; and those of a slow step."""
_STEP_FILES = [f"host-{index}.json" for index in range(_HOST_TRACES)]
_LOOP_FILES = [f"loop-{index}.json" for index in range(_HOST_TRACES)]
"""The traces without the device: of the step, and of a loop of one operation."""
_RETURNS_S, _FEWEST_RETURNS, _MOST_RETURNS = 0.1, 3, 40
"""Between two profiles, steps are timed until they return: for this long, and so many at least and
at most.
"""
_SLOW_S = 0.1
"""Of a longer step fewer profiles and samples are taken."""
_SAMPLE_S, _FEWEST_SAMPLES, _TIMED_S = 0.001, 4, 1.0
"""A sample without the profiler takes this long or one step; how many samples between two profiles,
and for how long in all, at least.
"""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT_BYTES = -1, -3, 1 << 25
"""Options of glibc's ``mallopt``, and the largest value of the second."""
_LOOP_OPERATIONS, _LOOPS = 64, 5
_BESIDE_THE_PROFILE = because("measured-beside-the-profile")
_NAMES = ("loading the program", "the step")
"""What a trial calls SETUP and CALL in errors."""


@dataclasses.dataclass(frozen=True)
class StepProfile:
    """A tried step, and its profile. ``trace``: None with a ``reason`` where the library has no
    profile.

    ``host``: the times of the host. ``step_ns``: a step in the profiled process without a profiler;
    0 if not known. ``step_rule``: where this time is from; empty if the trace is all that is known.
    ``shares``: what ``HostMeasurement`` found. ``loading_s``: seconds from the start of the process
    until the step was tried. ``is_returned``, ``returned``: of ``FoundStep``; None where no
    function was called.
    """

    found: FoundCall
    library: str
    device: str
    trace: Trace | None = None
    host: HostTimes = dataclasses.field(default_factory=HostTimes)
    step_ns: float = 0.0
    sites_missing: Why = ""
    reason: Why = ""
    step_rule: Why = _BESIDE_THE_PROFILE
    shares: Mapping[str, float] = dataclasses.field(default_factory=dict)
    loading_s: float = 0.0
    is_returned: bool | None = None
    returned: str = ""


_Measured = tuple[StepProfile, ReturnTimes]
"""The profile without its traces, and the return times: what the child process sends."""
_decode = msgspec.json.Decoder(DoesNext | TrialRefused | FoundCall | _Measured).decode
_decode_conditions = msgspec.json.Decoder(DoesNext | TrialRefused | list[Condition]).decode


class _Job(msgspec.Struct, frozen=True):
    """What the child process does. ``folder``: for the traces. ``conditions``: time the step under
    other conditions, in place of profiling it. ``busy_threads``: how many other Python threads of
    the program are busy.
    """

    source: StepSource
    folder: str = ""
    conditions: bool = False
    busy_threads: int = 0


_Listening = Callable[[Why], None]


def _ignore(what: Why) -> None:
    pass


def profile_step(source: StepSource, *, doing: _Listening = _ignore) -> StepProfile:
    """Try a step in a child process, measure the host there, and profile it with PyTorch. Raises
    ``UsageError``.

    ``doing`` gets what is next.
    """
    with scratch.subfolder() as folder:
        began = time.monotonic()
        answers = child_answers(__name__, _Job(source, folder), _decode, SILENCE_S, doing)
        with contextlib.closing(answers) as said_by_child:
            found = _first_answer(said_by_child)
            loading_s = time.monotonic() - began
            try:
                measured: _Measured = next(said_by_child)
            except UsageError as error:  # the step works; its profile does not
                measured = StepProfile(found, "none", "", reason=error.why), ReturnTimes()
        profile = dataclasses.replace(measured[0], loading_s=loading_s)
        try:
            return profile if profile.reason else _with_traces(profile, folder, measured[1])
        except BadFile as error:
            return dataclasses.replace(profile, reason=because("profile-unreadable", why=error.why))


def _first_answer(said_by_child: Iterator[Any]) -> FoundCall:
    """The result of the trial. Raises ``UsageError``, which says what to do if the program did not
    return.
    """
    try:
        found: FoundCall = next(said_by_child)
    except UsageError as error:
        ended = error.__context__
        if isinstance(ended, ChildEnded) and ended.why == "time":
            raise UsageError(because("ended-in-one-step", why=error.why)) from None
        raise
    return found


def measure_conditions(
    source: StepSource, busy_threads: int, *, doing: _Listening = _ignore
) -> list[Condition]:
    """The step under other conditions on the host, in a child process. Raises ``UsageError``.

    ``busy_threads``: how many other Python threads of the program are busy. ``doing`` gets what is
    next.
    """
    job = _Job(source, conditions=True, busy_threads=busy_threads)
    answers = child_answers(__name__, job, _decode_conditions, SILENCE_S, doing)
    with contextlib.closing(answers) as said_by_child:
        found: list[Condition] = next(said_by_child)
        return found


def _with_traces(profile: StepProfile, folder: str, returns: ReturnTimes) -> StepProfile:
    """The profile with the traces in this folder. Raises ``BadFile``."""
    alone, loop = (
        _together(folder, filter(os.listdir(folder).count, each))
        for each in (_STEP_FILES, _LOOP_FILES)
    )
    plain = _together(folder, [_DEVICE_FILE]) if profile.device else alone
    if profile.device and not plain.has_device:
        return dataclasses.replace(profile, reason=because("no-device-work-seen"))
    joined, missing = with_sites(
        plain, _together(folder, [] if profile.sites_missing else [_SITES_FILE])
    )
    host = HostTimes(alone, profiler_cost(alone, loop, returns, plain.blocked_ns))
    return dataclasses.replace(
        profile, trace=joined, host=host, sites_missing=profile.sites_missing or missing
    )


def _together(folder: str, names: Iterable[str]) -> Trace:
    traces = [
        read_chrome_trace(read_whole(Path(folder) / name, MOST_TRACE_BYTES), name) for name in names
    ]
    steps = [step for trace in traces for step in trace.without_first_step().steps]
    return Trace(steps, recording=traces[0].recording) if len(traces) == 1 else Trace(steps)


def with_sites(plain: Trace, sites: Trace) -> tuple[Trace, Why]:
    """The first trace with the lines and allocations of the second, matched by order, and what is
    not known or ''.
    """
    models = [step for step in sites.steps if step.operations]
    if not models:
        return plain, because("no-call-sites")
    joined = [_joined_with_any(step, models) for step in plain.steps]
    steps = dataclasses.replace(
        plain, steps=[new or old for new, old in zip(joined, plain.steps, strict=True)]
    )
    unlike = [step for step, new in zip(plain.steps, joined, strict=True) if new is None]
    if not unlike:
        return steps, ""
    why = _first_difference(unlike[0], models[0])
    return steps, because("lines-missing", missing=len(unlike), steps=len(joined), why=why)


def _joined_with_any(step: StepTrace, models: Sequence[StepTrace]) -> StepTrace | None:
    """The step with the lines of the first model that runs the same operations; None if none
    does.
    """
    for model in models:
        joined = _joined(step, model)
        if joined is not None:
            return joined
    return None


def _known_operations(model: StepTrace) -> list[HostOperation]:
    """The operations of a step whose lines were recorded, without what recording them adds."""
    return [operation for operation in model.operations if operation.name != DISPATCH_MODE]


def _first_difference(step: StepTrace, model: StepTrace) -> Reason:
    """Where the operations of two steps begin to differ."""
    names, others = (
        [each.name for each in own] for own in (step.operations, _known_operations(model))
    )
    for number, (name, other) in enumerate(itertools.zip_longest(names, others), 1):
        if name == other:
            continue
        if name is None:
            return because("step-ends-before-the-operation", number=number, other=other)
        if other is None:
            return because("recorded-step-ends-before-the-operation", number=number, name=name)
        return because("operations-differ", number=number, name=name, other=other)
    return because("other-operations-with-lines")


def _joined(step: StepTrace, model: StepTrace) -> StepTrace | None:
    """The step with the lines of ``model``; None if the two run different operations."""
    known = _known_operations(model)
    if [each.name for each in step.operations] != [each.name for each in known]:
        return None
    new = {
        id(old): dataclasses.replace(old, site=each.site)
        for old, each in zip(step.operations, known, strict=True)
    }
    own, theirs = step.synchronisations, model.synchronisations
    sites = (
        {call.start: each.site for call, each in zip(own, theirs, strict=True)}
        if len(own) == len(theirs)
        else {}
    )
    calls = []
    for call in step.calls:
        operation = new.get(id(call.operation))
        site = sites.get(call.start) or (operation.site if operation else call.site)
        calls.append(dataclasses.replace(call, operation=operation, site=site))
    return dataclasses.replace(
        step, operations=list(new.values()), calls=calls, allocations=model.allocations
    )


def _tried(source: StepSource, send: Send) -> tuple[FoundCall, StatementLoop, HostMeasurement]:
    """Load and try the step. Raises ``UsageError``."""
    known = [*sys._current_frames()]
    sys.path[:0] = [entry for entry in source.path if entry not in sys.path]
    check = (
        f"from {refuse_long.__module__} import refuse_long\nrefuse_long(found_step,"
        f" {LONGEST_STEP_S})"
    )
    spec = CallSpec(calls=["step()"], setup=f"{source.setup}\n{check}")

    def doing(what: Why) -> None:
        send(DoesNext(what))

    with telling_first_call(lambda: doing(CALLING_THE_FUNCTION)):
        found, statement, wait = try_call(spec, "step()", LONGEST_STEP_S, doing, _NAMES)
    for result in statement.results:
        refuse_unfinished(result, "the step")

    def run(steps: int) -> None:
        statement.issue(steps)
        wait()

    return found, statement, HostMeasurement(run, found.one_ns, other_threads(known))


def _profiled(job: _Job, send: Send) -> _Measured:
    """Load, try and profile the step; the traces go to the folder. Raises ``UsageError``."""
    found, statement, host = _tried(job.source, send)
    known: FoundStep = statement.names["found_step"]
    send(found)
    send(DoesNext(because("running-the-step-on-the-host")))
    shares = dict[str, float]()
    with contextlib.suppress(Exception):  # the step of a user, which worked a few times
        shares = host.shares() | host.own_python()
    statement.close()
    profile, returns = _profile(job.source, job.folder, known.call, found, send)
    profile = dataclasses.replace(
        profile, is_returned=known.is_returned, returned=known.returned[:200]
    )
    return dataclasses.replace(profile, shares=shares), returns


def _conditions(job: _Job, send: Send) -> list[Condition]:
    """Load and try the step, and time it under each condition. Raises ``UsageError``."""
    _, statement, host = _tried(job.source, send)
    send(DoesNext(because("running-the-step-under-conditions")))
    try:
        return host.conditions(job.busy_threads)
    except Exception as error:  # the step of a user, which worked a few times
        raise UsageError(error_text(error)) from None
    finally:
        statement.close()


def _profile(
    source: StepSource, folder: str, step: Callable[[], Any], found: FoundCall, send: Send
) -> _Measured:
    def doing(what: Why) -> None:
        send(DoesNext(what))

    torch = sys.modules.get("torch")
    library = next(
        (name for name in LIBRARIES if name in found.waits), "torch" if torch else "none"
    )
    device = found.adapter if found.api != "CPU" else ""
    profile = StepProfile(found, library, device)
    if torch is None or library != "torch" or (device and not torch.cuda.is_initialized()):
        return (
            dataclasses.replace(profile, reason=_why_not_profiled(library, device)),
            ReturnTimes(),
        )
    doing(because("profiling-the-step"))
    try:
        with contextlib.closing(QuietProcessor(SystemClock())) as processor:
            profiler = _TorchProfile(torch, step, source.folder, folder, device, doing, processor)
            step_ns, missing, returns = profiler.run()
            return dataclasses.replace(profile, step_ns=step_ns, sites_missing=missing), returns
    except Exception as error:
        why = because("step-cannot-be-profiled", error=error_text(error))
        return dataclasses.replace(profile, reason=why), ReturnTimes()


def _why_not_profiled(library: str, device: str) -> Reason:
    """Why only the times of a step are measured."""
    if library == "none":
        return because("step-without-torch-not-profiled")
    if library == "torch":
        return because("torch-on-device-not-profiled", device=device)
    return because("library-not-profiled", library=library)


@dataclasses.dataclass
class _TorchProfile:
    """Profiles a step with both profilers of PyTorch. ``program``: its folder. ``folder``: for the
    traces.
    """

    torch: Any
    step: Callable[[], Any]
    program: str
    folder: str
    device: str
    doing: _Listening
    processor: QuietProcessor

    def __post_init__(self) -> None:
        self.on_cuda = bool(self.device) and self.torch.cuda.is_initialized()
        self.synchronize: Callable[[], object] = (
            self.torch.cuda.synchronize if self.on_cuda else lambda: None
        )

    def run(self) -> tuple[float, Why, ReturnTimes]:
        """Write the traces. The time of a step, ns, why lines are missing or '', and the return
        times.
        """
        for _ in range(_WARM_STEPS):
            self.step()
        one_s = self._seconds(1)
        # The C library keeps freed memory: in new pages an operation costs the profiler up to three
        # times as much.
        with contextlib.suppress(
            OSError, AttributeError, TypeError
        ):  # other C libraries; Windows has no library None
            for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
                ctypes.CDLL(None).mallopt(option, _KEPT_BYTES)
        fitting = math.ceil(_PROFILED_S / max(one_s, 1e-9))
        per_trace = min(_MOST, math.ceil(fitting / _HOST_TRACES))
        step_s, returns = self._host_work(per_trace, one_s)
        if self.on_cuda:
            steps = min(_MOST, max(_FEWEST, fitting))
            for number in (_FEWEST, steps):  # the first profile leaves memory for the next one
                self.doing(because("profiling-the-device"))
                self._trace(_DEVICE_FILE, False, [self.step] * (1 + number))
        self.doing(because("finding-lines-of-operations"))
        missing: Why = ""
        try:
            self._trace(_SITES_FILE, True, [self.step] * 3)
        except Exception as error:  # a compiled step may not run under a dispatch mode
            missing = because("call-sites-not-recorded", error=one_line(error))
        return step_s * 1e9, missing, returns

    def _host_work(self, steps: int, one_s: float) -> tuple[float, ReturnTimes]:
        """Profile so many steps for each trace, and loops of one operation, in turn with both
        without a profiler.

        In turn, because the speed of a processor changes within a second. The time of a step, s,
        and the return times.
        """
        loop = self._loop()
        number = int(min(_MOST_RETURNS, max(_FEWEST_RETURNS, _RETURNS_S / max(one_s, 1e-9))))
        times: list[tuple[float, float]] = []
        step_returns: list[float] = []
        loop_returns: list[float] = []
        self._host_trace(
            _STEP_FILES[0], [self.step] * (1 + steps)
        )  # this profile leaves memory for the next ones
        traces = _FEW_TRACES if one_s > _SLOW_S else _HOST_TRACES
        for step_file, loop_file in zip(_STEP_FILES[:traces], _LOOP_FILES, strict=False):
            self.doing(because("profiling-the-host"))
            times += self._times(one_s, _TIMED_S / _HOST_TRACES)
            step_returns += self._returns(self.step, number)
            self._host_trace(step_file, [self.step] * (1 + steps))
            loop_returns += self._returns(loop, _LOOPS)
            self._host_trace(loop_file, [loop] * (1 + _LOOPS))
        return step_seconds(times), ReturnTimes(step_returns, loop_returns)

    def _loop(self) -> Callable[[], None]:
        """A loop of one operation on the device of the step."""
        x = self.torch.zeros(1, device="cuda" if self.on_cuda else "cpu")

        def loop() -> None:
            for _ in range(_LOOP_OPERATIONS):
                x.add_(x)

        return self.torch.no_grad()(loop)  # type: ignore[no-any-return]

    def _returns(self, call: Callable[[], object], number: int) -> list[float]:
        """So many return times of a call, ns. Each begins when the device has no work; the first
        one does not count.
        """
        self.processor.leave_if_slow()
        found: list[float] = []
        for _ in range(1 + number):
            self.synchronize()
            began = time.perf_counter_ns()
            call()
            found.append(time.perf_counter_ns() - began)
        self.synchronize()
        return found[1:]

    def _seconds(self, n: int) -> float:
        self.synchronize()
        began = time.perf_counter()
        for _ in range(n):
            self.step()
        self.synchronize()
        return time.perf_counter() - began

    def _times(self, one_s: float, least_s: float) -> list[tuple[float, float]]:
        """Times of some steps and of three times as many, in turn, in s for each of the former."""
        few = max(1, round(_SAMPLE_S / max(one_s, 1e-9)))
        found: list[tuple[float, float]] = []
        began = time.perf_counter()
        fewest = _FEWEST_SAMPLES if one_s < _SLOW_S else 1
        while len(found) < fewest or time.perf_counter() - began < least_s:
            self.processor.leave_if_slow()
            found.append((self._seconds(few) / few, self._seconds(3 * few) / few))
        return found

    def _host_trace(self, name: str, steps: Sequence[Callable[[], object]]) -> None:
        """Profile steps, each on an idle device, by PyTorch's older profiler: ``torch.profiler``
        always uses CUPTI.
        """
        from torch.autograd import profiler_legacy

        self.processor.leave_if_slow()
        profiler_legacy._enable_profiler_legacy(profiler_legacy.profile().config())
        try:
            for index, step in enumerate(steps):
                self.synchronize()
                with self._mark(index):
                    step()
        finally:
            threads = profiler_legacy._disable_profiler_legacy()
        (Path(self.folder) / name).write_bytes(
            msgspec.json.encode(list(_operation_events(self.torch, threads)))
        )

    def _trace(self, name: str, sites: bool, steps: Sequence[Callable[[], object]]) -> None:
        """Profile operations, runtime calls, and the work of the device if there is one."""
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_cuda else [])]
        self.processor.leave_if_slow()
        self.synchronize()
        with profile(activities=kinds, profile_memory=sites) as profiler:
            for index, step in enumerate(steps):
                lines = (
                    marked_sites(self.torch, self.program) if sites else contextlib.nullcontext()
                )
                with self._mark(index), lines:
                    step()
            self.synchronize()
        profiler.export_chrome_trace(str(Path(self.folder) / name))

    def _mark(self, index: int) -> Any:
        """Marks a step in a profile. ``record_function`` takes 10 us, which would count as work of
        the step.
        """
        return self.torch._C._profiler._RecordFunctionFast(f"{STEP_MARK}{index}")


def _operation_events(torch: Any, threads: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The operations in the records of each thread, as events of a Chrome trace.

    PyTorch's own reader takes six times as long. It also leaves many objects; freeing them slows
    down the next timing.
    """
    from torch.autograd.profiler_util import _filter_name

    annotation = int(torch._C._profiler.RecordScope.USER_SCOPE)
    begin = next(
        record for records in threads for record in records if record.name() == "__start_profile"
    )
    for records in threads:
        running: dict[int, Any] = {}
        for record in records:
            if record.kind() == "push" and not _filter_name(record.name()):
                running[record.handle()] = record
            elif (
                record.kind() == "pop" and (first := running.pop(record.handle(), None)) is not None
            ):
                start_us = begin.cpu_elapsed_us(first)
                yield {
                    "ph": "X",
                    "cat": "user_annotation" if first.scope() == annotation else "cpu_op",
                    "name": first.name(),
                    "tid": first.thread_id(),
                    "ts": start_us,
                    "dur": begin.cpu_elapsed_us(record) - start_us,
                }


def step_seconds(times: Sequence[tuple[float, float]]) -> float:
    """The time of a step, s, from pairs of times of n and 3 n steps over n; of both the quickest
    quarter counts.
    """
    short, long = (quiet_mean(part) for part in zip(*times, strict=True))
    return (long - short) / 2


def _answer(job: _Job, send: Send) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the program prints
    try:
        send(_conditions(job, send) if job.conditions else _profiled(job, send))
    except UsageError as error:
        send(refusal(error))


if __name__ == "__main__":
    serve(_Job, _answer)
