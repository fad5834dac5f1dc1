"""The process that profiles a step: times of operations and device work, counts, and call sites.

After a process has once profiled with CUPTI, each launch takes 2.7 to 6 us longer, even when the profiler is off again
(four programs on an H200, driver 580.159). So the times of the host come from profiles without CUPTI, in turn with the
step without a profiler. Then a profile with CUPTI records the device's work, and the last one the call sites. Host time
comes from the profile with CUPTI only where the host waits and where that gives less, or if the profiles have different
operations.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from overhead.child import Send, serve
from overhead.errors import UsageError, one_line
from overhead.explain.call_sites import marked_sites
from overhead.explain.call_spec import CallSpec
from overhead.explain.chrome_trace import STEP_MARK
from overhead.explain.host_profile import operation_events, recorded
from overhead.explain.host_work import ReturnTimes
from overhead.explain.profiling import (
    DEVICE_FILE,
    SITES_FILE,
    Profiled,
    ProfileJob,
    host_files,
)
from overhead.explain.steps import StepSource, has_run, said
from overhead.explain.trace import quiet_mean
from overhead.explain.trial import TrialFound, TrialRefused, TrialStep, try_call
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.quiet_processor import QuietProcessor

_LIBRARIES = ("torch", "jax", "cupy", "numba", "wgpu-native", "dawn")
"""Names of waits of libraries, the surest first."""
_WARM_STEPS = 3
_PROFILED_S, _FEWEST, _MOST = 0.6, 3, 20
"""Steps are profiled for this long in all. The profile of the device has at least and at most so many steps, each one
of the host at most so many. One more step runs before them."""
_HOST_TRACES = 6
"""Profiles of the host, with times of the step between them."""
_RETURNS_S, _FEWEST_RETURNS, _MOST_RETURNS = 0.1, 3, 40
"""Between two profiles, steps are timed until they return: for this long, and so many at least and at most."""
_SLOW_S = 0.05
"""Of a longer step fewer samples are taken."""
_SAMPLE_S, _FEWEST_SAMPLES, _TIMED_S = 0.001, 4, 1.0
"""A sample without the profiler takes this long or one step; how many samples between two profiles, and for how long
in all, at least."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _KEPT_BYTES = -1, -3, 1 << 25
"""Options of glibc's ``mallopt``, and the largest value of the second."""
_LOOP_OPERATIONS, _LOOPS = 64, 5


def _profiled(job: ProfileJob, send: Send) -> Profiled:
    """Load, try and profile the step. Raises ``UsageError``."""

    def doing(what: str) -> None:
        send(TrialStep(what))

    doing("loading the program")
    step = _loaded(job.source)
    doing("the first step")
    again = "the step cannot be repeated: the first one works, then "
    _run(step, again if has_run(step) else "")
    doing("the second step")
    _run(step, again)
    doing("timing the step")
    spec = CallSpec(calls=["step()"], setup=f"from {__name__} import held\nstep = held()", path=job.source.path)
    _held.append(step)
    found = try_call(spec, "step()", job.longest_s, lambda what: None, 2 + has_run(step))
    send(TrialFound(found))
    library = next((name for name in _LIBRARIES if name in found.waits), "none")
    if library == "none" and "torch" in sys.modules:
        library = "torch"
    device = found.adapter if found.api != "CPU" else ""
    torch = sys.modules.get("torch")
    if torch is None or library != "torch" or (device and not torch.cuda.is_initialized()):
        what = {"none": "a step without PyTorch", "torch": f"PyTorch on {device}"}.get(library, library)
        return Profiled(reason=f"{what} is not profiled: only its times are measured", library=library, device=device)
    doing("profiling the step")
    try:
        return _TorchProfile(torch, step, job, device, doing).run()
    except ImportError as error:
        reason = f"this version of PyTorch has no profiler of the host alone ({one_line(error)})"
    except Exception as error:
        reason = f"the step cannot be profiled: {said(error)}"
    return Profiled(reason=reason, library=library, device=device)


_held: list[Callable[[], Any]] = []


def held() -> Callable[[], Any]:
    """The step that this process has loaded."""
    return _held[-1]


def _loaded(source: StepSource) -> Callable[[], Any]:
    sys.path[:0] = [entry for entry in source.path if entry not in sys.path]
    scope: dict[str, Any] = {"__name__": "__overhead__"}
    try:
        exec(source.setup, scope)
    except UsageError:
        raise
    except BaseException as error:
        raise UsageError(said(error)) from error
    step: Callable[[], Any] = scope["step"]
    return step


def _run(step: Callable[[], Any], worked: str) -> None:
    try:
        step()
    except BaseException as error:  # sys.exit too
        memory = "out of memory: " if "OutOfMemory" in type(error).__name__ or isinstance(error, MemoryError) else ""
        raise UsageError(f"{worked}{memory}{said(error)}") from error


