"""CUDA graphs by the driver's own functions: the step captured n times, instantiated, launched, updated."""

from __future__ import annotations

import ctypes
import functools
import itertools
import time
from collections.abc import Callable, Mapping
from ctypes import byref, c_size_t, c_uint, c_void_p
from itertools import repeat
from typing import Any

from overhead.probes._cuda_api import CudaDriver
from overhead.probes._cuda_chains import CudaChain, launches_of
from overhead.probes._cuda_launch import GRID, Action, Issue, bindings, driver_call
from overhead.probes._cuda_session import Session, SessionClock, step_arguments
from overhead.probes._cuda_time import hold
from overhead.probes.base import DeviceTime, Unverified
from overhead.probes.native import Program, compile_ffi, compile_native
from overhead.results import Case, Scalar

LARGEST = 10_000
"""Nodes of the largest graph."""
SIZES = (1, 10, 100, 1_000, LARGEST)
"""Nodes of the graphs whose making is timed."""
PLACES = 8
"""Places in the device's memory at which a case's words and code lie, in turn. On an H200 a node takes 757 to 889 ns by
its place, in every process the same to 0.3 %: one place would tell of itself."""
_THREAD_LOCAL_CAPTURE = 1
Making = Mapping[str, tuple[list[int], list[float]]]
"""By figure: nodes, and ns of each."""


