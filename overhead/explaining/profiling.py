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
from typing import Any, NamedTuple

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
from overhead.measure.sampling.undisturbed_processor import UndisturbedProcessor
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
from overhead.traces.trace import CallSite, HostOperation, StepTrace, Trace, quiet_mean

LONGEST_STEP_S = 1.0
"""The longest step that is explained. Chosen, not measured; profiles of longer steps would take
most of the time limit.
"""
_DEVICE_FILE, _SITES_FILE = "device.json", "sites.json"
_WARM_STEPS = 3
_PROFILED_S, _FEWEST, _MOST = 0.6, 3, 20
"""Steps are profiled for this long in all. The profile of the device has at least and at most so
many steps, each one of the host at most so many. One more step runs before them. Chosen, not
measured.
"""
_HOST_TRACES, _FEW_TRACES = 6, 2
"""Profiles of the host, with times of the step between them; and those of a slow step. Chosen, not
measured.
"""
_STEP_FILES = [f"host-{index}.json" for index in range(_HOST_TRACES)]
_LOOP_FILES = [f"loop-{index}.json" for index in range(_HOST_TRACES)]
"""The traces without the device: of the step, and of a loop of one operation."""
_RETURNS_S, _FEWEST_RETURNS, _MOST_RETURNS = 0.1, 3, 40
"""Between two profiles, steps are timed until they return: for this long, and so many at least and
at most. Chosen, not measured.
"""
_SLOW_S = 0.1
"""Of a longer step fewer profiles and samples are taken. Chosen, not measured."""
_SAMPLE_S, _FEWEST_SAMPLES, _TIMED_S = 0.001, 4, 1.0
"""A sample without the profiler takes this long or one step; how many samples between two profiles,
and for how long in all, at least. Chosen, not measured.
"""
_LONGER_SAMPLE = 3
"""The longer sample of a pair has so many times the steps of the shorter one."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT_BYTES = -1, -3, 1 << 25
"""Options of glibc's ``mallopt``, and the largest value of the second."""
_LOOP_OPERATIONS, _LOOPS = 64, 5
_SITES_STEPS = 3
_MOST_NAME = 200
"""The name of a type is cut there: a field of the file holds no longer name."""
_BESIDE_THE_PROFILE = because("measured-beside-the-profile")
_NAMES = ("loading the program", "the step")
"""What a trial calls SETUP and CALL in errors."""


