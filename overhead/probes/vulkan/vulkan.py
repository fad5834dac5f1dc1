"""Raw Vulkan: the smallest program that does the same work as WebGPU. Its cost is subtracted from
the WebGPU cost.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, Unsupported, vary
from overhead.probes.common.availability import AllowedValues, check_parameters, is_accepted
from overhead.probes.vulkan import adapters
from overhead.probes.vulkan.chains import CHAINS
from overhead.probes.vulkan.gpu import gpu
from overhead.results import Caller, Case, Pattern, Scalar, Target, because


@register
class Vulkan(Probe):
    """Raw Vulkan. The step is SPIR-V, with the barriers that WebGPU implies. The callers are
    ``native`` and ``ffi``.
    """

    name = "vulkan"
    title = "raw Vulkan"
    mend = because("install-extras", extras="wgpu")
    distributions = ("vulkan", "cffi", "numba")
    same_calls = True

    def environments(self) -> list[dict[str, str]]:
        """An empty dict, and variables with which only SwiftShader, a driver that computes on the
        CPU, is found.
        """
        return adapters.driver_environments()

    def targets(self) -> list[Target]:
        """The physical devices with a compute queue, with the version of the loader."""
        loader = ".".join(map(str, adapters.loader_version()))
        return [
            Target(
                stack=self.name,
                api="Vulkan",
                adapter=adapter.name,
                device=adapter.device,
                software=adapter.software,
                driver=adapter.driver,
                versions={
                    "vulkan-loader": loader,
                    "vulkan-device": ".".join(map(str, adapter.version)),
                },
                options={"index": adapter.index},
            )
            for adapter in adapters.adapters()
        ]

    def space(self, target: Target) -> Space:
        """The cases of the step. The base case has one submission per unit, from compiled code if
        numba is there.
        """
        caller: Caller = "native" if importlib.util.find_spec("numba") else "ffi"
        base = Case(pattern="per-submit", caller=caller)
        axes: dict[str, list[Scalar | None]] = {
            "caller": ["ffi"],
            "pattern": list(_PLAIN),
            "wait": [None, "fence"],
            "bindgroup": [None, "rotated"],
        }
        early = [vary(base, "pattern", pattern) for pattern in ("one-pass", "wait-each")]
        return Space(
            base, axes, list(_extra(caller)), lambda case: is_accepted(check_case, case), early
        )

    def open(self, target: Target, case: Case) -> Chain:
        """A chain of the class for the case's pattern. Raises ``Unavailable`` if the adapter is
        gone.
        """
        check_case(case)
        index = int(target.options.get("index", 0))
        found = next((adapter for adapter in adapters.adapters() if adapter.index == index), None)
        if found is None or (found.name, found.device) != (target.adapter, target.device):
            raise Unavailable(
                because("adapter-is-another-now", index=index, adapter=target.adapter)
            )
        return CHAINS[case.pattern](gpu(index), case)


_PARAMETERS: AllowedValues = {
    "bindgroup": ("once", "rotated"),
    "wait": ("idle", "fence"),
    "k": None,
}
_PLAIN: tuple[Pattern, ...] = ("one-pass", "wait-each", "fused")


def _extra(caller: Caller) -> Iterator[Case]:
    callers: tuple[Caller, ...] = (caller, "ffi")
    for each in dict.fromkeys(callers):
        for k in (4, 16, 64, 256) if each == caller else (16, 64):
            yield Case(pattern="per-k", caller=each, params={"k": k})
        yield Case(pattern="one-pass", caller=each, params={"bindgroup": "rotated"})
        yield Case(
            pattern="per-submit",
            caller=each,
            dependency="independent",
            params={"bindgroup": "rotated"},
        )
        yield Case(pattern="replay", caller=each, unit="node")
        for plain in _PLAIN:
            yield Case(pattern=plain, caller=each)
        yield Case(pattern="per-submit", caller=each, params={"bindgroup": "rotated"})
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    yield Case(
        pattern="replay", caller=caller, unit="node", dependency="independent", params=rotated
    )
    yield Case(pattern="wait-each", caller=caller, params={"wait": "fence"})


def check_case(case: Case) -> None:
    """Raise ``Unsupported`` if this probe cannot run the case."""
    check_parameters(case, _PARAMETERS)
    if case.workload != "step":
        raise Unsupported(because("no-such-workload", workload=case.workload))
    if case.caller not in ("ffi", "native"):
        raise Unsupported(because("vulkan-has-no-caller", caller=case.caller))
    if case.pattern not in (*_PLAIN, "per-submit", "per-k", "replay"):
        raise Unsupported(because("vulkan-has-no-pattern", pattern=case.pattern))
    k = case.params.get("k", 0)
    rotates = case.params.get("bindgroup") == "rotated"
    if (case.pattern == "per-k") != (isinstance(k, int) and 1 < k <= 4096):
        raise Unsupported(because("per-k-takes-k-to-4096"))
    if case.pattern == "replay" and case.unit != "node":
        raise Unsupported(because("replay-unit-is-node"))
    if case.dependency == "independent" and not rotates:
        raise Unsupported(because("independent-rotates-sets"))
    if rotates and case.pattern in ("fused", "wait-each"):
        raise Unsupported(because("one-descriptor-set", pattern=case.pattern))
