"""JAX: a jitted step called n times, and n steps inside one call, on the CPU and on CUDA."""

from __future__ import annotations

from typing import Any

from overhead.errors import install_command
from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space
from overhead.probes.common.library_import import import_library
from overhead.results import Api, Case, Scalar, Target


@register
class JaxProbe(Probe):
    """JAX. The step is x * 1664525 + 1013904223 on 256 uint32, and donates its input.

    The loop of the fused pattern is ``lax.scan``, compiled for one n.
    """

    name = "jax"
    title = "JAX"
    mend = install_command("jax")
    distributions = ("jax", "jaxlib", "jax-cuda13-plugin", "jax-cuda12-plugin")

    def environments(self) -> list[dict[str, str]]:
        # By default JAX reserves three quarters of the GPU's memory when it starts.
        return [{"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}]

    def targets(self) -> list[Target]:
        jax = import_library("jax", self.mend)
        return [
            _target(jax, self.name, platform, index)
            for platform in ("cpu", "cuda", "rocm")
            for index in range(len(devices(jax, platform)))
        ]

    def space(self, target: Target) -> Space:
        base = Case(pattern="per-submit", unit="launch", params={"donated": True})
        fused = Case(pattern="fused", unit="step", params=_SCAN)
        from overhead.probes.workload_chain import WorkloadArm, with_workloads

        star = Space(base, {"pattern": ["wait-each"]}, [fused])
        return with_workloads(
            star, [WorkloadArm("fused", _SCAN), WorkloadArm("per-submit")], software=target.api == "CPU"
        )

    def open(self, target: Target, case: Case) -> Chain:
        jax = import_library("jax", self.mend)
        from overhead.probes.jax.chains import Calls, FusedLoop, open_work

        device = devices(jax, str(target.options["platform"]))[int(target.options["index"])]
        if "elements" in case.params:
            return open_work(device, case)
        return FusedLoop(device, case) if case.pattern == "fused" else Calls(device, case)


_SCAN: dict[str, Scalar] = {"loop": "scan"}
_APIS: dict[str, Api] = {"cpu": "CPU", "cuda": "CUDA", "rocm": "HIP"}


def devices(jax: Any, platform: str) -> list[Any]:
    """The devices of a platform. Empty if JAX has no backend for it."""
    try:
        return list(jax.devices(platform))
    except RuntimeError:
        return []


def _target(jax: Any, stack: str, platform: str, index: int) -> Target:
    device = devices(jax, platform)[index]
    return Target(
        stack=stack,
        api=_APIS[platform],
        adapter="CPU" if platform == "cpu" else device.device_kind,
        device="" if platform == "cpu" else str(index),
        environment=JaxProbe().environments()[0],
        versions={"jax": jax.__version__, "xla": str(device.client.platform_version).split("\n")[0][:100]},
        options={"platform": platform, "index": index},
    )
