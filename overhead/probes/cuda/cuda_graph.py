"""CUDA graphs: a graph of n steps launched once, and a graph of fixed size launched n times."""

from __future__ import annotations

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.probes.cuda.compile import INSTALL_CUDA
from overhead.probes.cuda.targets import driver_targets, open_by_driver
from overhead.results import Case, Scalar, Target


@register
class CudaGraphProbe(Probe):
    """CUDA graphs. ``maker``: ``driver`` captures our step; ``torch`` captures torch's kernel for ``x.add_(1)``."""

    name = "cuda-graph"
    title = "CUDA graph"
    mend = INSTALL_CUDA
    distributions = ("cuda-bindings", "nvidia-cuda-nvrtc", "torch")

    def targets(self) -> list[Target]:
        return driver_targets(self.name)

    def space(self, target: Target) -> Space:
        base = Case(pattern="replay", unit="node", params={"maker": "driver"})
        one = _launches("binding", 1, "driver")
        extra = [
            one,
            vary(one, "caller", "native"),
            vary(one, "maker", "torch"),
            *(_launches("binding", nodes, "driver") for nodes in (10, 100, 1000)),
            _launches("native", 100, "driver"),
            _launches("binding", 100, "torch"),
        ]
        from overhead.probes.workload_chain import WorkloadArm, with_workloads

        arms = [
            WorkloadArm("replay", {"maker": "driver"}, bodies=("separate", "one"), language="cuda"),
            WorkloadArm("replay", {"maker": "torch"}, bodies=("separate", "library")),
            WorkloadArm("replay", {"maker": "torch-compiled"}),
        ]
        return with_workloads(Space(base, {"maker": ["torch"]}, extra), arms, software=False)

    def open(self, target: Target, case: Case) -> Chain:
        ordinal = int(target.options["ordinal"])
        if case.params["maker"] == "driver":
            return open_by_driver(ordinal, case)
        from overhead.probes.torch import graphs, workload
        from overhead.probes.torch.devices import cuda_torch

        cuda_torch()
        opens = workload.open_case if "elements" in case.params else graphs.open_step
        return opens(f"cuda:{ordinal}", case)


def _launches(caller: str, nodes: int, maker: str) -> Case:
    params: dict[str, Scalar] = {"maker": maker, "nodes": nodes}
    return vary(Case(pattern="launches", unit="launch", params=params), "caller", caller)
