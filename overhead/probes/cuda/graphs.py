"""CUDA graphs through the driver API: capture of n steps, instantiation, launch and update."""

from __future__ import annotations

import ctypes
import functools
import itertools
import time
from collections.abc import Iterable, Mapping
from ctypes import byref, c_size_t, c_uint, c_void_p

from overhead.probes.base import Unverified, whole_units
from overhead.probes.common.native_loop import NativeProgram, compile_ffi, compile_native
from overhead.probes.common.python_loops import Action, Issue, nothing, repeated
from overhead.probes.cuda.api import THREAD_LOCAL_CAPTURE, CudaDriver
from overhead.probes.cuda.chains import CudaChain
from overhead.probes.cuda.launch import LAUNCH_DIMENSIONS, bindings, driver_call
from overhead.probes.cuda.session import CudaSession, step_arguments
from overhead.results import Case, Scalar

MOST_NODES = 10_000
"""Number of nodes of the largest graph."""
TIMED_SIZES = (1, 10, 100, 1_000, MOST_NODES)
"""Numbers of nodes of the graphs whose capture, instantiation and update are timed."""
_LAUNCHES_OF_A_TIMED_GRAPH = 2
"""The first launch, and one after the update."""
PLACES = 8
"""Number of sets of words in memory (places). The nodes of a graph use them in turn.

On an H200 a node takes 757 to 889 ns depending on its place, within 0.3 % the same in every process. With a single set
the figure would depend on its place."""
Making = Mapping[str, tuple[list[int], list[float]]]
"""By figure: numbers of nodes, and ns of each."""


class _NodeParameters(ctypes.Structure):
    """The C structure ``CUDA_KERNEL_NODE_PARAMS_v2``."""

    _fields_ = (
        ("function", c_void_p),
        ("dimensions", c_uint * 7),
        ("values", c_void_p),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    )


def capture(session: CudaSession, launches: Iterable[Action]) -> int:
    """The handle of a graph that runs these launches one after another on the session's stream."""
    call, stream, graph = session.driver.call, session.stream, c_void_p()
    call("cuStreamBeginCapture_v2", stream, THREAD_LOCAL_CAPTURE)
    try:
        for launch in launches:
            launch()
    finally:
        call("cuStreamEndCapture", stream, byref(graph))
    return graph.value or 0


def instantiate(session: CudaSession, graph: int) -> int:
    """The handle of the executable graph."""
    return session.driver.made("cuGraphInstantiateWithFlags", graph, 0)


def executable(session: CudaSession, launches: Iterable[Action]) -> int:
    """The handle of an executable graph of these launches, uploaded to the device."""
    call, graph = session.driver.call, capture(session, launches)
    found = instantiate(session, graph)
    call("cuGraphDestroy", graph)
    call("cuGraphUpload", found, session.stream)
    call("cuStreamSynchronize", session.stream)
    return found


def graph_launch(session: CudaSession, executable: int) -> Action:
    """A function that makes one ``cuGraphLaunch`` call of cuda-bindings with prepared arguments."""
    driver = bindings()
    return functools.partial(driver.cuGraphLaunch, driver.CUgraphExec(executable), driver.CUstream(session.stream))


