"""JAX: a jitted step called n times, and n steps inside one call, on the CPU and on CUDA."""

from __future__ import annotations

from typing import Any

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, vary
from overhead.probes.common.availability import import_library
from overhead.probes.workload_chain import WorkloadArm, with_workloads
from overhead.results import Api, Case, Scalar, Target, because


@register
class JaxProbe(Probe):
    """JAX. The step is x * 1664525 + 1013904223 on 256 uint32, and donates its input.

    The loop of the fused pattern is ``lax.scan``, compiled for one n.
    """

    name = "jax"
    title = "JAX"
    mend = because("install-extras", extras="jax")
    distributions = ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin")

    def environments(self) -> list[dict[str, str]]:
        """One environment, in which JAX reserves no memory of the GPU in advance."""
        return [{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}]

    def targets(self) -> list[Target]:
        """The devices that JAX can use, on the CPU, CUDA and ROCm, each with the versions of JAX
        and of XLA, its compiler. The options say how ``open`` finds the device again.
        """
        jax = import_library("jax", self.mend)
        targets = []
        for platform, api in _APIS.items():
            on_cpu = platform == "cpu"
            for index, device in enumerate(devices(jax, platform)):
                # The first line of this text has the version.
                xla, *_ = str(device.client.platform_version).split("\n")
                target = Target(
                    stack=self.name,
                    api=api,
                    adapter="CPU" if on_cpu else device.device_kind,
                    device="" if on_cpu else str(index),
                    # The variables with which a worker process starts: JAX reserves no memory in
                    # advance.
                    environment=self.environments()[0],
                    versions={"jax": jax.__version__, "xla": xla[:100]},
                    options={"platform": platform, "index": index},
                )
                targets.append(target)
        if not targets:
            jax.devices()  # raises with the reason why there is not even a processor
        return targets

    def space(self, target: Target) -> Space:
        """The cases of the step, called n times or once for n steps, and of the workloads."""
        base = Case(pattern="per-submit", unit="launch", params={"donated": True})
        fused = Case(pattern="fused", unit="step", params=_SCAN)
        without_workloads = Space(base, extra=[fused], early=[vary(base, "pattern", "wait-each")])
        arms = [WorkloadArm("fused", _SCAN), WorkloadArm("per-submit")]
        return with_workloads(without_workloads, arms, software=target.api == "CPU")

    def open(self, target: Target, case: Case) -> Chain:
        """The chain that measures the case on the device of the target: a workload if the case has
        ``elements``; else one call that runs n steps (``fused``), or n calls of a step.
        """
        jax = import_library("jax", self.mend)
        from overhead.probes.jax.chains import JaxCalls, JaxFusedLoop, open_work

        # JAX's devices of a platform, such as ``cuda``, in its order.
        of_platform = devices(jax, str(target.options["platform"]))
        device = of_platform[int(target.options["index"])]
        if "elements" in case.params:
            return open_work(device, case)
        if case.pattern == "fused":
            return JaxFusedLoop(device, case)
        return JaxCalls(device, case)


_SCAN: dict[str, Scalar] = {"loop": "scan"}
_APIS: dict[str, Api] = {"cpu": "CPU", "cuda": "CUDA", "rocm": "HIP"}


def devices(jax: Any, platform: str) -> list[Any]:
    """JAX's devices of a platform, such as ``cuda``. Empty if JAX has no backend for it."""
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []
