"""NumPy: one ufunc call on 256 int32. This is the lowest cost of an array library."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.probes.common.step import count_steps, start_values
from overhead.results import Case, Scalar, Target

if TYPE_CHECKING:
    from numpy import int32
    from numpy.typing import NDArray

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
        try:
            import numpy
        except ImportError as error:
            raise Unavailable(f"numpy does not import: {error}", self.mend) from error
        return [Target(stack=self.name, api="CPU", adapter="CPU", versions={"numpy": numpy.__version__})]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="launch", params={"alloc": "in-place"})
        from overhead.probes.common.workload_arms import eager
        from overhead.probes.workload_chain import with_workloads

        return with_workloads(Space(base), [eager("separate")], software=True)

    def open(self, target: Target, case: Case) -> Chain:
        if "elements" in case.params:
            from overhead.probes.common.array_workload import NumpyWork
            from overhead.probes.workload_chain import verified

            return verified(NumpyWork(case))
        if case.pattern != "per-submit" or case.caller != "binding":
            raise Unsupported(f"numpy has no such case: {case.key}")
        return Ufunc()


class Ufunc(Chain):
    """A chain of n calls of one ufunc. Each call is synchronous."""

    overlap = "serial"
    synchronous = True

    def __init__(self) -> None:
        from numpy import add

        self._values, self._add = _aligned(start_values()), add

    def issue(self, n: int) -> None:
        x, add = self._values, self._add
        for _ in repeat(None, n):
            add(x, 1, out=x)

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return count_steps(self._values)

    def window(self) -> dict[str, Scalar]:
        return {"operation": "np.add(x, 1, out=x)", "entry": "python", "precision": "int32"}


def _aligned(values: NDArray[int32]) -> NDArray[int32]:
    """A copy of the values at the start of a cache line. The inner loop takes 8 ns longer at other addresses."""
    from numpy import empty

    room = empty(values.nbytes + _CACHE_LINE_BYTES, "u1")
    start = -room.ctypes.data % _CACHE_LINE_BYTES
    own: NDArray[int32] = room[start : start + values.nbytes].view(values.dtype)
    own[:] = values
    return own
