"""ONNX Runtime on the CPU and by its WebGPU provider. It runs the decode workload."""

from __future__ import annotations

from overhead.decode.cases import DecodeWay, cases, reading
from overhead.decode.decoders import DECODERS
from overhead.decode.onnxruntime_providers import MEND
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unsupported
from overhead.results import Case, Target


@register
class OnnxRuntimeProbe(Probe):
    """ONNX Runtime. A unit is a call of ``run_with_iobinding`` with the graph of one token."""

    name = "onnxruntime"
    title = "ONNX Runtime"
    mend = MEND
    distributions = ("onnxruntime", "onnxruntime-ep-webgpu", "onnx", "onnxscript", "torch")
    cost = "slow"

    def environments(self) -> list[dict[str, str]]:
        from overhead.decode.onnxruntime_providers import environments

        return environments()

    def targets(self) -> list[Target]:
        from overhead.decode.onnxruntime_providers import targets

        return targets(self.name)

    def space(self, target: Target) -> Space:
        way = DecodeWay("per-submit")
        base, *others = cases([way, *reading(way)], software=target.software or target.api == "CPU")
        return Space(base, extra=others)

    def open(self, target: Target, case: Case) -> Chain:
        if case.workload not in DECODERS:
            raise Unsupported(f"no workload {case.workload} here")
        from overhead.decode import onnxruntime_chain as decode

        return decode.open_case(target, case)
