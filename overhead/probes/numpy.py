"""NumPy: one ufunc call on 256 int32. This is the lowest cost of an array library."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.probes.common.add_one import count_steps, start_values
from overhead.results import UFUNC_LOOP, Case, Scalar, Target

if TYPE_CHECKING:
    from numpy import int32
    from numpy.typing import NDArray


_CACHE_LINE_BYTES = 64


@register
class NumpyProbe(Probe):
    """NumPy. The in-place operation is ``np.add(x, 1, out=x)``; the allocating operation is ``x = x + 1``."""

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

        star = Space(base, axes={"caller": ["native"], "alloc": ["allocating"]}, allowed=_allowed)
        return with_workloads(star, [eager("separate")], software=True)

    def open(self, target: Target, case: Case) -> Chain:
        if "elements" in case.params:
            from overhead.probes.common.array_workload import NumpyWork
            from overhead.probes.workload_chain import verified

            return verified(NumpyWork(case))
        if case.pattern != "per-submit" or not _allowed(case):
            raise Unsupported(f"numpy has no such case: {case.key}")
        return Native() if case.caller == "native" else Ufunc(allocating=case.params["alloc"] == "allocating")


def _allowed(case: Case) -> bool:
    return case.caller == "binding" or (case.caller == "native" and case.params["alloc"] == "in-place")


class Ufunc(Chain):
    """A chain of n calls of one ufunc. Each call is synchronous."""

    overlap = "serial"
    synchronous = True

    def __init__(self, *, allocating: bool) -> None:
        self._allocating = allocating
        self._values = _aligned(start_values())
        self._loop: Callable[[int], None] = self._allocate if allocating else _in_place(self._values)

    def issue(self, n: int) -> None:
        self._loop(n)

    def wait(self) -> None:
        return

    def executed(self) -> int:
        return count_steps(self._values)

    def window(self) -> dict[str, Scalar]:
        operation = "x = x + 1" if self._allocating else "np.add(x, 1, out=x)"
        return {"operation": operation, "entry": "python", "precision": "int32"}

    def _allocate(self, n: int) -> None:
        x = self._values
        for _ in repeat(None, n):
            x = x + 1
        self._values = x


class Native(Ufunc):
    """A chain that calls the inner loop of the ufunc n times from a compiled loop."""

    def __init__(self) -> None:
        from overhead.probes.common.native_loop import compile_native
        from overhead.probes.common.numpy_ufunc import InnerLoop

        super().__init__(allocating=False)
        self._inner = InnerLoop(self._values)
        self._loop = compile_native(self._inner.program)

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "entry": UFUNC_LOOP}


def _aligned(values: NDArray[int32]) -> NDArray[int32]:
    """A copy of the values at the start of a cache line. At other addresses a native call takes either 15 or 23 ns."""
    from numpy import empty

    room = empty(values.nbytes + _CACHE_LINE_BYTES, "u1")
    start = -room.ctypes.data % _CACHE_LINE_BYTES
    own: NDArray[int32] = room[start : start + values.nbytes].view(values.dtype)
    own[:] = values
    return own


def _in_place(x: NDArray[int32]) -> Callable[[int], None]:
    from numpy import add

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            add(x, 1, out=x)

    return loop
