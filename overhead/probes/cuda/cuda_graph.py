"""CUDA graphs: a graph of n steps launched once, and a graph of fixed size launched n times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from overhead.decode.decoders import DECODERS
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.probes.cuda.compile import INSTALL_CUDA
from overhead.probes.cuda.targets import driver_targets, open_by_driver
from overhead.results import Case, Scalar, Target

if TYPE_CHECKING:
    from overhead.decode.cases import DecodeWay


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
        from overhead.decode.cases import with_decode
        from overhead.probes.workload_chain import WorkloadArm, with_workloads

        arms = [
            WorkloadArm("replay", {"maker": "driver"}, bodies=("separate", "one"), language="cuda"),
            WorkloadArm("replay", {"maker": "torch"}, bodies=("separate", "library")),
            WorkloadArm("replay", {"maker": "torch-compiled"}),
        ]
        made = with_workloads(Space(base, {"maker": ["torch"]}, extra), arms, software=False)
        return with_decode(made, _decode_arms(), software=False)

    def open(self, target: Target, case: Case) -> Chain:
        ordinal = int(target.options["ordinal"])
        if case.params["maker"] == "driver":
            return open_by_driver(ordinal, case)
        from overhead.probes.torch.targets import cuda_torch

        cuda_torch()
        if case.workload in DECODERS or "elements" in case.params:
            from overhead.probes.torch.targets import open_shared

            return open_shared(f"cuda:{ordinal}", case)
        from overhead.probes.torch.graphs import open_step

        return open_step(f"cuda:{ordinal}", case)


def _launches(caller: str, nodes: int, maker: str) -> Case:
    params: dict[str, Scalar] = {"maker": maker, "nodes": nodes}
    return vary(Case(pattern="launches", unit="launch", params=params), "caller", caller)


def _decode_arms() -> list[DecodeWay]:
    """A graph of one token: torch's eager step, and the lowered step with any number of fusions."""
    from overhead.decode.cases import DecodeWay, batched_arms, padded_arms, reading_arms
    from overhead.decode.lowering.fusions import FUSIONS

    levels = [DecodeWay("launches", {"maker": "driver", "fusions": count}) for count in range(len(FUSIONS) + 1)]
    eager = DecodeWay("launches", {"maker": "torch"})
    singles = [eager, *levels, *padded_arms(levels[0]), *reading_arms(levels[-1].params)]
    return [*singles, *batched_arms(eager), *batched_arms(levels[-1])]
