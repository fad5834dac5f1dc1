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
from dataclasses import dataclass
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
"""Least length of a measured time, in steps of the device clock: a step is then at most 1 % of the
time.
"""
_BLOCKER_STEPS = 50_000
"""Steps of one dispatch of the blocker. llvmpipe silently ends every loop after 65,535 turns."""
_LONGEST_BLOCKER_NS = 200e6
"""The longest intended duration of a blocker, ns. Chosen, not measured: drivers stop work that runs
for seconds.
"""
_LEAST_STEP_NS = 0.1
"""No processor runs a step faster: its multiplication and its addition each need the result of the
one before. A blocker with a shorter step has wrong timestamps. Seen: 20 ns for 50,000 steps,
through a translation of D3D12.
"""
MOST_SUBMISSIONS = 1024
"""The most submissions behind a blocker, well below the capacity of any queue."""


class DeviceClock:
    """Measures the device time of a chain of n units by timestamps that the device writes. The
    units are queued behind a blocker, a long dispatch, so that the device never waits for the host,
    and before a marker, an empty dispatch. Raises ``Unsupported`` if the adapter has no timestamp
    queries.

    ``steps``: how many steps (of the units and the blocker) it ran on the data of ``resources``.
    ``quantum``: the step of the device's clock, ns.
    """

    def __init__(self, chain: Chain, resources: DeviceBuffers) -> None:
        """Make what a measurement needs: room for timestamps, and a kernel. With many steps the
        kernel is the blocker, which keeps the device busy while units are issued; with none it is
        the marker, whose end tells that all units have run.
        """
        if not resources.session.timestamps:
            raise Unsupported(because("adapter-has-no-timestamps"))
        self.chain = chain
        self.resources = resources
        # How many steps measurements have run on the data; they are no units of the chain.
        self.steps = 0
        device = resources.device
        flags = resources.flags
        self.queries = device.create_query_set(type="timestamp", count=_TIMESTAMPS)
        timestamps = np.zeros(_TIMESTAMPS, np.uint64)
        # Timestamps are written to the query set, and copied from there to this buffer.
        self.resolved = resources.buffer(timestamps, flags.QUERY_RESOLVE | flags.COPY_SRC)

        text, _ = source("fused.wgsl")
        module = device.create_shader_module(code=text)
        # ``STEP_BINDINGS``: the data, and the number of steps (4 bytes).
        layout = bind_group_layout(device, STEP_BINDINGS, uniform_bytes=4)
        self.pipeline = compute_pipeline(device, layout, module)
        # Blocker and marker work on the data of the units, because the device may then not start a
        # unit before the blocker has ended. A chain without such data gives its own buffer.
        data = resources.data or [resources.buffer(lcg.seeds(WORDS), resources.storage)]
        self.blocker = self._bind_groups(layout, data, _BLOCKER_STEPS)
        self.marker = self._bind_groups(layout, data, 0)
        self.repeats = 1
        """How often the blocker is dispatched on each buffer."""
        self.quantum = self._quantum()

    def _bind_groups(self, layout: Any, data: list[Any], steps: int) -> list[Any]:
        """For each data buffer, a bind group with which a dispatch of ``fused.wgsl`` runs so many
        steps on it: the kernel reads the number from a uniform buffer.
        """
        one_word = np.array([steps], np.uint32)
        uniform = self.resources.buffer(one_word, self.resources.flags.UNIFORM)
        groups = []
        for buffer in data:
            # The data at binding 0, the number of steps at binding 1.
            bound = entries([buffer, uniform])
            groups.append(self.resources.device.create_bind_group(layout=layout, entries=bound))
        return groups

    def measure(self, n: int) -> DeviceTime:
        """Device time of n units: from the end of the blocker, a long dispatch before them, to the
        end of a marker, an empty dispatch after them.

        ``busy`` of the result: whether the blocker still ran when all units had been issued, so
        that the time has no gaps in which the device waited for the host. The marker adds a
        constant time, the same for every n. Raises ``Unsupported`` if the time is shorter than 100
        steps of the device's clock (``quantum``), and so too inexact.
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
        # "plug dispatch" is what files of runs call the blocker.
        return DeviceTime(
            n, span, busy, self.quantum, "timestamps at pass ends, behind a plug dispatch"
        )

    def _behind_blocker(self, n: int) -> tuple[float, bool]:
        """The device time of n units behind a blocker, a long dispatch, ns; and whether the blocker
        still ran when all units had been issued.

        A blocker that was too short is made longer, at most three times. If the stack itself waits
        for the device while units are issued, none is long enough. Raises ``Unsupported`` if the
        timestamps of the blocker are wrong, so that its length could not be chosen.
        """
        times = self._once(n)
        for _ in range(3):
            steps = self.repeats * _BLOCKER_STEPS
            # Faster than any processor can be.
            if times.blocker_ns < steps * _LEAST_STEP_NS:
                raise Unsupported(
                    because("adapter-timestamps-wrong", span_ns=times.blocker_ns, steps=steps)
                )
            if times.blocker_outlasted:
                break
            # One repeat takes ``blocker_ns / self.repeats``. So many are needed to last for 1.5
            # times ``issuing_ns``, the time that the host took: it may be slower the next time.
            repeats = math.ceil(self.repeats * 1.5 * times.issuing_ns / times.blocker_ns)
            expected_ns = repeats * times.blocker_ns / self.repeats
            if expected_ns > _LONGEST_BLOCKER_NS:  # a driver may stop such work
                break
            self.repeats = repeats
            times = self._once(n)
        return times.span_ns, times.blocker_outlasted

    def _once(self, n: int) -> _Times:
        """Issue n units behind a blocker (a long dispatch), with a marker (an empty one) after
        them, and return what this took on device and host. Blocker and marker are recorded before,
        because the blocker must last for all that the host does after its submission.
        """
        self.chain.prepare(n)
        # ``repeats``: how often the blocker runs. 0 and 2: the first timestamp of each.
        blocker = self._passes(self.blocker, self.repeats, [0])
        marker = self._passes(self.marker, 1, [2])
        self.chain.wait()
        began = perf_counter_ns()
        self.resources.queue.submit([blocker])
        self.chain.issue(n)
        self.resources.queue.submit([marker])
        issuing_ns = float(perf_counter_ns() - began)
        # A unit is one step. The blocker runs on each data buffer, for which it has a bind group.
        self.steps += n + self.repeats * _BLOCKER_STEPS * len(self.blocker)
        # Timestamps 0 and 1 are begin and end of the blocker, 2 and 3 those of the marker.
        blocker_start, blocker_end, _, marker_end = self._resolve(4).tolist()
        return _Times(
            span_ns=marker_end - blocker_end,
            blocker_ns=blocker_end - blocker_start,
            issuing_ns=issuing_ns,
        )

    def _passes(self, groups: list[Any], repeats: int, timestamps: Iterable[int]) -> Any:
        """A command buffer with one pass for each number in ``timestamps``. The pass dispatches the
        kernel with each of the bind ``groups``, ``repeats`` times. The device writes the timestamp
        with this number at its begin, and the next one at its end.
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
        """The first ``count`` timestamps, in ns since the first one. They are copied to a buffer
        that can be read, as 64-bit numbers of ticks.
        """
        queue = self.resources.queue
        encoder = self.resources.device.create_command_encoder()
        encoder.resolve_query_set(self.queries, 0, count, self.resolved, 0)
        queue.submit([encoder.finish()])
        eight_bytes_each = queue.read_buffer(self.resolved, 0, 8 * count)
        ticks = np.frombuffer(eight_bytes_each, np.uint64).astype(np.int64)
        # ``tick``: ns for each tick.
        return (ticks - ticks[0]) * self.resources.session.tick

    def _quantum(self) -> float:
        """The step of the device's clock, ns, which may be many ticks: the greatest common divisor
        of the differences between timestamps, here of many short passes. Raises ``Unsupported`` if
        all timestamps are equal.
        """
        # One pass for each pair of timestamps.
        markers = self._passes(self.marker, 1, range(0, _TIMESTAMPS, 2))
        self.resources.queue.submit([markers])
        ns_per_tick = self.resources.session.tick
        ticks = np.round(self._resolve(_TIMESTAMPS) / ns_per_tick).astype(np.int64)
        if not ticks.any():  # so on macOS 26: gfx-rs/wgpu issue 9414
            raise Unsupported(because("adapter-timestamps-stand"))
        return int(np.gcd.reduce(ticks)) * ns_per_tick