class _NodeParameters(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``."""

    _fields_ = (
        ("function", c_void_p),
        ("dimensions", c_uint * 7),
        ("values", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


class Graphs:
    """Makes graphs of the step on a session's stream; all that is kept is released by ``close``."""

    def __init__(self, session: Session) -> None:
        self.session, self._driver = session, session.driver
        self._function = session.kernel("step.cu", "step1")
        self._arguments = step_arguments(session, 1)
        self._launch = functools.partial(
            self._driver.call, "cuLaunchKernel", self._function, *GRID, session.stream, self._arguments.address, None
        )
        self._kept: dict[int, int] = {}
        # The driver loads a kernel at its first launch, which a capture would refuse.
        self._launch()
        session.reset()

    def capture(self, nodes: int) -> int:
        """A graph of n launches, one after another."""
        stream, graph = self.session.stream, c_void_p()
        self._driver.call("cuStreamBeginCapture_v2", stream, _THREAD_LOCAL_CAPTURE)
        try:
            for _ in repeat(None, nodes):
                self._launch()
        finally:
            self._driver.call("cuStreamEndCapture", stream, byref(graph))
        return graph.value or 0

    def instantiate(self, graph: int) -> int:
        """The executable graph."""
        return self._driver.made("cuGraphInstantiateWithFlags", graph, 0)

    def executable(self, nodes: int) -> int:
        """An executable graph of n launches on the device; kept."""
        if nodes not in self._kept:
            graph = self.capture(nodes)
            self._kept[nodes] = self.instantiate(graph)
            self._driver.call("cuGraphDestroy", graph)
            self._driver.call("cuGraphUpload", self._kept[nodes], self.session.stream)
            self._driver.call("cuStreamSynchronize", self.session.stream)
        return self._kept[nodes]

    def once(self, nodes: int) -> dict[str, float]:
        """ns of capturing, instantiating, uploading, launching first (with its wait) and updating all n nodes."""
        call, stream, now = self._driver.call, self.session.stream, time.perf_counter_ns
        times = [now()]
        graph = self.capture(nodes)
        times.append(now())
        executable = self.instantiate(graph)
        times.append(now())
        call("cuGraphUpload", executable, stream)
        call("cuStreamSynchronize", stream)
        times.append(now())
        call("cuGraphLaunch", executable, stream)
        call("cuStreamSynchronize", stream)
        times.append(now())
        handles = self._nodes(graph, nodes)
        update = functools.partial(self._driver.library.cuGraphExecKernelNodeSetParams_v2, executable)
        parameters = byref(_NodeParameters(self._function, (c_uint * 7)(*GRID), self._arguments.address))
        began = now()
        failed = 0
        for node in handles:
            failed |= update(node, parameters)
        updated = now() - began
        call("cuGraphExecDestroy", executable)
        call("cuGraphDestroy", graph)
        if failed:
            raise Unverified(f"cuGraphExecKernelNodeSetParams failed: {self._driver.error_name(failed)}")
        names = ("capture", "instantiate", "upload", "first_launch")
        parts = (end - start for start, end in itertools.pairwise(times))
        return {**{name: float(part) for name, part in zip(names, parts, strict=True)}, "update": float(updated)}

    def launch(self, nodes: int) -> Action:
        """One launch of a graph of n nodes."""
        driver = bindings()
        executable, stream = driver.CUgraphExec(self.executable(nodes)), driver.CUstream(self.session.stream)
        return functools.partial(driver.cuGraphLaunch, executable, stream)

    def close(self) -> None:
        """Release the kept graphs."""
        while self._kept:
            self._driver.call("cuGraphExecDestroy", self._kept.popitem()[1])

    def _nodes(self, graph: int, nodes: int) -> list[int | None]:
        count, handles = c_size_t(nodes), (c_void_p * nodes)()
        self._driver.call("cuGraphGetNodes", graph, handles, byref(count))
        if count.value != nodes:
            raise Unverified(f"{nodes} launches captured, the graph has {count.value} nodes")
        return list(handles)


class GraphChain(CudaChain):
    """What replaying and launching share: graphs at several places in memory, on one stream.

    The first call in a process, the ladder and single units know the first place alone; ``move`` makes the others.
    """

    nodes = 1
    """Steps that a unit makes."""

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        self._ordinal = ordinal
        super().__init__(driver, ordinal, case, own_stream=True)

    def build(self) -> None:
        self.places = [Graphs(self.session)]
        self.graphs = self.places[0]

    def move(self) -> None:
        driver, stream = self.session.driver, self.session.stream
        while len(self.places) < PLACES:
            self.places.append(Graphs(Session(driver, self._ordinal, own_stream=False, stream=stream)))
        self.graphs = self.places[(self.places.index(self.graphs) + 1) % PLACES]

    def action(self, n: int) -> Action:
        """``issue(n)`` at the place where the chain is."""
        raise NotImplementedError

    def device(self, n: int) -> DeviceTime:
        """Of n units in equal parts at all places, one after another."""
        each = max(1, min(n, self.held_n) // PLACES)
        actions = []
        for _ in range(PLACES):
            self.move()
            actions.append(self.action(each))

        def issue(n: int) -> None:
            self.aside += n
            for action in actions:
                action()

        issue(each * PLACES)
        self.wait()
        self._clock = self._clock or SessionClock(self.session)
        return hold(self._clock, issue, each * PLACES)

    def executed(self) -> int:
        return sum(launches_of(place.session.steps(), self.nodes) for place in self.places) - self.aside

    def window(self) -> dict[str, Scalar]:
        own: dict[str, Scalar] = {"call": "cuGraphLaunch", "recording": "outside", "places": PLACES}
        return {**own, "stream": "own, non-blocking", "precision": "uint32"}

    def close(self) -> None:
        for place in reversed(self.places):
            place.close()
            if place.session is not self.session:
                place.session.close()
        super().close()


class Replay(GraphChain):
    """n nodes in one graph, launched once."""

    recorded = True
    overlap = "serial"
    max_n = LARGEST
    launches = 0

    def action(self, n: int) -> Action:
        return self.graphs.launch(n) if n else _nothing

    def prepare(self, n: int) -> None:
        self._launch = self.action(n)

    def issue(self, n: int) -> None:
        self._launch()

    def making(self) -> Making:
        """What happens once for a graph, by its number of nodes, ns."""
        first = self.places[0]
        found = {nodes: first.once(nodes) for nodes in SIZES}
        self.aside += sum(SIZES)
        return {name: (list(found), [times[name] for times in found.values()]) for name in found[SIZES[0]]}


class GraphLaunches(GraphChain):
    """One graph of a fixed number of nodes, launched n times."""

    launches = 4

    def build(self) -> None:
        super().build()
        self.nodes = int(self.case.params["nodes"])
        self._issues: dict[Graphs, Issue] = {}
        self._failures: list[Callable[[], int]] = []
        self.prepare(0)

    def action(self, n: int) -> Action:
        self.prepare(n)
        return functools.partial(self._issue, n)

    def prepare(self, n: int) -> None:
        if self.graphs not in self._issues:
            self._issues[self.graphs] = self._loop(self.graphs)
        self._issue = self._issues[self.graphs]

    def issue(self, n: int) -> None:
        self._issue(n)

    def executed(self) -> int:
        for failure in self._failures:
            if code := failure():
                raise Unverified(f"cuGraphLaunch failed with {self.session.driver.error_name(code)}")
        return super().executed()

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "nodes": self.nodes}

    def _loop(self, place: Graphs) -> Issue:
        if self.case.caller == "binding":
            return repeated(place.launch(self.nodes))
        native = self.case.caller == "native"
        arguments = (c_void_p(place.executable(self.nodes)), c_void_p(place.session.stream))
        call = driver_call(place.session, "launch", "cuGraphLaunch", *arguments, checked=native)
        loop = (compile_native if native else compile_ffi)(Program(body=(call,)))
        self._failures.append(loop.failure)
        return loop


def repeated(action: Action) -> Issue:
    """n times the action."""

    def loop(n: int) -> None:
        for _ in repeat(None, n):
            action()

    return loop


def _nothing() -> Any:
    """A recording of nothing has nothing to launch."""
