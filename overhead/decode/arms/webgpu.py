"""A lowered program on a WebGPU device, and a chain that decodes with it: a pass a token or a
submission a dispatch.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain, StateValues
from overhead.decode.decoders import WGSL_LOGIT_TOLERANCE
from overhead.decode.lowered import LOGITS, LoweredDecode
from overhead.decode.lowering.buffers import DTYPES, Buffer, first_numbers
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.program import Program
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.native_loop import Cycle, NativeProgram, compile_native
from overhead.probes.webgpu.cases import Steps
from overhead.probes.webgpu.chain import c_calls
from overhead.probes.webgpu.device_time import MOST_SUBMISSIONS, DeviceClock, wait_spins
from overhead.probes.webgpu.library import Library
from overhead.probes.webgpu.resources import (
    DeviceBuffers,
    WebGpuSession,
    bind_group_layout,
    compute_pipeline,
    entries,
    session,
)
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, Target, because


class KernelOnDevice(NamedTuple):
    """A kernel as it is compiled on a device: its pipeline, and the layout of its bind groups (the
    sets of buffers that it can be run with).
    """

    layout: Any
    pipeline: Any


BoundDispatch = tuple[Any, Any, tuple[int, int, int]]
"""A dispatch that can be encoded: its pipeline, its bind group, and its groups in x, y and z. It is
a plain tuple because the timed loop unpacks it, and Python unpacks a named tuple more slowly.
"""


@dataclasses.dataclass(frozen=True)
class SharedObjects:
    """What the programs of a decoder share on a device, so that its gigabytes of weights are there
    once: buffers of weights, by name, and compiled kernels.
    """

    weights: dict[str, Any] = dataclasses.field(default_factory=dict)
    kernels: dict[Kernel, KernelOnDevice] = dataclasses.field(default_factory=dict)


class WebGpuProgram:
    """A lowered program (a list of dispatches) on a WebGPU device, ready to run: its buffers, its
    compiled kernels, and each dispatch bound to its buffers.

    ``values``: the contents of weights and state by name, in any numeric type. State without
    contents starts at zero. ``shared``: the weights and kernels that other programs have put on the
    device; those that this program adds stay there after it is closed. None: nothing is shared.
    """

    def __init__(
        self,
        loaded: Library,
        device: Any,
        program: Program,
        values: Mapping[str, NDArray[Any]],
        shared: SharedObjects | None = None,
    ) -> None:
        """Make what the program needs and what is not on the device yet. Raises ``Unverified`` if
        the library reports an error.
        """
        self.program = program
        self._library = loaded
        self.device = device
        self.queue = device.queue
        # WebGPU reports errors later than the call. Drop earlier ones, which are not of this.
        loaded.forget_errors()
        found = SharedObjects() if shared is None else shared

        # Copies: what is made here is shared only if the library reports no error below.
        weights = dict(found.weights)
        own: dict[str, Any] = {}
        for name, buffer in program.buffers.items():
            place = weights if buffer.role == "weight" else own
            if name not in place:
                place[name] = self._buffer(buffer, values.get(name))
        self._buffers = {**weights, **own}
        # What ``close`` releases. Without ``shared`` nobody else releases the weights.
        self._own = list((self._buffers if shared is None else own).values())

        kernels = dict(found.kernels)
        for kernel in program.kernels.values():
            if kernel not in kernels:
                kernels[kernel] = self._kernel(kernel)

        self.dispatches: list[BoundDispatch] = []
        for dispatch in program.dispatches:
            layout, pipeline = kernels[program.kernels[dispatch.kernel]]
            group = self._group(layout, dispatch.bindings)
            self.dispatches.append((pipeline, group, dispatch.grid))
        # Only now all of it is known to work, so that other programs may use it.
        loaded.raise_errors()
        found.weights.update(weights)
        found.kernels.update(kernels)

    def _buffer(self, buffer: Buffer, given: NDArray[Any] | None) -> Any:
        """A new buffer on the device with its first contents: those that are ``given`` or a
        constant's own, else zeros.
        """
        flags = self._library.webgpu.BufferUsage
        usage = flags.STORAGE | flags.COPY_SRC | flags.COPY_DST
        data = first_numbers(buffer, given)
        if data is None:
            return self.device.create_buffer(size=buffer.bytes, usage=usage)
        return self.device.create_buffer_with_data(data=data, usage=usage)

    def _kernel(self, kernel: Kernel) -> KernelOnDevice:
        """The kernel, compiled from its WGSL on the device."""
        kinds = [
            "storage" if binding.written else "read-only-storage" for binding in kernel.bindings
        ]
        layout = bind_group_layout(self.device, kinds)
        module = self.device.create_shader_module(code=kernel.wgsl)
        return KernelOnDevice(layout, compute_pipeline(self.device, layout, module))

    def _group(self, layout: Any, names: tuple[str, ...]) -> Any:
        bound = entries(self._buffers[name] for name in names)
        return self.device.create_bind_group(layout=layout, entries=bound)

    def write(self, name: str, values: NDArray[Any]) -> None:
        """Write a whole buffer."""
        dtype = DTYPES[self.program.buffers[name].number]
        self.queue.write_buffer(self._buffers[name], 0, np.ascontiguousarray(values, dtype=dtype))

    def buffer(self, name: str) -> Any:
        """The buffer with this name."""
        return self._buffers[name]

    def read(self, name: str) -> NDArray[Any]:
        """The numbers of a buffer after all submitted work. Raises ``Unverified`` if the library
        reported an error.
        """
        buffer = self.program.buffers[name]
        raw = self.queue.read_buffer(self._buffers[name])
        numbers = np.frombuffer(raw, DTYPES[buffer.number])
        self._library.raise_errors()
        # An empty tensor has a buffer of one number, because no binding may be empty.
        return numbers[: buffer.count]

    def submit_step(self) -> None:
        """Record all dispatches of one step in one pass, and submit it. This is timed: WebGPU has
        no way to submit a recorded pass a second time.
        """
        encoder = self.device.create_command_encoder()
        compute = encoder.begin_compute_pass()
        for pipeline, group, grid in self.dispatches:
            compute.set_pipeline(pipeline)
            compute.set_bind_group(0, group)
            compute.dispatch_workgroups(*grid)
        compute.end()
        self.queue.submit([encoder.finish()])

    def close(self) -> None:
        """Release the buffers that are not shared."""
        while self._own:
            self._own.pop().destroy()


def open_case(target: Target, case: Case) -> DecodeChain:
    """A chain that decodes on a WebGPU device, and that was compared with float64. Raises
    ``Unsupported`` for a pattern or a caller that it does not have.
    """
    patterns = ("per-submit", "per-pass", "read-each")
    callers = ("binding", "native")
    if case.pattern not in patterns or case.caller not in callers:
        raise Unsupported(because("no-tokens-by-caller", pattern=case.pattern, caller=case.caller))
    return verified(WebGpuDecode(target, case))


@functools.cache
def _shared_on(key: str, name: str) -> SharedObjects:
    """What all programs of a decoder share on a device. ``key``: names the device, and ``name`` the
    decoder; the cache keeps one object for each pair.
    """
    return SharedObjects()


class WebGpuDecode(LoweredDecode):
    """A chain whose decode step is a lowered program on a WebGPU device (Dawn, wgpu-native).

    A token is one submission with one pass, or with the pattern ``per-submit`` a submission for
    each dispatch.
    """

    language = "wgsl"
    tolerance = WGSL_LOGIT_TOLERANCE

    def __init__(self, target: Target, case: Case) -> None:
        """Put the program on the device, and make ``run_steps``, the timed loop, for the caller of
        the case: compiled code or Python.
        """
        super().__init__(case)
        # A device offers small buffers unless it is asked for the size of the largest weight.
        self.session = session(target, limits=self.lowered.limits.beyond_webgpu())
        self.library = self.session.library
        device = self.session.device
        # Buffers belong to a device that was opened, so the key also names this session.
        shared = _shared_on(f"{target.key} {id(self.session)}", case.workload)
        values = self.initial_values()
        self.program = WebGpuProgram(self.library, device, self.lowered, values, shared)
        self.resources = DeviceBuffers(self.session)
        self._submits_each = case.pattern == "per-submit"
        # Does the device work while the CPU issues more? Not where each token is read back.
        self.overlap = "serial" if self.latency else "pipelined"
        # Does the wait keep the CPU busy?
        self.wait_spins = wait_spins(self.session)
        self.wait = self.library.waiter(self.session.device, self.session.queue)  # type: ignore[method-assign]
        if case.caller == "native":
            # Kept, because the compiled loop has addresses in objects that only these calls keep.
            self._calls = _c_calls(self.session, self.program, self._submits_each)
            self.run_steps = _native_loop(self._calls, len(self.program.dispatches))  # type: ignore[method-assign, assignment]
        else:
            self.run_steps = _python_loop(self.session, self.program, self._submits_each)  # type: ignore[method-assign, assignment]
        self.library.raise_errors()

    def run_steps(self, steps: int) -> None:
        """Submit this many tokens; returns before they are done."""
        raise NotImplementedError  # bound in __init__

    def wait(self) -> None:
        """Wait until the queue is empty."""
        raise NotImplementedError  # bound in __init__

    def read_back(self) -> object:
        """Read the last token, or the logits of all sequences, from the device."""
        name, count = "token", 1
        if self.reads_logits:
            logits = self.lowered.outputs[LOGITS]
            name, count = logits.buffer, logits.count
        return self.session.queue.read_buffer(self.program.buffer(name), 0, 4 * count)

    def write_state(self, values: StateValues) -> None:
        """Write these tensors of the state, and wait until the device has them."""
        for name, array in self.with_padding_counter(values).items():
            self.program.write(name, array)
        # A pending write would be executed in the next window.
        self.session.queue.submit([])
        self.wait()

    def read_numbers(self, name: str) -> NDArray[Any]:
        """Read all numbers of a buffer, after all submitted work."""
        return self.program.read(name)

    @property
    def held_n(self) -> int:
        """The most tokens that can be queued before the device starts, for its time."""
        per_token = len(self.program.dispatches) if self._submits_each else 1
        return max(1, min(self.max_n, MOST_SUBMISSIONS // per_token))

    def device(self, n: int) -> DeviceTime | None:
        """The device's time for n tokens, but at most ``held_n``, so many as can be queued before
        the device starts: it must not wait for the host between them.

        None for a chain that reads after each token: the device then waits for the CPU.
        """
        if self.latency:
            return None
        # The clock runs tokens that no sample asked for. They are counted apart, as ``aside``, and
        # ``executed`` leaves them out. The first call counts what ran before them.
        self.count_tokens()
        before = self.total
        try:
            return self._clock.measure(min(n, self.held_n))
        finally:
            self.count_tokens()
            self.aside += self.total - before

    @functools.cached_property
    def _clock(self) -> DeviceClock:
        return DeviceClock(self, self.resources)

    def window(self) -> dict[str, Scalar]:
        """Facts for the record on what was timed: submissions, passes and the kind of wait, added
        to the facts of the base class.
        """
        per_unit = len(self.program.dispatches) if self._submits_each else 1
        return {
            **super().window(),
            "submits": f"{per_unit} per unit",
            "passes": f"{per_unit} per unit",
            "recording": "inside",  # commands are recorded within the timed window
            "wait": self.library.wait_name(self.session.device),
        }

    def close(self) -> None:
        """Wait for the device, and release the buffers that no other chain shares."""
        if "wait" in vars(self):
            self.wait()
        self.program.close()
        self.resources.destroy()


def _native_loop(calls: NativeProgram, dispatches: int) -> Callable[[int], None]:
    """A function that submits a number of tokens from compiled code.

    ``calls``: the calls for a dispatch, which the compiled loop repeats; ``dispatches``: how many
    of them make a token.
    """
    loop = compile_native(calls)

    def submit(tokens: int) -> None:
        loop(tokens * dispatches)

    return submit


def _python_loop(
    session: WebGpuSession, program: WebGpuProgram, submits_each: bool
) -> Callable[[int], None]:
    """A function that submits a number of tokens from Python; its calls are what is timed.

    ``submits_each``: with a submission and a pass for each dispatch, not for each token.
    """
    # Looked up here, so that the timed loop does not look them up again and again.
    device, queue, dispatches = session.device, session.queue, program.dispatches

    # The calls are written out, because a Python call for each dispatch would be timed too.
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
            program.submit_step()

    return submission_each if submits_each else one_pass


def _c_calls(session: WebGpuSession, program: WebGpuProgram, submits_each: bool) -> NativeProgram:
    """The same WebGPU calls as those of ``_python_loop``, for a compiled loop in C, which repeats
    them for each dispatch.

    ``head`` and ``tail`` run once for each submission, ``body`` for each dispatch. Pipeline, bind
    group and grid change from dispatch to dispatch, so each is a cycle: the values for all
    dispatches of a token, after which the next token begins with the first value.
    """
    null = session.library.ffi.NULL
    steps = Steps(
        head=("create encoder", "begin pass"),
        body=("set pipeline", "set bind group", "dispatch"),
        tail=("end pass", "finish", "submit", "release pass", "release"),
        per=1 if submits_each else len(program.dispatches),  # dispatches of a submission
    )
    pipelines, groups, grids = zip(*program.dispatches, strict=True)
    # ``_internal``: the pointer of the C library that a Python object of the binding holds.
    pipeline_cycle = Cycle(tuple(pipeline._internal for pipeline in pipelines))
    group_cycle = Cycle(tuple(group._internal for group in groups))
    in_x, in_y, in_z = zip(*grids, strict=True)
    # The arguments of each call, after the object that it is called on.
    given = {
        "create encoder": (session.device._internal, null),
        "begin pass": (null,),
        "set pipeline": (pipeline_cycle,),
        # Group 0 of the bindings; no dynamic offsets, so their number is 0.
        "set bind group": (0, group_cycle, 0, null),
        "dispatch": (Cycle(in_x), Cycle(in_y), Cycle(in_z)),
        "finish": (null,),
        "submit": (session.queue._internal,),
    }
    return c_calls(session.library, steps, given)
