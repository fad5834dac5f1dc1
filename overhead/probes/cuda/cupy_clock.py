"""Device time of CuPy's current stream."""

from __future__ import annotations

from typing import Any

from overhead.probes.held_chain import StreamHolder


class CupyClock(StreamHolder):
    """Blocks CuPy's current stream with the kernel of ``spin.cu``, and measures device time with CuPy's events."""

    method = "cupy.cuda.Event behind a spinning kernel"

    def __init__(self, cupy: Any) -> None:
        from overhead.probes.kernels import source

        self._cupy = cupy
        self._spin = cupy.RawKernel(source("spin.cu")[0], "spin")

    def block(self, ns: float) -> None:
        import numpy

        self._spin((1,), (1,), (numpy.uint64(ns),))

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
