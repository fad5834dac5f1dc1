"""Device time by timestamp queries, behind a plug: a dispatch that provably outlasts the issuing of what follows it.

The plug is submitted to an idle device at host time a; the units and a marker behind them are issued by host time b.
If the plug's own time on the device is longer than b - a, it ended after b: the device had all units at hand before it
began the first.
"""

from __future__ import annotations

import functools
import math
from time import perf_counter_ns, thread_time_ns
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from overhead.probes._support.webgpu.case import GROUPS, Recipe
from overhead.probes._support.webgpu.setup import StepSetup, WebgpuSession, data_layout, entries
from overhead.probes.base import DeviceTime, Unsupported
from overhead.probes.kernels import source

_STAMPS = 64
_MIN_QUANTA = 100
_STEPS = 50_000
"""Steps of one dispatch of the plug: llvmpipe ends every loop after 65,535 turns, without a word."""
_LONGEST_NS = 200e6
"""A plug is never meant to last longer."""
_MOST_SUBMITS = 1024
"""Submissions behind a plug: far from any queue's end."""


class Uncounted(Protocol):
    """A chain whose units, issued here, do not count as executed."""

    rig: StepSetup

    def prepare(self, n: int) -> None: ...
    def issue(self, n: int) -> None: ...
    def wait(self) -> None: ...
    def units_a_submit(self, n: int) -> int: ...
    def aside(self, steps: int) -> None:
        """Take notice of steps that are not to count."""


class DeviceClock:
    """Measures what a chain takes of the device. Raises ``Unsupported`` where there are no timestamp queries."""

    def __init__(self, chain: Uncounted) -> None:
        self.chain, self.rig = chain, chain.rig
        if not self.rig.session.timestamps:
            raise Unsupported("the adapter has no timestamp queries")
        device, flags = self.rig.device, self.rig.flags
        self.queries = device.create_query_set(type="timestamp", count=_STAMPS)
        self.resolved = self.rig.buffer(np.zeros(_STAMPS, np.uint64), flags.QUERY_RESOLVE | flags.COPY_SRC)
        layout = data_layout(device, zeros=0, uniform=True)
        module = device.create_shader_module(code=source("fused.wgsl")[0])
        self.pipeline = device.create_compute_pipeline(
            layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={"module": module, "entry_point": "main"},
        )

        def groups(steps: int) -> list[Any]:
            uniform = self.rig.buffer(np.array([steps], np.uint32), flags.UNIFORM)
            return [device.create_bind_group(layout=layout, entries=entries(d, [], uniform)) for d in self.rig.data]

        self.plug, self.marker = groups(_STEPS), groups(0)
        self.repeats = 1
        self.quantum = self._quantum()

    def measure(self, n: int) -> DeviceTime:
        """From the plug's end to the end of a marker behind at most ``n`` units: a slope over n is free of the marker.

        Raises ``Unsupported`` under 100 quanta of the clock.
        """
        n = min(n, _MOST_SUBMITS * max(1, self.chain.units_a_submit(n)))
        span, busy = self._behind_plug(n)
        if span < _MIN_QUANTA * self.quantum:
            raise Unsupported(f"{span:.0f} ns of device time are under {_MIN_QUANTA} quanta of {self.quantum:g} ns")
        return DeviceTime(n, span, busy, self.quantum, "timestamps at pass ends, behind a plug dispatch")

    def _behind_plug(self, n: int) -> tuple[float, bool]:
        """The span, ns, and whether the plug outlasted the issuing.

        A plug that was too short is lengthened. Where the stack itself waits for the device it never is long enough.
        """
        span, plug, issuing = self._once(n, self.repeats)
        for _ in range(3):
            longer = math.ceil(self.repeats * 1.5 * issuing / max(plug, 1.0))
            if plug > issuing or longer * plug / self.repeats > _LONGEST_NS:
                break
            self.repeats = longer
            span, plug, issuing = self._once(n, self.repeats)
        return span, plug > issuing

    def _once(self, n: int, repeats: int) -> tuple[float, float, float]:
        self.chain.prepare(n)
        plug, marker = self._pass(self.plug, repeats, 0), self._pass(self.marker, 1, 2)
        self.chain.wait()
        begin = perf_counter_ns()
        self.rig.queue.submit([plug])
        self.chain.issue(n)
        self.rig.queue.submit([marker])
        issuing = perf_counter_ns() - begin
        self.chain.aside(n + repeats * _STEPS * len(self.plug))
        stamps = self._resolve(4)
        return float(stamps[3] - stamps[1]), float(stamps[1] - stamps[0]), float(issuing)

    def _pass(self, groups: list[Any], repeats: int, first: int) -> Any:
        """A command buffer of one pass over all data buffers, with stamps ``first`` and ``first + 1`` at its ends."""
        encoder = self.rig.device.create_command_encoder()
        self._record(encoder, groups, repeats, first)
        return encoder.finish()

    def _record(self, encoder: Any, groups: list[Any], repeats: int, first: int) -> None:
        writes = {
            "query_set": self.queries,
            "beginning_of_pass_write_index": first,
            "end_of_pass_write_index": first + 1,
        }
        compute = encoder.begin_compute_pass(timestamp_writes=writes)
        compute.set_pipeline(self.pipeline)
        for group in groups:
            compute.set_bind_group(0, group)
            for _ in range(repeats):
                compute.dispatch_workgroups(GROUPS)
        compute.end()

    def _resolve(self, count: int) -> NDArray[np.float64]:
        """The first stamps, ns from the first."""
        encoder = self.rig.device.create_command_encoder()
        encoder.resolve_query_set(self.queries, 0, count, self.resolved, 0)
        self.rig.queue.submit([encoder.finish()])
        raw = np.frombuffer(self.rig.queue.read_buffer(self.resolved, 0, 8 * count), np.uint64).astype(np.int64)
        return (raw - raw[0]) * self.rig.session.tick

    def _quantum(self) -> float:
        """The largest step that divides all differences between stamps, ns."""
        encoder = self.rig.device.create_command_encoder()
        for first in range(0, _STAMPS, 2):
            self._record(encoder, self.marker, 1, first)
        self.rig.queue.submit([encoder.finish()])
        tick = self.rig.session.tick
        steps = np.round(self._resolve(_STAMPS) / tick).astype(np.int64)
        return max(int(np.gcd.reduce(steps)), 1) * tick