@dataclasses.dataclass(frozen=True)
class StepProfile:
    """A step that was tried, and its profile: what a profiler recorded of it. ``trace``: the
    profiled steps; None with a ``reason`` where the library has no profile.

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


class _Measured(NamedTuple):
    """What the child process sends: the profile without its traces, and the return times."""

    profile: StepProfile
    returns: ReturnTimes


class SampledTimes(NamedTuple):
    """Two samples without a profiler, in s for each step of the shorter one: of n steps, and of 3 n
    steps.
    """

    short: float
    long: float


class _ProfilerRun(NamedTuple):
    """What profiling gives beside the traces. ``step_ns``: the time of a step without a profiler.
    ``sites_missing``: why the lines of the operations are not known; ''.
    """

    step_ns: float
    sites_missing: Why
    returns: ReturnTimes


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
    """Try a step in a child process, measure there what the host does meanwhile, and profile the
    step with PyTorch. Raises ``UsageError`` for a step that cannot be tried; a step that only
    cannot be profiled gets a profile with the reason.

    ``doing`` gets what is done next, for who shows progress.
    """
    with scratch.subfolder() as folder:
        began = time.monotonic()
        # The child answers twice: when it has tried the step, and when it has profiled it. It
        # writes the traces into the folder. The child runs this module; after ``SILENCE_S``, a
        # minute, without a word it is ended.
        answers = child_answers(__name__, _Job(source, folder), _decode, SILENCE_S, doing)
        with contextlib.closing(answers) as said_by_child:
            found = _first_answer(said_by_child)
            loading_s = time.monotonic() - began
            try:
                measured: _Measured = next(said_by_child)
            except UsageError as error:  # the step works; its profile does not
                unprofiled = StepProfile(found, "none", "", reason=error.why)
                measured = _Measured(unprofiled, ReturnTimes())
        # The traces are read here: they are in files, which the child has closed now.
        profile = dataclasses.replace(measured.profile, loading_s=loading_s)
        if profile.reason:
            return profile
        try:
            return _with_traces(profile, folder, measured.returns)
        except BadFile as error:
            return dataclasses.replace(profile, reason=because("profile-unreadable", why=error.why))


def _first_answer(said_by_child: Iterator[Any]) -> FoundCall:
    """What the child process says first: the result of the trial, in which it loaded the program
    and ran the step a few times. Raises ``UsageError`` if there is none; if the child was ended
    because it took too long, the error also says what to do.
    """
    try:
        found: FoundCall = next(said_by_child)
    except UsageError as error:
        # What ended the child: the error was raised while that was handled.
        ended = error.__context__
        # Perhaps the function runs a whole program, and does not return.
        if isinstance(ended, ChildEnded) and ended.why == "time":
            raise UsageError(because("ended-in-one-step", why=error.why)) from None
        raise
    return found


def measure_conditions(
    source: StepSource, busy_threads: int, *, doing: _Listening = _ignore
) -> list[Condition]:
    """Time the step under other conditions on the host, such as on one CPU core, in a child
    process. Raises ``UsageError``.

    ``busy_threads``: how many other Python threads of the program are busy. ``doing`` gets what is
    done next, for who shows progress.
    """
    job = _Job(source, conditions=True, busy_threads=busy_threads)
    # The child runs this module; after a minute without a word it is ended.
    answers = child_answers(__name__, job, _decode_conditions, SILENCE_S, doing)
    with contextlib.closing(answers) as said_by_child:
        conditions: list[Condition] = next(said_by_child)
        return conditions


def _with_traces(profile: StepProfile, folder: str, returns: ReturnTimes) -> StepProfile:
    """The profile with the traces that the child process wrote into this folder, joined into one.
    Raises ``BadFile``.

    The operations come from the trace of the device, their lines in the program from one that was
    recorded for the lines alone, and the times of the host from traces without the device.
    ``returns``: times until a step returns, without a profiler.
    """
    written = os.listdir(folder)
    # Of a slow step fewer traces were written.
    host_alone = _read_traces(folder, [name for name in _STEP_FILES if name in written])
    # ``loop``: a loop of one operation, which shows what the profiler adds to one.
    loop = _read_traces(folder, [name for name in _LOOP_FILES if name in written])
    # ``main``: the trace of the operations; ``sites``: the one that has their lines. Without a
    # device the traces of the host have the operations.
    main = _read_traces(folder, [_DEVICE_FILE]) if profile.device else host_alone
    if profile.device and not main.has_device:
        return dataclasses.replace(profile, reason=because("no-device-work-seen"))
    sites = Trace([]) if profile.sites_missing else _read_traces(folder, [_SITES_FILE])
    joined, missing = with_sites(main, sites)
    # ``blocked_ns``: how long the host waits for the device in a step.
    host = HostTimes(host_alone, profiler_cost(host_alone, loop, returns, main.blocked_ns))
    return dataclasses.replace(
        profile, trace=joined, host=host, sites_missing=profile.sites_missing or missing
    )


def _read_traces(folder: str, names: Iterable[str]) -> Trace:
    """The steps of these files as one trace, without the first step of each file, in which the
    device and the profiler start. Raises ``BadFile``.
    """
    traces = []
    for name in names:
        data = read_whole(Path(folder) / name, MOST_TRACE_BYTES)
        traces.append(read_chrome_trace(data, name))
    steps: list[StepTrace] = []
    for trace in traces:
        steps += trace.without_first_step().steps
    if len(traces) == 1:  # what its recording lost is known
        return Trace(steps, recording=traces[0].recording)
    return Trace(steps)


def with_sites(plain: Trace, sites: Trace) -> tuple[Trace, Why]:
    """The trace ``plain`` with the lines and allocations that another trace of the same program
    recorded (``sites``), and why some lines are missing, or ''. To record lines takes long, so the
    times come from ``plain``.

    A step gets its lines from a step of ``sites`` that runs the same operations in the same order.
    """
    # A recorded step without operations has no line to give.
    with_lines = [step for step in sites.steps if step.operations]
    if not with_lines:
        return plain, because("no-call-sites")
    steps = []
    without_lines = []
    for step in plain.steps:
        joined = _joined_with_any(step, with_lines)
        steps.append(joined or step)
        if joined is None:
            without_lines.append(step)

    # The first step without lines stands for all in the reason.
    trace = dataclasses.replace(plain, steps=steps)
    if not without_lines:
        return trace, ""
    why = _first_difference(without_lines[0], with_lines[0])
    return trace, because("lines-missing", missing=len(without_lines), steps=len(steps), why=why)


def _joined_with_any(step: StepTrace, models: Sequence[StepTrace]) -> StepTrace | None:
    """The step with the lines of a model: a step whose lines were recorded. The first model that
    runs the same operations gives them; None if none does.
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
    """Why the lines of ``model`` do not fit ``step``: the first operation in which the two steps
    differ.
    """
    names = [operation.name for operation in step.operations]
    # ``_known_operations``: without those that recording the lines adds.
    others = [operation.name for operation in _known_operations(model)]
    for number, (name, other) in enumerate(itertools.zip_longest(names, others), 1):
        if name == other:
            continue
        if name is None:
            return because("step-ends-before-the-operation", number=number, other=other)
        if other is None:
            return because("recorded-step-ends-before-the-operation", number=number, name=name)
        return because("operations-differ", number=number, name=name, other=other)
    return because("other-operations-with-lines")  # all names are the same


