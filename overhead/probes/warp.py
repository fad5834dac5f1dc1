"""Warp: the step as a Warp kernel, launched by ``wp.launch``, as a recorded launch and in a graph,
on CPU and CUDA.
"""

from __future__ import annotations

import functools
import uuid
from itertools import repeat
from typing import Any

from overhead.probes import register
from overhead.probes.base import Chain, DeviceTime, Probe, Space, device_id, vary, whole_units
from overhead.probes.common.availability import import_library
from overhead.probes.common.loops import Action, nothing
from overhead.probes.cuda.graphs import MOST_NODES
from overhead.probes.held_chain import EVENT_STEP_NS
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg
from overhead.results import Api, Case, Scalar, Target, because


@register
class WarpProbe(Probe):
    """Warp. ``entry=launch`` calls ``wp.launch``; ``entry=recorded`` calls ``Launch.launch``, which
    ``wp.launch(record_cmd=True)`` returns. Warp captures graphs on the CPU too. ``arguments``:
    number of arrays.
    """

    name = "warp"
    title = "Warp"
    mend = because("install-extras", extras="warp")
    distributions = ("warp-lang",)

    def targets(self) -> list[Target]:
        """The CPU and the CUDA devices."""
        wp = self._library()
        targets = []
        for device in wp.get_devices():
            api: Api = "CPU"
            name = "CPU"
            board = ""
            if device.is_cuda:
                api = "CUDA"
                name = device.name
                # An id of the board that is the same in every API.
                board = device_id(uuid.UUID(device.uuid.removeprefix("GPU-")).bytes)
            target = Target(
                stack=self.name,
                api=api,
                adapter=name,
                device=board,
                versions={"warp": wp.__version__},
                # ``cpu``, ``cuda:0``: the name by which ``open`` finds it.
                options={"device": device.alias},
            )
            targets.append(target)
        return targets

    def _library(self) -> Any:
        """Warp without its messages about devices and compiled modules. Raises ``Unavailable``."""
        wp = import_library("warp", self.mend)
        wp.config.log_level = wp.LOG_WARNING
        return wp

    def space(self, target: Target) -> Space:
        """The cases that a run measures: launches by ``entry`` (function of Warp that launches) and
        number of arguments, graphs, and on a GPU also a wait or a read after each launch.
        ``early``: those that every run measures.
        """
        on_gpu = target.api == "CUDA"
        # ``arguments``: of the kernel, the number of arrays.
        params: dict[str, Scalar] = {"entry": "launch", "arguments": 1}
        if on_gpu:
            params["wait"] = "stream"
        base = Case(pattern="per-submit", unit="launch", params=params)
        of_graph: dict[str, Scalar] = {**params, "entry": "graph"}
        # One graph of all n units, of which each is a node.
        replay = Case(pattern="replay", unit="node", params=of_graph)

        early = [vary(base, "entry", "recorded"), replay]
        extra = []
        # A graph of a fixed number of launches, which is launched n times.
        for nodes in (1, 100):
            graph = Case(pattern="launches", unit="launch", params={**of_graph, "nodes": nodes})
            extra.append(graph)
        if on_gpu:
            # On the CPU each launch has ended when it returns: there is nothing to wait for.
            early.append(vary(base, "pattern", "wait-each"))
            extra.append(vary(base, "pattern", "read-each"))
        return Space(base, {"arguments": [8, 16]}, extra, early=early)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        device = str(target.options["device"])
        words = WarpWords(self._library(), device, int(case.params["arguments"]))
        if case.params["entry"] == "graph":
            return WarpGraph(words, case)
        return WarpLaunches(words, case)


class WarpWords:
    """An array of 256 numbers on a device, and calls that launch the step on it, a kernel that
    replaces each number by the next of a random generator.

    ``launch`` launches it once; ``recorded`` has a method that does so with less work, because
    Warp has prepared the launch; ``wait`` and ``read`` wait for the launches.
    """

    def __init__(self, wp: Any, name: str, arguments: int) -> None:
        """Put the numbers on the device ``name``, and load the kernel with so many arguments."""
        from overhead.probes.kernels import step_warp

        self.wp = wp
        self.device = wp.get_device(name)
        self.kernels = step_warp
        self._seeds = lcg.seeds()
        self.array = wp.array(self._seeds, dtype=wp.uint32, device=self.device)
        # The module ``step_warp`` has a kernel for each number of arguments that a case may have.
        kernel = getattr(step_warp, f"step{arguments}")
        self.launch = functools.partial(
            wp.launch,
            kernel,
            dim=len(self._seeds),
            inputs=[self.array] * arguments,
            device=self.device,
        )
        self.read = self.array.numpy
        # CUDA loads a kernel at its first launch, which is not allowed during a capture.
        self.launch()
        self.array.assign(self._seeds)  # so that this launch does not count
        # Not launched: Warp only prepares the launch and returns it.
        self.recorded = self.launch(record_cmd=True)
        self.wait: Action = nothing
        if self.device.is_cuda:
            self.wait = functools.partial(wp.synchronize_stream, self.device)

    def steps(self) -> int:
        """The number of steps of all words. Raises ``Unverified`` if they disagree."""
        return lcg.distance(self._seeds, self.read())


