"""A stack that runs nothing but the decode workload: ONNX Runtime."""

from __future__ import annotations

import os

from overhead.decode.cases import DecodeVariant, decode_cases, reading_variants
from overhead.decode.decoders import DECODERS
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.probes.vulkan import adapters
from overhead.results import Case, Target, because

_SOFTWARE_VARIABLE = "ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"


@register
class OnnxRuntimeProbe(Probe):
    """The stack ONNX Runtime. Its providers, the parts that run a model on the CPU or through
    WebGPU, are its targets. A unit is a call of ``run_with_iobinding``, which computes a token.
    """

    name = "onnxruntime"
    title = "ONNX Runtime"
    mend = because("install-extras", extras="onnx,torch")
    distributions = ("onnxruntime", "onnxruntime-ep-webgpu", "onnx", "onnxscript", "torch")
    cost = "slow"

    def environments(self) -> list[dict[str, str]]:
        """The sets of environment variables under which a worker process looks for devices, one
        process for each set: a driver of a device is chosen when a process starts.

        The first set is empty. Each further set makes the WebGPU provider use SwiftShader, a GPU
        driver that computes on the CPU, if that is installed.
        """
        environments: list[dict[str, str]] = [{}]
        for variables in adapters.driver_environments():
            # The empty set is in the list already.
            if variables:
                environments.append({**variables, _SOFTWARE_VARIABLE: "1"})
        return environments

    def targets(self) -> list[Target]:
        """The providers that this process can use: the CPU, and WebGPU if it finds a GPU. Raises
        ``Unavailable`` without ONNX Runtime.

        A process with the variables of a software adapter offers that alone: the CPU provider is
        already a target of the process without these variables.
        """
        from overhead.decode.onnxruntime_chain import import_onnxruntime, webgpu_device

        versions = {"onnxruntime": str(import_onnxruntime().__version__)}
        software = os.environ.get(_SOFTWARE_VARIABLE) == "1"
        targets: list[Target] = []
        if not software:
            targets.append(Target(stack=self.name, api="CPU", adapter="CPU", versions=versions))

        device = webgpu_device()
        if device is None:
            return targets
        # What ONNX Runtime calls the hardware, such as ``GPU`` or ``CPU``.
        kind = device.device.type.name
        if software:
            adapter = "SwiftShader"
        elif kind == "GPU":
            adapter = f"{device.device.vendor} {kind}".strip()
        else:
            # Without the variables, a device that is no GPU computes on the CPU.
            return targets
        targets.append(
            Target(
                stack=self.name,
                api="WebGPU",
                adapter=adapter,
                software=software,
                versions=versions,
            )
        )
        return targets

    def space(self, target: Target) -> Space:
        """The cases of a target: one call for each token, for each decoder that is not too large
        for it, then the same with reads of a value. The first, of the tiny decoder, is the base.
        """
        variant = DecodeVariant("per-submit")
        software = target.software or target.api == "CPU"
        # The tiny decoder comes first, and of each decoder the call without a read.
        base, *others = decode_cases([variant, *reading_variants(variant)], software=software)
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        """A verified chain. Raises ``Unsupported`` for another workload or pattern."""
        if case.workload not in DECODERS:
            raise Unsupported(because("no-such-workload", workload=case.workload))
        from overhead.decode import onnxruntime_chain as decode

        return decode.open_case(target, case)
