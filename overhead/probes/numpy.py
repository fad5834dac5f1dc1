"""NumPy: one ufunc call on 256 int32. This is the lowest cost of an array library."""

from __future__ import annotations

from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.probes.common.array_workload import NumpyWork
from overhead.probes.common.step import count_steps, start_values
from overhead.probes.workload_chain import WorkloadArm, verified, with_workloads
from overhead.results import Case, Scalar, Target, because

_CACHE_LINE_BYTES = 64


@register
class NumpyProbe(Probe):
    """NumPy. The operation is ``np.add(x, 1, out=x)``."""

    name = "numpy"
    title = "NumPy ufunc"
    mend = "pip install numpy"
    distributions = ("numpy",)
    cost = "cheap"

    def targets(self) -> list[Target]:
        """The CPU."""
        versions = {"numpy": np.__version__}
        return [Target(stack=self.name, api="CPU", adapter="CPU", versions=versions)]

    def space(self, target: Target) -> Space:
        """The case of one ufunc, and the workloads."""
        base = Case(pattern="per-submit", unit="launch", params={"alloc": "in-place"})
        arms = [WorkloadArm("per-submit", bodies=("separate",))]
        return with_workloads(Space(base), arms, software=True)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the ufunc or of the workload."""
        if "elements" in case.params:
            return verified(NumpyWork(case))
        if case.pattern != "per-submit" or case.caller != "binding":
            raise Unsupported(because("numpy-has-no-such-case", case=case.key))
        return UfuncCalls()


class UfuncCalls(Chain):
    """A chain of n calls of one ufunc. Each call is synchronous."""

    overlap = "serial"
    synchronous = True

    def __init__(self) -> None:
        self._values = _aligned(start_values())
        self._add = np.add

    def issue(self, n: int) -> None:
        """Call the ufunc n times; returns when the work is done."""
        x, add = self._values, self._add
        for _ in repeat(None, n):
            add(x, 1, out=x)

    def wait(self) -> None:
        """Return at once: the work is done."""

    def executed(self) -> int:
        """The number of calls, which is what was added to each value. Raises ``Unverified`` if
        values disagree.
        """
        return count_steps(self._values)

    def window(self) -> dict[str, Scalar]:
        """What is timed: the operation, how it is called, and its precision."""
        return {"operation": "np.add(x, 1, out=x)", "entry": "python", "precision": "int32"}


def _aligned(values: NDArray[np.int32]) -> NDArray[np.int32]:
    """A copy of the values at the start of a cache line. NumPy's inner loop takes 8 ns longer at
    other addresses, and an array that NumPy makes may be at any.
    """
    # One cache line more than the values need, so that a line begins within the first bytes.
    room = np.empty(values.nbytes + _CACHE_LINE_BYTES, "u1")
    # How many bytes the address of the room lacks to a multiple of the line's length.
    to_next_line = -room.ctypes.data % _CACHE_LINE_BYTES
    aligned = room[to_next_line : to_next_line + values.nbytes].view(values.dtype)
    aligned[:] = values
    return aligned
