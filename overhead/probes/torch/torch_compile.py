"""torch.compile: the time that fusion saves and the time that a CUDA graph saves, for steps of 1
and 5 operations.
"""

from __future__ import annotations

import shutil

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, vary
from overhead.probes.torch.devices import import_torch, targets_of_kind, torch_target
from overhead.probes.workload_chain import WorkloadArm, with_workloads
from overhead.results import Case, Scalar, Target, because


@register
class TorchCompileProbe(Probe):
    """torch.compile. A step is ``ops`` in-place additions. ``mode`` is one of these:

    ``eager`` launches each addition. ``default`` fuses them into one launch. ``reduce-overhead``
    puts this launch into a CUDA graph. The difference of default and eager is the saving by fusion.
    The difference of reduce-overhead and default is the saving by the graph.
    """

    name = "torch-compile"
    title = "torch.compile"
    mend = because("install-extras", extras="torch")
    distributions = ("torch", "triton")

    def targets(self) -> list[Target]:
        """The CUDA devices; without one, the CPU, which needs a C++ compiler."""
        torch = import_torch(self.mend)
        if found := targets_of_kind(torch, self.name, "cuda"):
            return found
        if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
            raise Unavailable(because("torch-compile-needs-compiler"), "install g++")
        return [torch_target(torch, self.name, "cpu")]

    def space(self, target: Target) -> Space:
        """The cases of 1 and 5 additions in each mode, and of the compiled workloads."""
        cpu = target.api == "CPU"
        wait: dict[str, Scalar] = {} if cpu else {"wait": "stream"}
        compiled = ["default"] if cpu else ["default", "reduce-overhead"]
        base = Case(pattern="per-submit", unit="step", params={"mode": "default", "ops": 1, **wait})
        others: list[Scalar] = [*compiled[1:], "eager"]
        five = [vary(vary(base, "ops", 5), "mode", mode) for mode in others]
        arms = [WorkloadArm("per-submit", {"mode": mode}) for mode in compiled]
        early = [vary(base, "mode", "eager")]
        return with_workloads(
            Space(base, {"mode": others, "ops": [5]}, five, early=early), arms, software=cpu
        )

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, compiled on the device of the target."""
        device = str(target.options["device"])
        if "elements" in case.params:
            from overhead.probes.torch import workload

            return workload.open_case(device, case)
        from overhead.probes.torch.compiled import CompiledAdditions

        return CompiledAdditions(device, case)
