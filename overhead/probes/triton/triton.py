"""Triton: the step as a Triton kernel, launched by ``kernel[grid](...)`` and through the compiled kernel."""

from __future__ import annotations

import msgspec

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.probes.common.availability import import_library
from overhead.results import Case, Target


@register
class TritonProbe(Probe):
    """Triton. ``entry=jit`` calls ``step[(4,)](x)``. ``entry=compiled`` launches the kernel that this call returns,
    without looking it up again."""

    name = "triton"
    title = "Triton"
    mend = "pip install triton"
    distributions = ("triton", "torch")

    def targets(self) -> list[Target]:
        from overhead.probes.torch.targets import cuda_torch, torch_target

        torch = cuda_torch()
        triton = import_library("triton", self.mend)
        devices = [torch_target(torch, self.name, f"cuda:{index}") for index in range(torch.cuda.device_count())]
        return [msgspec.structs.replace(d, versions={**d.versions, "triton": triton.__version__}) for d in devices]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="launch", params={"entry": "jit", "wait": "stream"})
        from overhead.probes.common.workload_arms import fused, launches
        from overhead.probes.workload_chain import with_workloads

        star = Space(base, {"entry": ["compiled"], "pattern": ["wait-each"]})
        return with_workloads(star, [fused("triton"), launches("triton", "one")], software=False)

    def open(self, target: Target, case: Case) -> Chain:
        import_library("triton", self.mend)
        from overhead.probes.triton.chain import TritonChain, open_work

        return (open_work if "elements" in case.params else TritonChain)(str(target.options["device"]), case)
