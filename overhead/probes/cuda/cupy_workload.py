"""Workloads in CuPy: array operations with one call per step, or a CUDA C ``RawKernel`` that loops over the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead.probes.base import DeviceTime
from overhead.probes.common.array_workload import ArrayWork
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar
from overhead.workloads import sources
from overhead.workloads.base import Array


def open_case(cupy: Any, case: Case) -> WorkChain:
    """A verified chain. It runs the ``RawKernel`` if the pattern is ``fused``, else array operations."""
    return verified((RawWork if case.pattern == "fused" else CupyArrays)(cupy, case))


class CupyArrays(ArrayWork):
    """n steps of CuPy array operations in the current stream."""

    launches = 16
    wait_spins = True

    def __init__(self, cupy: Any, case: Case) -> None:
        self.xp = cupy
        super().__init__(case)
        self._stream = cupy.cuda.get_current_stream()

    def host(self, values: Any) -> Array:
        return np.array(self.xp.asnumpy(values))

    def wait(self) -> None:
        self._stream.synchronize()

    def device(self, n: int) -> DeviceTime | None:
        return self.held(_clock(self.xp), n)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "operation": "array", "stream": "default"}


class RawWork(WorkChain):
    """One launch of a kernel that runs n steps."""

    language = "cuda"
    overlap = "serial"
    launches = 0
    wait_spins = True
    max_n = 1 << 26

    def __init__(self, cupy: Any, case: Case) -> None:
        super().__init__(case)
        self._cupy = cupy
        self._text, (entry,) = kernels_of(self, "cuda")
        self._kernel = cupy.RawKernel(self._text, entry.name, options=("--std=c++17",))
        self._counters = cupy.asarray(np.zeros(self.elements, np.uint32))
        self._inputs = cupy.asarray(sources.inputs(self.workload, self.inputs))
        self._grid, self._block = (entry.groups,), (entry.threads,)
        self._stream = cupy.cuda.get_current_stream()

    def put(self, state: dict[str, Array]) -> None:
        self._state = self._cupy.asarray(sources.state(self.workload, state, self.elements))
        self._counters = self._cupy.asarray(np.zeros(self.elements, np.uint32))
        self._stream.synchronize()

    def fetch(self) -> tuple[dict[str, Array], Array]:
        state = np.array(self._cupy.asnumpy(self._state))
        counters = np.array(self._cupy.asnumpy(self._counters))
        return sources.unpack(self.workload, state, self.elements), counters

    def prepare(self, n: int) -> None:
        self._arguments = (self._state, self._counters, self._inputs, np.uint64(n))

    def issue(self, n: int) -> None:
        self._kernel(self._grid, self._block, self._arguments)

    def wait(self) -> None:
        self._stream.synchronize()

    def device(self, n: int) -> DeviceTime | None:
        return self.held(_clock(self._cupy), n)

    def kernels(self) -> dict[str, str]:
        return {f"{self.workload.name}.cu": sources.digest(self._text)}

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "operation": "RawKernel", "stream": "default"}


def _clock(cupy: Any) -> Any:
    from overhead.probes.cuda.cupy_clock import CupyClock

    return CupyClock(cupy)