class WarpLaunches(InOrderChain):
    """n launches in the stream of the device. On the CPU each is synchronous."""

    held_n = 512

    def __init__(self, words: WarpWords, case: Case) -> None:
        """Give the calls of the case's entry to the chain of an in-order queue."""
        self._words = words
        on_gpu = words.device.is_cuda
        self.wait_spins = on_gpu  # CUDA's wait for a stream keeps the CPU busy
        is_recorded = case.params["entry"] == "recorded"
        # In this order: what launches, waits and reads. ``count`` tells how many steps ran,
        # ``window`` what is timed, ``device`` how long n units take on the device.
        super().__init__(
            case,
            words.recorded.launch if is_recorded else words.launch,
            words.wait,
            words.read,
            count=words.steps,
            window={"precision": "uint32", **case.params},
            device=self._time if on_gpu else None,
            synchronous=not on_gpu,
        )

    def _time(self, n: int) -> DeviceTime:
        """Device time of n launches between two events, queued behind a spinning kernel."""
        wp = self._words.wp
        device = self._words.device
        start = wp.Event(device, enable_timing=True)
        end = wp.Event(device, enable_timing=True)
        scratch = wp.zeros(1, dtype=wp.uint32, device=device)
        # A turn takes at least 1 ns, and wp.launch up to 20 us: the kernel outlasts the launches
        # behind it.
        turns = n * 20_000
        # In the queue of the device: the blocker, the mark of its end, the units, the mark of their
        # end.
        wp.launch(self._words.kernels.spin, dim=1, inputs=[scratch, turns], device=device)
        device.stream.record_event(start)
        self.issue(n)
        busy = not start.is_complete  # the spinning kernel, which stands before it, still runs
        device.stream.record_event(end)
        span_ns = wp.get_event_elapsed_time(start, end) * 1e6
        # The length of a step of the clock of CUDA events, and how the time was taken.
        return DeviceTime(n, span_ns, busy, EVENT_STEP_NS, "wp.Event behind a spinning kernel")


class WarpGraph(Chain):
    """Graphs, which are recordings of launches that are launched as one: a graph of n launches that
    runs once (the pattern ``replay``), or a graph of a fixed number of launches that runs n times.
    """

    def __init__(self, words: WarpWords, case: Case) -> None:
        """Describe the chain; ``prepare`` captures the graphs later."""
        self._words = words
        self._params = case.params
        self._graphs: dict[int, Any] = {}  # by number of launches
        self._nodes = int(case.params.get("nodes", 1))  # launches in a graph of fixed size
        # ``prepare`` then records all n units, and ``issue`` launches the recording.
        self.recorded = case.pattern == "replay"
        # In ``replay`` one graph has all n units, so the size of a graph limits n.
        self.max_n = MOST_NODES if self.recorded else 1 << 20
        # A call on the CPU returns only when the work is done.
        self.synchronous = words.device.is_cpu
        self.wait_spins = words.device.is_cuda  # CUDA's wait for a stream keeps the CPU busy
        # One graph of all units starts only when it has been issued: nothing overlaps.
        self.overlap = "serial" if self.recorded or self.synchronous else "pipelined"

    def prepare(self, n: int) -> None:
        """Capture the graph for n units, unless it exists: of n launches in ``replay``, else of the
        fixed number.
        """
        nodes = n if self.recorded else self._nodes
        if nodes not in self._graphs:
            with self._words.wp.ScopedCapture(device=self._words.device) as capture:
                for _ in repeat(None, nodes):
                    self._words.recorded.launch()
            self._graphs[nodes] = capture.graph
        self._graph = self._graphs[nodes]

    def issue(self, n: int) -> None:
        """Launch the graph; returns before a GPU has run it."""
        launch, graph = self._words.wp.capture_launch, self._graph
        # In ``replay`` the graph has all n units; there is none to launch for n = 0.
        for _ in repeat(None, min(n, 1) if self.recorded else n):
            launch(graph)

    def wait(self) -> None:
        """Return when the stream of the device is idle."""
        self._words.wait()

    def executed(self) -> int:
        """The number of whole units that ran. Raises ``Unverified``."""
        return whole_units(self._words.steps(), self._nodes)

    def window(self) -> dict[str, Scalar]:
        """What is timed: the call, and the number of nodes if it is fixed."""
        # "outside": the graph is recorded before the clock starts.
        return {
            "call": "wp.capture_launch",
            "recording": "outside",
            "precision": "uint32",
            **self._params,
        }
