"""torch.compile: the time that fusion saves and the time that a CUDA graph saves, for steps of 1 and 5 operations."""

from __future__ import annotations

import dataclasses
import shutil

from overhead.errors import install_command
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, vary
from overhead.probes.torch import unrolled_loop
from overhead.probes.torch.targets import import_torch, torch_target
from overhead.results import Case, Scalar, Target
from overhead.workloads import UNROLLED


@register
class TorchCompileProbe(Probe):
    """torch.compile. A step is ``ops`` in-place additions. ``mode`` is one of these:

    ``eager`` launches each addition. ``default`` fuses them into one launch. ``reduce-overhead`` puts this launch into
    a CUDA graph. The difference of default and eager is the saving by fusion. The difference of reduce-overhead and
    default is the saving by the graph.
    """

    name = "torch-compile"
    title = "torch.compile"
    mend = install_command("torch")
    distributions = ("torch", "triton")

    def targets(self) -> list[Target]:
        torch = import_torch(self.mend)
        if torch.cuda.is_available():
            return [torch_target(torch, self.name, f"cuda:{index}") for index in range(torch.cuda.device_count())]
        if not any(map(shutil.which, ("c++", "g++", "clang++", "cl"))):
            raise Unavailable("torch.compile needs a C++ compiler on the CPU", "install g++")
        return [torch_target(torch, self.name, "cpu")]

    def space(self, target: Target) -> Space:
        wait: dict[str, Scalar] = {} if target.api == "CPU" else {"wait": "stream"}
        base = Case(pattern="per-submit", unit="step", params={"mode": "default", "ops": 1, **wait})
        modes = ["eager"] if target.api == "CPU" else ["reduce-overhead", "eager"]
        five = vary(base, "ops", 5)
        axes: dict[str, list[Scalar]] = {"mode": list(modes), "ops": [5]}
        from overhead.probes.workload_chain import WorkloadArm, with_workloads

        star = Space(base, axes, [vary(five, "mode", mode) for mode in modes])
        ways: tuple[str, ...] = ("default",) if target.api == "CPU" else ("default", "reduce-overhead")
        arms = with_workloads(
            star, [WorkloadArm("per-submit", {"mode": way}) for way in ways], software=target.api == "CPU"
        )
        loops = unrolled_loop.cases(on_gpu=target.api != "CPU")
        return dataclasses.replace(arms, extra=[*arms.extra, *loops])

    def open(self, target: Target, case: Case) -> Chain:
        if case.workload == UNROLLED:
            return unrolled_loop.open_case(str(target.options["device"]), case)
        if "elements" in case.params:
            from overhead.probes.torch import workload

            return workload.open_case(str(target.options["device"]), case)
        from overhead.probes.torch.compiled import Compiled

        return Compiled(str(target.options["device"]), case)
