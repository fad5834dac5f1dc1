"""CuPy: an in-place ufunc, and a CUDA C kernel through ``RawKernel``."""

from __future__ import annotations

import msgspec

from overhead.probes import register
from overhead.probes.base import Chain, Space
from overhead.probes.common.library_import import import_library
from overhead.probes.cuda.cuda_driver import DriverProbe
from overhead.results import Case, Target


@register
class CupyProbe(DriverProbe):
    """CuPy. ``operation=ufunc`` is ``cupy.add(x, 1, out=x)``; ``operation=raw-kernel`` is the step in CUDA C."""

    name = "cupy"
    title = "CuPy"
    distributions = ("cupy-cuda13x", "cupy-cuda12x", "cupy")

    def targets(self) -> list[Target]:
        """The devices of the driver, with the versions of CuPy and its CUDA runtime."""
        found = super().targets()
        cupy = import_library("cupy", self.mend)
        versions = {"cupy": cupy.__version__, "cuda-runtime": str(cupy.cuda.runtime.runtimeGetVersion())}
        return [msgspec.structs.replace(target, versions={**target.versions, **versions}) for target in found]

    def space(self, target: Target) -> Space:
        """The cases of both operations, with a wait or a read after each, and of the workloads."""
        base = Case(pattern="per-submit", unit="launch", params={"operation": "ufunc", "wait": "stream"})
        star = Space(base, {"operation": ["raw-kernel"], "pattern": ["wait-each", "read-each"]})
        from overhead.probes.common.workload_arms import eager
        from overhead.probes.workload_chain import with_workloads

        return with_workloads(star, [eager("separate")], software=False)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target, which becomes CuPy's current one."""
        cupy = import_library("cupy", self.mend)
        cupy.cuda.Device(int(target.options["ordinal"])).use()
        from overhead.probes.cuda import cupy_chains

        return (cupy_chains.open_case if "elements" in case.params else cupy_chains.CupyChain)(cupy, case)
