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
        targets = []
        for device in driver.devices():
            target = Target(
                stack=self.name,
                api="CUDA",
                adapter=device.name,
                # A short id of its UUID; devices may share a name.
                device=device.device,
                driver=f"CUDA {version}",
                versions={"cuda-driver": version},
                # The device's number, by which ``open`` finds it again.
                options={"ordinal": device.ordinal},
            )
            targets.append(target)
        if not targets:
            raise Unavailable(
                because("nvidia-driver-shows-no-device"), because("see-visible-devices")
            )
        return targets

    def open(self, target: Target, case: Case) -> Chain:
        """The chain, n launches in a row and a wait, that measures a case by calls of the driver.
        The parameters that only some cases have tell their kind: ``elements`` those of workloads,
        ``maker`` those of graphs, and ``loops`` those with a slow kernel.
        """
        # Imported here, because the parent process imports this file and needs no driver.
        from overhead.probes.cuda import chains, graphs, workload

        driver = api.driver()
        ordinal = int(target.options["ordinal"])
        if "elements" in case.params:
            return workload.open_case(driver, ordinal, case)
        if "maker" in case.params:
            # One graph of n nodes, launched once; else a graph of fixed size, launched n times.
            if case.pattern == "replay":
                return graphs.CudaReplay(driver, ordinal, case)
            return graphs.GraphLaunches(driver, ordinal, case)
        if case.pattern == "fused":
            return chains.CudaFused(driver, ordinal, case)
        if "loops" in case.params:
            return chains.LoopLaunches(driver, ordinal, case)
        return chains.CudaLaunches(driver, ordinal, case)


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
        """The cases, ways to launch a kernel, that are measured: ``base`` is the usual one; each of
        ``axes`` changes one thing of it, and ``extra`` cases change several; every run measures the
        ``early`` ones. Callers besides cuda-bindings are compiled code (``native``) and ctypes
        (``ffi``). Last, the ways (arms) to run workloads, computations of many kernels.
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
        # The base from compiled code; its difference from the base is the share of Python.
        native = vary(base, "caller", "native")
        early = [native]
        for pattern in ("wait-each", "read-each", "fused"):
            early.append(vary(base, "pattern", pattern))

        # A kernel of so many steps takes longer than its launch: the queue fills up. It has two
        # arguments, the second of which is the number of steps.
        many_steps = vary(native, "loops", 8000)
        extra = [vary(many_steps, "arguments", 2)]
        # The same by every caller, so that the difference of two callers is known here too.
        for case in (vary(base, "arguments", 8), vary(base, "pattern", "wait-each")):
            extra += [vary(case, "caller", "native"), vary(case, "caller", "ffi")]

        # ``bodies``: a step is one kernel, or several separate ones. ``fused`` has to be one.
        fused = WorkloadArm("fused", bodies=("one",), language="cuda", early=True)
        launches = WorkloadArm("per-submit", bodies=("separate", "one"), language="cuda")
        # ``_is_written``: not every pattern has a chain for every caller.
        without_workloads = Space(base, axes, extra, _is_written, early)
        return with_workloads(without_workloads, [fused, launches], software=False)


def _is_written(case: Case) -> bool:
    """Whether there is a chain for the case: those of the patterns ``fused`` and ``read-each``
    launch with one argument, and from cuda-bindings alone.
    """
    if case.pattern not in ("fused", "read-each"):
        return True
    return case.caller == "binding" and case.params["arguments"] == 1


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
        """The cases, ways to launch a graph, that are measured: by ``maker`` (who captures the
        graph), caller (``native``: compiled code) and number of nodes; and the ways (arms) to run
        workloads. The ``base`` and the ``early`` case are in every run.
        """
        base = Case(pattern="replay", unit="node", params={"maker": "driver"})
        # ``_launches(k)``: the case of a graph of k nodes that is launched n times.
        one_node = _launches(1)
        hundred_nodes = _launches(100)
        # Graphs of fixed size, launched n times: by their number of nodes, caller and maker.
        extra = [
            one_node,
            vary(one_node, "caller", "native"),
            vary(one_node, "maker", "torch"),
            _launches(10),
            hundred_nodes,
            _launches(1000),
            vary(hundred_nodes, "caller", "native"),
            vary(hundred_nodes, "maker", "torch"),
        ]
        without_workloads = Space(base, extra=extra, early=[vary(base, "maker", "torch")])
        # Workloads as graphs of our kernels in CUDA C, of torch's eager steps, and of its compiled
        # ones.
        ours = WorkloadArm(
            "replay",
            {"maker": "driver"},
            bodies=("separate", "one"),
            language="cuda",
            early=True,
        )
        # ``separate``: a step is several operations or kernels; ``one``: a kernel; ``library``: a
        # call.
        eager = WorkloadArm("replay", {"maker": "torch"}, bodies=("separate", "library"))
        compiled = WorkloadArm("replay", {"maker": "torch-compiled"})
        return with_workloads(without_workloads, [ours, eager, compiled], software=False)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain that measures the case: its graphs are captured by the driver, or else by
        torch. Cases with the parameter ``elements`` run a workload.
        """
        if case.params["maker"] == "driver":
            return super().open(target, case)
        from overhead.probes.torch import graphs, workload
        from overhead.probes.torch.devices import cuda_torch

        cuda_torch()  # raises if torch cannot use CUDA here
        # The name of the device in torch.
        device = f"cuda:{int(target.options['ordinal'])}"
        if "elements" in case.params:
            return workload.open_case(device, case)
        return graphs.open_step(device, case)


def _launches(nodes: int) -> Case:
    """The case of launches of a graph with so many nodes."""
    return Case(pattern="launches", unit="launch", params={"maker": "driver", "nodes": nodes})