class Graphs:
    """Graphs of n steps on the stream of a session. ``close`` releases them."""

    def __init__(self, session: CudaSession) -> None:
        self._session, self._driver = session, session.driver
        self._function = session.kernel("step.cu", "step1")
        self._arguments = [step_arguments(session, 1, place) for place in range(session.places)]
        launch = functools.partial(
            self._driver.call, "cuLaunchKernel", self._function, *LAUNCH_DIMENSIONS, session.stream
        )
        self._launches = [functools.partial(launch, own.address, None) for own in self._arguments]
        self._kept: dict[int, int] = {}
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        self._launches[0]()
        session.reset()

    def launches(self, nodes: int) -> list[Action]:
        """One launch per node; the launches are spread evenly over the sets of words."""
        return [self._launches[place] for place in _places(nodes, len(self._launches))]

    def executable(self, nodes: int) -> int:
        """An executable graph with this number of nodes, uploaded to the device. It is made at the first call."""
        if nodes not in self._kept:
            self._kept[nodes] = executable(self._session, self.launches(nodes))
        return self._kept[nodes]

    def once(self, nodes: int) -> dict[str, float]:
        """Times of capture, instantiation, upload, first launch with its wait, and update of all nodes, ns.

        Afterwards the updated graph is launched once, to check that it runs.
        """
        call, stream, now = self._driver.call, self._session.stream, time.perf_counter_ns
        launches = self.launches(nodes)
        times = [now()]
        graph = capture(self._session, launches)
        times.append(now())
        made = instantiate(self._session, graph)
        times.append(now())
        call("cuGraphUpload", made, stream)
        call("cuStreamSynchronize", stream)
        times.append(now())
        call("cuGraphLaunch", made, stream)
        call("cuStreamSynchronize", stream)
        times.append(now())
        handles = self._nodes(graph, nodes)
        update = functools.partial(self._driver.library.cuGraphExecKernelNodeSetParams_v2, made)
        of = [
            byref(_NodeParameters(self._function, (c_uint * 7)(*LAUNCH_DIMENSIONS), own.address))
            for own in self._arguments
        ]
        parameters = [of[place] for place in _places(nodes, len(of))]
        began = now()
        failed = 0
        for node, own in zip(handles, parameters, strict=True):
            failed |= update(node, own)
        updated = now() - began
        if not failed:
            call("cuGraphLaunch", made, stream)
            call("cuStreamSynchronize", stream)
        call("cuGraphExecDestroy", made)
        call("cuGraphDestroy", graph)
        if failed:
            raise Unverified(f"cuGraphExecKernelNodeSetParams failed: {self._driver.error_name(failed)}")
        names = ("capture", "instantiate", "upload", "first_launch")
        parts = (end - start for start, end in itertools.pairwise(times))
        return {**{name: float(part) for name, part in zip(names, parts, strict=True)}, "update": float(updated)}

    def close(self) -> None:
        """Release all graphs."""
        while self._kept:
            self._driver.call("cuGraphExecDestroy", self._kept.popitem()[1])

    def _nodes(self, graph: int, nodes: int) -> list[int | None]:
        count, handles = c_size_t(nodes), (c_void_p * nodes)()
        self._driver.call("cuGraphGetNodes", graph, handles, byref(count))
        if count.value != nodes:
            raise Unverified(f"{nodes} launches captured, the graph has {count.value} nodes")
        return list(handles)


class GraphChain(CudaChain):
    """A chain that launches graphs on its own stream."""

    places = PLACES

    def __init__(self, driver: CudaDriver, ordinal: int, case: Case) -> None:
        super().__init__(driver, ordinal, case, own_stream=True)

    def build(self) -> None:
        self.graphs = Graphs(self.session)

    def launcher(self, nodes: int) -> Action:
        """A function that launches a graph with this number of nodes."""
        return graph_launch(self.session, self.graphs.executable(nodes))

    def window(self) -> dict[str, Scalar]:
        own: dict[str, Scalar] = {"call": "cuGraphLaunch", "recording": "outside", "places": self.places}
        return {**own, "stream": "own, non-blocking", "precision": "uint32"}

    def close(self) -> None:
        self.graphs.close()
        super().close()


class CudaReplay(GraphChain):
    """A graph of n nodes that is launched once."""

    recorded = True
    overlap = "serial"
    max_n = MOST_NODES
    launches = 0

    def prepare(self, n: int) -> None:
        self._launch = self.launcher(n) if n else nothing

    def issue(self, n: int) -> None:
        self._launch()

    def making(self) -> Making:
        """One-off costs of making a graph, ns, for several numbers of nodes."""
        found = {nodes: self.graphs.once(nodes) for nodes in TIMED_SIZES}
        self.aside += _LAUNCHES_OF_A_TIMED_GRAPH * sum(TIMED_SIZES)
        return {name: (list(found), [times[name] for times in found.values()]) for name in found[TIMED_SIZES[0]]}


class GraphLaunches(GraphChain):
    """A graph with a fixed number of nodes that is launched n times."""

    launches = 4

    def build(self) -> None:
        super().build()
        self._nodes = int(self.case.params["nodes"])
        launch = self.launcher(self._nodes)
        self._issue: Issue = repeated(launch)
        self._failure = lambda: 0
        if self.case.caller != "binding":
            native = self.case.caller == "native"
            arguments = (c_void_p(self.graphs.executable(self._nodes)), c_void_p(self.session.stream))
            call = driver_call(self.session, "launch", "cuGraphLaunch", *arguments, checked=native)
            loop = (compile_native if native else compile_ffi)(NativeProgram(body=(call,)))
            self._issue, self._failure = loop, loop.failure

    def issue(self, n: int) -> None:
        self._issue(n)

    def executed(self) -> int:
        if self._failure():
            raise Unverified(f"cuGraphLaunch failed with {self.session.driver.error_name(self._failure())}")
        return whole_units(self.session.steps(), self._nodes) - self.aside

    def window(self) -> dict[str, Scalar]:
        return {**super().window(), "nodes": self._nodes, "places": min(self._nodes, self.places)}


def _places(nodes: int, places: int) -> list[int]:
    """The place of each node. The numbers of nodes per place differ by at most one."""
    return [node * places // nodes for node in range(nodes)]
