"""Triton: the step as a Triton kernel, launched by ``kernel[grid](...)`` and through the compiled
kernel.
"""

from __future__ import annotations

import msgspec

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.probes.common.availability import import_library
from overhead.probes.torch.devices import cuda_torch, targets_of_kind
from overhead.probes.workload_chain import WorkloadArm, with_workloads
from overhead.results import Case, Target


@register
class TritonProbe(Probe):
    """Triton. ``entry=jit`` calls ``step[(4,)](x)``. ``entry=compiled`` launches the kernel that
    this call returns, without looking it up again.
    """

    name = "triton"
    title = "Triton"
    mend = "pip install triton"
    distributions = ("triton", "torch")

    def targets(self) -> list[Target]:
        """The CUDA devices of torch, with the version of Triton."""
        torch, triton = cuda_torch(), import_library("triton", self.mend)
        devices = targets_of_kind(torch, self.name, "cuda")
        return [
            msgspec.structs.replace(d, versions={**d.versions, "triton": triton.__version__})
            for d in devices
        ]

    def space(self, target: Target) -> Space:
        """The cases of the step by kind of launch, with a wait after each, and of the workloads."""
        base = Case(pattern="per-submit", unit="launch", params={"entry": "jit", "wait": "stream"})
        star = Space(
            base,
            {"entry": ["compiled"], "pattern": ["wait-each"]},
            early=[vary(base, "pattern", "wait-each")],
        )
        arms = [
            WorkloadArm(pattern, bodies=("one",), language="triton")
            for pattern in ("fused", "per-submit")
        ]
        return with_workloads(star, arms, software=False)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        import_library("triton", self.mend)
        from overhead.probes.triton.chain import TritonChain, open_work

        return (open_work if "elements" in case.params else TritonChain)(
            str(target.options["device"]), case
        )
