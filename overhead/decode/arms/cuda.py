"""The decode workload as a lowered program in CUDA C: a launch per dispatch, or a graph per
token.
"""

from __future__ import annotations

import dataclasses
import functools
from ctypes import byref, c_size_t
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.decode.chain import DecodeChain, StateValues
from overhead.decode.lowered import LOGITS, LoweredDecode
from overhead.decode.lowering.buffers import DTYPES, first_numbers
from overhead.decode.lowering.kernel import Kernel
from overhead.decode.lowering.program import cuda_name, cuda_text
from overhead.probes.base import Unsupported
from overhead.probes.common.loops import repeated
from overhead.probes.common.native_loop import (
    Cycle,
    NativeCall,
    NativeProgram,
    address_of,
    compile_native,
)
from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.chains import SessionChain
from overhead.probes.cuda.graphs import executable
from overhead.probes.cuda.launch import Launch, bound_launches, driver_launches, graph_launch
from overhead.probes.cuda.session import Arguments, CudaSession
from overhead.probes.workload_chain import verified
from overhead.results import Case, Scalar, because


def open_case(driver: CudaDriver, ordinal: int, case: Case) -> DecodeChain:
    """A chain for the case that was compared with float64: it launches each kernel of a token
    (``per-submit``), or a CUDA graph of a token (``launches`` and ``read-each``).

    ``ordinal``: the number of the device. Raises ``Unsupported`` for other patterns, and for a
    graph that compiled code (``native``) would launch.
    """
    kinds: dict[str, type[CudaDecode]] = {
        "per-submit": CudaLaunchedDecode,
        "launches": CudaGraphDecode,
        "read-each": CudaGraphDecode,
    }
    kind = kinds.get(case.pattern)
    if kind is None or (case.caller == "native" and case.pattern != "per-submit"):
        raise Unsupported(because("no-tokens-by-caller", pattern=case.pattern, caller=case.caller))
    return verified(kind(driver, ordinal, case))


@dataclasses.dataclass(frozen=True)
class _Shared:
    """What all chains of a decoder share on a device, so that its gigabytes of weights are there
    once.

    ``weights``: their addresses on the device, by name. ``functions``: handles of compiled kernels.
    ``session``: owns both, and stays open as long as the process.
    """

    session: CudaSession
    weights: dict[str, int] = dataclasses.field(default_factory=dict)
    functions: dict[Kernel, int] = dataclasses.field(default_factory=dict)


@functools.cache
def _shared_on(driver: CudaDriver, ordinal: int, name: str) -> _Shared:
    """What chains share of the decoder with this name. The cache keeps it for the whole process."""
    return _Shared(CudaSession(driver, ordinal, own_stream=False))


