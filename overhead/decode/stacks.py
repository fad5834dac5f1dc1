"""Stacks that run nothing but the decode workload: ONNX Runtime, and PyTorch on WebGPU."""

from __future__ import annotations

import os

from overhead.decode.cases import DecodeWay, decode_cases, reading_ways
from overhead.decode.decoders import DECODERS
from overhead.errors import install_command
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported
from overhead.probes.common.availability import import_library
from overhead.probes.torch.devices import import_torch
from overhead.probes.vulkan import adapters
from overhead.results import Case, Target

_SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


@register
class OnnxRuntimeProbe(Probe):
    """ONNX Runtime by its CPU and its WebGPU provider. A unit is a call of ``run_with_iobinding`` for a token."""

    name = "onnxruntime"
    title = "ONNX Runtime"
    mend = install_command("onnx", "torch")
    distributions = ("onnxruntime", "onnxruntime-ep-webgpu", "onnx", "onnxscript", "torch")
    cost = "slow"

    def environments(self) -> list[dict[str, str]]:
        """No variables, and those with which the WebGPU provider uses SwiftShader, if that is installed."""
        software = [{**variables, _SOFTWARE_VARIABLE: "1"} for variables in adapters.driver_environments() if variables]
        return [{}, *software]

    def targets(self) -> list[Target]:
        """The providers that this process can use. Raises ``Unavailable`` without ONNX Runtime."""
        from overhead.decode.onnxruntime_chain import import_onnxruntime, webgpu_device

        versions = {"onnxruntime": str(import_onnxruntime().__version__)}
        software = os.environ.get(_SOFTWARE_VARIABLE) == "1"
        found = [] if software else [Target(stack=self.name, api="CPU", adapter="CPU", versions=versions)]
        device = webgpu_device()
        if device is not None:
            kind = device.device.type.name
            if software or kind == "GPU":
                adapter = "SwiftShader" if software else f"{device.device.vendor} {kind}".strip()
                webgpu = Target(stack=self.name, api="WebGPU", adapter=adapter, software=software, versions=versions)
                found.append(webgpu)
        return found

    def space(self, target: Target) -> Space:
        """A call a token for each decoder of the target, then the same with reads."""
        way = DecodeWay("per-submit")
        base, *others = decode_cases([way, *reading_ways(way)], software=target.software or target.api == "CPU")
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        """A verified chain. Raises ``Unsupported`` for another workload or pattern."""
        if case.workload not in DECODERS:
            raise Unsupported(f"no workload {case.workload} here")
        from overhead.decode import onnxruntime_chain as decode

        return decode.open_case(target, case)


@register
class TorchWebGpuProbe(Probe):
    """Eager PyTorch on WebGPU. Importing the package torch-webgpu adds the device ``webgpu`` to torch."""

    name = "torch-webgpu"
    title = "PyTorch on WebGPU (torch-webgpu)"
    mend = "pip install torch-webgpu (CPython 3.12)"
    distributions = ("torch-webgpu", "torch")
    cost = "slow"

    def targets(self) -> list[Target]:
        """The adapter that the package chooses. Raises ``Unavailable`` if a tensor cannot be made on it and read."""
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
        """The eager step of every decoder."""
        base, *others = decode_cases([DecodeWay("per-submit")], software=False)
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        """A verified chain of eager steps. Raises ``Unsupported`` for another workload."""
        if case.workload not in DECODERS:
            raise Unsupported(f"no workload {case.workload} here")
        import_library("torch_webgpu", self.mend)
        from overhead.decode.arms.torch import open_case

        return open_case("webgpu", case)
