"""The decode workload as a lowered program: a submission per dispatch, or one pass per token."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from itertools import repeat
from typing import Any
from unittest import mock

from numpy.typing import NDArray

from overhead.decode.arms.webgpu_program import SharedObjects, WebGpuProgram
from overhead.decode.chain import DecodeChain, StateValues
from overhead.decode.decoders import WGSL_LOGIT_TOLERANCE
from overhead.decode.lowered import LOGITS, LoweredDecode
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.native_loop import Cycle, NativeCall, NativeProgram, Store, compile_ffi, compile_native
from overhead.probes.webgpu.cases import Steps
from overhead.probes.webgpu.chain import c_calls
from overhead.probes.webgpu.device_time import MOST_SUBMISSIONS, DeviceClock, wait_spins
from overhead.probes.webgpu.resources import DeviceBuffers, WebGpuSession, session
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, Target

_DISPATCH = "wgpuComputePassEncoderDispatchWorkgroups"


def open_case(target: Target, case: Case) -> DecodeChain:
    """A verified chain for the pattern ``per-submit``, ``per-pass`` or ``read-each``."""
    if not target.executes:
        raise Unsupported("nothing runs here")
    if case.pattern not in ("per-submit", "per-pass", "read-each") or case.caller not in ("binding", "native"):
        raise Unsupported(f"tokens have no {case.pattern} from {case.caller}")
    return verified(WebGpuDecode(target, case))


@functools.cache
def _shared_on(key: str, name: str) -> SharedObjects:
    """What all programs of a decoder share on a device."""
    return SharedObjects()


class WebGpuDecode(LoweredDecode):
    """A lowered decode step on a WebGPU device."""

    language = "wgsl"
    tolerance = WGSL_LOGIT_TOLERANCE

    def __init__(self, target: Target, case: Case) -> None:
        super().__init__(case)
        self.session = session(target, limits=self.lowered.limits.beyond_webgpu())
        self.library = self.session.library
        shared = _shared_on(f"{target.key} {id(self.session)}", case.workload)
        self.program = WebGpuProgram(self.library, self.session.device, self.lowered, self.initial_values(), shared)
        self.resources = DeviceBuffers(self.session)
        self._submits_each = case.pattern == "per-submit"
        self.overlap = "serial" if self.latency else "pipelined"
        self.wait_spins = wait_spins(self.session)
        self.wait = self.library.waiter(self.session.device, self.session.queue)  # type: ignore[method-assign]
        count = len(self.program.dispatches)
        if case.caller == "native":
            self._calls = _c_calls(self.session, self.program, self._submits_each)
            loop = compile_native(self._calls)
            self.run = lambda tokens: loop(tokens * count)  # type: ignore[method-assign]
        else:
            self.run = _python_loop(self.session, self.program, self._submits_each)  # type: ignore[method-assign, assignment]
        self.library.raise_errors()

    def run(self, tokens: int) -> None:
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        raise NotImplementedError  # bound in __init__

    def read_back(self) -> object:
        view = self.lowered.outputs[LOGITS]
        name, size = (view.buffer, 4 * view.count) if self.reads_logits else ("token", 4)
        return self.session.queue.read_buffer(self.program.buffer(name), 0, size)

    def put(self, values: StateValues) -> None:
        for name, array in self.state_values(values).items():
            self.program.put(name, array)
        # A pending write would be executed in the next window.
        self.session.queue.submit([])
        self.wait()

    def numbers(self, name: str) -> NDArray[Any]:
        return self.program.get(name)

    def logits(self) -> NDArray[Any]:
        return self.program.output(LOGITS)

    def dispatches_of_a_token(self) -> int:
        if self.case.caller == "native":
            counted = _Counted(self._calls)
            compile_ffi(counted.program)(len(self.program.dispatches))
            self.wait()
            return counted.found
        with _counting(self.session) as dispatch:
            self.run(1)
        self.wait()
        return int(dispatch.call_count)

    @property
    def held_n(self) -> int:
        per_token = len(self.program.dispatches) if self._submits_each else 1
        return max(1, min(self.max_n, MOST_SUBMISSIONS // per_token))

    def device(self, n: int) -> DeviceTime | None:
        if self.latency:
            return None
        self.count()
        before = self.total
        try:
            return self._clock.measure(min(n, self.held_n))
        finally:
            self.count()
            self.aside += self.total - before

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def window(self) -> dict[str, Scalar]:
        each = f"{len(self.program.dispatches)} per unit" if self._submits_each else "1 per unit"
        own = {
            "submits": each,
            "passes": each,
            "recording": "inside",
            "wait": self.library.wait_name(self.session.device),
        }
        return {**super().window(), **own}

    def close(self) -> None:
        if "wait" in vars(self):
            self.wait()
        self.program.close()
        self.resources.destroy()


def _python_loop(session: WebGpuSession, program: WebGpuProgram, submits_each: bool) -> Callable[[int], None]:
    device, queue, dispatches = session.device, session.queue, program.dispatches

    def submission_each(tokens: int) -> None:
        for _ in repeat(None, tokens):
            for pipeline, group, grid in dispatches:
                encoder = device.create_command_encoder()
                compute = encoder.begin_compute_pass()
                compute.set_pipeline(pipeline)
                compute.set_bind_group(0, group)
                compute.dispatch_workgroups(*grid)
                compute.end()
                queue.submit([encoder.finish()])

    def one_pass(tokens: int) -> None:
        for _ in repeat(None, tokens):
            program.step()

    return submission_each if submits_each else one_pass


def _c_calls(session: WebGpuSession, program: WebGpuProgram, submits_each: bool) -> NativeProgram:
    """The same calls in C. A unit of the loop is one dispatch."""
    null = session.library.ffi.NULL
    pipelines, groups, grids = zip(*program.dispatches, strict=True)
    steps = Steps(
        ("create encoder", "begin pass"),
        ("set pipeline", "set bind group", "dispatch"),
        ("end pass", "finish", "submit", "release pass", "release"),
        1 if submits_each else len(program.dispatches),
    )
    given = {
        "create encoder": (session.device._internal, null),
        "begin pass": (null,),
        "set pipeline": (Cycle(tuple(p._internal for p in pipelines)),),
        "set bind group": (0, Cycle(tuple(g._internal for g in groups)), 0, null),
        "dispatch": tuple(map(Cycle, zip(*grids, strict=True))),
        "finish": (null,),
        "submit": (session.queue._internal,),
    }
    return c_calls(session.library, steps, given)


class _Counted:
    """The C calls of a token, of which those that dispatch are counted. ``found``: the dispatches so far."""

    def __init__(self, program: NativeProgram) -> None:
        self.found = 0
        self.program = dataclasses.replace(program, body=tuple(map(self._counting, program.body)))

    def _counting(self, call: NativeCall | Store) -> NativeCall | Store:
        if call.name != _DISPATCH:
            return call

        def counted(*args: Any) -> None:
            self.found += 1
            call.function(*args)

        return dataclasses.replace(call, function=counted)


def _counting(session: WebGpuSession) -> Any:
    """A context in which the calls of ``dispatch_workgroups`` of the Python API are counted, as ``call_count``."""
    encoder = session.device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.end()
    encoder.finish()
    kind = type(compute)
    return mock.patch.object(kind, "dispatch_workgroups", autospec=True, side_effect=kind.dispatch_workgroups)
