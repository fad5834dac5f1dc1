"""Chains of the CUDA driver: one launch per unit, or one launch for all units."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from ctypes import addressof, c_uint

from overhead.probes.base import DeviceTime, Unsupported, Unverified, whole_units
from overhead.probes.common.loop_text import Stages
from overhead.probes.common.native_loop import NativeProgram, compile_ffi, compile_native, compile_stages
from overhead.probes.common.python_loops import Action, Issue, alternating
from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.launch import bindings, bound_launch, bound_wait, launch_call, once, wait_calls
from overhead.probes.cuda.session import Arguments, CudaSession, SessionClock, step_arguments
from overhead.probes.held_chain import HeldChain, StreamHolder
from overhead.results import Case, Scalar


class CudaChain(HeldChain):
    """Base class of the step's chains on a CUDA device. The values of the words show how many steps have run."""

    places = 1
    """Number of sets of words in memory. The units use them in turn."""

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case, *, own_stream: bool) -> None:
        self.session = CudaSession(driver, ordinal, own_stream=own_stream, places=self.places)
        try:
            self.case = case
            self.wait_spins = case.params.get("wait") != "event-blocking"
            self._clock: StreamHolder | None = None
            self._wait = self.make_wait()
            self.build()
        except BaseException:
            self.session.close()
            raise

    def build(self) -> None:
        """Make the objects that ``issue`` needs. Called once, when the session is open."""
        raise NotImplementedError

    def make_wait(self) -> Action:
        """The function that waits, made for the wait and the caller of the case."""
        name = str(self.case.params.get("wait", "stream"))
        if self.case.caller == "binding":
            return bound_wait(self.session, name)
        return once(wait_calls(self.session, name, checked=False))

    def wait(self) -> None:
        self._wait()

    def executed(self) -> int:
        return self.session.steps() - self.aside

    def device(self, n: int) -> DeviceTime | None:
        if self.latency:
            return None
        self._clock = self._clock or SessionClock(self.session)
        return self.held(self._clock, n)

    def kernels(self) -> dict[str, str]:
        return self.session.kernels()

    def close(self) -> None:
        self.session.close()


class CudaLaunches(CudaChain):
    """n launches. In the patterns ``wait-each`` and ``read-each`` a wait or a copy to the host follows each launch."""

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(driver, ordinal, case, own_stream=case.params["stream"] == "own")

    def build(self) -> None:
        case, session = self.case, self.session
        count = int(case.params["arguments"])
        function = session.kernel("step.cu", f"step{count}")
        self._arguments = step_arguments(session, count)
        self.latency = case.pattern in ("wait-each", "read-each")
        self.overlap = "serial" if self.latency else "pipelined"
        self._failure = lambda: 0
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
        loop = compile_native(program) if case.caller == "native" else compile_ffi(program)
        self._issue, self._failure = loop, loop.failure
        self._stages = compile_stages(program, "native" if case.caller == "native" else "ffi")

    def _after(self) -> Action:
        if self.case.pattern == "wait-each":
            return bound_wait(self.session, str(self.case.params["wait"]))
        self._word = (c_uint * 1)()
        driver, session = bindings(), self.session
        return functools.partial(driver.cuMemcpyDtoH, addressof(self._word), driver.CUdeviceptr(session.words), 4)

    def issue(self, n: int) -> None:
        self._issue(n)

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        if self.case.caller == "binding":
            return {}
        durations = {name: times.tolist() for name, times in self._stages(n).items()}
        self._wait()
        return durations

    def executed(self) -> int:
        if self._failure():
            raise Unverified(f"a driver call failed with {self.session.driver.error_name(self._failure())}")
        return super().executed()

    def window(self) -> dict[str, Scalar]:
        return {
            "call": "cuLaunchKernel",
            "arguments": self.case.params["arguments"],
            "stream": "own, non-blocking" if self.session.stream else "default",
            "checked": self.case.caller == "native",
            "precision": "uint32",
        }


class LoopLaunches(CudaChain):
    """n launches from a compiled loop. Each kernel runs a fixed number of steps."""

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(driver, ordinal, case, own_stream=case.params["stream"] == "own")

    def build(self) -> None:
        self._loops = int(self.case.params["loops"])
        self._arguments = Arguments(self.session.words, self._loops)
        kernel = self.session.kernel("fused.cu", "fused")
        self._issue = compile_native(
            NativeProgram(body=(launch_call(self.session, kernel, self._arguments, checked=True),))
        )

    def issue(self, n: int) -> None:
        self._issue(n)

    def executed(self) -> int:
        if code := self._issue.failure():
            raise Unverified(f"cuLaunchKernel failed with {self.session.driver.error_name(code)}")
        return whole_units(self.session.steps(), self._loops) - self.aside

    def window(self) -> dict[str, Scalar]:
        return {"call": "cuLaunchKernel", "arguments": 2, "loops": self._loops, "checked": True, "precision": "uint32"}


class CudaFused(CudaChain):
    """One launch whose kernel runs n steps."""

    overlap = "serial"
    launches = 0

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(driver, ordinal, case, own_stream=case.params["stream"] == "own")

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
