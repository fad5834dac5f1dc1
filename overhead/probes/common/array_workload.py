"""A workload on NumPy arrays, one step per call. ``ArrayWork`` also serves CuPy and MLX."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from overhead.probes.workload_chain import WorkChain, step_of
from overhead.results import Case, Scalar
from overhead.workloads.base import Array


class ArrayWork(WorkChain):
    """Runs a workload, a computation that repeats one step on its own result, in operations of an
    array library. ``values``: the newest state by name, and as ``steps`` a counter for each
    element, to which each step adds 1.
    """

    xp: Any = np
    """The array library."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        library = self.xp
        inputs = {name: library.asarray(values) for name, values in self.inputs.items()}
        self._step = step_of(self, library, inputs)

    def put(self, state: dict[str, Array]) -> None:
        """Copy the state into arrays of the library, with counters of 0."""
        # ``step_of`` counts in int32. ``fetch`` returns the same bits as uint32.
        counters = np.zeros(self.elements, np.int32)
        whole = {**state, "steps": counters}
        self.values = {name: self.xp.array(values) for name, values in whole.items()}

    def fetch(self) -> tuple[dict[str, Array], Array]:
        """The state and the counters, copied to host memory."""
        state = {name: self.host(values) for name, values in self.values.items()}
        counters = state.pop("steps").view(np.uint32)
        return state, counters

    def host(self, values: Any) -> Array:
        """A copy of the values in host memory."""
        return np.array(values)

    def issue(self, n: int) -> None:
        """Run n steps; with a library for GPUs, they are only queued."""
        values, step = self.values, self._step
        for _ in repeat(None, n):
            values = step(values)
        self.values = values


class NumpyWork(ArrayWork):
    """The workload in NumPy. Each call is synchronous."""

    overlap = "serial"
    synchronous = True
    on_host = True

    def wait(self) -> None:
        """Do nothing: the work is done when ``issue`` returns."""

    def window(self) -> dict[str, Scalar]:
        """What is timed, as names and values for the results file."""
        return {**super().window(), "entry": "python"}
