"""Raw Vulkan: the smallest program that does the same work as WebGPU. Its cost is subtracted from
the WebGPU cost.
"""

from __future__ import annotations

import functools
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
        targets = []
        for adapter in adapters.adapters():
            device = ".".join(map(str, adapter.version))
            target = Target(
                stack=self.name,
                api="Vulkan",
                adapter=adapter.name,
                device=adapter.device,
                software=adapter.software,
                driver=adapter.driver,
                versions={"vulkan-loader": loader, "vulkan-device": device},
                # The place in the list of the loader, by which ``open`` finds it.
                options={"index": adapter.index},
            )
            targets.append(target)
        return targets

    def space(self, target: Target) -> Space:
        """The cases that a run measures on this device. The base case has one submission per unit,
        from compiled code (the caller ``native``), or from Python (``ffi``) if numba, which
        compiles, is not installed. ``early``: cases that every run measures.
        """
        caller: Caller = "native" if importlib.util.find_spec("numba") else "ffi"
        base = Case(pattern="per-submit", caller=caller)
        # None stands for the base case, which does not have the parameter.
        axes: dict[str, list[Scalar | None]] = {
            "caller": ["ffi"],
            "pattern": list(_PLAIN),
            "wait": [None, "fence"],
            "bindgroup": [None, "rotated"],
        }
        early = [vary(base, "pattern", pattern) for pattern in ("one-pass", "wait-each")]
        # Combinations that ``check_case`` refuses are left out.
        is_allowed = functools.partial(is_accepted, check_case)
        return Space(base, axes, list(_extra(caller)), is_allowed, early)

    def open(self, target: Target, case: Case) -> Chain:
        """A chain that runs the case. Raises ``Unavailable`` if the adapter of the target is gone:
        the place in the loader's list, which the target names, may belong to another one now.
        """
        check_case(case)
        index = int(target.options.get("index", 0))
        for adapter in adapters.adapters():
            is_same = adapter.name == target.adapter and adapter.device == target.device
            if adapter.index == index and is_same:
                return CHAINS[case.pattern](gpu(index), case)
        raise Unavailable(because("adapter-is-another-now", index=index, adapter=target.adapter))


_PARAMETERS: AllowedValues = {
    "bindgroup": ("once", "rotated"),
    "wait": ("idle", "fence"),
    "k": None,
}
_PLAIN: tuple[Pattern, ...] = ("one-pass", "wait-each", "fused")


def _extra(first: Caller) -> Iterator[Case]:
    """The cases that differ from the base case in more than one axis, in the order in which a run
    measures them. ``first``: the caller of the base case; it has more sizes k of a submission than
    the other caller. ``rotated``: the units take several descriptor sets, which name their buffers,
    in turn.
    """
    rotated: dict[str, Scalar] = {"bindgroup": "rotated"}
    callers: list[Caller] = [first] if first == "ffi" else [first, "ffi"]
    for caller in callers:
        sizes = (4, 16, 64, 256) if caller == first else (16, 64)
        for k in sizes:
            yield Case(pattern="per-k", caller=caller, params={"k": k})
        yield Case(pattern="one-pass", caller=caller, params=rotated)
        # Independent units work on several buffers, so their sets must rotate.
        yield Case(pattern="per-submit", caller=caller, dependency="independent", params=rotated)
        yield Case(pattern="replay", caller=caller, unit="node")
        # Of the first caller they are among the axes too; a case is measured only once.
        for plain in _PLAIN:
            yield Case(pattern=plain, caller=caller)
        yield Case(pattern="per-submit", caller=caller, params=rotated)
    yield Case(
        pattern="replay", caller=first, unit="node", dependency="independent", params=rotated
    )
    yield Case(pattern="wait-each", caller=first, params={"wait": "fence"})


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
    # 1 is the pattern ``per-submit``; 0 stands for no ``k``.
    has_k = isinstance(k, int) and 1 < k <= 4096
    rotates = case.params.get("bindgroup") == "rotated"
    if (case.pattern == "per-k") != has_k:  # this pattern needs k, and the others have none
        raise Unsupported(because("per-k-takes-k-to-4096"))
    if case.pattern == "replay" and case.unit != "node":
        raise Unsupported(because("replay-unit-is-node"))
    # Independent units work on several buffers in turn, so each binds another descriptor set.
    if case.dependency == "independent" and not rotates:
        raise Unsupported(because("independent-rotates-sets"))
    if rotates and case.pattern in ("fused", "wait-each"):
        raise Unsupported(because("one-descriptor-set", pattern=case.pattern))
