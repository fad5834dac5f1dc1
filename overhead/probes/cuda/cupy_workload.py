"""CuPy: device time of its stream, and workloads in array operations."""

from __future__ import annotations

from typing import Any

import numpy as np

from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.array_workload import ArrayWork
from overhead.probes.held_chain import StreamHolder
from overhead.probes.kernels import source
from overhead.probes.workload_chain import WorkChain, verified
from overhead.results import Case, Scalar
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
    """A verified chain of array operations. Raises ``Unsupported`` for another pattern than ``per-submit``."""
    if case.pattern != "per-submit":
        raise Unsupported(f"CuPy's array operations have no {case.pattern}")
    return verified(CupyWork(cupy, case))


class CupyWork(ArrayWork):
    """n steps of CuPy array operations in CuPy's current stream, which is the default stream."""

    wait_spins = True
    launches = 16

    def __init__(self, cupy: Any, case: Case) -> None:
        self.xp = cupy
        super().__init__(case)
        self._stream = cupy.cuda.get_current_stream()

    def wait(self) -> None:
        self._stream.synchronize()

    def device(self, n: int) -> DeviceTime | None:
        return self.held(CupyClock(self.xp), n)

    def host(self, values: Any) -> Array:
        return np.array(self.xp.asnumpy(values))

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "operation": "array", "stream": "default"}
