"""Chains of the CUDA driver: one launch per unit, or one launch for all units."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from overhead.probes.base import DeviceTime, Unsupported, Unverified, whole_units
from overhead.probes.common.loops import Action, Issue, Stages, alternating
from overhead.probes.common.native_loop import NativeProgram, compile_ffi, compile_native, compile_stages
from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.launch import bound_launch, bound_read, bound_wait, launch_call, once, wait_calls
from overhead.probes.cuda.session import Arguments, CudaSession, SessionClock, step_arguments
from overhead.probes.held_chain import HeldChain
from overhead.results import Case, Scalar


class SessionChain(HeldChain):
    """A chain with a session of its own, which it closes. A call from compiled code may fail: see ``failed``."""

    wait_spins = True
    session: CudaSession
    failed: Callable[[], int] = staticmethod(lambda: 0)
    """The bitwise or of the results of all checked calls."""

    def opened(self, session: CudaSession) -> None:
        """Take the session, then ``build``. Called once, by ``__init__``."""
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
        """The function that waits."""
        return bound_wait(self.session, "stream")

    def wait(self) -> None:
        self._wait()

    def check_calls(self) -> None:
        """Raise ``Unverified`` if a call failed."""
        if code := self.failed():
            raise Unverified(f"a driver call failed with {self.session.driver.error_name(code)}")

    @functools.cached_property
    def _clock(self) -> SessionClock:
        return SessionClock(self.session)

    def device(self, n: int) -> DeviceTime | None:
        return None if self.latency else self.held(self._clock, n)

    def close(self) -> None:
        self.session.close()


class CudaChain(SessionChain):
    """Base class of the step's chains on a CUDA device. The values of the words show how many steps have run."""

    places = 1
    """Number of sets of words in memory. The units use them in turn."""
    steps_of_a_unit = 1

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        self.case = case
        self.wait_spins = case.params.get("wait") != "event-blocking"
        own_stream = case.params.get("stream") != "default"
        self.opened(CudaSession(driver, ordinal, own_stream=own_stream, places=self.places))

    def make_wait(self) -> Action:
        name = str(self.case.params.get("wait", "stream"))
        if self.case.caller == "binding":
            return bound_wait(self.session, name)
        return once(wait_calls(self.session, name, checked=False))

    def executed(self) -> int:
        self.check_calls()
        return whole_units(self.session.steps(), self.steps_of_a_unit) - self.aside

    def kernels(self) -> dict[str, str]:
        return self.session.kernels()


class CudaLaunches(CudaChain):
    """n launches. In the patterns ``wait-each`` and ``read-each`` a wait or a copy to the host follows each launch."""

    def build(self) -> None:
        case, session = self.case, self.session
        count = int(case.params["arguments"])
        function = session.kernel("step.cu", f"step{count}")
        self._arguments = step_arguments(session, count=count)
        self.latency = case.pattern in ("wait-each", "read-each")
        self.overlap = "serial" if self.latency else "pipelined"
        self._stages: Stages = lambda n: {}
        if case.caller == "binding":
            issue = bound_launch(session, function, self._arguments)
            self._issue: Issue = alternating(functools.partial(issue, 1), self._after()) if self.latency else issue
            return
        checked = case.caller == "native"
        calls = [launch_call(session, function, self._arguments, checked=checked)]
        if case.pattern == "wait-each":
            calls += wait_calls(session, str(case.params["wait"]), checked=checked)
        elif case.pattern != "per-submit":
            raise Unsupported(f"{case.pattern} has no {case.caller} caller")
        program = NativeProgram(body=tuple(calls))
        loop = compile_native(program) if checked else compile_ffi(program)
        self._issue, self.failed = loop, loop.failure
        self._stages = compile_stages(program, "native" if checked else "ffi")

    def _after(self) -> Action:
        if self.case.pattern == "wait-each":
            return bound_wait(self.session, str(self.case.params["wait"]))
        return bound_read(self.session)

    def issue(self, n: int) -> None:
        self._issue(n)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        durations = {name: times.tolist() for name, times in self._stages(n).items()}
        if durations:
            self.wait()
        return durations

    def window(self) -> dict[str, Scalar]:
        return {
            "call": "cuLaunchKernel",
            "arguments": self.case.params["arguments"],
            "stream": "default",
            "checked": self.case.caller == "native",
            "precision": "uint32",
        }


class LoopLaunches(CudaChain):
    """n launches from a compiled loop. Each kernel runs a fixed number of steps."""

    def build(self) -> None:
        self.steps_of_a_unit = int(self.case.params["loops"])
        self._arguments = Arguments(self.session.words, self.steps_of_a_unit)
        kernel = self.session.kernel("fused.cu", "fused")
        call = launch_call(self.session, kernel, self._arguments, checked=True)
        self._issue = compile_native(NativeProgram(body=(call,)))
        self.failed = self._issue.failure

    def issue(self, n: int) -> None:
        self._issue(n)

    def window(self) -> dict[str, Scalar]:
        own: dict[str, Scalar] = {"arguments": 2, "loops": self.steps_of_a_unit, "checked": True}
        return {"call": "cuLaunchKernel", **own, "precision": "uint32"}


class CudaFused(CudaChain):
    """One launch whose kernel runs n steps."""

    overlap = "serial"
    launches = 0

    def build(self) -> None:
        function = self.session.kernel("fused.cu", "fused")
        self._arguments = Arguments(self.session.words, 0)
        self._launch = functools.partial(bound_launch(self.session, function, self._arguments), 1)

    def prepare(self, n: int) -> None:
        self._arguments.set(1, n)

    def issue(self, n: int) -> None:
        self._launch()

    def window(self) -> dict[str, Scalar]:
        return {"call": "cuLaunchKernel", "launches": 1, "arguments": 2, "precision": "uint32"}