class CudaDecode(SessionChain, LoweredDecode):
    """A chain whose decode step is a lowered program, a list of kernel launches, with its buffers
    on a CUDA device. A subclass launches them one by one or as a graph.
    """

    language = "cuda"
    call = "cuLaunchKernel"

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(case)
        # Does the device work while the CPU issues more? Not where each token is read back.
        self.overlap = "serial" if self.latency else "pipelined"
        self._shared = _shared_on(driver, ordinal, case.workload)
        self.use_session(CudaSession(driver, ordinal, own_stream=True))

    def build(self) -> None:
        """Allocate the buffers, compile the kernels, and prepare all launches of a token, in order,
        as ``launched``. The base class calls this once, when the session is open.
        """
        self._buffers = self._allocated()
        functions = self._compiled()

        # A launch has only the address of its arguments, so the list must keep these objects alive.
        self._arguments: list[Arguments] = []
        self.launched: list[Launch] = []
        for dispatch in self.lowered.dispatches:
            addresses = [self._buffers[name] for name in dispatch.bindings]
            arguments = Arguments(*addresses)
            self._arguments.append(arguments)
            kernel = self.lowered.kernels[dispatch.kernel]
            no_dynamic_memory = 0
            dimensions = (*dispatch.grid, kernel.threads, 1, 1, no_dynamic_memory)
            launch = Launch(functions[kernel], dimensions, arguments.address)
            self.launched.append(launch)

    def _allocated(self) -> dict[str, int]:
        """The address on the device of each buffer of the program, by name, after allocating and
        filling the buffers that are not there yet. Raises ``Unsupported`` if the device has too
        little free memory.

        Weights never change, so those that another chain has put on the device are used again. All
        other buffers are the chain's own.
        """
        # Weights and compiled kernels of this decoder, one set for all chains on the device.
        shared = self._shared
        missing = [
            buffer for name, buffer in self.lowered.buffers.items() if name not in shared.weights
        ]
        self._check_memory(sum(buffer.bytes for buffer in missing))

        values = self.initial_values()
        own: dict[str, int] = {}
        for buffer in missing:
            numbers = first_numbers(buffer, values.get(buffer.name))
            if numbers is None:  # the buffer starts with zeros
                # Every type of number in a program has 4 bytes.
                numbers = np.zeros(buffer.bytes // 4, DTYPES[buffer.number])
            if buffer.role == "weight":
                shared.weights[buffer.name] = shared.session.buffer(numbers)
            else:
                own[buffer.name] = self.session.buffer(numbers)
        return {**shared.weights, **own}

    def _check_memory(self, needed_bytes: int) -> None:
        """Raise ``Unsupported`` if the device has fewer free bytes than this."""
        free, total = c_size_t(), c_size_t()
        self.session.driver.call("cuMemGetInfo_v2", byref(free), byref(total))
        missing = needed_bytes - free.value
        if missing > 0:
            raise Unsupported(because("device-memory-short", free=free.value, missing=missing))

    def _compiled(self) -> dict[Kernel, int]:
        """The handles of the compiled kernels. Only kernels that no other chain of the decoder has
        compiled before are compiled here, all as one file.
        """
        shared = self._shared
        new = {
            name: kernel
            for name, kernel in self.lowered.kernels.items()
            if kernel not in shared.functions
        }
        if new:
            file = f"{self.case.workload}.cu"
            entries = [cuda_name(name) for name in new]
            functions = shared.session.functions(file, cuda_text(new), entries)
            shared.functions.update(zip(new.values(), functions, strict=True))
        return shared.functions

    def write_state(self, values: StateValues) -> None:
        """Write these tensors of the state into their buffers."""
        for name, array in self.with_padding_counter(values).items():
            number = self.lowered.buffers[name].number
            self.session.write(self._buffers[name], array.astype(DTYPES[number]))

    def read_numbers(self, name: str) -> NDArray[Any]:
        """Read all numbers of a buffer, after all issued work."""
        buffer = self.lowered.buffers[name]
        like = np.zeros(buffer.count, DTYPES[buffer.number])
        return self.session.read(self._buffers[name], like)

    def read_back(self) -> object:
        """Read all logits or the last token to the host."""
        name = self.lowered.outputs[LOGITS].buffer if self.reads_logits else "token"
        return self.read_numbers(name)

    def count_tokens(self) -> int:
        """As in ``LoweredDecode``; also raises ``Unverified`` if a driver call failed."""
        self.check_calls()
        return super().count_tokens()

    def window(self) -> dict[str, Scalar]:
        """What was timed, with the driver's call and the stream."""
        return {**super().window(), "call": self.call, "stream": "own, non-blocking"}


class CudaLaunchedDecode(CudaDecode):
    """A launch per dispatch, from Python or from compiled code."""

    def build(self) -> None:
        """Prepare all launches of a token, and then what calls them: a compiled loop, or one Python
        function for each launch.
        """
        super().build()
        # Of a unit: with it ``HeldChain`` tells how many units fit into the queue of the device.
        self.launches = len(self.launched)
        if self.case.caller == "native":
            self._native = compile_native(NativeProgram(body=(self._native_call(),)))
            # What ``check_calls`` asks: whether a call of the loop failed.
            self.failed = self._native.failure
        else:
            self._python = bound_launches(self.session, self.launched)

    def _native_call(self) -> NativeCall:
        """The call of ``cuLaunchKernel`` that the compiled loop repeats, once for each launch of a
        token and then from the first one again.

        So each argument of the call is a cycle: one value for each launch of a token.
        """
        library, stream = self.session.driver.library, self.session.stream
        # The last argument of ``cuLaunchKernel``, which is not used.
        no_extra = 0
        arguments_of_launches = [
            (function, *dimensions, stream, arguments, no_extra)
            for function, dimensions, arguments in self.launched
        ]
        # From a row for each launch to a cycle for each argument.
        cycles = tuple(Cycle(values) for values in zip(*arguments_of_launches, strict=True))
        # ``checked``: the loop keeps whether any of its calls returned an error.
        address = address_of(library, "cuLaunchKernel")
        return NativeCall("cuLaunchKernel", library.cuLaunchKernel, address, cycles, checked=True)

    def run_steps(self, steps: int) -> None:
        """Launch all kernels of this many tokens on the stream; returns before they are done."""
        if self.case.caller == "native":
            self._native(steps * self.launches)
            return
        for launch in chain.from_iterable(repeat(self._python, steps)):
            launch()


class CudaGraphDecode(CudaDecode):
    """A graph of the launches of one token, launched once per token."""

    call = "cuGraphLaunch"
    launches = 4

    def build(self) -> None:
        """Prepare all launches of a token, and capture them as a CUDA graph, which one call then
        launches (``_replay``).
        """
        super().build()
        # Launch all once: the driver loads a kernel at its first launch, which is not allowed
        # during a capture.
        launches = driver_launches(self.session, self.launched)
        for launch in launches:
            launch()
        # ``executable``: the graph of these launches, in the form that can be launched.
        # ``repeated``: a function of n that launches it n times.
        graph = executable(self.session, launches)
        self._replay = repeated(graph_launch(self.session, graph))

    def run_steps(self, steps: int) -> None:
        """Launch the graph once per token on the stream; returns before they are done."""
        self._replay(steps)

    def window(self) -> dict[str, Scalar]:
        """What was timed; the graph was recorded before."""
        return {**super().window(), "recording": "outside"}
