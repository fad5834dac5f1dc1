"""The decode workload as a lowered program: a submission per dispatch, or one pass per token."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

from numpy.typing import NDArray

from overhead.decode.arms.webgpu_program import SharedObjects, WebGpuProgram
from overhead.decode.chain import DecodeChain, StateValues
from overhead.decode.decoders import WGSL_LOGIT_TOLERANCE
from overhead.decode.lowered import LOGITS, LoweredDecode
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.native_loop import NativeCall, NativeProgram, Slot, Store, compile_native
from overhead.probes.common.step_kernel import WORDS
from overhead.probes.kernels import lcg
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.device_time import DeviceClock, wait_spins
from overhead.probes.webgpu.resources import DeviceBuffers, WebGpuSession, session
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, Target

_MOST_SUBMISSIONS = 1024
"""Submissions behind a blocker, at most: well below the capacity of any queue."""
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
        spec = StepSpec("fused", "binding", independent=False)
        self.session = session(target, spec, self.lowered.limits.beyond_webgpu())
        self.library = self.session.library
        shared = _shared_on(f"{target.key} {id(self.session)}", case.workload)
        self.program = WebGpuProgram(self.library, self.session.device, self.lowered, self.initial_values(), shared)
        self.resources = DeviceBuffers(self.session)
        self.resources.data = [self.resources.buffer(lcg.seeds(WORDS), self.resources.storage)]  # for the blocker
        self._submits_each = case.pattern == "per-submit"
        self.overlap = "serial" if self.latency else "pipelined"
        self.wait_spins = wait_spins(self.session)
        self.wait = self.library.waiter(self.session.device, self.session.queue)  # type: ignore[method-assign]
        count = len(self.program.dispatches)
        if case.caller == "native":
            self._calls, self._kept = _c_calls(self.session, self.program, self._submits_each)
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
            counter = _CountedCall(next(call for call in self._calls.body if call.name == _DISPATCH))
            body = tuple(counter.call if call.name == _DISPATCH else call for call in self._calls.body)
            compile_native(dataclasses.replace(self._calls, body=body))(len(self.program.dispatches))
            self.wait()
            return counter.found
        with _counted_method(self.session) as found:
            self.run(1)
        self.wait()
        return len(found)

    @property
    def held_n(self) -> int:
        per_token = len(self.program.dispatches) if self._submits_each else 1
        return max(1, min(self.max_n, _MOST_SUBMISSIONS // per_token))

    def units_per_submit(self, n: int) -> int:
        """The number of tokens in each submission, at least 1. ``held_n`` bounds submissions per dispatch."""
        return 1

    def exclude(self, steps: int) -> None:
        """Do nothing, because ``device`` excludes the tokens."""

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
        return DeviceClock(self)  # type: ignore[arg-type]

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


def _c_calls(session: WebGpuSession, program: WebGpuProgram, submits_each: bool) -> tuple[NativeProgram, Any]:
    """The same calls in C, and an array that must live as long as they do. A unit of the loop is one dispatch."""
    library = session.library
    device, queue, null = session.device._internal, session.queue._internal, library.ffi.NULL
    encoder, compute, commands = Slot(0), Slot(1), Slot(2)
    submitted = library.ffi.new("WGPUCommandBuffer[1]")

    def put(value: Any) -> None:
        submitted[0] = value

    def call(name: str, *args: Any, result: Slot | None = None) -> NativeCall:
        return library.call(f"wgpu{name}", *args, stage=name, result=result)

    pipelines, groups, grids = zip(*program.dispatches, strict=True)
    head = (
        call("DeviceCreateCommandEncoder", device, null, result=encoder),
        call("CommandEncoderBeginComputePass", encoder, null, result=compute),
    )
    body = (
        call("ComputePassEncoderSetPipeline", compute, library.cycle(p._internal for p in pipelines)),
        call("ComputePassEncoderSetBindGroup", compute, 0, library.cycle(g._internal for g in groups), 0, null),
        library.call(_DISPATCH, compute, *(library.cycle(g[i] for g in grids) for i in range(3)), stage="dispatch"),
    )
    tail = (
        call("ComputePassEncoderEnd", compute),
        call("CommandEncoderFinish", encoder, null, result=commands),
        Store("commands", put, library.address(submitted), commands, "submit"),
        call("QueueSubmit", queue, 1, submitted),
        call("ComputePassEncoderRelease", compute),
        call("CommandEncoderRelease", encoder),
        call("CommandBufferRelease", commands),
    )
    return NativeProgram(head, body, tail, 1 if submits_each else len(program.dispatches)), submitted


class _CountedCall:
    """A C call that counts itself before it calls the library. ``found``: the calls so far."""

    def __init__(self, call: NativeCall | Store) -> None:
        assert isinstance(call, NativeCall)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32)
        library_function = kind(call.address)
        self.found = 0

        def counted(compute: int, x: int, y: int, z: int) -> None:
            self.found += 1
            library_function(compute, x, y, z)

        self._callback = kind(counted)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value or 0
        self.call = dataclasses.replace(call, address=address)


@contextlib.contextmanager
def _counted_method(session: WebGpuSession) -> Iterator[list[tuple[int, ...]]]:
    """A context in which every call of ``dispatch_workgroups`` of the Python API is listed."""
    encoder = session.device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.end()
    encoder.finish()
    kind, found = type(compute), list[tuple[int, ...]]()
    dispatch = kind.dispatch_workgroups

    def counted(self: Any, *grid: int) -> None:
        found.append(grid)
        dispatch(self, *grid)

    kind.dispatch_workgroups = counted
    try:
        yield found
    finally:
        kind.dispatch_workgroups = dispatch
