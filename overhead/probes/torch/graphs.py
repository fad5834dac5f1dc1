"""CUDA graphs captured by torch: n steps in a graph, launched by ``CUDAGraph.replay``."""

from __future__ import annotations

import functools
import time
from ctypes import byref, c_size_t, c_void_p
from typing import Any

import torch

from overhead.probes.base import Chain, whole_units
from overhead.probes.common.loops import Action, nothing, repeated
from overhead.probes.cuda.api import THREAD_LOCAL_CAPTURE, CudaDriver, driver
from overhead.probes.cuda.graphs import MOST_NODES, TIMED_SIZES, Making
from overhead.probes.torch import waits
from overhead.probes.torch.bodies import AddOne, set_autograd_mode
from overhead.probes.torch.chains import Eager, chosen_device
from overhead.results import Case, Scalar


def captured(graph: Any, stream: Any, run: Action) -> float:
    """Capture what ``run`` issues into a ``CUDAGraph`` on a separate stream. Returns how long it took, ns."""
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        began = time.perf_counter_ns()
        graph.capture_begin(capture_error_mode="thread_local")
        run()
        graph.capture_end()
        return float(time.perf_counter_ns() - began)


class TorchGraphs:
    """Graphs of n steps of a body, captured on a separate stream.

    The body must not use inference mode: torch's random generator reuses tensors of the first capture, and a tensor
    made in inference mode is read-only outside of it.
    """

    def __init__(self, body: AddOne) -> None:
        self._loop = body.loop()
        self._stream = torch.cuda.Stream()
        self._kept: dict[int, Any] = {}
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        before = body.values.clone()
        self._loop(1)
        body.values.copy_(before)

    def make(self, nodes: int) -> tuple[Any, dict[str, float]]:
        """A new graph, and the times of its capture and instantiation, ns.

        Before torch 2.8 the capture includes the instantiation.
        """
        apart = hasattr(torch.cuda.CUDAGraph, "instantiate")
        graph = torch.cuda.CUDAGraph(keep_graph=True) if apart else torch.cuda.CUDAGraph()
        times = {"capture": captured(graph, self._stream, functools.partial(self._loop, nodes))}
        if apart:
            began = time.perf_counter_ns()
            graph.instantiate()
            times["instantiate"] = float(time.perf_counter_ns() - began)
        return graph, times

    def replay(self, nodes: int) -> Action:
        """A function that launches a graph with this number of nodes. The graph is made at the first call."""
        if nodes not in self._kept:
            self._kept[nodes] = self.make(nodes)[0]
        replay: Action = self._kept[nodes].replay
        return replay


class TorchReplay(Eager):
    """A graph of n nodes that is launched once."""

    def __init__(self, device: Any, body: AddOne, wait: Action, *, spins: bool) -> None:
        super().__init__(device, body, wait, spins=spins)
        self.recorded, self.overlap, self.max_n, self.launches = True, "serial", MOST_NODES, 0
        self.graphs = TorchGraphs(body)

    def prepare(self, n: int) -> None:
        super().prepare(n)
        self._replay = self.graphs.replay(n) if n else nothing

    def issue(self, n: int) -> None:
        self._replay()

    def making(self) -> Making:
        """One-off costs of making a graph, ns, for several numbers of nodes."""
        set_autograd_mode(self._body.mode)
        found: dict[str, list[float]] = {}
        for nodes in TIMED_SIZES:
            graph, times = self.graphs.make(nodes)
            self._wait()
            began = time.perf_counter_ns()
            graph.replay()
            self._wait()
            times["first_launch"] = float(time.perf_counter_ns() - began)
            for name, value in times.items():
                found.setdefault(name, []).append(value)
            self.aside += nodes
        return {name: (list(TIMED_SIZES), values) for name, values in found.items()}

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "call": "CUDAGraph.replay", "recording": "outside"}


class TorchGraphLaunches(Eager):
    """A graph with a fixed number of nodes, launched n times. ``seen``: the result of ``captured_synchronisations``."""

    def __init__(
        self, device: Any, body: AddOne, wait: Action, *, spins: bool, nodes: int, seen: dict[str, str]
    ) -> None:
        super().__init__(device, body, wait, spins=spins)
        self.launches = 4
        self._seen = seen
        self._nodes = nodes
        self.graphs = TorchGraphs(body)
        self._loop = repeated(self.graphs.replay(nodes))

    def executed(self) -> int:
        set_autograd_mode(self._body.mode)
        return whole_units(self._body.executed(), self._nodes) - self.aside

    def window(self) -> dict[str, Scalar]:
        own: dict[str, Scalar] = {"call": "CUDAGraph.replay", "recording": "outside", "nodes": self._nodes}
        return {**super().window(), **own, **{f"captured {kind}": text for kind, text in self._seen.items()}}


def open_step(device: str, case: Case) -> Chain:
    """The chain of a case whose graph adds 1."""
    place = chosen_device(device)
    body, wait = AddOne(place, mode="no_grad"), waits.wait(place, "stream")
    if case.pattern == "replay":
        return TorchReplay(place, body, wait, spins=True)
    nodes = int(case.params["nodes"])
    seen = captured_synchronisations(driver(), place) if nodes == 1 else {}
    return TorchGraphLaunches(place, body, wait, spins=True, nodes=nodes, seen=seen)


def captured_synchronisations(driver: CudaDriver, device: Any) -> dict[str, str]:
    """What a capture does with each host synchronisation, by name: remove it, keep it as nodes, or raise an error.

    Each synchronisation is tried in a separate capture on a side stream. The driver captures, so that torch's allocator
    is not involved.
    """
    kinds = (*waits.READS["cuda"], *waits.TORCH_WAITS["cuda"])
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        body = AddOne(device, mode="no_grad")
        actions = {kind: waits.action(device, kind, body.reading) for kind in kinds}
        return {kind: _verdict(driver, stream, body, action) for kind, action in actions.items()}


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
    count = c_size_t()
    driver.call("cuGraphGetNodes", graph, None, byref(count))
    driver.call("cuGraphDestroy", graph)
    kept = count.value - 1
    return error or (f"kept as {kept} node{'s' * (kept > 1)}" if kept else "removed")
