"""Chains of n units on the CUDA driver: each unit is a launch that runs a step, or one launch runs
n steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from overhead.probes.base import DeviceTime, Unsupported, Unverified, whole_units
from overhead.probes.common.loops import Action, Issue, Stages, alternating
from overhead.probes.common.native_loop import (
    NativeProgram,
    compile_ffi,
    compile_native,
    compile_stages,
)
from overhead.probes.cuda.api import CudaDriver, error_code
from overhead.probes.cuda.launch import (
    bound_launch,
    bound_read,
    bound_wait,
    calls_in_order,
    launch_call,
    wait_calls,
)
from overhead.probes.cuda.session import Arguments, CudaSession, SessionClock, step_arguments
from overhead.probes.held_chain import HeldChain
from overhead.results import Case, Scalar, because


class SessionChain(HeldChain):
    """A chain with a session of its own, which it closes. A call from compiled code may fail: see
    ``failed``.
    """

    wait_spins = True
    session: CudaSession
    failed: Callable[[], int] = staticmethod(lambda: 0)
    """The bitwise or of the results of all checked calls; 0: none failed."""
    _issued: object = None
    _waited: object = None

    def use_session(self, session: CudaSession) -> None:
        """Take the session, then ``build`` the chain on it; a session whose chain cannot be built
        is closed. Called once, by ``__init__``.
        """
        self.session = session
        try:
            self._wait = self.make_wait()
            self.build()
        except BaseException:
            session.close()
            raise

    def build(self) -> None:
        """Make the objects that ``issue`` needs."""
        raise NotImplementedError

    def make_wait(self) -> Action:
        """A function that returns when the stream of the session is idle."""
        return bound_wait(self.session, "stream")

    def wait(self) -> None:
        """Return when the stream of the session is idle."""
        self._waited = self._wait()

    def check_calls(self) -> None:
        """Raise ``Unverified`` if a checked call, the last wait, or the last wait or read inside a
        unit failed.
        """
        code = self.failed() or error_code((self._waited, self._issued))
        if code:
            name = self.session.driver.error_name(code)
            raise Unverified(because("driver-call-failed", error=name))

    @functools.cached_property
    def _clock(self) -> SessionClock:
        return SessionClock(self.session)

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units; None if each unit contains a wait."""
        if self.latency:
            return None
        return self.held(self._clock, n)

    def close(self) -> None:
        """Close the session."""
        self.session.close()