def _joined(step: StepTrace, model: StepTrace) -> StepTrace | None:
    """The step with the lines of ``model``, which was recorded with lines; None if the two run
    different operations.
    """
    # Without the operations that recording the lines adds.
    known = _known_operations(model)
    if [operation.name for operation in step.operations] != [each.name for each in known]:
        return None
    # First the operations: each gets the line of the operation at the same place.
    operations = {}  # by the id of the operation without a line, to which calls refer
    for plain, with_site in zip(step.operations, known, strict=True):
        operations[id(plain)] = msgspec.structs.replace(plain, site=with_site.site)

    # Then the calls: each gets its operation with the line. ``sites``: by the start of a call.
    sites = _sites_of_synchronisations(step, model)
    calls = []
    for call in step.calls:
        operation = operations.get(id(call.operation))
        # A synchronisation has a line of its own; any other call that of its operation.
        site = sites.get(call.start)
        if site is None:
            site = operation.site if operation else call.site
        calls.append(msgspec.structs.replace(call, operation=operation, site=site))
    return dataclasses.replace(
        step, operations=list(operations.values()), calls=calls, allocations=model.allocations
    )


def _sites_of_synchronisations(step: StepTrace, model: StepTrace) -> dict[float, CallSite]:
    """The lines of the step's synchronisations (calls that wait for the device) as ``model``
    recorded them, by the start of the call. Nothing if the two steps have different numbers of
    them: nobody knows then which line belongs to which.
    """
    if len(step.synchronisations) != len(model.synchronisations):
        return {}
    sites = {}
    for call, with_site in zip(step.synchronisations, model.synchronisations, strict=True):
        sites[call.start] = with_site.site
    return sites


class _TriedStep(NamedTuple):
    """A step that was tried in this process. ``found``: what the trial found out, such as how long
    a step takes. ``statement``: the loop that runs it. ``host``: measures what the host does.
    """

    found: FoundCall
    statement: StatementLoop
    host: HostMeasurement


