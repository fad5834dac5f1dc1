"""CuPy: an in-place ufunc, and a CUDA C kernel through ``RawKernel``."""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

import msgspec

from overhead.probes import register
from overhead.probes.base import Chain, DeviceTime, Probe, Space
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, Issue
from overhead.probes.common.step import count_steps, start_values
from overhead.probes.cuda.compile import INSTALL_CUDA
from overhead.probes.cuda.targets import driver_targets
from overhead.probes.held_chain import HeldChain, StreamHolder
from overhead.probes.in_order import InOrderChain
from overhead.results import Case, Target


@register
class CupyProbe(Probe):
    """CuPy. ``operation=ufunc`` is ``cupy.add(x, 1, out=x)``; ``operation=raw-kernel`` is the step in CUDA C."""

    name = "cupy"
    title = "CuPy"
    mend = INSTALL_CUDA
    distributions = ("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def targets(self) -> list[Target]:
        found = driver_targets(self.name)
        cupy = import_library("cupy", self.mend)
        versions = {"cupy": cupy.__version__, "cuda-runtime": str(cupy.cuda.runtime.runtimeGetVersion())}
        return [msgspec.structs.replace(target, versions={**target.versions, **versions}) for target in found]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="launch", params={"operation": "ufunc", "wait": "stream"})
        star = Space(base, {"operation": ["raw-kernel"], "pattern": ["wait-each", "read-each"]})
        from overhead.probes.common.workload_arms import eager
        from overhead.probes.workload_chain import with_workloads

        return with_workloads(star, [eager("separate")], software=False)

    def open(self, target: Target, case: Case) -> Chain:
        cupy = import_library("cupy", self.mend)
        cupy.cuda.Device(int(target.options["ordinal"])).use()
        if "elements" in case.params:
            from overhead.probes.cuda import cupy_workload

            return cupy_workload.open_case(cupy, case)
        return CupyChain(cupy, case)


class CupyChain(HeldChain, InOrderChain):
    """A chain of n launches in CuPy's current stream, which is the default stream."""

    wait_spins = True

    def __init__(self, cupy: Any, case: Case) -> None:
        self._cupy = cupy
        self._raw = case.params["operation"] == "raw-kernel"
        self._hashes: dict[str, str] = {}
        loop, launch = self._raw_kernel() if self._raw else self._ufunc()
        operation = "RawKernel" if self._raw else "cupy.add(x, 1, out=x)"
        precision = "uint32" if self._raw else "int32"
        super().__init__(
            case,
            launch,
            cupy.cuda.get_current_stream().synchronize,
            self._values[0].item,
            count=self._steps,
            window={"operation": operation, "precision": precision, "stream": "default"},
            loop=loop,
        )

    def device(self, n: int) -> DeviceTime | None:
        if self.latency:
            return None
        return self.held(self._clock, n)

    @functools.cached_property
    def _clock(self) -> StreamHolder:
        from overhead.probes.cuda.cupy_workload import CupyClock

        return CupyClock(self._cupy)

    def kernels(self) -> dict[str, str]:
        return self._hashes

    def _steps(self) -> int:
        from overhead.probes.kernels import lcg

        values = self._cupy.asnumpy(self._values)
        return lcg.distance(lcg.seeds(), values) if self._raw else count_steps(values)

    def _ufunc(self) -> tuple[Issue, Action]:
        self._values = x = self._cupy.asarray(start_values())
        add = self._cupy.add

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                add(x, 1, out=x)

        return loop, functools.partial(add, x, 1, out=x)

    def _raw_kernel(self) -> tuple[Issue, Action]:
        from overhead.probes.kernels import lcg, source

        text, self._hashes["step.cu"] = source("step.cu")
        self._values = self._cupy.asarray(lcg.seeds())
        kernel, grid, block, arguments = self._cupy.RawKernel(text, "step1"), (4,), (64,), (self._values,)

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                kernel(grid, block, arguments)

        return loop, functools.partial(kernel, grid, block, arguments)
