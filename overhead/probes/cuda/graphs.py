"""CUDA graphs through the driver API: capture, instantiation, launch, update. A node is a launch of
the step.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Iterable, Mapping
from ctypes import byref, c_size_t, c_uint, c_void_p

from overhead.probes.base import Unverified
from overhead.probes.common.loops import Action, Issue, nothing, repeated
from overhead.probes.common.native_loop import NativeProgram, compile_ffi, compile_native
from overhead.probes.cuda.api import THREAD_LOCAL_CAPTURE, CudaDriver
from overhead.probes.cuda.chains import CudaChain, SessionChain
from overhead.probes.cuda.launch import (
    LAUNCH_DIMENSIONS,
    Launch,
    driver_call,
    driver_launches,
    graph_launch,
)
from overhead.probes.cuda.session import CudaSession, step_arguments
from overhead.results import because

MOST_NODES = 10_000
"""Number of nodes of the largest graph."""
TIMED_SIZES = (1, 10, 100, 1_000, MOST_NODES)
"""Numbers of nodes of the graphs whose capture, instantiation and update are timed."""
PLACES = 8
"""Number of sets of words in memory (places). The nodes of a graph use them in turn.

On an H200 a node takes 757 to 889 ns depending on its place, within 0.3 % the same in every
process. With a single set the figure would depend on its place.
"""
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
    """The handle of a new CUDA graph. A capture makes it: while it lasts, calls on the session's
    stream launch nothing and become nodes of the graph, here those of ``launches``.
    """
    call = session.driver.call
    graph = c_void_p()
    # ``THREAD_LOCAL_CAPTURE``: calls of other threads, which a capture may forbid, stay allowed.
    call("cuStreamBeginCapture_v2", session.stream, THREAD_LOCAL_CAPTURE)
    try:
        for launch in launches:
            launch()
    finally:  # else the stream would stay in the capture
        call("cuStreamEndCapture", session.stream, byref(graph))
    return graph.value or 0


def node_count(driver: CudaDriver, graph: object) -> int:
    """The number of nodes of a graph."""
    count = c_size_t()
    driver.call("cuGraphGetNodes", graph, None, byref(count))
    return count.value


def executable(session: CudaSession, launches: Iterable[Action]) -> int:
    """The handle of an executable graph of these launches, the form of a graph that can be
    launched. It is uploaded to the device, which its first launch would do else. The session
    releases it (``make_owned``).
    """
    call = session.driver.call
    graph = capture(session, launches)
    made = session.make_owned("cuGraphExecDestroy", "cuGraphInstantiateWithFlags", graph, 0)
    call("cuGraphDestroy", graph)  # the executable graph does not need it
    call("cuGraphUpload", made, session.stream)
    # The upload ends before this function returns, so that no timed launch waits for it.
    call("cuStreamSynchronize", session.stream)
    return made


class Replay(SessionChain):
    """A graph of n units, captured before the timed window and launched once inside."""

    recorded = True
    overlap = "serial"
    max_n = MOST_NODES
    launches = 0

    @functools.cached_property
    def _kept(self) -> dict[int, int]:
        return {}

    def launches_of(self, n: int) -> Iterable[Action]:
        """Functions that make the launches of n units, for the capture."""
        raise NotImplementedError

    def executable(self, n: int) -> int:
        """The handle of the executable graph of n units. It is made at the first call."""
        if n not in self._kept:
            self._kept[n] = executable(self.session, self.launches_of(n))
        return self._kept[n]

    def prepare(self, n: int) -> None:
        """Make the graph of n units, unless it exists."""
        self._launch = graph_launch(self.session, self.executable(n)) if n else nothing

    def issue(self, n: int) -> None:
        """Launch the graph; returns before the device has run it."""
        self._launch()


class GraphChain(CudaChain):
    """A chain that launches CUDA graphs on its own stream. A node of a graph launches the step, a
    small kernel that changes one of several sets of words in memory.
    """

    places = PLACES

    def build(self) -> None:
        """Make one launch of the step for each set of words, from which captures make graphs."""
        self._function = self.session.kernel("step.cu", "step1")
        # By place, that is, by set of words. With a single set the cost of a node would depend on
        # where that set lies.
        self._arguments = [step_arguments(self.session, place) for place in range(PLACES)]
        launches = []
        for arguments in self._arguments:
            launches.append(Launch(self._function, LAUNCH_DIMENSIONS, arguments.address))
        self._launches = driver_launches(self.session, launches)
        # The driver loads a kernel at its first launch, which is not allowed during a capture.
        self._launches[0]()
        self.session.reset()  # that launch is no unit
        self.details = {
            "call": "cuGraphLaunch",
            "recording": "outside",
            "places": self.places,
            "stream": "own, non-blocking",
            "precision": "uint32",
        }

    def launches_of(self, n: int) -> list[Action]:
        """One launch per node; the launches are spread evenly over the sets of words."""
        return [self._launches[place] for place in _places(n)]


class CudaReplay(GraphChain, Replay):
    """A graph of n nodes that is launched once."""

    def making(self) -> Making:
        """One-off costs of making a graph, by part of the making: the numbers of nodes of the
        graphs that were made, and the ns that each took. They are fitted to a cost per graph and a
        cost per node.
        """
        times_of_parts: dict[str, list[float]] = {}
        for nodes in TIMED_SIZES:
            for part, time_ns in self._times_of_making(nodes).items():
                times_of_parts.setdefault(part, []).append(time_ns)
            # The first launch, and one after the update, ran steps that are no units of the chain.
            self.aside += 2 * nodes
        # The sizes are the same for each part.
        return {part: (list(TIMED_SIZES), times) for part, times in times_of_parts.items()}

    def _times_of_making(self, nodes: int) -> dict[str, float]:
        """Make one graph of so many nodes, and return how long each part took, ns: capture,
        instantiation (the graph becomes executable), upload, first launch with its wait, and update
        of all nodes.

        Afterwards the updated graph is launched once more: its steps are counted, so an update that
        broke it is found.
        """
        driver = self.session.driver
        stream = self.session.stream
        call = driver.call
        now = time.perf_counter_ns
        launches = self.launches_of(nodes)

        # Each reading of the clock ends one part and begins the next.
        began = now()
        graph = capture(self.session, launches)
        captured = now()
        # Not ``executable``, whose graph the session would keep, and which times nothing.
        made = driver.call_for_handle("cuGraphInstantiateWithFlags", graph, 0)
        instantiated = now()
        call("cuGraphUpload", made, stream)
        call("cuStreamSynchronize", stream)
        uploaded = now()
        call("cuGraphLaunch", made, stream)
        call("cuStreamSynchronize", stream)
        launched = now()

        update_ns, failed = self._update(graph, made, nodes)
        # An update that failed is reported below, after the graph has been released.
        if not failed:
            call("cuGraphLaunch", made, stream)
            call("cuStreamSynchronize", stream)
        call("cuGraphExecDestroy", made)
        call("cuGraphDestroy", graph)
        if failed:
            raise Unverified(because("node-update-failed", error=driver.error_name(failed)))
        return {
            "capture": float(captured - began),
            "instantiate": float(instantiated - captured),
            "upload": float(uploaded - instantiated),
            "first_launch": float(launched - uploaded),
            "update": float(update_ns),
        }

    def _update(self, graph: int, made: int, nodes: int) -> tuple[int, int]:
        """Set the parameters of all nodes of ``made``, the executable form of ``graph``, to what
        they are. Returns the time, ns, and the bitwise or of the results of all calls; 0: none
        failed.

        Everything that can be made before is made before the clock starts: only the calls of the
        driver are timed, and their results looked at later.
        """
        handles = self._nodes(graph, nodes)
        library = self.session.driver.library
        update = functools.partial(library.cuGraphExecKernelNodeSetParams_v2, made)
        # Grid, block and shared memory of a launch of the step.
        dimensions = (c_uint * 7)(*LAUNCH_DIMENSIONS)
        parameters_of_places = []
        for arguments in self._arguments:  # a set of words in memory is a place
            parameters = _NodeParameters(self._function, dimensions, arguments.address)
            parameters_of_places.append(byref(parameters))
        # ``_places``: for each node, the number of the place whose words it changes, as the graph
        # was captured.
        parameters_of_nodes = [parameters_of_places[place] for place in _places(nodes)]

        began = time.perf_counter_ns()
        failed = 0
        for node, parameters_of_node in zip(handles, parameters_of_nodes, strict=True):
            failed |= update(node, parameters_of_node)
        return time.perf_counter_ns() - began, failed

    def _nodes(self, graph: int, nodes: int) -> list[int | None]:
        """The handles of the nodes of a graph that was captured from ``nodes`` launches. Raises
        ``Unverified`` if it has another number of nodes: then a node is not one launch.
        """
        found = node_count(self.session.driver, graph)
        if found != nodes:
            raise Unverified(because("captured-launches-differ", launches=nodes, nodes=found))
        count = c_size_t(nodes)
        handles = (c_void_p * nodes)()
        # The driver writes the handles to the array, at most ``count`` of them.
        self.session.driver.call("cuGraphGetNodes", graph, handles, byref(count))
        return list(handles)


class GraphLaunches(GraphChain):
    """A graph with a fixed number of nodes that is launched n times."""

    launches = 4

    def build(self) -> None:
        """Make the graph, and the loop that launches the graph n times from the case's caller:
        through cuda-bindings (``binding``), ctypes, or compiled code (``native``), which alone
        checks the result of each launch.
        """
        super().build()
        nodes = int(self.case.params["nodes"])
        self.steps_of_a_unit = nodes  # each node runs the step once
        graph = executable(self.session, self.launches_of(nodes))
        self._issue: Issue
        if self.case.caller == "binding":
            self._issue = repeated(graph_launch(self.session, graph))
        else:
            is_native = self.case.caller == "native"
            # The same two arguments as of ``graph_launch``, as C types for ctypes.
            arguments = (c_void_p(graph), c_void_p(self.session.stream))
            call = driver_call(
                self.session, "launch", "cuGraphLaunch", *arguments, checked=is_native
            )
            program = NativeProgram(body=(call,))
            loop = compile_native(program) if is_native else compile_ffi(program)
            self._issue = loop
            # ``check_calls`` asks it afterwards whether a launch failed.
            self.failed = loop.failure
        # A graph with fewer nodes than there are sets of words uses only some.
        used_places = min(nodes, self.places)
        self.details |= {"nodes": nodes, "places": used_places}

    def issue(self, n: int) -> None:
        """Launch the graph n times; returns before the device has run it."""
        self._issue(n)


def _places(nodes: int) -> list[int]:
    """For each node of a graph, the number of the place (a set of words in memory) that it changes.
    The numbers of nodes per place differ by at most one.
    """
    return [node * PLACES // nodes for node in range(nodes)]
