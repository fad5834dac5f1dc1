"""WebGPU without a browser: wgpu-native and Dawn, from the Python API, from cffi, and from compiled loops."""

from __future__ import annotations

from typing import ClassVar

from overhead.errors import install_command
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.results import Case, Target


class _WebGpu(Probe):
    null: ClassVar[bool] = False
    """Whether the library has a Null backend, which executes nothing. It is measured too."""

    def environments(self) -> list[dict[str, str]]:
        from overhead.probes.webgpu.targets import environments

        return environments(self.null)

    def targets(self) -> list[Target]:
        from overhead.probes.webgpu import library, targets

        return targets.targets(library.library(self.name))

    def space(self, target: Target) -> Space:
        from overhead.probes.common import workload_arms
        from overhead.probes.webgpu.cases import space
        from overhead.probes.workload_chain import with_workloads

        if not target.executes:
            return space(target)
        arms, late = workload_arms.wgsl_arms(self.name), [workload_arms.wgsl_submitted()]
        return with_workloads(space(target), arms, software=target.software, late=late)

    def open(self, target: Target, case: Case) -> Chain:
        if "elements" in case.params:
            from overhead.probes.webgpu import workload

            return workload.open_case(target, case)
        from overhead.probes.webgpu.chain import WebGpuChain

        return WebGpuChain(target, case)


@register
class WgpuNative(_WebGpu):
    """wgpu-native, the library of gfx-rs, called through wgpu-py."""

    name = "wgpu-native"
    title = "WebGPU by wgpu-native (wgpu-py)"
    mend = install_command("wgpu")
    distributions = ("wgpu", "numba", "cffi")


@register
class Dawn(_WebGpu):
    """Dawn, the library of Chromium, called through wgpudawn, which has the Python API of wgpu-py."""

    name = "dawn"
    title = "WebGPU by Dawn (wgpudawn)"
    mend = install_command("wgpu")
    distributions = ("wgpudawn", "numba", "cffi")
    null = True
