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
        torch = cuda_torch()
        triton = import_library("triton", self.mend)
        targets = []
        # A target for each device of this type that torch lists.
        for device in targets_of_kind(torch, self.name, "cuda"):
            versions = {**device.versions, "triton": triton.__version__}
            targets.append(msgspec.structs.replace(device, versions=versions))
        return targets

    def space(self, target: Target) -> Space:
        """The cases, ways to launch a kernel, that are measured: launches of the step through the
        jitted function and through the compiled kernel (``entry``), with a wait after each launch,
        and the workloads. Every run measures ``base`` and ``early``.
        """
        base = Case(pattern="per-submit", unit="launch", params={"entry": "jit", "wait": "stream"})
        axes = {"entry": ["compiled"], "pattern": ["wait-each"]}
        without_workloads = Space(base, axes, early=[vary(base, "pattern", "wait-each")])
        # ``one``: a step is one kernel.
        fused = WorkloadArm("fused", bodies=("one",), language="triton")
        launches = WorkloadArm("per-submit", bodies=("one",), language="triton")
        return with_workloads(without_workloads, [fused, launches], software=False)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain that measures the case on the device of the target: a workload if the case has
        ``elements``, else n launches of the step.
        """
        import_library("triton", self.mend)  # raises ``Unavailable`` with what installs it
        # Here, because the parent process imports this file and must not load Triton.
        from overhead.probes.triton.chain import TritonChain, open_work

        device = str(target.options["device"])
        if "elements" in case.params:
            return open_work(device, case)
        return TritonChain(device, case)