@dataclass(frozen=True)
class _Times:
    """What one attempt to time units behind a blocker took, ns.

    ``span_ns``: on the device, from the end of the blocker to the end of the marker after the
    units. ``blocker_ns``: the blocker on the device. ``issuing_ns``: on the host, from the
    submission of the blocker to that of the marker.
    """

    span_ns: float
    blocker_ns: float
    issuing_ns: float

    @property
    def blocker_outlasted(self) -> bool:
        """Whether the blocker still ran when all units had been issued."""
        return self.blocker_ns > self.issuing_ns


@functools.cache
def wait_spins(session: WebGpuSession) -> bool:
    """True if the usual wait of the library (``Library.waiter``) keeps the CPU busy until the
    device is done: then the CPU time of a wait says nothing about work. False if this cannot be
    measured, for example because the clock of CPU time is too coarse.
    """
    try:
        return CPU_CLOCK_IS_FINE and _wait_spins(session)
    except Exception:  # if the driver fails here, only the cases that need device time fail
        return False


def _wait_spins(session: WebGpuSession) -> bool:
    """Whether the thread uses the CPU for more than half of a wait of some milliseconds.

    The device gets more and more work, dispatches of 50,000 steps, until the wait for it takes 5
    ms. A wait of less than 1 ms is too short to tell.
    """
    resources = StepResources(session, StepSpec("fused", "binding", independent=False))
    resources.write(resources.uniform, np.array([_BLOCKER_STEPS], np.uint32))
    wait = session.library.waiter(resources.device, resources.queue)
    repeats = 1
    waited_ns = 0
    # CPU time of this thread; it grows in the wait only if the wait is a loop.
    cpu_ns = 0
    with_submission_ns = 0
    # If the submission itself waits for the device, only the time with the submission grows, and
    # nothing can be measured.
    while waited_ns < 5_000_000 and with_submission_ns < 20_000_000 and repeats <= 1 << 12:
        # At most 4096 dispatches, each time four times as many.
        encoder = resources.device.create_command_encoder()
        _dispatch(encoder.begin_compute_pass(), resources.pipeline, resources.groups, repeats)
        commands = encoder.finish()
        wait()  # for earlier work
        submitted = perf_counter_ns()
        resources.queue.submit([commands])
        began = perf_counter_ns()
        cpu_before = thread_time_ns()
        wait()
        cpu_ns = thread_time_ns() - cpu_before
        waited_ns = perf_counter_ns() - began
        with_submission_ns = perf_counter_ns() - submitted
        repeats *= 4
    resources.destroy()
    # ``waited_ns``, ``cpu_ns``: of the last and longest wait.
    return waited_ns > 1_000_000 and cpu_ns > waited_ns / 2


def _dispatch(compute: Any, pipeline: Any, groups: list[Any], repeats: int) -> None:
    """Record dispatches of the pipeline (a kernel) into the pass ``compute``, and end the pass:
    ``repeats`` with each bind group, which names the buffers that the kernel uses.
    """
    compute.set_pipeline(pipeline)
    for group in groups:
        compute.set_bind_group(0, group)
        for _ in range(repeats):
            compute.dispatch_workgroups(GROUPS)
    compute.end()
