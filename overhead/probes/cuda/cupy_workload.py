"""CuPy: device time of its stream, and workloads in array operations or in a CUDA C ``RawKernel`` that loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead.probes.base import DeviceTime
from overhead.probes.common.array_workload import ArrayWork
from overhead.probes.held_chain import StreamHolder
from overhead.probes.kernels import source
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar
from overhead.workloads import sources
from overhead.workloads.base import Array


class CupyClock(StreamHolder):
    """Blocks CuPy's current stream with the kernel of ``spin.cu``, and measures device time with CuPy's events."""

    method = "cupy.cuda.Event behind a spinning kernel"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._spin = cupy.RawKernel(source("spin.cu")[0], "spin")

    def block(self, ns: float) -> None:
        self._spin((1,), (1,), (np.uint64(ns),))

    def mark(self) -> Any:
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        return bool(mark.done)

    def wait(self, mark: Any) -> None:
        mark.synchronize()

    def between(self, start: Any, end: Any) -> float:
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6


def open_case(cupy: Any, case: Case) -> WorkChain:
    """A verified chain. It runs the ``RawKernel`` if the pattern is ``fused``, else array operations."""
    return verified((RawWork if case.pattern == "fused" else CupyArrays)(cupy, case))


class CupyWork(WorkChain):
    """A chain in CuPy's current stream, which is the default stream."""

    wait_spins = True

    def __init__(self, cupy: Any, case: Case) -> None:
        self.xp = cupy
        super().__init__(case)
        self._stream = cupy.cuda.get_current_stream()

    def wait(self) -> None:
        self._stream.synchronize()

    def device(self, n: int) -> DeviceTime | None:
        return self.held(CupyClock(self.xp), n)


class CupyArrays(CupyWork, ArrayWork):
    """n steps of CuPy array operations."""

    launches = 16

    def host(self, values: Any) -> Array:
        return np.array(self.xp.asnumpy(values))

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "operation": "array", "stream": "default"}


class RawWork(CupyWork):
    """One launch of a kernel that runs n steps."""

    language = "cuda"
    overlap = "serial"
    launches = 0
    max_n = 1 << 26

    def __init__(self, cupy: Any, case: Case) -> None:
        super().__init__(cupy, case)
        self._text, (entry,) = kernels_of(self, "cuda")
        self._kernel = cupy.RawKernel(self._text, entry.name, options=("--std=c++17",))
        self._counters = cupy.asarray(np.zeros(self.elements, np.uint32))
        self._inputs = cupy.asarray(sources.inputs(self.workload, self.inputs))
        self._grid, self._block = (entry.groups,), (entry.threads,)

    def put(self, state: dict[str, Array]) -> None:
        self._state = self.xp.asarray(sources.state(self.workload, state, self.elements))
        self._counters = self.xp.asarray(np.zeros(self.elements, np.uint32))
        self._stream.synchronize()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        state = np.array(self.xp.asnumpy(self._state))
        counters = np.array(self.xp.asnumpy(self._counters))
        return sources.unpack(self.workload, state, self.elements), counters

    def prepare(self, n: int) -> None:
        self._arguments = (self._state, self._counters, self._inputs, np.uint64(n))

    def issue(self, n: int) -> None:
        self._kernel(self._grid, self._block, self._arguments)

    def kernels(self) -> dict[str, str]:
        return {f"{self.workload.name}.cu": sources.digest(self._text)}

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "operation": "RawKernel", "stream": "default"}
