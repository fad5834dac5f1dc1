"""torch-webgpu: PyTorch's eager operations on WebGPU. It runs the decode workload."""

from __future__ import annotations

from overhead.decode.cases import DecodeWay, cases
from overhead.decode.decoders import DECODERS
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.probes.common.availability import import_library
from overhead.probes.torch.devices import import_torch
from overhead.results import Case, Target


@register
class TorchWebGpuProbe(Probe):
    """The package torch-webgpu, whose import adds the device ``webgpu`` to torch."""

    name = "torch-webgpu"
    title = "PyTorch on WebGPU (torch-webgpu)"
    mend = "pip install torch-webgpu (CPython 3.12)"
    distributions = ("torch-webgpu", "torch")
    cost = "slow"

    def targets(self) -> list[Target]:
        import_library("torch_webgpu", self.mend)
        torch = import_torch(self.mend)
        try:
            torch.zeros(1, device="webgpu").cpu()
        except Exception as error:  # a device of another package may raise anything
            reason = " ".join(str(error).split())[:200]
            raise Unavailable(f"the device webgpu does not work: {reason}", self.mend) from error
        versions = {"torch": torch.__version__}
        # The package does not tell which adapter it uses.
        return [Target(stack=self.name, api="WebGPU", adapter="default adapter", versions=versions)]

    def space(self, target: Target) -> Space:
        base, *others = cases([DecodeWay("per-submit")], software=False)
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        if case.workload not in DECODERS:
            raise Unsupported(f"no workload {case.workload} here")
        import_library("torch_webgpu", self.mend)
        from overhead.decode.arms.torch import open_case

        return open_case("webgpu", case)