@functools.cache
def wait_spins(session: WebgpuSession) -> bool:
    """Whether the thread computes while it waits for the device; False where it cannot be told."""
    try:
        return _wait_spins(session)
    except Exception:  # a driver that fails at this shall fail in the cases that ask for it, not in all
        return False


def _wait_spins(session: WebgpuSession) -> bool:
    """By the thread's share of CPU time in a wait of milliseconds."""
    rig = StepSetup(session, Recipe("fused", "binding", independent=False))
    rig.put(rig.uniform, _STEPS)
    wait = session.library.waiter(rig.device, rig.queue)
    repeats, wall, cpu, whole = 1, 0, 0, 0
    # Where submit itself waits for the device, the whole grows and the wait doesn't: then there is nothing to find.
    while wall < 5_000_000 and whole < 20_000_000 and repeats <= 1 << 12:
        commands = _long(rig, repeats)
        wait()
        begin = perf_counter_ns()
        rig.queue.submit([commands])
        wall, cpu = -perf_counter_ns(), -thread_time_ns()
        wait()
        cpu, wall = cpu + thread_time_ns(), wall + perf_counter_ns()
        whole, repeats = perf_counter_ns() - begin, 4 * repeats
    rig.destroy()
    return wall > 1_000_000 and cpu > wall / 2


def _long(rig: StepSetup, repeats: int) -> Any:
    encoder = rig.device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(rig.pipeline)
    compute.set_bind_group(0, rig.groups[0])
    for _ in range(repeats):
        compute.dispatch_workgroups(GROUPS)
    compute.end()
    return encoder.finish()
