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
        """The CUDA devices; without one, the CPU, for which torch.compile calls a C++ compiler.
        Raises ``Unavailable`` if there is none.
        """
        torch = import_torch(self.mend)
        gpus = targets_of_kind(torch, self.name, "cuda")
        if gpus:
            return gpus
        compilers = ("c++", "g++", "clang++", "cl")
        # One of them must be on the path.
        if not any(shutil.which(compiler) for compiler in compilers):
            raise Unavailable(because("torch-compile-needs-compiler"), "install g++")
        return [torch_target(torch, self.name, "cpu")]

    def space(self, target: Target) -> Space:
        """The cases that are measured, each a way to run a step: of 1 and of 5 additions, in each
        mode of torch.compile and in the mode ``eager``, which is not compiled; and of the
        workloads, compiled. Every run measures ``base`` and ``early``.
        """
        on_cpu = target.api == "CPU"
        params: dict[str, Scalar] = {"mode": "default", "ops": 1}
        compiled_modes = ["default"]
        if not on_cpu:
            params["wait"] = "stream"
            compiled_modes.append("reduce-overhead")  # a CUDA graph
        base = Case(pattern="per-submit", unit="step", params=params)
        # ``eager`` is measured for the comparison.
        other_modes: list[Scalar] = [*compiled_modes[1:], "eager"]
        five_operations = vary(base, "ops", 5)
        without_workloads = Space(
            base,
            axes={"mode": other_modes, "ops": [5]},
            # Five additions in the other modes; in the first they are on the axis ``ops``.
            extra=[vary(five_operations, "mode", mode) for mode in other_modes],
            early=[vary(base, "mode", "eager")],
        )
        arms = [WorkloadArm("per-submit", {"mode": mode}) for mode in compiled_modes]
        return with_workloads(without_workloads, arms, software=on_cpu)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, compiled on the device of the target. A case with the parameter
        ``elements`` runs a workload.
        """
        device = str(target.options["device"])
        if "elements" in case.params:
            from overhead.probes.torch import workload

            return workload.open_case(device, case)
        # Here, because the parent process imports this file and must not load torch.
        from overhead.probes.torch.compiled import CompiledAdditions

        return CompiledAdditions(device, case)