def _tried(source: StepSource, send: Send) -> _TriedStep:
    """Load the program and run its step a few times, in the child process. Raises ``UsageError``
    for a step that raises, takes too long, or leaves its work for later. ``send`` gets what is done
    next.
    """
    known_threads = [*sys._current_frames()]  # those that are not the program's
    # ``path``: the folders in which the program finds its modules.
    sys.path[:0] = [entry for entry in source.path if entry not in sys.path]
    # This part of the setup refuses a step that takes over a second in two calls in a row.
    check = (
        f"from {refuse_long.__module__} import refuse_long\nrefuse_long(found_step,"
        f" {LONGEST_STEP_S})"
    )
    # ``try_call`` finds out what ``step()`` needs: how long it takes, and what to wait for.
    spec = CallSpec(calls=["step()"], setup=f"{source.setup}\n{check}")

    def doing(what: Why) -> None:
        send(DoesNext(what))

    with telling_first_call(lambda: doing(CALLING_THE_FUNCTION)):
        # ``statement``: a loop of the call; ``wait``: waits until the device is done. ``_NAMES``:
        # what errors call the setup and the call.
        found, statement, wait = try_call(spec, "step()", LONGEST_STEP_S, doing, _NAMES)
    # A step that returns a coroutine or a generator has not run yet.
    for result in statement.results:
        refuse_unfinished(result, "the step")

    def run(steps: int) -> None:
        statement.issue(steps)
        wait()

    host = HostMeasurement(run, found.one_ns, other_threads(known_threads))
    return _TriedStep(found, statement, host)


def _profiled(job: _Job, send: Send) -> _Measured:
    """The main work of the child process: load and try the step, measure what the host does while
    it runs, and profile it. The traces go to the folder of the job. Raises ``UsageError``.
    """
    tried = _tried(job.source, send)
    # The setup of the program has stored the step under this name.
    step: FoundStep = tried.statement.names["found_step"]
    # This is the first of two answers to the parent process.
    send(tried.found)
    send(DoesNext(because("running-the-step-on-the-host")))
    shares = dict[str, float]()
    with contextlib.suppress(Exception):  # the step of a user, which worked a few times
        # For which share of a step's time the thread waited for a CPU core, and the like; and for
        # which share the program's own Python ran.
        shares = tried.host.shares() | tried.host.own_python()
    # From here on the step itself is called, no longer the timed loop around it.
    tried.statement.close()
    profile, returns = _profile(job.source, job.folder, step.call, tried.found, send)
    profile = dataclasses.replace(
        profile,
        is_returned=step.is_returned,
        # ``returned``: the type of what the named function returned, cut as a file holds it.
        returned=step.returned[:_MOST_NAME],
        shares=shares,
    )
    return _Measured(profile, returns)


def _conditions(job: _Job, send: Send) -> list[Condition]:
    """The other work of the child process: load and try the step, and time it under each condition
    on the host, such as without garbage collection. Raises ``UsageError``.
    """
    tried = _tried(job.source, send)
    send(DoesNext(because("running-the-step-under-conditions")))
    try:
        return tried.host.conditions(job.busy_threads)
    except Exception as error:  # the step of a user, which worked a few times
        raise UsageError(error_text(error)) from None
    finally:
        tried.statement.close()


def _profile(
    source: StepSource, folder: str, step: Callable[[], Any], found: FoundCall, send: Send
) -> _Measured:
    """Profile a step that was tried (``step``) with PyTorch; the traces go to ``folder``. If that
    is not possible, since the step uses another library or raises in a profiler, the profile has
    the reason.
    """

    def doing(what: Why) -> None:
        send(DoesNext(what))

    torch = sys.modules.get("torch")
    # The library whose work the trial waits for is the one of the step.
    library = next((name for name in LIBRARIES if name in found.waits), "")
    if not library:
        library = "torch" if torch else "none"
    # ``adapter``: the name of the device that the trial waited for.
    device = found.adapter if found.api != "CPU" else ""
    profile = StepProfile(found, library, device)
    # PyTorch's profiler sees the device only where PyTorch uses CUDA.
    if torch is None or library != "torch" or (device and not torch.cuda.is_initialized()):
        profile = dataclasses.replace(profile, reason=_why_not_profiled(library, device))
        return _Measured(profile, ReturnTimes())

    doing(because("profiling-the-step"))
    try:
        # ``run`` writes the traces to files. It returns the time of a step, why the lines of the
        # operations are missing ('' if they are not), and how long calls take without a profiler
        # (``returns``). With that the parent subtracts the profiler's cost when it has read the
        # traces.
        with contextlib.closing(UndisturbedProcessor(SystemClock())) as processor:
            profiler = _TorchProfile(torch, step, source.folder, folder, device, doing, processor)
            step_ns, missing, returns = profiler.run()
    except Exception as error:
        why = because("step-cannot-be-profiled", error=error_text(error))
        return _Measured(dataclasses.replace(profile, reason=why), ReturnTimes())
    profile = dataclasses.replace(profile, step_ns=step_ns, sites_missing=missing)
    return _Measured(profile, returns)


