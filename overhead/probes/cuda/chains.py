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
    """A chain of n units on a CUDA device, with a session (context, stream, kernels and memory) of
    its own, which it closes. Calls inside the timed loop raise nothing when they fail: their
    results are looked at afterwards, by ``check_calls``.
    """

    wait_spins = True
    session: CudaSession
    failed: Callable[[], int] = staticmethod(lambda: 0)
    """The bitwise or of the results of all calls that the loop checks; 0: none failed."""
    _issued: object = None
    """What the loop returned: the result of the last wait or read inside a unit, if units have
    one.
    """
    _waited: object = None
    """What the last call of ``wait`` returned."""

    def use_session(self, session: CudaSession) -> None:
        """Take the session, then make the wait and ``build`` the rest of the chain on it. Called
        once, by ``__init__``. If that fails, nobody else would close the session.
        """
        self.session = session
        try:
            # First, because ``build`` may put the wait into its loop.
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
        """Raise ``Unverified`` if the driver refused a call whose result was kept: a call that the
        loop checks, the last wait, or the last wait or read inside a unit. Called outside of the
        timed window.
        """
        # ``_waited``: what the last wait returned; ``_issued``: what the last loop of units
        # returned, such as the result of its last wait or read. ``failed``: the bitwise or of all
        # checked results, so several different ones may give a name that none had.
        code = self.failed() or error_code((self._waited, self._issued))
        if code:
            name = self.session.driver.error_name(code)
            raise Unverified(because("driver-call-failed", error=name))

    @functools.cached_property
    def _clock(self) -> SessionClock:
        return SessionClock(self.session)

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n units, queued behind a kernel that spins; None if each unit contains a
        wait, which would wait for that kernel.
        """
        if self.latency:
            return None
        return self.held(self._clock, n)

    def close(self) -> None:
        """Close the session."""
        self.session.close()


class CudaChain(SessionChain):
    """Base class of the chains on a CUDA device whose units run the step: a small kernel that
    changes 256 words (numbers of 32 bits), so that their values show how many steps have run.

    ``details``: what ``window`` says of the timed calls.
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
        """A function that makes the wait of the case after a chain: through cuda-bindings if these
        launch too (caller ``binding``), else through ctypes, also where a compiled loop launches.
        ``check_calls`` looks at its result, so the calls need no check of their own (``checked``:
        the loop collects a call's errors).
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
        """Make the loop that launches from the case's caller: cuda-bindings (``binding``), ctypes
        or compiled code. The last two get another loop too, which times the stages of a unit.
        """
        case = self.case
        # ``step.cu`` has a kernel for each measured number of arguments, such as ``step8``. It uses
        # the first, the address of its words.
        count = int(case.params["arguments"])
        function = self.session.kernel("step.cu", f"step{count}")
        self._arguments = step_arguments(self.session, count=count)
        self.latency = case.pattern in ("wait-each", "read-each")  # each unit waits
        # Where each unit waits, host and device never work at the same time.
        self.overlap = "serial" if self.latency else "pipelined"
        # What ``window`` tells the record of the timed calls.
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
        """The loop ``issue(n)`` of launches through cuda-bindings of the kernel with this handle.
        In the patterns ``wait-each`` and ``read-each``, a wait or a read follows each launch.
        """
        loop = bound_launch(self.session, function, self._arguments)
        if not self.latency:
            return loop
        if self.case.pattern == "wait-each":
            after = bound_wait(self.session, str(self.case.params["wait"]))
        else:
            after = bound_read(self.session)
        # ``loop(1)``, as an action without arguments.
        launch_once = functools.partial(loop, 1)
        return alternating(launch_once, after)

    def _build_from_calls(self, function: int) -> None:
        """Make the loop of launches of the kernel with this handle, through ctypes (caller ``ffi``)
        or in compiled code (``native``), and the loop that times its stages: the launch, and the
        parts of the wait. Only compiled code checks the result of each call.
        """
        case = self.case
        is_native = case.caller == "native"
        calls = [launch_call(self.session, function, self._arguments, checked=is_native)]
        if case.pattern == "wait-each":
            calls += wait_calls(self.session, str(case.params["wait"]), checked=is_native)
        # ``read-each`` is launched by cuda-bindings alone: see ``_is_written`` of the stack.
        elif case.pattern != "per-submit":
            raise Unsupported(
                because("pattern-has-no-caller", pattern=case.pattern, caller=case.caller)
            )
        program = NativeProgram(body=tuple(calls))
        loop = compile_native(program) if is_native else compile_ffi(program)
        self._issue = loop
        # ``check_calls`` asks it later whether a call failed.
        self.failed = loop.failure
        self._stages = compile_stages(program, "native" if is_native else "ffi")

    def issue(self, n: int) -> None:
        """Launch n times; returns before the device has run the kernels, unless each launch is
        waited for.
        """
        self._issued = self._issue(n)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        """Run n units with clock readings: the durations by stage (a call inside a unit, such as
        ``launch``), ns. Empty for calls through cuda-bindings, which have no stages: then
        ``_stages`` runs nothing.
        """
        durations = {name: times.tolist() for name, times in self._stages(n).items()}
        units_have_run = bool(durations)
        if units_have_run:
            self.wait()
        return durations


class LoopLaunches(CudaLaunches):
    """n launches from a compiled loop. Each kernel runs a fixed number of steps, so many that the
    device is slower than the launches and the queue fills up. Its stages are not timed.
    """

    def build(self) -> None:
        """Make the compiled loop. The kernel ``fused`` runs as many steps as its second argument
        says; the first is the address of the words. ``details``: what the record says of the timed
        calls.
        """
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
        """Make the one launch of the chain. Its second argument is the number of steps, which
        ``prepare`` sets before each launch.
        """
        function = self.session.kernel("fused.cu", "fused")
        # The address of the words, and the number of steps, which is 0 until ``prepare``.
        self._arguments = Arguments(self.session.words, 0)
        loop = bound_launch(self.session, function, self._arguments)
        # ``loop(n)`` launches n times; here one launch runs all n steps.
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
