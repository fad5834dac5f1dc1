"""One device prepared for launches: context, stream, kernels, buffers, sets of 256 words, clock for
device time.

A word is a number of 32 bits that each step changes, so that its value shows how many steps have
run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from ctypes import c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.errors import first_line_of
from overhead.probes.base import Unavailable
from overhead.probes.cuda.api import INSTALL_CUDA, CudaDriver
from overhead.probes.held_chain import StreamHolder
from overhead.probes.kernels import lcg, source
from overhead.results import because

CUDA_GRID = 4
GROUP_SIZE = 64
"""Groups of a launch, and threads of a group. Each thread has a word."""
_BYTES_PER_SET = CUDA_GRID * GROUP_SIZE * 4
_NON_BLOCKING_STREAM = 1
_BLOCKING_EVENT = 1
_UNTIMED_EVENT = 2


def machine_code(name: str, architecture: str) -> bytes:
    """Machine code of a kernel file for an architecture like ``sm_90``. Raises ``Unavailable`` if
    NVRTC is missing.
    """
    text, _ = source(name)
    return machine_code_of(name, text, architecture)


@functools.cache
def machine_code_of(name: str, text: str, architecture: str) -> bytes:
    """Machine code of CUDA C text for an architecture such as ``sm_90``, compiled by NVRTC, CUDA's
    library for that, through the Python package cuda-bindings.

    ``name``: of the text, for messages. Raises ``Unavailable`` if NVRTC is missing, and
    ``RuntimeError`` if it refuses the text.
    """
    try:
        from cuda.bindings import nvrtc
    except Exception as error:  # a package that was built for another version may raise anything
        raise Unavailable(
            because("package-does-not-import", package="cuda-bindings", text=first_line_of(error)),
            INSTALL_CUDA,
        ) from error
    try:
        # ``_done``: the value behind the result code; it raises if the code is an error.
        program = _done(nvrtc.nvrtcCreateProgram(text.encode(), name.encode(), 0, [], []))
    except RuntimeError as error:  # cuda-bindings loads the library at the first call
        raise Unavailable(
            because("nvrtc-does-not-load", text=first_line_of(error)), INSTALL_CUDA
        ) from error
    options = [f"--gpu-architecture={architecture}".encode(), b"--std=c++17"]
    # Not by ``_done``, because a text with an error has a log.
    (code,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    # NVRTC writes log and machine code into bytes that we give, whose size it tells before.
    if int(code):
        log = b" " * _done(nvrtc.nvrtcGetProgramLogSize(program))
        nvrtc.nvrtcGetProgramLog(program, log)
        text = " ".join(log.decode(errors="replace").split())
        raise RuntimeError(
            because("nvrtc-refuses", kernel=name, architecture=architecture, text=text[:2000])
        )
    binary = b" " * _done(nvrtc.nvrtcGetCUBINSize(program))
    _done(nvrtc.nvrtcGetCUBIN(program, binary))
    nvrtc.nvrtcDestroyProgram(program)
    return binary


def _done(result: tuple[Any, ...]) -> Any:
    """The value that a call of NVRTC, CUDA's compiler, returned; None if it returned none. Raises
    ``Unavailable`` if the call failed.

    cuda-bindings returns a tuple: the result code, then at most one value.
    """
    code, *values = result
    # 0 is success.
    if int(code):
        raise Unavailable(because("nvrtc-failed", text=code), INSTALL_CUDA)
    return values[0] if values else None


class CudaSession:
    """A CUDA device prepared for launches: its context, a stream, kernels, and memory. ``close``
    releases everything it made. The context is the device's primary one, which torch and CuPy use
    too.

    The memory at the address ``words`` has ``places`` sets of 256 words, one after another. A word
    is a number of 32 bits that each step of a kernel changes; ``seeds`` are the first values.
    ``word``: room on the host for one word.
    """

    def __init__(
        self, driver: CudaDriver, ordinal: int, *, own_stream: bool, places: int = 1
    ) -> None:
        """Make the context of the device with the number ``ordinal`` current in this thread, and
        allocate the words with their seeds: ``places`` sets of them. ``own_stream``: launch on a
        new stream, which does not wait for the default stream.
        """
        self.driver = driver
        self.places = places
        self._device = driver.devices()[ordinal]
        self._handle = driver.call_for_number("cuDeviceGet", ordinal)
        self._kernels: dict[str, str] = {}  # SHA-256 by file
        self._release: list[tuple[str, int]] = []  # what ``close`` calls, with which handle
        context = driver.call_for_handle("cuDevicePrimaryCtxRetain", self._handle)
        driver.call("cuCtxSetCurrent", context)
        self.stream = 0  # the default stream
        # ``make_owned``: the handle that a driver function makes, which ``close`` releases by the
        # other one.
        if own_stream:
            self.stream = self.make_owned(
                "cuStreamDestroy_v2", "cuStreamCreate", _NON_BLOCKING_STREAM
            )
        self.seeds = lcg.seeds(CUDA_GRID * GROUP_SIZE * places)
        self.words = self.buffer(self.seeds)
        # Room on the host for one word, into which a read copies.
        self.word = (c_uint * 1)()

    def kernel(self, file: str, name: str) -> int:
        """The function handle of a kernel in one of our files, compiled for this device."""
        _, self._kernels[file] = source(file)
        code = machine_code(file, self._device.architecture)
        (function,) = self._functions(code, [name])
        return function

    def functions(self, name: str, text: str, entries: Sequence[str]) -> list[int]:
        """The function handles of kernels in a source text, compiled for this device. ``name``: for
        messages.
        """
        code = machine_code_of(name, text, self._device.architecture)
        return self._functions(code, entries)

    def _functions(self, code: bytes, entries: Sequence[str]) -> list[int]:
        """The handles of the kernels with the names ``entries`` in this machine code, in order. The
        driver loads the code now; ``close`` unloads it.
        """
        # ``make_owned``: ``close`` passes the handle to the first function.
        module = self.make_owned("cuModuleUnload", "cuModuleLoadData", code)
        handles = []
        for entry in entries:
            handle = self.driver.call_for_handle("cuModuleGetFunction", module, entry.encode())
            handles.append(handle)
        return handles

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel file in use, by file name."""
        return dict(self._kernels)

    def event(self, *, timed: bool = False, blocking: bool = False) -> int:
        """The handle of a new event, a mark in a stream that the device reaches in its turn.
        ``timed``: the time between two such events can be asked for. ``blocking``: a thread that
        waits for it sleeps, and does not spin.
        """
        flags = 0
        # An event without times costs the device less; it is enough for a wait.
        if not timed:
            flags |= _UNTIMED_EVENT
        if blocking:
            flags |= _BLOCKING_EVENT
        return self.make_owned("cuEventDestroy_v2", "cuEventCreate", flags)

    def buffer(self, values: NDArray[Any]) -> int:
        """Allocate device memory with these values. Returns its address."""
        address = self.make_owned("cuMemFree_v2", "cuMemAlloc_v2", values.nbytes)
        self.write(address, values)
        return address

    def write(self, address: int, values: NDArray[Any]) -> None:
        """Copy values to device memory after all work, and wait for the copy."""
        self._wait()
        contiguous = np.ascontiguousarray(values)
        self.driver.call("cuMemcpyHtoD_v2", address, contiguous.ctypes.data, contiguous.nbytes)
        self._wait()

    def read(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        """Wait for all work of the context, then copy device memory at this address to a new array
        with the shape and type of ``like``, whose values do not matter.
        """
        self._wait()
        values = np.empty_like(like)
        self.driver.call("cuMemcpyDtoH_v2", values.ctypes.data, address, values.nbytes)
        return values

    def steps(self) -> int:
        """How many steps kernels have run since the words got their seeds, on all sets of words
        together. Each word tells the number of steps that changed it. Raises ``Unverified`` if
        words of one set disagree.
        """
        words = self.read(self.words, self.seeds)
        # A row for each set of words.
        sets_before = self.seeds.reshape(self.places, -1)
        sets_after = words.reshape(self.places, -1)
        steps = 0
        for before, after in zip(sets_before, sets_after, strict=True):
            steps += lcg.distance(before, after)
        return steps

    def reset(self) -> None:
        """Set the words to their seeds, so that ``steps`` counts from 0."""
        self.write(self.words, self.seeds)

    def close(self) -> None:
        """Release everything in reverse order."""
        while self._release:
            name, handle = self._release.pop()
            self.driver.call(name, handle)
        self.driver.call("cuDevicePrimaryCtxRelease_v2", self._handle)

    def _wait(self) -> None:
        self.driver.call("cuCtxSynchronize")

    def make_owned(self, release: str, make: str, *arguments: Any) -> int:
        """The handle that the driver function ``make`` returns. ``close`` passes it to the function
        ``release``.
        """
        handle = self.driver.call_for_handle(make, *arguments)
        self._release.append((release, handle))
        return handle


class Arguments:
    """The argument array of a launch: pointers to 64-bit values. Owns the memory of the pointers
    and the values.
    """

    def __init__(self, *values: int) -> None:
        """Lay out the values in one C array, and a pointer to each in another. ``address`` is that
        of the pointers, which ``cuLaunchKernel`` wants. Each value takes 64 bits; a kernel with a
        narrower argument reads its low part.
        """
        count = len(values)
        self._values = (c_uint64 * count)(*values)
        first = ctypes.addressof(self._values)
        addresses = [first + i * ctypes.sizeof(c_uint64) for i in range(count)]
        self._pointers = (c_void_p * count)(*addresses)
        self.address = ctypes.addressof(self._pointers)

    def set(self, index: int, value: int) -> None:
        """Change one value. This does not affect earlier launches, because a launch copies the
        values.
        """
        self._values[index] = value


def step_arguments(session: CudaSession, place: int = 0, count: int = 1) -> Arguments:
    """Arguments of the step: the address of a set of words, and ``count - 1`` values that the
    kernel does not use.
    """
    return Arguments(session.words + place * _BYTES_PER_SET, *range(1, count))


class SessionClock(StreamHolder):
    """Blocks the stream of the session with the kernel of ``spin.cu``, and measures with events of
    the driver.
    """

    method = "CUDA events behind a spinning kernel"

    def __init__(self, session: CudaSession) -> None:
        self._session = session
        self._driver = session.driver
        self._spin = session.kernel("spin.cu", "spin")
        self._events = [session.event(timed=True), session.event(timed=True)]

    def block(self, ns: float) -> None:
        """Queue a kernel that spins for at least ``ns``."""
        arguments = Arguments(int(ns))
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        self._driver.call(
            "cuLaunchKernel", self._spin, *one_thread, self._session.stream, arguments.address, None
        )

    def mark(self) -> int:
        """Queue the older of two events and return it."""
        event = self._events[0]
        self._events.reverse()
        self._driver.call("cuEventRecord", event, self._session.stream)
        return event

    def passed(self, mark: Any) -> bool:
        """Whether the device has reached the event."""
        return self._driver.has_reached(mark)

    def wait(self, mark: Any) -> None:
        """Return when the device has reached the event."""
        self._driver.call("cuEventSynchronize", mark)

    def between(self, start: Any, end: Any) -> float:
        """Device time between two events, ns."""
        return self._driver.elapsed(start, end)
