"""The CUDA driver API: ``cuLaunchKernel`` called with cuda-bindings, with ctypes, and from a compiled loop."""

from __future__ import annotations

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.probes.cuda.compile import INSTALL_CUDA
from overhead.probes.cuda.targets import driver_targets, open_by_driver
from overhead.results import Case, Scalar, Target


@register
class CudaDriverProbe(Probe):
    """The CUDA driver API: launches on the default stream. ``arguments``: number of kernel parameters.

    ``loops``: steps per launch. With many steps a launch takes longer on the device than on the host: the queue fills.
    """

    name = "cuda-driver"
    title = "CUDA driver API"
    mend = INSTALL_CUDA
    distributions = ("cuda-bindings", "nvidia-cuda-nvrtc")

    def targets(self) -> list[Target]:
        return driver_targets(self.name)

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="launch", params={"arguments": 1, "stream": "default", "wait": "stream"})
        axes: dict[str, list[Scalar]] = {
            "caller": ["native", "ffi"],
            "arguments": [8],
            "wait": ["context", "event", "event-blocking"],
            "pattern": ["wait-each", "read-each"],
        }
        native, each = vary(base, "caller", "native"), vary(base, "pattern", "wait-each")
        extra = [
            Case(pattern="fused", unit="step", params=base.params),
            vary(vary(native, "loops", 8000), "arguments", 2),
            *(
                vary(one, "caller", caller)
                for one in (vary(base, "arguments", 8), each)
                for caller in ("native", "ffi")
            ),
        ]
        from overhead.probes.common.workload_arms import fused, launches
        from overhead.probes.workload_chain import with_workloads

        arms = [fused("cuda"), launches("cuda", "separate", "one")]
        return with_workloads(Space(base, axes, extra, _allowed), arms, software=False)

    def open(self, target: Target, case: Case) -> Chain:
        return open_by_driver(int(target.options["ordinal"]), case)


def _allowed(case: Case) -> bool:
    return case.pattern not in ("fused", "read-each") or (case.caller, case.params["arguments"]) == ("binding", 1)
