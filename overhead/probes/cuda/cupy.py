"""CuPy: an in-place ufunc, a CUDA C kernel through ``RawKernel``, and workloads in array
operations.
"""

from __future__ import annotations

import functools
from itertools import repeat
from typing import Any

import msgspec
import numpy as np

from overhead.probes import register
from overhead.probes.base import Chain, DeviceTime, Space, Unsupported, vary
from overhead.probes.common.array_workload import ArrayWork
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, Issue
from overhead.probes.common.step import count_steps, start_values
from overhead.probes.cuda.cuda_driver import DriverProbe
from overhead.probes.held_chain import HeldChain, StreamHolder
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg, source
from overhead.probes.workload_chain import WorkChain, WorkloadArm, verified, with_workloads
from overhead.results import Case, Scalar, Target, because
from overhead.workloads.base import Array


@register
class CupyProbe(DriverProbe):
    """CuPy. ``operation=ufunc`` is ``cupy.add(x, 1, out=x)``; ``operation=raw-kernel`` is the step
    in CUDA C.
    """

    name = "cupy"
    title = "CuPy"
    distributions = ("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def targets(self) -> list[Target]:
        """The devices of the driver, with the versions of CuPy and its CUDA runtime."""
        devices = super().targets()
        cupy = import_library("cupy", self.mend)
        # CUDA's runtime library, which CuPy uses; its version is another than the driver's.
        runtime = str(cupy.cuda.runtime.runtimeGetVersion())
        targets = []
        for device in devices:
            versions = {
                **device.versions,
                "cupy": cupy.__version__,
                "cuda-runtime": runtime,
            }
            targets.append(msgspec.structs.replace(device, versions=versions))
        return targets

    def space(self, target: Target) -> Space:
        """The cases, ways to launch work, that are measured: a CuPy operation (``base``); each of
        ``axes`` changes one thing of it: a kernel of our own instead, or a wait or a read after
        each call. Every run measures ``base`` and ``early``. The arms are ways to run workloads.
        """
        params: dict[str, Scalar] = {"operation": "ufunc", "wait": "stream"}
        base = Case(pattern="per-submit", unit="launch", params=params)
        axes = {"operation": ["raw-kernel"], "pattern": ["wait-each", "read-each"]}
        # ``vary``: the base with one axis changed.
        early = [vary(base, "operation", "raw-kernel"), vary(base, "pattern", "wait-each")]
        # ``separate``: a step is one operation of CuPy after another.
        arms = [WorkloadArm("per-submit", bodies=("separate",))]
        return with_workloads(Space(base, axes, early=early), arms, software=False)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target, which becomes CuPy's current one."""
        cupy = import_library("cupy", self.mend)
        cupy.cuda.Device(int(target.options["ordinal"])).use()
        if "elements" in case.params:
            return open_case(cupy, case)
        return CupyChain(cupy, case)


class CupyClock(StreamHolder):
    """Blocks CuPy's current stream with the kernel of ``spin.cu``, and measures device time with
    CuPy's events.
    """

    method = "cupy.cuda.Event behind a spinning kernel"

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        text, _ = source("spin.cu")
        self._spin = cupy.RawKernel(text, "spin")

    def block(self, ns: float) -> None:
        """Queue a kernel that spins for at least ``ns``."""
        self._spin((1,), (1,), (np.uint64(ns),))

    def mark(self) -> Any:
        """Queue a new event and return it."""
        event = self._cupy.cuda.Event()
        event.record()
        return event

    def passed(self, mark: Any) -> bool:
        """Whether the device has reached the event."""
        return bool(mark.done)

    def between(self, start: Any, end: Any) -> float:
        """Device time between two events, ns."""
        return float(self._cupy.cuda.get_elapsed_time(start, end)) * 1e6


class CupyChain(HeldChain, InOrderChain):
    """A chain of n launches in CuPy's current stream, which is the default stream."""

    wait_spins = True

    def __init__(self, cupy: Any, case: Case) -> None:
        """Give the base class, a chain on a queue that runs its work in order, what it needs: one
        launch of the case's operation, the wait, a read of the first value, the count of units, and
        a loop of n launches, which is faster than n calls of the launch.
        """
        self._cupy = cupy
        self._raw = case.params["operation"] == "raw-kernel"
        if self._raw:
            operation = "RawKernel"
            precision = "uint32"
            loop, launch = self._raw_kernel()
        else:
            operation = "cupy.add(x, 1, out=x)"
            precision = "int32"
            loop, launch = self._ufunc()
        super().__init__(
            case,
            launch,
            cupy.cuda.get_current_stream().synchronize,
            # ``item`` copies the value to the host, which waits for it.
            self._values[0].item,
            # How many steps have run, from the values: those of ``_raw`` are random numbers, the
            # others sums.
            count=self._steps,
            window={"operation": operation, "precision": precision, "stream": "default"},
            loop=loop,
        )

    @functools.cached_property
    def _clock(self) -> StreamHolder:
        return CupyClock(self._cupy)

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n launches; None if each unit contains a wait or a read."""
        if self.latency:
            return None
        return self.held(self._clock, n)

    def kernels(self) -> dict[str, str]:
        """SHA-256 of ``step.cu`` for the raw kernel; empty for the ufunc."""
        if not self._raw:
            return {}
        _, sha256 = source("step.cu")
        return {"step.cu": sha256}

    def _steps(self) -> int:
        values = self._cupy.asnumpy(self._values)
        if self._raw:
            return lcg.distance(lcg.seeds(), values)
        return count_steps(values)

    def _ufunc(self) -> tuple[Issue, Action]:
        """A function ``loop(n)`` that adds 1 in place n times, by a ufunc (CuPy's function on all
        elements); and a function that does so once.
        """
        self._values = x = self._cupy.asarray(start_values())
        # Local, because the loop is timed: no attribute is looked up in it.
        add = self._cupy.add

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                add(x, 1, out=x)

        return loop, functools.partial(add, x, 1, out=x)

    def _raw_kernel(self) -> tuple[Issue, Action]:
        """A function ``loop(n)`` that launches our kernel n times, and a function that launches it
        once. Each of its 4 * 64 threads changes one of 256 values.
        """
        # The start of a sequence of random numbers for each value; a step goes on to the next.
        self._values = self._cupy.asarray(lcg.seeds())
        text, _ = source("step.cu")
        kernel = self._cupy.RawKernel(text, "step1")
        grid = (4,)
        block = (64,)
        arguments = (self._values,)

        def loop(n: int) -> None:
            for _ in repeat(None, n):
                kernel(grid, block, arguments)

        return loop, functools.partial(kernel, grid, block, arguments)


def open_case(cupy: Any, case: Case) -> WorkChain:
    """A verified chain of array operations. Raises ``Unsupported`` for another pattern than
    ``per-submit``.
    """
    if case.pattern != "per-submit":
        raise Unsupported(because("cupy-arrays-have-no-pattern", pattern=case.pattern))
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
        """Return when the stream is idle."""
        self._stream.synchronize()

    def device(self, n: int) -> DeviceTime | None:
        """Device time of n steps."""
        return self.held(CupyClock(self.xp), n)

    def host(self, values: Any) -> Array:
        """A copy of the values in host memory."""
        return np.array(self.xp.asnumpy(values))

    def window(self) -> dict[str, Scalar]:
        """What is timed: array operations of every workload, on the default stream."""
        return {**super().window(), "operation": "array", "stream": "default"}