def _no_wait() -> None:
    pass


def _why_not_profiled(library: str, device: str) -> Reason:
    """Why only the times of a step are measured."""
    if library == "none":
        return because("step-without-torch-not-profiled")
    if library == "torch":
        return because("torch-on-device-not-profiled", device=device)
    return because("library-not-profiled", library=library)


@dataclasses.dataclass
class _TorchProfile:
    """Profiles a step with both profilers of PyTorch: the older one, which records the host alone,
    and ``torch.profiler``, which also records the device by CUPTI and then slows the process.

    ``program``: the folder of the program. ``folder``: for the traces. ``device``: its name, '' for
    a step on the CPU. ``doing``: gets what is done next. ``processor``: moves this thread away from
    a CPU core that is slow.
    """

    torch: Any
    step: Callable[[], Any]
    program: str
    folder: str
    device: str
    doing: _Listening
    processor: UndisturbedProcessor

    def __post_init__(self) -> None:
        self.on_cuda = bool(self.device) and self.torch.cuda.is_initialized()
        # Called in timed loops, so a step without a device waits by a function that does nothing.
        self.synchronize: Callable[[], object] = _no_wait
        if self.on_cuda:
            self.synchronize = self.torch.cuda.synchronize

    def run(self) -> _ProfilerRun:
        """Write the traces: of the host, then of the device, then one with the lines of the
        program. Returns the time of a step without a profiler, and what else is not in the traces.

        CUPTI slows all launches after it, so the profile of the device comes after the times of
        the host.
        """
        for _ in range(_WARM_STEPS):
            self.step()
        # A rough time of one step, by which the numbers of steps below are chosen.
        one_s = self._seconds(1)
        _keep_freed_memory()
        fitting = math.ceil(_PROFILED_S / max(one_s, 1e-9))  # so many steps fit into that time
        per_trace = min(_MOST, math.ceil(fitting / _HOST_TRACES))
        # First the host, as long as CUPTI has not slowed the process.
        step_s, returns = self._host_work(per_trace, one_s)
        if self.on_cuda:
            steps = min(_MOST, max(_FEWEST, fitting))
            for number in (_FEWEST, steps):  # the first profile leaves memory for the next one
                self.doing(because("profiling-the-device"))
                # One step more, in which the profiler starts: whoever reads the trace leaves it
                # out. Both write to one file, so the second profile stays. ``False``: without
                # lines.
                self._trace(_DEVICE_FILE, False, [self.step] * (1 + number))
        self.doing(because("finding-lines-of-operations"))
        missing: Why = ""
        try:
            # ``True``: with the lines, which takes long; its times are not used.
            self._trace(_SITES_FILE, True, [self.step] * _SITES_STEPS)
        except Exception as error:  # a compiled step may not run under a dispatch mode
            missing = because("call-sites-not-recorded", error=one_line(error))
        return _ProfilerRun(step_s * 1e9, missing, returns)

    def _host_work(self, steps: int, one_s: float) -> tuple[float, ReturnTimes]:
        """Profile the host: ``steps`` steps for each trace, and a loop of one operation, in turn
        with both without a profiler. Returns the time of a step without the profiler, s, and how
        long a step and the loop take until they return. From these follows what the profiler adds.

        In turn, because the speed of a processor changes within a second. ``one_s``: about how long
        a step takes.
        """
        # ``number``: how many returns of the step are timed in a turn.
        loop = self._loop()
        fitting = _RETURNS_S / max(one_s, 1e-9)
        number = int(min(_MOST_RETURNS, max(_FEWEST_RETURNS, fitting)))
        times: list[SampledTimes] = []
        step_returns: list[float] = []
        loop_returns: list[float] = []
        # This profile leaves memory for the next ones. The first turn below writes the same file
        # again.
        self._host_trace(_STEP_FILES[0], [self.step] * (1 + steps))
        # In each turn: the step timed, its returns, its trace; then the same of the loop.
        traces = _FEW_TRACES if one_s > _SLOW_S else _HOST_TRACES
        for step_file, loop_file in zip(_STEP_FILES[:traces], _LOOP_FILES, strict=False):
            self.doing(because("profiling-the-host"))
            # ``_TIMED_S``: a second, over all turns.
            times += self._times(one_s, _TIMED_S / _HOST_TRACES)
            step_returns += self._returns(self.step, number)
            # One more, in which the profiler starts; it is not read.
            self._host_trace(step_file, [self.step] * (1 + steps))
            loop_returns += self._returns(loop, _LOOPS)
            self._host_trace(loop_file, [loop] * (1 + _LOOPS))
        return step_seconds(times), ReturnTimes(step_returns, loop_returns)

    def _loop(self) -> Callable[[], None]:
        """A function that runs one cheap operation many times on the device of the step. How much
        longer it takes with a profiler tells what the profiler costs an operation.
        """
        # 0, which stays 0 when it is added to itself.
        number = self.torch.zeros(1, device="cuda" if self.on_cuda else "cpu")

        def loop() -> None:
            for _ in range(_LOOP_OPERATIONS):
                number.add_(number)

        return self.torch.no_grad()(loop)  # type: ignore[no-any-return]

    def _returns(self, call: Callable[[], object], number: int) -> list[float]:
        """How long a call takes until it returns, so many times, ns. Each begins when the device
        has no work, as each profiled step does; the first one, which warms up, does not count.
        """
        # This thread goes to another CPU core if this one is slow now.
        self.processor.leave_if_slow()
        times_ns: list[float] = []
        for _ in range(1 + number):
            self.synchronize()
            began = time.perf_counter_ns()
            call()
            times_ns.append(time.perf_counter_ns() - began)
        self.synchronize()
        return times_ns[1:]

    def _seconds(self, n: int) -> float:
        """How long n steps take until their work is done, s: in a row, with one wait at the end."""
        self.synchronize()  # no earlier work may run into this time
        began = time.perf_counter()
        for _ in range(n):
            self.step()
        self.synchronize()
        return time.perf_counter() - began

    def _times(self, one_s: float, least_s: float) -> list[SampledTimes]:
        """Times of some steps and of three times as many, in turn, for ``least_s`` or longer. Their
        difference is the time of the additional steps alone, without starting and waiting.
        ``one_s``: about how long a step takes.
        """
        # ``few``: steps of a short sample, which takes about a millisecond.
        few = max(1, round(_SAMPLE_S / max(one_s, 1e-9)))
        many = _LONGER_SAMPLE * few
        # Of a step of over 0.1 s one pair is enough.
        fewest = _FEWEST_SAMPLES if one_s < _SLOW_S else 1
        times: list[SampledTimes] = []
        began = time.perf_counter()
        while len(times) < fewest or time.perf_counter() - began < least_s:
            self.processor.leave_if_slow()
            # Both are divided by ``few``: the long sample is the time of three steps.
            short_s = self._seconds(few)
            long_s = self._seconds(many)
            times.append(SampledTimes(short_s / few, long_s / few))
        return times

    def _host_trace(self, name: str, steps: Sequence[Callable[[], object]]) -> None:
        """Profile the host in these steps, each on an idle device, and write the trace to the file
        ``name``. PyTorch's older profiler does that: ``torch.profiler`` always uses CUPTI, which
        slows the host.
        """
        from torch.autograd import profiler_legacy

        self.processor.leave_if_slow()
        # On from here; each step is marked, and begins when the device has no work.
        profiler_legacy._enable_profiler_legacy(profiler_legacy.profile().config())
        try:
            for index, step in enumerate(steps):
                self.synchronize()
                with self._mark(index):
                    step()
        finally:
            threads = profiler_legacy._disable_profiler_legacy()
        events = list(_operation_events(self.torch, threads))
        (Path(self.folder) / name).write_bytes(msgspec.json.encode(events))

    def _trace(self, name: str, sites: bool, steps: Sequence[Callable[[], object]]) -> None:
        """Profile these steps with ``torch.profiler``: operations, runtime calls, and the work of
        the device if there is one. The trace goes to the file ``name``. ``sites``: mark each
        operation with its line in the program, and record what memory is allocated.
        """
        from torch.profiler import ProfilerActivity, profile

        # ``CUDA``: the device and its runtime calls too, by CUPTI.
        kinds = [ProfilerActivity.CPU]
        if self.on_cuda:
            kinds.append(ProfilerActivity.CUDA)
        self.processor.leave_if_slow()
        self.synchronize()
        with profile(activities=kinds, profile_memory=sites) as profiler:
            for index, step in enumerate(steps):
                marks: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
                if sites:
                    marks = marked_sites(self.torch, self.program)
                with self._mark(index), marks:
                    step()
            self.synchronize()
        # Written after the profiler has ended, which collects what it recorded.
        profiler.export_chrome_trace(str(Path(self.folder) / name))

    def _mark(self, index: int) -> Any:
        """A context that marks a step in a profile, so that a reader finds where it begins and
        ends. PyTorch's ``record_function`` takes 10 us, which would count as work of the step.
        """
        return self.torch._C._profiler._RecordFunctionFast(f"{STEP_MARK}{index}")


