"""One device prepared for launches: context, stream, kernels, buffers, sets of 256 words, clock for device time."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_uint, c_uint64, c_void_p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.compile import machine_code, machine_code_of
from overhead.probes.held_chain import StreamHolder
from overhead.probes.kernels import lcg, source

CUDA_GRID, GROUP_SIZE = 4, 64
_BYTES_PER_SET = CUDA_GRID * GROUP_SIZE * 4
_NON_BLOCKING_STREAM = 1
BLOCKING_EVENT, UNTIMED_EVENT = 1, 2


class CudaSession:
    """A device with its primary context, which torch and CuPy use too. ``close`` releases everything it made.

    ``places``: the number of sets of words, one after another in memory. ``word``: room on the host for one word.
    """

    def __init__(self, driver: CudaDriver, ordinal: int, *, own_stream: bool, places: int = 1) -> None:
        self.driver, self.places = driver, places
        self._device = driver.devices()[ordinal]
        self._handle = driver.number("cuDeviceGet", ordinal)
        self._kernels: dict[str, str] = {}
        self._release: list[tuple[str, int]] = []
        driver.call("cuCtxSetCurrent", driver.made("cuDevicePrimaryCtxRetain", self._handle))
        self.stream = self.own("cuStreamDestroy_v2", "cuStreamCreate", _NON_BLOCKING_STREAM) if own_stream else 0
        self.seeds = lcg.seeds(CUDA_GRID * GROUP_SIZE * places)
        self.words, self.word = self.buffer(self.seeds), (c_uint * 1)()

    def kernel(self, file: str, name: str) -> int:
        """The function handle of a kernel, compiled for this device."""
        self._kernels[file] = source(file)[1]
        module = self.own("cuModuleUnload", "cuModuleLoadData", machine_code(file, self._device.architecture))
        return self.driver.made("cuModuleGetFunction", module, name.encode())

    def functions(self, name: str, text: str, entries: Sequence[str]) -> list[int]:
        """The function handles of kernels in a source text, compiled for this device."""
        code = machine_code_of(name, text, self._device.architecture)
        module = self.own("cuModuleUnload", "cuModuleLoadData", code)
        return [self.driver.made("cuModuleGetFunction", module, entry.encode()) for entry in entries]

    def kernels(self) -> dict[str, str]:
        """SHA-256 of each kernel file in use."""
        return dict(self._kernels)

    def event(self, flags: int) -> int:
        """A new event."""
        return self.own("cuEventDestroy_v2", "cuEventCreate", flags)

    def buffer(self, values: NDArray[Any]) -> int:
        """Allocate device memory with these values. Returns its address."""
        address = self.own("cuMemFree_v2", "cuMemAlloc_v2", values.nbytes)
        self.write(address, values)
        return address

    def write(self, address: int, values: NDArray[Any]) -> None:
        """Copy values to device memory after all work, and wait for the copy."""
        self._wait()
        kept = np.ascontiguousarray(values)
        self.driver.call("cuMemcpyHtoD_v2", address, kept.ctypes.data, kept.nbytes)
        self._wait()

    def read(self, address: int, like: NDArray[Any]) -> NDArray[Any]:
        """Wait for all work, then copy device memory to an array with the shape and type of ``like``."""
        self._wait()
        found = np.empty_like(like)
        self.driver.call("cuMemcpyDtoH_v2", found.ctypes.data, address, found.nbytes)
        return found

    def steps(self) -> int:
        """The total number of steps on all sets of words. Raises ``Unverified`` if words of one set disagree."""
        words = self.read(self.words, self.seeds)
        before, after = (found.reshape(self.places, -1) for found in (self.seeds, words))
        return sum(lcg.distance(*pair) for pair in zip(before, after, strict=True))

    def reset(self) -> None:
        """Set the words to their seeds."""
        self.write(self.words, self.seeds)

    def close(self) -> None:
        """Release everything in reverse order."""
        while self._release:
            name, handle = self._release.pop()
            self.driver.call(name, handle)
        self.driver.call("cuDevicePrimaryCtxRelease_v2", self._handle)

    def _wait(self) -> None:
        self.driver.call("cuCtxSynchronize")

    def own(self, release: str, make: str, *arguments: Any) -> int:
        """The handle that ``make`` returns. ``close`` releases it."""
        handle = self.driver.made(make, *arguments)
        self._release.append((release, handle))
        return handle


class Arguments:
    """The argument array of a launch: pointers to 64-bit values. Owns the memory of the pointers and the values."""

    def __init__(self, *values: int) -> None:
        self._values = (c_uint64 * len(values))(*values)
        start, size = ctypes.addressof(self._values), ctypes.sizeof(c_uint64)
        self._pointers = (c_void_p * len(values))(*(start + i * size for i in range(len(values))))
        self.address = ctypes.addressof(self._pointers)

    def set(self, index: int, value: int) -> None:
        """Change one value. This does not affect earlier launches, because a launch copies the values."""
        self._values[index] = value


def step_arguments(session: CudaSession, place: int = 0, count: int = 1) -> Arguments:
    """Arguments of the step: the address of a set of words, and ``count - 1`` values that the kernel does not use."""
    return Arguments(session.words + place * _BYTES_PER_SET, *range(1, count))


class SessionClock(StreamHolder):
    """Blocks the stream of the session with the kernel of ``spin.cu``, and measures with events of the driver."""

    method = "CUDA events behind a spinning kernel"

    def __init__(self, session: CudaSession) -> None:
        self._session, self._driver = session, session.driver
        self._spin = session.kernel("spin.cu", "spin")
        self._events = [session.event(0), session.event(0)]

    def block(self, ns: float) -> None:
        arguments = Arguments(int(ns))
        one_thread = (1, 1, 1, 1, 1, 1, 0)
        self._driver.call("cuLaunchKernel", self._spin, *one_thread, self._session.stream, arguments.address, None)

    def mark(self) -> int:
        event = self._events[0]
        self._events.reverse()
        self._driver.call("cuEventRecord", event, self._session.stream)
        return event

    def passed(self, mark: Any) -> bool:
        return self._driver.reached(mark)

    def wait(self, mark: Any) -> None:
        self._driver.call("cuEventSynchronize", mark)

    def between(self, start: Any, end: Any) -> float:
        return self._driver.elapsed(start, end)
