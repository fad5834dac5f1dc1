"""The stacks that call the CUDA driver: kernel launches one by one, and CUDA graphs."""

from __future__ import annotations

from typing import ClassVar

from overhead.probes import register
from overhead.probes.base import Chain, Probe, Space, Unavailable, vary
from overhead.probes.cuda import api
from overhead.probes.workload_chain import WorkloadArm, with_workloads
from overhead.results import Case, Scalar, Target, Why, because


class DriverProbe(Probe):
    """Base class of stacks on CUDA. Their targets are the devices that the CUDA driver lists."""

    mend: ClassVar[Why] = api.INSTALL_CUDA

    def targets(self) -> list[Target]:
        """One target for each device of the driver. Raises ``Unavailable`` if there is none."""
        driver = api.driver()
        version = api.version_text(driver.version())
        found = [
            Target(
                stack=self.name,
                api="CUDA",
                adapter=device.name,
                device=device.device,
                driver=f"CUDA {version}",
                versions={"cuda-driver": version},
                options={"ordinal": device.ordinal},
            )
            for device in driver.devices()
        ]
        if not found:
            raise Unavailable(
                because("nvidia-driver-shows-no-device"), because("see-visible-devices")
            )
        return found

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of a case whose calls go to the driver."""
        from overhead.probes.cuda import chains, graphs, workload

        driver, ordinal = api.driver(), int(target.options["ordinal"])
        if "elements" in case.params:
            return workload.open_case(driver, ordinal, case)
        if "maker" in case.params:
            return (graphs.CudaReplay if case.pattern == "replay" else graphs.GraphLaunches)(
                driver, ordinal, case
            )
        single = chains.LoopLaunches if "loops" in case.params else chains.CudaLaunches
        return (chains.CudaFused if case.pattern == "fused" else single)(driver, ordinal, case)


@register
class CudaDriverProbe(DriverProbe):
    """The CUDA driver API: ``cuLaunchKernel`` on the default stream, called with cuda-bindings,
    with ctypes, and from a compiled loop.

    ``arguments``: number of kernel parameters. ``loops``: steps per launch. With many steps a
    launch takes longer on the device than on the host: the queue fills.
    """

    name = "cuda-driver"
    title = "CUDA driver API"
    same_calls = True
    distributions = ("cuda-bindings", "nvidia-cuda-nvrtc")

    def space(self, target: Target) -> Space:
        """The cases of the launches by caller, wait and number of arguments, and of the
        workloads.
        """
        base = Case(
            pattern="per-submit",
            unit="launch",
            params={"arguments": 1, "stream": "default", "wait": "stream"},
        )
        axes: dict[str, list[Scalar]] = {
            "caller": ["native", "ffi"],
            "arguments": [8],
            "wait": ["context", "event", "event-blocking"],
            "pattern": ["wait-each", "read-each"],
        }
        compared = (vary(base, "arguments", 8), vary(base, "pattern", "wait-each"))
        native = vary(base, "caller", "native")
        early = [
            native,
            *(vary(base, "pattern", name) for name in ("wait-each", "read-each", "fused")),
        ]
        extra = [
            vary(vary(native, "loops", 8000), "arguments", 2),
            *(vary(one, "caller", caller) for one in compared for caller in ("native", "ffi")),
        ]
        fused = WorkloadArm("fused", bodies=("one",), language="cuda", early=True)
        arms = [fused, WorkloadArm("per-submit", bodies=("separate", "one"), language="cuda")]
        return with_workloads(Space(base, axes, extra, _allowed, early), arms, software=False)


def _allowed(case: Case) -> bool:
    return case.pattern not in ("fused", "read-each") or (
        case.caller,
        case.params["arguments"],
    ) == ("binding", 1)


@register
class CudaGraphProbe(DriverProbe):
    """CUDA graphs: one of n nodes launched once (``replay``), and one of fixed size launched n
    times (``launches``).

    ``maker``: ``driver`` captures our step; ``torch`` captures torch's kernel for ``x.add_(1)``.
    """

    name = "cuda-graph"
    title = "CUDA graph"
    same_calls = True
    distributions = ("cuda-bindings", "nvidia-cuda-nvrtc", "torch")

    def space(self, target: Target) -> Space:
        """The cases of the graphs by maker, caller and number of nodes, and of the workloads."""
        base = Case(pattern="replay", unit="node", params={"maker": "driver"})
        one = _launches(1)
        extra = [
            one,
            vary(one, "caller", "native"),
            vary(one, "maker", "torch"),
            *map(_launches, (10, 100, 1000)),
            vary(_launches(100), "caller", "native"),
            vary(_launches(100), "maker", "torch"),
        ]
        arms = [
            WorkloadArm(
                "replay",
                {"maker": "driver"},
                bodies=("separate", "one"),
                language="cuda",
                early=True,
            ),
            WorkloadArm("replay", {"maker": "torch"}, bodies=("separate", "library")),
            WorkloadArm("replay", {"maker": "torch-compiled"}),
        ]
        return with_workloads(
            Space(base, extra=extra, early=[vary(base, "maker", "torch")]), arms, software=False
        )

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case: graphs of the driver, or those that torch captures."""
        if case.params["maker"] == "driver":
            return super().open(target, case)
        from overhead.probes.torch import graphs, workload
        from overhead.probes.torch.devices import cuda_torch

        cuda_torch()
        opens = workload.open_case if "elements" in case.params else graphs.open_step
        return opens(f"cuda:{int(target.options['ordinal'])}", case)


def _launches(nodes: int) -> Case:
    return Case(pattern="launches", unit="launch", params={"maker": "driver", "nodes": nodes})
