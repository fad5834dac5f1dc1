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
    """Capture into ``graph`` (a ``CUDAGraph``) the operations that ``run`` issues, on ``stream``,
    which must not be the default stream. Returns how long the capture took, ns.
    """
    torch.cuda.synchronize()  # no earlier work runs during the capture
    with torch.cuda.stream(stream):
        # The calls of a capture run nothing: they become nodes of the graph.
        began = time.perf_counter_ns()
        # Calls of other threads, which a capture may forbid else, stay allowed.
        graph.capture_begin(capture_error_mode="thread_local")
        run()
        graph.capture_end()
        return float(time.perf_counter_ns() - began)


class TorchGraphs:
    """CUDA graphs of n steps, which torch captures on a separate stream from the function ``issue``
    of a chain: ``issue(n)`` runs n steps. Two steps run when the object is made.

    The steps must not use inference mode: torch's random generator reuses tensors of the first
    capture, and a tensor made in inference mode is read-only outside of it.
    """

    def __init__(self, issue: Issue) -> None:
        self._issue = issue
        self._stream = torch.cuda.Stream()
        self._graphs: dict[int, Any] = {}
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        issue(2)

    def new_graph(self, steps: int) -> tuple[Any, dict[str, float]]:
        """A new CUDA graph of so many steps, and how long the parts of its making took, ns: the
        capture, and the instantiation, which makes the graph executable. Before torch 2.8 the end
        of the capture instantiates, and both are timed as the capture.
        """
        run = functools.partial(self._issue, steps)
        # torch 2.8 and later.
        can_instantiate_later = hasattr(torch.cuda.CUDAGraph, "instantiate")
        if not can_instantiate_later:
            graph = torch.cuda.CUDAGraph()
            return graph, {"capture": capture_timed(graph, self._stream, run)}
        # So that the end of the capture does not instantiate it.
        graph = torch.cuda.CUDAGraph(keep_graph=True)
        capture_ns = capture_timed(graph, self._stream, run)
        began = time.perf_counter_ns()
        graph.instantiate()
        instantiate_ns = float(time.perf_counter_ns() - began)
        return graph, {"capture": capture_ns, "instantiate": instantiate_ns}

    def launcher(self, steps: int) -> Action:
        """A function that launches the graph of this number of steps, which is made at the first
        call for this number. Without steps the function does nothing.
        """
        if not steps:
            return nothing
        if steps not in self._graphs:
            # Without the times of its making.
            self._graphs[steps], _ = self.new_graph(steps)
        replay: Action = self._graphs[steps].replay
        return replay

    def clear(self) -> None:
        """Release all graphs."""
        self._graphs.clear()


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
        self.overlap = "serial"
        # All units together are one launch.
        self.launches = 0

    def prepare(self, n: int) -> None:
        """Capture the graph of n nodes, unless it exists."""
        super().prepare(n)
        self._launch = self.graphs.launcher(n)

    def issue(self, n: int) -> None:
        """Launch the graph that ``prepare`` captured; returns before the device has run it."""
        self._launch()

    def making(self) -> Making:
        """One-off costs of making a graph, by part of the making: the numbers of nodes of the
        graphs that were made, and the ns that each took. They are fitted to a cost per graph and a
        cost per node.
        """
        # Another chain of this process may have set another mode.
        set_autograd_mode(self._body.mode)
        times_of_parts: dict[str, list[float]] = {}
        for nodes in TIMED_SIZES:
            graph, times = self.graphs.new_graph(nodes)
            self._wait()
            # The first launch, which also uploads the graph to the device, and its wait.
            began = time.perf_counter_ns()
            graph.replay()
            self._wait()
            times["first_launch"] = float(time.perf_counter_ns() - began)
            for part, time_ns in times.items():
                times_of_parts.setdefault(part, []).append(time_ns)
            self.aside += nodes  # steps that ran, but are no units of the chain
        return {part: (list(TIMED_SIZES), times) for part, times in times_of_parts.items()}


class TorchGraphLaunches(GraphedAdditions):
    """A chain that launches a CUDA graph with a fixed number of nodes n times. A node is one
    addition.
    """

    def __init__(self, device: Any, body: AddOne, nodes: int) -> None:
        """Capture the graph. If it has one node, also try what a capture does with waits and reads
        of the host, and note that in the record: one of the chains is enough for it.
        """
        captured: dict[str, str] = {}
        if nodes == 1:
            # By the name of each wait and read, what became of it.
            captured = captured_synchronisations(device)
        super().__init__(device, body)
        # For ``held_n``: a launch of a graph counts as so many launches in the queue.
        self.launches = 4
        self.steps_of_a_unit = nodes
        self._loop = repeated(self.graphs.launcher(nodes))
        self.details["nodes"] = nodes
        for name, outcome in captured.items():
            self.details[f"captured {name}"] = outcome


def open_step(device: str, case: Case) -> Chain:
    """The chain of a case that launches a CUDA graph whose nodes add 1 to 256 int32. In the pattern
    ``replay``, a graph of n nodes is launched once; in ``launches``, a graph of fixed size is
    launched n times. ``device``: its name in torch, such as ``cuda:0``.
    """
    place = select_device(device)
    body = AddOne(place, mode="no_grad")  # a graph must not be captured in inference mode
    if case.pattern == "replay":
        return TorchReplay(place, body)
    # ``nodes``: the fixed number of additions in a graph.
    return TorchGraphLaunches(place, body, int(case.params["nodes"]))


def captured_synchronisations(device: Any) -> dict[str, str]:
    """What a capture of a CUDA graph does with each wait and read of the host, by name: remove it,
    keep it as nodes of the graph, or raise an error. The record tells this to readers.

    Each is tried in a separate capture on a side stream. The driver captures, so that torch's
    allocator is not involved.
    """
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        body = AddOne(device, mode="no_grad")
        # All reads and all waits of torch that are measured on CUDA.
        names = (*READS["cuda"], *TORCH_WAITS["cuda"])
        actions = {name: host_action(device, name, body.value_reader) for name in names}
        outcomes = {}
        for name, action in actions.items():
            outcomes[name] = outcome_of_capture(driver(), stream, body, action)
        return outcomes


def outcome_of_capture(driver: CudaDriver, stream: Any, body: AddOne, action: Action) -> str:
    """What happens to an action of the host (a wait or a read) in a capture of a CUDA graph, tried
    with one step of ``body`` before the action: ``forbidden`` with the error, ``removed``, or
    ``kept`` with the number of nodes that the graph has besides the step.
    """
    # The driver loads a kernel at its first launch, which is not allowed during a capture.
    body.step()
    action()
    stream.synchronize()

    error = ""
    driver.call("cuStreamBeginCapture_v2", stream.cuda_stream, THREAD_LOCAL_CAPTURE)
    try:
        body.step()
        action()
    except RuntimeError as raised:
        first_line = str(raised).splitlines()[0]
        error = f"forbidden: {type(raised).__name__}: {first_line}"[:200]
    # A forbidden call may raise, or only make the end of the capture fail, or both.
    graph = c_void_p()
    # Called directly, because ``driver.call`` would raise for a code.
    code = driver.library.cuStreamEndCapture(stream.cuda_stream, byref(graph))
    if code:
        return error or f"forbidden: {driver.error_name(code)}"
    nodes_of_step = 1
    nodes_of_action = node_count(driver, graph) - nodes_of_step
    driver.call("cuGraphDestroy", graph)
    if error:
        return error
    if not nodes_of_action:
        return "removed"
    if nodes_of_action == 1:
        return "kept as 1 node"
    return f"kept as {nodes_of_action} nodes"