class _TorchProfile:
    """Profiles a step with both profilers of PyTorch."""

    def __init__(
        self, torch: Any, step: Callable[[], Any], job: ProfileJob, device: str, doing: Callable[[str], None]
    ) -> None:
        self.torch, self.step, self.job, self.device, self.doing = torch, step, job, device, doing
        self.on_cuda = bool(device) and torch.cuda.is_initialized()
        self.synchronize: Callable[[], object] = torch.cuda.synchronize if self.on_cuda else lambda: None

    def run(self) -> Profiled:
        with contextlib.closing(QuietProcessor(SystemClock())) as self.processor:
            return self._run()

    def _run(self) -> Profiled:
        for _ in range(_WARM_STEPS):
            self.step()
        one_s = self._seconds(1)
        _keep_freed_memory()
        fitting = math.ceil(_PROFILED_S / max(one_s, 1e-9))
        per_trace = min(_MOST, math.ceil(fitting / _HOST_TRACES))
        step_s, returns = self._host_work(host_files(_HOST_TRACES), per_trace, one_s)
        if self.on_cuda:
            steps = min(_MOST, max(_FEWEST, fitting))
            for number in (_FEWEST, steps):  # the first profile leaves memory for the next one
                self.doing("profiling the device's work")
                self._trace(DEVICE_FILE, False, [self.step] * (1 + number))
        self.doing("finding the lines of the operations")
        missing = ""
        try:
            self._trace(SITES_FILE, True, [self.step] * 3)
        except Exception as error:  # a compiled step may not run under a dispatch mode
            missing = f"no call sites: {one_line(error)}"
        return Profiled(step_s * 1e9, _HOST_TRACES, returns, library="torch", device=self.device, sites_missing=missing)

    def _host_work(self, files: Sequence[tuple[str, str]], steps: int, one_s: float) -> tuple[float, ReturnTimes]:
        """Profile the host's work in so many steps for each pair of files, and in loops of one operation. In turn, time
        both without a profiler, because the speed of a processor changes within a second.

        Returns the time of a step, s, and the return times.
        """
        loop = self._loop()
        number = int(min(_MOST_RETURNS, max(_FEWEST_RETURNS, _RETURNS_S / max(one_s, 1e-9))))
        times: list[tuple[float, float]] = []
        step_returns: list[float] = []
        loop_returns: list[float] = []
        self.doing("profiling the host's work")
        self._host_trace(files[0][0], [self.step] * (1 + steps))  # this profile leaves memory for the next ones
        for step_file, loop_file in files:
            self.doing("profiling the host's work")
            times += self._times(one_s, _TIMED_S / len(files))
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
        """So many return times of a call, ns. Each begins when the device has no work; the first one does not count."""
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
        """Profile the operations of the steps. Each begins when the device has no work."""
        self.processor.leave_if_slow()
        with recorded() as threads:
            for index, step in enumerate(steps):
                self.synchronize()
                with self._mark(index):
                    step()
        (Path(self.job.folder) / name).write_bytes(msgspec.json.encode(list(operation_events(threads))))

    def _trace(self, name: str, sites: bool, steps: Sequence[Callable[[], object]]) -> None:
        """Profile operations, runtime calls, and the work of the device if there is one."""
        from torch.profiler import ProfilerActivity, profile

        kinds = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if self.on_cuda else [])]
        marked = functools.partial(marked_sites, self.torch, self.job.source.folder)
        self.processor.leave_if_slow()
        self.synchronize()
        with profile(activities=kinds, profile_memory=sites) as profiler:
            for index, step in enumerate(steps):
                with self._mark(index), marked() if sites else contextlib.nullcontext():
                    step()
            self.synchronize()
        profiler.export_chrome_trace(str(Path(self.job.folder) / name))

    def _mark(self, index: int) -> Any:
        """Marks a step in a profile. ``record_function`` takes 10 us, which would count as work of the step."""
        slow = self.torch.profiler.record_function
        return getattr(self.torch._C._profiler, "_RecordFunctionFast", slow)(f"{STEP_MARK}{index}")


def step_seconds(times: Sequence[tuple[float, float]]) -> float:
    """The time of a step from pairs of ``_times``, s. The quiet quarter of the short times and that of the long times
    count, because what else runs on the machine only adds to a time. The wait at the end of each drops out.
    """
    short, long = (quiet_mean(part) for part in zip(*times, strict=True))
    return (long - short) / 2


def _keep_freed_memory() -> None:
    """Let the C library keep what is freed. In memory that is new to a process, an operation costs the profiler up to
    three times as much, because the system has to provide each page.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other C libraries; Windows has no library None
        for option in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, _KEPT_BYTES)


def _answer(job: ProfileJob, send: Send) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the program prints
    try:
        send(_profiled(job, send))
    except UsageError as error:
        send(TrialRefused(str(error)))


if __name__ == "__main__":
    # The held step must be that of the module that the statement imports, not of ``__main__``.
    from overhead.explain import profiled_process

    serve(ProfileJob, profiled_process._answer)
