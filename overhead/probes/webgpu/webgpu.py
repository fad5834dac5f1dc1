"""The stacks of WebGPU without a browser: wgpu-native and Dawn."""

from __future__ import annotations

from typing import ClassVar

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.probes.common import workload_arms
from overhead.probes.vulkan.adapters import driver_environments
from overhead.probes.webgpu import cases, targets, workload
from overhead.probes.webgpu.chain import WebGpuChain
from overhead.probes.webgpu.library import library
from overhead.probes.workload_chain import with_workloads
from overhead.results import Case, Target, because


class _WebGpu(Probe):
    """What the stacks wgpu-native and Dawn have in common: everything but the library, which is
    found by the name of the stack.
    """

    same_calls = True
    fewer_checks: ClassVar[str]
    """The value of ``checks`` of the case without the checks that the library adds to kernels."""

    def environments(self) -> list[dict[str, str]]:
        """An empty dict, and variables with which only SwiftShader is found."""
        return driver_environments()

    def targets(self) -> list[Target]:
        """The adapters of the library. Raises ``Unavailable`` if the library or an adapter is
        missing.
        """
        return targets.targets(library(self.name))

    def space(self, target: Target) -> Space:
        """The cases of the step and of workloads."""
        arms = workload_arms.wgsl_arms(fewer_checks=self.fewer_checks)
        return with_workloads(cases.space(target), arms, software=target.software)

    def open(self, target: Target, case: Case) -> Chain:
        """A chain of a workload for a case with the parameter ``elements``, else of the step."""
        if "elements" in case.params:
            return workload.open_case(target, case)
        return WebGpuChain(target, case)


@register
class WgpuNative(_WebGpu):
    """wgpu-native, the library of gfx-rs, called through wgpu-py."""

    name = "wgpu-native"
    title = "WebGPU by wgpu-native (wgpu-py)"
    mend = because("install-extras", extras="wgpu")
    distributions = ("wgpu", "numba", "cffi")
    fewer_checks = "unbounded-loops"


@register
class Dawn(_WebGpu):
    """Dawn, the library of Chromium, called through wgpudawn, which has the Python API of
    wgpu-py.
    """

    name = "dawn"
    title = "WebGPU by Dawn (wgpudawn)"
    mend = because("install-extras", extras="wgpu")
    distributions = ("wgpudawn", "numba", "cffi")
    fewer_checks = "off"  # index clamps