class CudaChain(SessionChain):
    """Base class of the step's chains on a CUDA device. The values of the words show how many steps
    have run.

    ``details``: what ``window`` says.
    """

    places = 1
    """Number of sets of words in memory. The units use them in turn."""
    steps_of_a_unit = 1
    may_own_stream = True
    """Whether the session makes a stream of its own, unless the case names the default stream."""

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        self.case = case
        self.wait_spins = case.params.get("wait") != "event-blocking"
        self.details: dict[str, Scalar] = {}
        own_stream = self.may_own_stream and case.params.get("stream") != "default"
        self.use_session(CudaSession(driver, ordinal, own_stream=own_stream, places=self.places))

    def make_wait(self) -> Action:
        """A function that makes the wait of the case, through cuda-bindings or through ctypes as
        its caller says.
        """
        name = str(self.case.params.get("wait", "stream"))
        if self.case.caller == "binding":
            return bound_wait(self.session, name)
        return calls_in_order(wait_calls(self.session, name, checked=False))

    def executed(self) -> int:
        """The number of units that ran, without those for device time. Raises ``Unverified`` if a
        call failed.
        """
        self.check_calls()
        return whole_units(self.session.steps(), self.steps_of_a_unit) - self.aside

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel file in use."""
        return self.session.kernels()

    def window(self) -> dict[str, Scalar]:
        """What is timed: the driver call with its arguments and its stream."""
        return self.details


class CudaLaunches(CudaChain):
    """n launches. In the patterns ``wait-each`` and ``read-each`` a wait or a copy to the host
    follows each launch.
    """

    _stages: Stages = staticmethod(lambda n: {})

    def build(self) -> None:
        """Make the loop of the caller, and for compiled code and ctypes the loop that times its
        stages.
        """
        case = self.case
        count = int(case.params["arguments"])
        function = self.session.kernel("step.cu", f"step{count}")
        self._arguments = step_arguments(self.session, count=count)
        self.latency = case.pattern in ("wait-each", "read-each")
        self.overlap = "serial" if self.latency else "pipelined"
        self.details = {
            "call": "cuLaunchKernel",
            "arguments": case.params["arguments"],
            "stream": "default",
            "checked": case.caller == "native",
            "precision": "uint32",
        }
        if case.caller == "binding":
            self._issue: Issue = self._bound_loop(function)
        else:
            self._build_from_calls(function)

    def _bound_loop(self, function: int) -> Issue:
        """The loop of launches through cuda-bindings, with the wait or read of the pattern."""
        loop = bound_launch(self.session, function, self._arguments)
        if not self.latency:
            return loop
        if self.case.pattern == "wait-each":
            after = bound_wait(self.session, str(self.case.params["wait"]))
        else:
            after = bound_read(self.session)
        return alternating(functools.partial(loop, 1), after)

    def _build_from_calls(self, function: int) -> None:
        """Make the loop of launches through ctypes or in compiled code, which alone checks the
        results of its calls, and the loop that times its stages.
        """
        case = self.case
        is_native = case.caller == "native"
        calls = [launch_call(self.session, function, self._arguments, checked=is_native)]
        if case.pattern == "wait-each":
            calls += wait_calls(self.session, str(case.params["wait"]), checked=is_native)
        elif case.pattern != "per-submit":
            raise Unsupported(
                because("pattern-has-no-caller", pattern=case.pattern, caller=case.caller)
            )
        program = NativeProgram(body=tuple(calls))
        loop = compile_native(program) if is_native else compile_ffi(program)
        self._issue = loop
        self.failed = loop.failure
        self._stages = compile_stages(program, "native" if is_native else "ffi")

    def issue(self, n: int) -> None:
        """Launch n times; returns before the device has run the kernels, unless each launch is
        waited for.
        """
        self._issued = self._issue(n)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """The durations of each call of n units by stage, ns; empty for calls through
        cuda-bindings.
        """
        durations = {name: times.tolist() for name, times in self._stages(n).items()}
        if durations:
            self.wait()
        return durations


class LoopLaunches(CudaLaunches):
    """n launches from a compiled loop. Each kernel runs a fixed number of steps. Its stages are not
    timed.
    """

    def build(self) -> None:
        """Make the compiled loop."""
        steps = int(self.case.params["loops"])
        self.steps_of_a_unit = steps
        self._arguments = Arguments(self.session.words, steps)
        kernel = self.session.kernel("fused.cu", "fused")
        call = launch_call(self.session, kernel, self._arguments, checked=True)
        loop = compile_native(NativeProgram(body=(call,)))
        self._issue = loop
        self.failed = loop.failure
        self.details = {
            "call": "cuLaunchKernel",
            "arguments": 2,
            "loops": steps,
            "checked": True,
            "precision": "uint32",
        }


class CudaFused(CudaChain):
    """One launch whose kernel runs n steps."""

    overlap = "serial"
    launches = 0
    max_n = 1 << 24

    def build(self) -> None:
        """Make the launch. The number of steps is its second argument."""
        function = self.session.kernel("fused.cu", "fused")
        self._arguments = Arguments(self.session.words, 0)
        loop = bound_launch(self.session, function, self._arguments)
        self._launch = functools.partial(loop, 1)
        self.details = {
            "call": "cuLaunchKernel",
            "launches": 1,
            "arguments": 2,
            "precision": "uint32",
        }

    def prepare(self, n: int) -> None:
        """Set the number of steps that the kernel runs."""
        self._arguments.set(1, n)

    def issue(self, n: int) -> None:
        """Launch the kernel; returns before it has run."""
        self._launch()