def _keep_freed_memory() -> None:
    """Make the C library keep the memory that is freed: in new pages an operation costs the
    profiler up to three times as much.
    """
    # Other C libraries than glibc have no such option; Windows has no library None.
    with contextlib.suppress(OSError, AttributeError, TypeError):
        # Above these sizes glibc gives freed memory back to the system.
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, _KEPT_BYTES)


def _operation_events(torch: Any, threads: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """The operations that the older profiler recorded, as events of a Chrome trace. ``threads``:
    the records of each thread, where a "push" begins an operation and a "pop" with the same handle
    ends it.

    PyTorch's own reader takes six times as long. It also leaves many objects; freeing them slows
    down the next timing.
    """
    from torch.autograd.profiler_util import _filter_name

    annotation = int(torch._C._profiler.RecordScope.USER_SCOPE)
    all_records = itertools.chain.from_iterable(threads)
    # Times count from the start of the profile, whichever thread has the record of it.
    begin = next(record for record in all_records if record.name() == "__start_profile")
    for records in threads:
        # By handle: the operations that have begun and not ended.
        running: dict[int, Any] = {}
        for record in records:
            # PyTorch's own reader leaves out operations of these names too.
            if record.kind() == "push" and not _filter_name(record.name()):
                running[record.handle()] = record
                continue
            if record.kind() != "pop":
                continue
            push = running.pop(record.handle(), None)
            if push is None:  # it is left out, or began before the profile
                continue
            start_us = begin.cpu_elapsed_us(push)
            yield {
                "ph": "X",
                # An annotation is the mark of a step (``_mark``), by which a reader finds the
                # steps.
                "cat": "user_annotation" if push.scope() == annotation else "cpu_op",
                "name": push.name(),
                "tid": push.thread_id(),
                "ts": start_us,
                "dur": begin.cpu_elapsed_us(record) - start_us,
            }


def step_seconds(times: Sequence[SampledTimes]) -> float:
    """The time of a step, s, without what any number of steps pays once: the slope between samples
    of n and of 3 n steps. Of both the quickest quarter counts.
    """
    # ``(T(3 n) - T(n)) / (2 n)`` with both times divided by n already.
    short_s = quiet_mean(sample.short for sample in times)
    long_s = quiet_mean(sample.long for sample in times)
    return (long_s - short_s) / (_LONGER_SAMPLE - 1)


def _answer(job: _Job, send: Send) -> None:
    """What the child process does: send the profile or the conditions, or why there are none."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the program prints is not shown
    try:
        send(_conditions(job, send) if job.conditions else _profiled(job, send))
    except UsageError as error:
        send(refusal(error))


if __name__ == "__main__":
    serve(_Job, _answer)
