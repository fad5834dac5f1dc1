"""Workloads in CUDA C through the driver: launches for every step, a graph of n steps, or one launch that loops."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.common.python_loops import Action, nothing
from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.compile import machine_code_of
from overhead.probes.cuda.graphs import MOST_NODES, executable, graph_launch
from overhead.probes.cuda.launch import bindings, bound_wait
from overhead.probes.cuda.session import Arguments, CudaSession, SessionClock
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar
from overhead.workloads import sources
from overhead.workloads.base import Array


def open_case(driver: CudaDriver, ordinal: int, case: Case) -> WorkChain:
    """A verified chain for the pattern ``per-submit``, ``replay`` or ``fused``. Others raise ``Unsupported``."""
    kinds: dict[str, type[Any]] = {"per-submit": LaunchedWork, "replay": CudaGraphWork, "fused": CudaFusedWork}
    if case.pattern not in kinds:
        raise Unsupported(f"a workload's CUDA C has no {case.pattern}")
    made: WorkChain = kinds[case.pattern](driver, ordinal, case)
    return verified(made)


class WorkSession(CudaSession):
    """A device with the buffers and kernels of a workload."""

    def buffer(self, values: Array) -> int:
        """Allocate device memory with these values. Returns its address."""
        address = self._own("cuMemFree_v2", "cuMemAlloc_v2", values.nbytes)
        self.write(address, values)
        return address

    def write(self, address: int, values: Array) -> None:
        """Copy values to device memory, and wait for the copy."""
        self._wait()
        kept = np.ascontiguousarray(values)
        self.driver.call("cuMemcpyHtoD_v2", address, kept.ctypes.data, kept.nbytes)
        self._wait()

    def read(self, address: int, like: Array) -> Array:
        """Wait for all work, then copy device memory to an array with the shape and type of ``like``."""
        self._wait()
        found = np.empty_like(like)
        self.driver.call("cuMemcpyDtoH_v2", found.ctypes.data, address, found.nbytes)
        return found

    def functions(self, name: str, text: str, entries: Sequence[str]) -> list[int]:
        """The function handles of kernels in a source text, compiled for this device."""
        code = machine_code_of(name, text, self._device.architecture)
        module = self._own("cuModuleUnload", "cuModuleLoadData", code)
        return [self.driver.made("cuModuleGetFunction", module, entry.encode()) for entry in entries]


class CudaWork(WorkChain):
    """Base class of the workload chains, with buffers, kernels, their arguments and a separate stream."""

    language = "cuda"
    call = "cuLaunchKernel"
    wait_spins = True

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(case)
        self._text, entries = kernels_of(self, "cuda")
        self.session = WorkSession(driver, ordinal, own_stream=True)
        try:
            self._state_like = sources.state(self.workload, self.zeros(), self.elements)
            self._counters_like = np.zeros(self.elements, np.uint32)
            self.state = self.session.buffer(self._state_like)
            self.counters = self.session.buffer(self._counters_like)
            inputs = self.session.buffer(sources.inputs(self.workload, self.inputs))
            self.arguments = Arguments(self.state, self.counters, inputs, 0)
            names = [entry.name for entry in entries]
            functions = self.session.functions(f"{self.workload.name}.cu", self._text, names)
            grids = [(entry.groups, 1, 1, entry.threads, 1, 1, 0) for entry in entries]
            self.kernels_of_a_unit = list(zip(functions, grids, strict=True))
            self._wait = bound_wait(self.session, "stream")
            self._clock: SessionClock | None = None
            self.build()
        except BaseException:
            self.session.close()
            raise

    def build(self) -> None:
        """Make the objects that ``issue`` needs. Called once, when buffers and kernels exist."""
        driver = bindings()
        stream = driver.CUstream(self.session.stream)
        self.launches_of_a_unit: list[Action] = [
            functools.partial(
                driver.cuLaunchKernel, driver.CUfunction(function), *grid, stream, self.arguments.address, 0
            )
            for function, grid in self.kernels_of_a_unit
        ]

    def put(self, state: dict[str, Array]) -> None:
        self.session.write(self.state, sources.state(self.workload, state, self.elements))
        self.session.write(self.counters, self._counters_like)

    def fetch(self) -> tuple[dict[str, Array], Array]:
        state = self.session.read(self.state, self._state_like)
        counters = self.session.read(self.counters, self._counters_like)
        return sources.unpack(self.workload, state, self.elements), counters

    def wait(self) -> None:
        self._wait()

    def device(self, n: int) -> DeviceTime | None:
        self._clock = self._clock or SessionClock(self.session)
        return self.held(self._clock, n)

    def kernels(self) -> dict[str, str]:
        return {f"{self.workload.name}.cu": sources.digest(self._text)}

    def window(self) -> dict[str, Scalar]:
        launches = {"launches_a_unit": len(self.kernels_of_a_unit)} if len(self.kernels_of_a_unit) > 1 else {}
        return {**super().window(), "call": self.call, "stream": "own, non-blocking", **launches}

    def close(self) -> None:
        self.session.close()


class LaunchedWork(CudaWork):
    """n steps. Each step is one launch or several launches."""

    def build(self) -> None:
        super().build()
        self.launches = len(self.launches_of_a_unit)

    def issue(self, n: int) -> None:
        for launch in chain.from_iterable(repeat(self.launches_of_a_unit, n)):
            launch()


class CudaFusedWork(CudaWork):
    """One launch of a kernel that runs n steps."""

    overlap = "serial"
    launches = 0
    max_n = 1 << 26

    def prepare(self, n: int) -> None:
        self.arguments.set(3, n)

    def build(self) -> None:
        super().build()
        (self.launch,) = self.launches_of_a_unit

    def issue(self, n: int) -> None:
        self.launch()


class CudaGraphWork(CudaWork):
    """A graph with the launches of n steps. It is captured outside the window, and launched once inside."""

    call = "cuGraphLaunch"
    recorded = True
    overlap = "serial"
    launches = 0
    max_n = MOST_NODES

    def build(self) -> None:
        self._kept: dict[int, int] = {}
        call, stream = self.session.driver.call, self.session.stream
        self.max_n = MOST_NODES // len(self.kernels_of_a_unit)
        self._step = [
            functools.partial(call, "cuLaunchKernel", function, *grid, stream, self.arguments.address, None)
            for function, grid in self.kernels_of_a_unit
        ]
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        for launch in self._step:
            launch()

    def prepare(self, n: int) -> None:
        self._launch = self._launcher(n) if n else nothing

    def issue(self, n: int) -> None:
        self._launch()

    def _launcher(self, n: int) -> Action:
        if n not in self._kept:
            self._kept[n] = executable(self.session, chain.from_iterable(repeat(self._step, n)))
        return graph_launch(self.session, self._kept[n])

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "recording": "outside"}

    def close(self) -> None:
        while self._kept:
            self.session.driver.call("cuGraphExecDestroy", self._kept.popitem()[1])
        super().close()
