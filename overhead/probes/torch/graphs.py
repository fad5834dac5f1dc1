"""CUDA graphs captured by torch: n steps in a graph, launched by ``CUDAGraph.replay``."""

from __future__ import annotations

import functools
import time
from ctypes import byref, c_void_p
from typing import Any

import torch

from overhead.probes.base import Chain
from overhead.probes.common.loops import Action, Issue, nothing, repeated
from overhead.probes.cuda.api import THREAD_LOCAL_CAPTURE, CudaDriver, driver
from overhead.probes.cuda.graphs import MOST_NODES, TIMED_SIZES, Making, node_count
from overhead.probes.torch.bodies import AddOne, set_autograd_mode
from overhead.probes.torch.chains import Eager, select_device
from overhead.probes.torch.devices import READS, TORCH_WAITS, host_action
from overhead.results import Case


def capture_timed(graph: Any, stream: Any, run: Action) -> float:
    """Capture what ``run`` issues into a ``CUDAGraph`` on a separate stream. Returns how long it
    took, ns.
    """
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        began = time.perf_counter_ns()
        graph.capture_begin(capture_error_mode="thread_local")
        run()
        graph.capture_end()
        return float(time.perf_counter_ns() - began)


class TorchGraphs:
    """Graphs of n steps, captured on a separate stream. ``issue``: issues n steps; two run when the
    object is made.

    The steps must not use inference mode: torch's random generator reuses tensors of the first
    capture, and a tensor made in inference mode is read-only outside of it.
    """

    def __init__(self, issue: Issue) -> None:
        self._issue, self._stream = issue, torch.cuda.Stream()
        self._kept: dict[int, Any] = {}
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        issue(2)

    def new_graph(self, steps: int) -> tuple[Any, dict[str, float]]:
        """A new graph, and the times of its capture and instantiation, ns.

        Before torch 2.8 the capture includes the instantiation.
        """
        apart = hasattr(torch.cuda.CUDAGraph, "instantiate")
        graph = torch.cuda.CUDAGraph(keep_graph=True) if apart else torch.cuda.CUDAGraph()
        times = {
            "capture": capture_timed(graph, self._stream, functools.partial(self._issue, steps))
        }
        if apart:
            began = time.perf_counter_ns()
            graph.instantiate()
            times["instantiate"] = float(time.perf_counter_ns() - began)
        return graph, times

    def launcher(self, steps: int) -> Action:
        """A function that launches the graph of this number of steps. The graph is made once. For 0
        it does nothing.
        """
        if not steps:
            return nothing
        if steps not in self._kept:
            self._kept[steps] = self.new_graph(steps)[0]
        replay: Action = self._kept[steps].replay
        return replay

    def clear(self) -> None:
        """Release all graphs."""
        self._kept.clear()


class GraphedAdditions(Eager):
    """Base class of the chains that launch graphs of additions. Each addition is a node of a
    graph.
    """

    def __init__(self, device: Any, body: AddOne) -> None:
        super().__init__(device, body, "stream")
        before = body.values.clone()
        self.graphs = TorchGraphs(body.loop())
        body.values.copy_(before)
        self.details = {"call": "CUDAGraph.replay", "recording": "outside"}


class TorchReplay(GraphedAdditions):
    """A graph of n nodes that is launched once."""

    recorded = True
    max_n = MOST_NODES

    def __init__(self, device: Any, body: AddOne) -> None:
        super().__init__(device, body)
        self.overlap, self.launches = "serial", 0

    def prepare(self, n: int) -> None:
        """Capture the graph of n nodes, unless it exists."""
        super().prepare(n)
        self._launch = self.graphs.launcher(n)

    def issue(self, n: int) -> None:
        """Launch the graph that ``prepare`` captured; returns before the device has run it."""
        self._launch()

    def making(self) -> Making:
        """One-off costs of making a graph, ns, for several numbers of nodes."""
        set_autograd_mode(self._body.mode)
        found: dict[str, list[float]] = {}
        for nodes in TIMED_SIZES:
            graph, times = self.graphs.new_graph(nodes)
            self._wait()
            began = time.perf_counter_ns()
            graph.replay()
            self._wait()
            times["first_launch"] = float(time.perf_counter_ns() - began)
            for name, value in times.items():
                found.setdefault(name, []).append(value)
            self.aside += nodes
        return {name: (list(TIMED_SIZES), values) for name, values in found.items()}


class TorchGraphLaunches(GraphedAdditions):
    """A graph with a fixed number of nodes, launched n times."""

    def __init__(self, device: Any, body: AddOne, nodes: int) -> None:
        found = captured_synchronisations(device) if nodes == 1 else {}
        super().__init__(device, body)
        self.launches, self.steps_of_a_unit = 4, nodes
        self._loop = repeated(self.graphs.launcher(nodes))
        self.details |= {
            "nodes": nodes,
            **{f"captured {kind}": text for kind, text in found.items()},
        }


def open_step(device: str, case: Case) -> Chain:
    """The chain of a case whose graph adds 1 to 256 int32: launched once (``replay``) or n times
    (``launches``).
    """
    place = select_device(device)
    body = AddOne(place, mode="no_grad")
    if case.pattern == "replay":
        return TorchReplay(place, body)
    return TorchGraphLaunches(place, body, int(case.params["nodes"]))


def captured_synchronisations(device: Any) -> dict[str, str]:
    """What a capture does with each wait and read of the host, by name: remove it, keep it as
    nodes, or raise an error.

    Each is tried in a separate capture on a side stream. The driver captures, so that torch's
    allocator is not involved.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        body = AddOne(device, mode="no_grad")
        kinds = (*READS["cuda"], *TORCH_WAITS["cuda"])
        actions = {kind: host_action(device, kind, body.value_reader) for kind in kinds}
        return {kind: _verdict(driver(), stream, body, action) for kind, action in actions.items()}


def _verdict(driver: CudaDriver, stream: Any, body: AddOne, action: Action) -> str:
    body.step()
    action()
    stream.synchronize()
    graph, error = c_void_p(), ""
    driver.call("cuStreamBeginCapture_v2", stream.cuda_stream, THREAD_LOCAL_CAPTURE)
    try:
        body.step()
        action()
    except RuntimeError as raised:
        error = f"forbidden: {type(raised).__name__}: {str(raised).splitlines()[0]}"[:200]
    code = driver.library.cuStreamEndCapture(stream.cuda_stream, byref(graph))
    if code:
        return error or f"forbidden: {driver.error_name(code)}"
    kept = node_count(driver, graph) - 1
    driver.call("cuGraphDestroy", graph)
    return error or (f"kept as {kept} node{'s' * (kept > 1)}" if kept else "removed")
