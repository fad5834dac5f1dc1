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
from overhead.probes.common.loops import nothing
from overhead.probes.cuda.graphs import MOST_NODES
from overhead.probes.in_order import InOrderChain
from overhead.probes.kernels import lcg
from overhead.results import Case, Scalar, Target, because


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
        return [
            Target(
                stack=self.name,
                api="CUDA" if device.is_cuda else "CPU",
                adapter=device.name if device.is_cuda else "CPU",
                device=(
                    device_id(uuid.UUID(device.uuid.removeprefix("GPU-")).bytes)
                    if device.is_cuda
                    else ""
                ),
                versions={"warp": wp.__version__},
                options={"device": device.alias},
            )
            for device in wp.get_devices()
        ]

    def _library(self) -> Any:
        """Warp without its messages about devices and compiled modules. Raises ``Unavailable``."""
        wp = import_library("warp", self.mend)
        wp.config.log_level = wp.LOG_WARNING
        return wp

    def space(self, target: Target) -> Space:
        """The cases of the launch by entry and number of arguments, of graphs, and on a GPU of
        waits and reads.
        """
        wait: dict[str, Scalar] = {"wait": "stream"} if target.api == "CUDA" else {}
        base = Case(
            pattern="per-submit", unit="launch", params={"entry": "launch", "arguments": 1, **wait}
        )
        each = [vary(base, "pattern", pattern) for pattern in ("wait-each", "read-each") if wait]
        params: dict[str, Scalar] = {**base.params, "entry": "graph"}
        graphs = [
            Case(pattern="launches", unit="launch", params={**params, "nodes": nodes})
            for nodes in (1, 100)
        ]
        early = [
            vary(base, "entry", "recorded"),
            Case(pattern="replay", unit="node", params=params),
            *each[:1],
        ]
        return Space(base, {"arguments": [8, 16]}, [*graphs, *each[1:]], early=early)

    def open(self, target: Target, case: Case) -> Chain:
        """The chain of the case, on the device of the target."""
        words = WarpWords(
            self._library(), str(target.options["device"]), int(case.params["arguments"])
        )
        return (WarpGraph if case.params["entry"] == "graph" else WarpLaunches)(words, case)


class WarpWords:
    """An array of 256 numbers on a device, and calls that launch the step on it. Its kernel is
    loaded before.
    """

    def __init__(self, wp: Any, name: str, arguments: int) -> None:
        from overhead.probes.kernels import step_warp

        self.wp, self.device, self.kernels, self._seeds = (
            wp,
            wp.get_device(name),
            step_warp,
            lcg.seeds(),
        )
        self.array = wp.array(self._seeds, dtype=wp.uint32, device=self.device)
        given = {"dim": len(self._seeds), "inputs": [self.array] * arguments, "device": self.device}
        self.launch = functools.partial(wp.launch, getattr(step_warp, f"step{arguments}"), **given)
        self.read = self.array.numpy
        # CUDA loads a kernel at its first launch, which is not allowed during a capture
        self.launch()
        self.array.assign(self._seeds)
        self.recorded = self.launch(record_cmd=True)
        self.wait = (
            functools.partial(wp.synchronize_stream, self.device)
            if self.device.is_cuda
            else nothing
        )

    def steps(self) -> int:
        """The number of steps of all words. Raises ``Unverified`` if they disagree."""
        return lcg.distance(self._seeds, self.read())


class WarpLaunches(InOrderChain):
    """n launches in the stream of the device. On the CPU each is synchronous."""

    held_n = 512

    def __init__(self, words: WarpWords, case: Case) -> None:
        self._words, self.wait_spins = words, words.device.is_cuda
        launch = words.recorded.launch if case.params["entry"] == "recorded" else words.launch
        window: dict[str, Scalar] = {"precision": "uint32", **case.params}
        device, cpu = (self._time, False) if words.device.is_cuda else (None, True)
        super().__init__(
            case,
            launch,
            words.wait,
            words.read,
            count=words.steps,
            window=window,
            device=device,
            synchronous=cpu,
        )

    def _time(self, n: int) -> DeviceTime:
        wp, device = self._words.wp, self._words.device
        start, end = (wp.Event(device, enable_timing=True) for _ in range(2))
        scratch = wp.zeros(1, dtype=wp.uint32, device=device)
        # A turn takes at least 1 ns, and wp.launch up to 20 us: the kernel outlasts the launches
        # behind it.
        wp.launch(self._words.kernels.spin, dim=1, inputs=[scratch, n * 20_000], device=device)
        device.stream.record_event(start)
        self.issue(n)
        busy = not start.is_complete
        device.stream.record_event(end)
        span = wp.get_event_elapsed_time(start, end) * 1e6
        return DeviceTime(n, span, busy, 500.0, "wp.Event behind a spinning kernel")


class WarpGraph(Chain):
    """A graph of n launches that runs once (``replay``), or a graph of fixed size that runs n
    times.
    """

    def __init__(self, words: WarpWords, case: Case) -> None:
        self._words, self._params, self._kept = words, case.params, dict[int, Any]()
        self._nodes, self.recorded = int(case.params.get("nodes", 1)), case.pattern == "replay"
        self.max_n = MOST_NODES if self.recorded else 1 << 20
        self.synchronous, self.wait_spins = words.device.is_cpu, words.device.is_cuda
        self.overlap = "serial" if self.recorded or self.synchronous else "pipelined"

    def prepare(self, n: int) -> None:
        """Capture the graph, unless it exists."""
        nodes = n if self.recorded else self._nodes
        if nodes not in self._kept:
            with self._words.wp.ScopedCapture(device=self._words.device) as capture:
                for _ in repeat(None, nodes):
                    self._words.recorded.launch()
            self._kept[nodes] = capture.graph
        self._graph = self._kept[nodes]

    def issue(self, n: int) -> None:
        """Launch the graph; returns before a GPU has run it."""
        launch, graph = self._words.wp.capture_launch, self._graph
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
        return {
            "call": "wp.capture_launch",
            "recording": "outside",
            "precision": "uint32",
            **self._params,
        }
