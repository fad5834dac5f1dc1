"""Workloads in CUDA C through the driver: launches for every step, a graph of n steps, or one
launch that loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat
from typing import Any

import numpy as np

from overhead.probes.base import Unsupported
from overhead.probes.common.loops import Action
from overhead.probes.cuda.api import CudaDriver
from overhead.probes.cuda.chains import SessionChain
from overhead.probes.cuda.graphs import MOST_NODES, Replay
from overhead.probes.cuda.launch import Launch, bound_launches, driver_launches
from overhead.probes.cuda.session import Arguments, CudaSession
from overhead.probes.workload_chain import WorkChain, kernels_of, verified
from overhead.results import Case, Scalar, because
from overhead.workloads import sources
from overhead.workloads.base import Array


def open_case(driver: CudaDriver, ordinal: int, case: Case) -> WorkChain:
    """A chain that runs a workload (a computation that repeats one step) in CUDA C, of the class
    for the case's pattern: launches for each step, a graph of n steps, or one launch that loops. It
    has been compared with NumPy. Raises ``Unsupported`` for another pattern.
    """
    kinds: dict[str, type[Any]] = {
        "per-submit": LaunchedWork,
        "replay": CudaGraphWork,
        "fused": CudaFusedWork,
    }
    if case.pattern not in kinds:
        raise Unsupported(because("pattern-not-for-cuda-c", pattern=case.pattern))
    made: WorkChain = kinds[case.pattern](driver, ordinal, case)
    # Compares with NumPy; closes the chain and raises ``Unverified`` if the results differ.
    return verified(made)


class CudaWork(SessionChain, WorkChain):
    """Base class of the chains that run a workload (a computation that repeats one step on its own
    state) in generated CUDA C, on a stream of their own.

    ``state``, ``counters``: addresses of device memory; each element has a counter of its steps.
    ``launches_of_a_unit``: the launches of one step, in order. ``arguments``: those of each launch;
    the last one is the number of steps.
    """

    language = "cuda"
    call = "cuLaunchKernel"

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(case)
        self._text, self._entries = kernels_of(self, "cuda")
        self.use_session(CudaSession(driver, ordinal, own_stream=True))

    def build(self) -> None:
        """Allocate the buffers, compile the kernels of a step, and describe their launches. Called
        once the session is there.
        """
        session = self.session
        # The empty arrays also tell ``fetch`` the shape and type of what it reads.
        self._state_like = sources.pack_state(self.workload, self.zeros(), self.elements)
        self._counters_like = np.zeros(self.elements, np.uint32)
        self.state = session.buffer(self._state_like)
        self.counters = session.buffer(self._counters_like)
        inputs = session.buffer(sources.pack_inputs(self.workload, self.inputs))
        steps = 0  # how many steps a launch runs; only the fused kernel reads it
        self.arguments = Arguments(self.state, self.counters, inputs, steps)
        names = [entry.name for entry in self._entries]
        functions = session.functions(f"{self.workload.name}.cu", self._text, names)
        self.launches_of_a_unit: list[Launch] = []
        # ``_entries``: for each kernel of a step, its name, groups, and threads of a group.
        for function, entry in zip(functions, self._entries, strict=True):
            # Grid, block and dynamic shared memory. All kernels get the same arguments.
            dimensions = (entry.groups, 1, 1, entry.threads, 1, 1, 0)
            launch = Launch(function, dimensions, self.arguments.address)
            self.launches_of_a_unit.append(launch)

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state to the device and set all counters to 0."""
        packed = sources.pack_state(self.workload, state, self.elements)
        self.session.write(self.state, packed)
        self.session.write(self.counters, self._counters_like)

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state, and the number of steps of each element (uint32), copied to the host."""
        state = self.session.read(self.state, self._state_like)
        counters = self.session.read(self.counters, self._counters_like)
        self.check_calls()
        return sources.unpack_state(self.workload, state, self.elements), counters

    def kernels(self) -> dict[str, str]:
        """SHA-256 of the generated CUDA C, by the workload's name."""
        return {f"{self.workload.name}.cu": sources.sha256_of(self._text)}

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the record: what every workload tells, the driver
        call, its stream, and the number of launches of a step if there are several.
        """
        timed = {**super().window(), "call": self.call, "stream": "own, non-blocking"}
        launches = len(self._entries)
        if launches > 1:
            timed["launches_a_unit"] = launches
        # A graph: its launches were recorded before the timed window.
        if self.recorded:
            timed["recording"] = "outside"
        return timed


class LaunchedWork(CudaWork):
    """n steps. Each step is one launch or several launches."""

    def build(self) -> None:
        """Prepare the launches of a step through cuda-bindings."""
        super().build()
        self._launches = bound_launches(self.session, self.launches_of_a_unit)
        self.launches = len(self._launches)

    def issue(self, n: int) -> None:
        """Launch n steps; returns before the device has run them."""
        for launch in chain.from_iterable(repeat(self._launches, n)):
            launch()


class CudaFusedWork(CudaWork):
    """One launch of a kernel that runs n steps."""

    overlap = "serial"
    launches = 0
    max_n = 1 << 26

    def build(self) -> None:
        """Prepare the launch. The number of steps is its fourth argument."""
        super().build()
        (self.launch,) = bound_launches(self.session, self.launches_of_a_unit)

    def prepare(self, n: int) -> None:
        """Set the number of steps that the kernel runs."""
        self.arguments.set(3, n)

    def issue(self, n: int) -> None:
        """Launch the kernel; returns before it has run."""
        self.launch()


class CudaGraphWork(Replay, CudaWork):
    """A graph with the launches of n steps."""

    call = "cuGraphLaunch"

    def build(self) -> None:
        """Prepare the launches of a step. The graph of n steps is captured from them later, when n
        is known.
        """
        super().build()
        self.max_n = MOST_NODES // len(self._entries)  # each launch becomes a node
        # Through ctypes, because they raise if they fail; they are not timed.
        self._launches = driver_launches(self.session, self.launches_of_a_unit)
        # The driver loads a kernel at its first launch, which is not allowed during a capture. What
        # this step computes does not matter: the state is set before anything is checked.
        for launch in self._launches:
            launch()

    def launches_of(self, n: int) -> Iterable[Action]:
        """Functions that make the launches of n steps, for the capture."""
        return chain.from_iterable(repeat(self._launches, n))
