"""A stack that runs nothing but the decode workload: ONNX Runtime."""

from __future__ import annotations

import os

from overhead.decode.cases import DecodeWay, decode_cases, reading_ways
from overhead.decode.decoders import DECODERS
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.probes.vulkan import adapters
from overhead.results import Case, Target, because

_SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


@register
class OnnxRuntimeProbe(Probe):
    """ONNX Runtime by its CPU and its WebGPU provider. A unit is a call of ``run_with_iobinding``
    for a token.
    """

    name = "onnxruntime"
    title = "ONNX Runtime"
    mend = because("install-extras", extras="onnx,torch")
    distributions = ("onnxruntime", "onnxruntime-ep-webgpu", "onnx", "onnxscript", "torch")
    cost = "slow"

    def environments(self) -> list[dict[str, str]]:
        """No variables, and those with which the WebGPU provider uses SwiftShader, if that is
        installed.
        """
        software = [
            {**variables, _SOFTWARE_VARIABLE: "1"}
            for variables in adapters.driver_environments()
            if variables
        ]
        return [{}, *software]

    def targets(self) -> list[Target]:
        """The providers that this process can use. Raises ``Unavailable`` without ONNX Runtime."""
        from overhead.decode.onnxruntime_chain import import_onnxruntime, webgpu_device

        versions = {"onnxruntime": str(import_onnxruntime().__version__)}
        software = os.environ.get(_SOFTWARE_VARIABLE) == "1"
        found = (
            []
            if software
            else [Target(stack=self.name, api="CPU", adapter="CPU", versions=versions)]
        )
        device = webgpu_device()
        if device is not None:
            kind = device.device.type.name
            if software or kind == "GPU":
                adapter = "SwiftShader" if software else f"{device.device.vendor} {kind}".strip()
                webgpu = Target(
                    stack=self.name,
                    api="WebGPU",
                    adapter=adapter,
                    software=software,
                    versions=versions,
                )
                found.append(webgpu)
        return found

    def space(self, target: Target) -> Space:
        """A call a token for each decoder of the target, then the same with reads."""
        way = DecodeWay("per-submit")
        base, *others = decode_cases(
            [way, *reading_ways(way)], software=target.software or target.api == "CPU"
        )
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        """A verified chain. Raises ``Unsupported`` for another workload or pattern."""
        if case.workload not in DECODERS:
            raise Unsupported(because("no-such-workload", workload=case.workload))
        from overhead.decode import onnxruntime_chain as decode

        return decode.open_case(target, case)
