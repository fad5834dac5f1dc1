"""Programs of known parts on a device that is simulated tick by tick, with the trace that a
profiler would write.

The simulation holds no formula of a queue: in every tick the host and each stream do one tick of
their work.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from overhead.explaining.host_work import HostTimes, ProfilerCost
from overhead.traces.chrome_trace import read_chrome_trace
from overhead.traces.trace import Trace

TICK_NS = 250
UPLOAD = "Memcpy HtoD (Pageable -> Device)"


@dataclass(frozen=True)
class Python:
    """Host work outside of any operation."""

    host_ns: int


@dataclass(frozen=True)
class Launch:
    """An operation that takes the host this long, and then gives one kernel to the device."""

    host_ns: int
    device_ns: int
    name: str = "aten::add_"
    stream: int = 7
    line: str = ""


@dataclass(frozen=True)
class Read:
    """A copy to the host and the wait for it, like ``item()``."""

    host_ns: int
    device_ns: int = 1000
    line: str = ""


@dataclass(frozen=True)
class Wait:
    """A wait for the whole device outside of any operation."""

    host_ns: int = 1000
    line: str = ""


@dataclass(frozen=True)
class Upload:
    """A copy from pageable memory: its call waits for the stream, and until the copy is almost
    done.
    """

    host_ns: int
    device_ns: int
    line: str = ""
    name: str = "aten::copy_"


Part = Python | Launch | Read | Wait | Upload
Parts = Sequence[Part]


@dataclass(frozen=True)
class SimulatedDevice:
    """``latency_ns``: from the end of a launch to the start on an idle device. ``wake_ns``: from
    the end of the work to the return of a wait. ``operation_cost_ns``, ``call_cost_ns``: what the
    profiler adds to each event; ``odd_call_cost_ns``: to every second launch in addition.
    ``entry_ns``: the part of an operation's host work that lies after its event.
    """

    latency_ns: int = 4000
    wake_ns: int = 2000
    depth: int = 1022
    operation_cost_ns: int = 0
    call_cost_ns: int = 0
    odd_call_cost_ns: int = 0
    entry_ns: int = 0

    def unprofiled(self) -> SimulatedDevice:
        return dataclasses.replace(self, operation_cost_ns=0, call_cost_ns=0, odd_call_cost_ns=0)

    def step_ns(self, parts: Parts) -> float:
        """The time of one step: the slope of T(n) from 3 to 9 steps, without a profiler."""
        times = [self.unprofiled().run([parts] * n).finished_ns for n in (3, 9)]
        return (times[1] - times[0]) / 6

    def trace(self, parts: Parts, steps: int = 5) -> bytes:
        """The Chrome trace of some steps with the profiler on."""
        return msgspec.json.encode({"traceEvents": self.run([parts] * steps).events})

    def host_times(self, parts: Parts) -> HostTimes:
        """The times of the host: of a step on an idle device, profiled without the device."""
        return HostTimes(self.alone(parts), ProfilerCost(self.operation_cost_ns, self.entry_ns))

    def alone(self, parts: Parts) -> Trace:
        """One step on an idle device, profiled without the device."""
        events = dataclasses.replace(self, call_cost_ns=0, odd_call_cost_ns=0).run([parts]).events
        host = [event for event in events if event["cat"] in ("cpu_op", "user_annotation")]
        return read_chrome_trace(msgspec.json.encode(host))

    def return_ns(self, parts: Parts) -> float:
        """The time until one step on an idle device returns, without a profiler."""
        step = self.unprofiled().alone(parts).steps[0]
        return step.end - step.start

    def run(self, steps: Sequence[Parts]) -> Simulated:
        """Run the steps and wait for the device."""
        return _Simulation(self).run(steps)


def in_calls(part: Launch | Read | Wait | Upload) -> int:
    """The host work of a part that lies in runtime calls: 1,000 ns for each call, if the part is
    long enough.
    """
    return min(2000 if isinstance(part, Read) else 1000, part.host_ns // 2)


def without_waits(parts: Parts) -> list[Part]:
    """The same host and device work without the calls that wait."""
    return [
        (
            Launch(part.host_ns - in_calls(part) // 2, part.device_ns, "aten::copy_")
            if isinstance(part, Read)
            else Python(part.host_ns - in_calls(part))
            if isinstance(part, Wait)
            else part
        )
        for part in parts
    ]


def host_ns(parts: Parts) -> int:
    """The host work of a step."""
    return sum(part.host_ns for part in parts)


def device_ns(parts: Parts) -> int:
    """The device work of a step."""
    return sum(part.device_ns for part in parts if isinstance(part, Launch | Read | Upload))


@dataclass
class Simulated:
    events: list[dict[str, Any]]
    finished_ns: int


@dataclass
class _Kernel:
    stream: int
    ns: int
    correlation: int
    ready: int
    category: str
    name: str
    start: int | None = None
    end: int | None = None


@dataclass
class _Simulation:
    device: SimulatedDevice
    now: int = 0
    correlation: int = 0
    waiting: dict[int, deque[_Kernel]] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)

    def run(self, steps: Sequence[Parts]) -> Simulated:
        for index, parts in enumerate(steps):
            began = self.now
            for part in parts:
                self.do(part)
            self.event("user_annotation", f"overhead step {index}", began)
        self.until(lambda: not self.pending())
        return Simulated(self.events, self.now)

    def do(self, part: Part) -> None:
        began = self.now
        if isinstance(part, Python):
            self.pass_time(part.host_ns)
        elif isinstance(part, Wait):
            self.pass_time(part.host_ns - in_calls(part))
            self.wait("cudaDeviceSynchronize", in_calls(part))
        else:
            calls = in_calls(part)
            self.pass_time(
                part.host_ns - calls + self.device.operation_cost_ns - self.device.entry_ns
            )
            if isinstance(part, Upload):
                self.issue("cudaMemcpyAsync", calls, 7, part.device_ns, "gpu_memcpy", UPLOAD)
                self.events[-1]["dur"] -= part.device_ns / 1e3 / 100
                self.wait("cudaStreamSynchronize", 0)
            elif isinstance(part, Launch):
                self.issue(
                    "cudaLaunchKernel",
                    calls,
                    part.stream,
                    part.device_ns,
                    "kernel",
                    f"kernel of {part.name}",
                )
            else:
                copy = "Memcpy DtoH (Device -> Pageable)"
                self.issue("cudaMemcpyAsync", calls // 2, 7, part.device_ns, "gpu_memcpy", copy)
                self.wait("cudaStreamSynchronize", calls - calls // 2)
            self.event("cpu_op", getattr(part, "name", "aten::item"), began)
            self.pass_time(self.device.entry_ns)
        line = "" if isinstance(part, Python) else part.line
        if line:
            self.event("user_annotation", f"overhead site {line}|", began)

    def issue(
        self, call: str, host_ns: int, stream: int, device_ns: int, category: str, name: str
    ) -> None:
        began = self.now
        self.until(lambda: len(self.pending()) < self.device.depth)
        self.pass_time(
            host_ns + self.device.call_cost_ns + self.correlation % 2 * self.device.odd_call_cost_ns
        )
        self.correlation += 1
        kernel = _Kernel(
            stream, device_ns, self.correlation, self.now + self.device.latency_ns, category, name
        )
        self.waiting.setdefault(stream, deque()).append(kernel)
        if name == UPLOAD:
            self.until(lambda: not self.pending())
            self.pass_time(self.device.wake_ns)
        self.event("cuda_runtime", call, began, self.correlation)

    def wait(self, call: str, host_ns: int) -> None:
        began = self.now
        self.pass_time(host_ns + self.device.call_cost_ns)
        if self.pending():
            self.until(lambda: not self.pending())
            self.pass_time(self.device.wake_ns)
        self.event("cuda_runtime", call, began)

    def pending(self) -> list[_Kernel]:
        return [kernel for queue in self.waiting.values() for kernel in queue]

    def pass_time(self, ns: int) -> None:
        assert ns % TICK_NS == 0, ns
        for _ in range(ns // TICK_NS):
            self.tick()

    def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self.tick()

    def tick(self) -> None:
        """One tick of every stream and of the clock."""
        for stream, queue in self.waiting.items():
            if not queue or queue[0].ready > self.now:
                continue
            first = queue[0]
            if first.start is None:
                first.start = self.now
            first.ns -= TICK_NS
            if first.ns <= 0:
                queue.popleft()
                self.events.append(
                    {
                        "ph": "X",
                        "cat": first.category,
                        "name": first.name,
                        "pid": 0,
                        "tid": stream,
                        "ts": first.start / 1000,
                        "dur": (self.now + TICK_NS - first.start) / 1000,
                        "args": {"device": 0, "stream": stream, "correlation": first.correlation},
                    }
                )
        self.now += TICK_NS

    def event(self, category: str, name: str, began: int, correlation: int = 0) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": 1,
                "tid": 1,
                "ts": began / 1000,
                "dur": (self.now - began) / 1000,
                "args": {"correlation": correlation} if correlation else {},
            }
        )
