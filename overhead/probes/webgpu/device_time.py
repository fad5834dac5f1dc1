"""Device time from timestamp queries. A blocker (a long dispatch) keeps the device busy while the
host issues units.

The host submits the blocker to an idle device, then the units and a marker (an empty dispatch). If
the blocker takes longer on the device than all of this on the host, all units were queued before
the first one started.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overhead.measure.sampling.clock import CPU_CLOCK_IS_FINE
from overhead.probes.base import Chain, DeviceTime, Unsupported
from overhead.probes.common.step import GROUPS, WORDS
from overhead.probes.kernels import lcg, source
from overhead.probes.webgpu.cases import StepSpec
from overhead.probes.webgpu.resources import (
    STEP_BINDINGS,
    DeviceBuffers,
    StepResources,
    WebGpuSession,
    bind_group_layout,
    compute_pipeline,
    entries,
)
from overhead.results import because

_TIMESTAMPS = 64
_MIN_QUANTA = 100
_BLOCKER_STEPS = 50_000
"""Steps of one dispatch of the blocker. llvmpipe silently ends every loop after 65,535 turns."""
_LONGEST_BLOCKER_NS = 200e6
"""The longest intended duration of a blocker, ns."""
_LEAST_STEP_NS = 0.1
"""No processor runs a step faster: its multiplication and its addition each need the result of the
one before. A blocker with a shorter step has wrong timestamps. Seen: 20 ns for 50,000 steps,
through a translation of D3D12.
"""
MOST_SUBMISSIONS = 1024
"""The most submissions behind a blocker, well below the capacity of any queue."""


class DeviceClock:
    """Measures the device time of a chain. Raises ``Unsupported`` if the adapter has no timestamp
    queries.

    ``steps``: how many steps it ran on the data of ``resources``.
    """

    def __init__(self, chain: Chain, resources: DeviceBuffers) -> None:
        self.chain, self.resources, self.steps = chain, resources, 0
        if not resources.session.timestamps:
            raise Unsupported(because("adapter-has-no-timestamps"))
        device, flags = resources.device, resources.flags
        self.queries = device.create_query_set(type="timestamp", count=_TIMESTAMPS)
        self.resolved = resources.buffer(
            np.zeros(_TIMESTAMPS, np.uint64), flags.QUERY_RESOLVE | flags.COPY_SRC
        )
        layout = bind_group_layout(device, STEP_BINDINGS, uniform_bytes=4)
        module = device.create_shader_module(code=source("fused.wgsl")[0])
        self.pipeline = compute_pipeline(device, layout, module)

        data = resources.data or [resources.buffer(lcg.seeds(WORDS), resources.storage)]

        def groups(steps: int) -> list[Any]:
            uniform = resources.buffer(np.array([steps], np.uint32), flags.UNIFORM)
            return [
                device.create_bind_group(layout=layout, entries=entries([one, uniform]))
                for one in data
            ]

        self.blocker, self.marker = groups(_BLOCKER_STEPS), groups(0)
        self.repeats = 1
        self.quantum = self._quantum()

    def measure(self, n: int) -> DeviceTime:
        """Device time from the end of the blocker to the end of a marker after n units.

        The marker adds a constant time, the same for every n. Raises ``Unsupported`` if the time is
        shorter than 100 steps of the clock.
        """
        span, busy = self._behind_blocker(n)
        if span < _MIN_QUANTA * self.quantum:
            raise Unsupported(
                because(
                    "adapter-time-under-quanta",
                    span_ns=span,
                    quanta=_MIN_QUANTA,
                    quantum_ns=self.quantum,
                )
            )
        return DeviceTime(
            n, span, busy, self.quantum, "timestamps at pass ends, behind a plug dispatch"
        )

    def _behind_blocker(self, n: int) -> tuple[float, bool]:
        """The device time, ns, and whether the blocker still ran when all units had been issued.

        A blocker that was too short is made longer. If the stack itself waits for the device, none
        is long enough. Raises ``Unsupported`` if the timestamps of the blocker are wrong: its
        length could not be chosen.
        """
        span, blocker, issuing = self._once(n)
        for _ in range(3):
            steps = self.repeats * _BLOCKER_STEPS
            if blocker < steps * _LEAST_STEP_NS:
                raise Unsupported(because("adapter-timestamps-wrong", span_ns=blocker, steps=steps))
            longer = math.ceil(self.repeats * 1.5 * issuing / blocker)
            if blocker > issuing or longer * blocker / self.repeats > _LONGEST_BLOCKER_NS:
                break
            self.repeats = longer
            span, blocker, issuing = self._once(n)
        return span, blocker > issuing

    def _once(self, n: int) -> tuple[float, float, float]:
        self.chain.prepare(n)
        blocker, marker = (
            self._passes(self.blocker, self.repeats, [0]),
            self._passes(self.marker, 1, [2]),
        )
        self.chain.wait()
        begin = perf_counter_ns()
        self.resources.queue.submit([blocker])
        self.chain.issue(n)
        self.resources.queue.submit([marker])
        issuing = perf_counter_ns() - begin
        self.steps += n + self.repeats * _BLOCKER_STEPS * len(self.blocker)
        stamps = self._resolve(4)
        return float(stamps[3] - stamps[1]), float(stamps[1] - stamps[0]), float(issuing)

    def _passes(self, groups: list[Any], repeats: int, timestamps: Iterable[int]) -> Any:
        """A command buffer with one pass over all data buffers for each t: between the timestamps t
        and t + 1.
        """
        encoder = self.resources.device.create_command_encoder()
        for first in timestamps:
            stamps = {"beginning_of_pass_write_index": first, "end_of_pass_write_index": first + 1}
            compute = encoder.begin_compute_pass(
                timestamp_writes={"query_set": self.queries, **stamps}
            )
            _dispatch(compute, self.pipeline, groups, repeats)
        return encoder.finish()

    def _resolve(self, count: int) -> NDArray[np.float64]:
        """The first ``count`` timestamps, in ns since the first one."""
        encoder = self.resources.device.create_command_encoder()
        encoder.resolve_query_set(self.queries, 0, count, self.resolved, 0)
        self.resources.queue.submit([encoder.finish()])
        raw = np.frombuffer(
            self.resources.queue.read_buffer(self.resolved, 0, 8 * count), np.uint64
        ).astype(np.int64)
        return (raw - raw[0]) * self.resources.session.tick

    def _quantum(self) -> float:
        """The step of the clock, ns: the greatest common divisor of the differences between
        timestamps.
        """
        self.resources.queue.submit([self._passes(self.marker, 1, range(0, _TIMESTAMPS, 2))])
        tick = self.resources.session.tick
        steps = np.round(self._resolve(_TIMESTAMPS) / tick).astype(np.int64)
        if not steps.any():  # so on macOS 26: gfx-rs/wgpu issue 9414
            raise Unsupported(because("adapter-timestamps-stand"))
        return int(np.gcd.reduce(steps)) * tick


@functools.cache
def wait_spins(session: WebGpuSession) -> bool:
    """True if the wait of ``Library.waiter`` uses the caller's CPU. False if this cannot be
    measured.
    """
    try:
        return CPU_CLOCK_IS_FINE and _wait_spins(session)
    except Exception:  # if the driver fails here, only the cases that need device time fail
        return False


def _wait_spins(session: WebGpuSession) -> bool:
    """Compare CPU time and wall time of the thread during a wait of some milliseconds."""
    resources = StepResources(session, StepSpec("fused", "binding", independent=False))
    resources.write(resources.uniform, np.array([_BLOCKER_STEPS], np.uint32))
    wait = session.library.waiter(resources.device, resources.queue)
    repeats, wall, cpu, total = 1, 0, 0, 0
    # If the submission itself waits for the device, only the total time grows, and nothing can be
    # measured.
    while wall < 5_000_000 and total < 20_000_000 and repeats <= 1 << 12:
        encoder = resources.device.create_command_encoder()
        _dispatch(encoder.begin_compute_pass(), resources.pipeline, resources.groups, repeats)
        commands = encoder.finish()
        wait()
        begin = perf_counter_ns()
        resources.queue.submit([commands])
        wall, cpu = -perf_counter_ns(), -thread_time_ns()
        wait()
        cpu, wall = cpu + thread_time_ns(), wall + perf_counter_ns()
        total, repeats = perf_counter_ns() - begin, 4 * repeats
    resources.destroy()
    return wall > 1_000_000 and cpu > wall / 2


def _dispatch(compute: Any, pipeline: Any, groups: list[Any], repeats: int) -> None:
    compute.set_pipeline(pipeline)
    for group in groups:
        compute.set_bind_group(0, group)
        for _ in range(repeats):
            compute.dispatch_workgroups(GROUPS)
    compute.end()
