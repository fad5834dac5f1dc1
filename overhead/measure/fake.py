"""A stack with a known law on a clock that only moves when told: the truth that everything else is tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


class FakeClock:
    """A clock that stands still until something takes time."""

    def __init__(self, resolution_ns: int = 1) -> None:
        self.time = 1_000_000_000
        self.cpu = 0
        self.resolution = resolution_ns

    def now(self) -> int:
        self.time += 1
        return self.time // self.resolution * self.resolution

    def thread_cpu(self) -> int:
        return self.cpu

    def sleep(self, seconds: float) -> None:
        self.time += int(seconds * 1e9)

    def spend(self, ns: float, cpu: bool = True) -> None:
        """Let time pass, on the caller's CPU or not."""
        self.time += int(ns)
        self.cpu += int(ns) if cpu else 0


@dataclass
class Law:
    """ns per unit on the host and on the device, and ns once a wait."""

    host: float = 1_000.0
    device: float = 500.0
    fixed: float = 10_000.0
    deferred: float = 0.0


class FakeChain:
    """A chain under a law, on a fake clock."""

    unit = "dispatch"
    overlap = "pipelined"
    recorded = False
    max_n = 1 << 20
    wait_spins = False
    synchronous = False
    latency = False

    def __init__(self, law: Law, clock: FakeClock) -> None:
        self.law, self.clock = law, clock
        self.ran = 0
        self.pending = 0
        self.device_free = 0.0

    def prepare(self, n: int) -> None:
        return

    def issue(self, n: int) -> None:
        start = self.clock.time
        self.clock.spend(n * self.law.host)
        if n:
            first = max(start + self.law.host, self.device_free)
            self.device_free = max(first + n * self.law.device, self.clock.time + self.law.device)
        self.pending += n

    def wait(self) -> None:
        self.clock.spend(self.pending * self.law.deferred)
        self.clock.spend(max(0.0, self.device_free - self.clock.time), cpu=False)
        self.clock.spend(self.law.fixed)
        self.ran += self.pending
        self.pending = 0

    def executed(self) -> int:
        return self.ran

    def device(self, n: int) -> None:
        return None

    def stages(self, n: int) -> Mapping[str, Sequence[int]]:
        return {}
