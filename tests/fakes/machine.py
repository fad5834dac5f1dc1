"""A stack with a known law on a clock that moves only when something takes time: the truth that the method is held to.

Everything random comes from one seeded generator per clock. ``FakeChain`` offers the verbs; ``FastFakeChain`` runs the
same law for a whole list of n at once, which is what makes thousands of whole runs affordable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats
from overhead.measure.sampling.chain import Chain, DeviceTime, Overlap, Samples

READING_NS = 40


@dataclass(frozen=True)
class Disturbance:
    """What the machine does to every chain on it.

    ``spread``: relative standard deviation of a process's speed. ``slowdown``: how many times slower the second speed
    is, if there is one; ``dwell_s``: mean seconds at a speed, or a whole process where 0. ``preemptions``: a second,
    Poisson in time, each of ``preempted_ns`` (log-uniform between the two).
    """

    spread: float = 0.005
    slowdown: float = 1.0
    dwell_s: float = 0.0
    preemptions: float = 50.0
    preempted_ns: tuple[float, float] = (50e3, 5e6)


CANARY_NS = 50e3
"""Either of the canary's times at the machine's own speed."""
CALM = Disturbance(spread=0.0, preemptions=0.0)


class FakeClock:
    """A clock that stands still until told; ``speed`` is the factor by which everything takes longer now."""

    def __init__(self, weather: Disturbance = CALM, seed: int = 0, resolution_ns: int = 1, slow: bool = False) -> None:
        self.weather, self.resolution = weather, resolution_ns
        self.dice = np.random.default_rng(seed)
        self.time, self.cpu = 1e9, 0.0
        self.pace = 1.0 + weather.spread * self.dice.standard_normal()
        self.slow = slow
        self.turns = self.time + self._dwell()

    def _dwell(self) -> float:
        dwell = self.weather.dwell_s
        return self.dice.exponential(dwell) * 1e9 if dwell else math.inf

    @property
    def speed(self) -> float:
        while self.time >= self.turns:
            self.slow = not self.slow
            self.turns += self._dwell()
        return self.pace * (self.weather.slowdown if self.slow else 1.0)

    def now(self) -> int:
        self.time += READING_NS
        return int(self.time) // self.resolution * self.resolution

    def thread_cpu(self) -> int:
        return int(self.cpu)

    def sleep(self, seconds: float) -> None:
        self.time += seconds * 1e9

    def processors(self) -> list[int]:
        return []

    def move(self, processors: Sequence[int]) -> None:
        raise AssertionError("this clock's machine has no processors to choose from")

    def canary(self) -> list[int]:
        """The canary's two times, as this machine's weather has them."""
        work = np.array([CANARY_NS, CANARY_NS]) * self.speed * (1 + 0.004 * self.dice.standard_normal(2))
        times = work + self.stolen(work)
        self.time += float(times.sum())
        return [int(t) for t in times]

    def stolen(self, work: Floats) -> Floats:
        """ns for which something else held the processor while so much work was done."""
        weather = self.weather
        lost = np.zeros(work.shape)
        hits = self.dice.poisson(weather.preemptions * 1e-9 * work) if weather.preemptions else lost
        for i in np.nonzero(hits)[0]:
            low, high = np.log(weather.preempted_ns)
            lost[i] = np.exp(self.dice.uniform(low, high, int(hits[i]))).sum()
        return lost

    def late(self, count: int) -> Floats:
        """ns by which so many sleepers wake late because the processor is held at that moment."""
        weather = self.weather
        low, high = np.log(weather.preempted_ns)
        lost = np.zeros(count)
        if weather.preemptions:
            longest = weather.preempted_ns[1]
            for i in np.nonzero(self.dice.poisson(weather.preemptions * 1e-9 * longest, count))[0]:
                begun, lasts = self.dice.uniform(0, longest), np.exp(self.dice.uniform(low, high))
                lost[i] = max(0.0, lasts - begun)
        return lost


@dataclass(frozen=True)
class Law:
    """What a chain costs, ns. ``host``, ``device``, ``deferred`` (the caller's CPU inside the wait): a unit.

    ``fixed``: once a wait. ``depth``: units in flight before ``issue`` blocks, 0 for no bound. ``poll``: ns between
    two looks of the wait, ``locked`` to the start of ``issue`` or free-running; ``busy``: a unit's work of the thread
    that looks, which comes before its look. ``wake``: mean of the gamma-distributed
    lateness of a wait, ``jitter``: relative, of a whole sample, ``scatter``: relative, of one unit. ``own``: relative
    spread of this case's speed between processes, on top of the machine's.
    """

    host: float = 1_000.0
    device: float = 500.0
    fixed: float = 10_000.0
    deferred: float = 0.0
    overlap: Overlap = "pipelined"
    synchronous: bool = False
    depth: int = 0
    poll: float = 0.0
    locked: bool = True
    busy: float = 0.0
    wake: float = 0.0
    jitter: float = 0.0
    scatter: float = 0.0
    own: float = 0.0
    idle: float = 1.0

    def truth(self) -> dict[str, float]:
        """The figures that a perfect measurement would give."""
        host, device = self.host, self.device
        if self.synchronous:
            both = host + device
            return {"issue": both, "host": both, "complete": both, "fixed": self.fixed}
        figures = {"issue": host, "host": host + self.deferred}
        if self.overlap == "serial":
            figures |= {"complete": host + max(device, self.deferred), "fixed": self.fixed}
        else:
            figures |= {"complete": max(host + self.deferred, device, self.busy), "fixed": self.fixed + self._first()}
        if self.poll and not self.locked:
            figures["fixed"] += self.poll / 2
        if self.depth and device > host:
            figures |= {"knee_n": (self.depth - host / device) / (1 - host / device), "queue_depth": float(self.depth)}
        return figures

    def _first(self) -> float:
        """What the first or last unit adds to the line: the device starts when one is issued, ends when one is done."""
        if self.device > self.host + self.deferred:
            return self.host
        return self.device if not self.deferred else 0.0


def device_time(n: int, span: float) -> DeviceTime:
    """The device time of n units on a device that is always busy."""
    return DeviceTime(n, span, busy=True, quantum=1.0, method="fake")


class FakeChain(Chain):
    """A chain under a law, on a fake clock."""

    held_n: int = 1 << 20

    def __init__(self, law: Law, clock: FakeClock, recorded: bool = False, max_n: int = 1 << 20) -> None:
        self.law, self.clock, self.recorded, self.max_n = law, clock, recorded, max_n
        self.overlap, self.synchronous = law.overlap, law.synchronous
        self.held_n = max_n
        self.own = 1.0 + law.own * clock.dice.standard_normal()
        self.ran = 0
        self.pending: tuple[int, float, float] | None = None

    def prepare(self, n: int) -> None:
        if self.recorded:
            self.clock.time += 100.0 * n

    def issue(self, n: int) -> None:
        issue, total, cpu = run(self.law, np.array([float(n)]), self.clock, self.own)
        self.clock.time += float(issue[0])
        self.clock.cpu += float(issue[0])
        self.pending = n, float(total[0] - issue[0]), float(cpu[0])

    def wait(self) -> None:
        if self.pending is None:
            self.issue(0)
        assert self.pending is not None
        n, rest, cpu = self.pending
        self.clock.time += rest
        self.clock.cpu += cpu
        self.ran += n
        self.pending = None

    def executed(self) -> int:
        return self.ran

    def device(self, n: int) -> DeviceTime | None:
        return device_time(n, self.law.device * n * self.clock.speed) if self.law.device else None


class FastFakeChain(FakeChain):
    """The same law, a list of n at a time."""

    warms = True

    def _run(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        return run(self.law, n, self.clock, self.own)

    def sample(self, ns: Sequence[int], cpu: bool) -> Samples:
        clock, n = self.clock, np.array(ns, dtype=np.float64)
        warm = np.zeros(n.size)
        if self.warms:
            warm = n if self.recorded else np.ones(n.size)
            clock.time += float(self._run(warm)[1].sum())
        issue, total, busy = self._run(n)
        clock.time += float(total.sum()) + 3 * READING_NS * n.size
        self.ran += int((n + warm).sum())
        step = clock.resolution
        begun = clock.dice.integers(0, step, n.size) if step > 1 else np.zeros(n.size)
        columns = [n, (begun + issue) // step * step, (begun + total) // step * step, *([busy] if cpu else [])]
        rows: Samples = np.stack(columns, axis=1).astype(np.int64).tolist()
        return rows

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> Samples:
        rows: Samples = []
        for n in ns:
            self.prepare(n)
            self.issue(n)
            self.wait()
            self.prepare(n)
            self.clock.sleep(idle_ms / 1e3)
            begun = self.clock.now()
            self.issue(n)
            issued = int(self.clock.time)
            self.wait()
            rows.append([n, issued - begun, self.clock.now() - begun])
        return rows


class PollingFakeChain(FastFakeChain):
    """One that says how rarely its wait looks, and runs no warm unit: the wait before has only just ended.

    The looks come at their own times, so a window that opens after an idle time waits for the next one that much less.
    """

    warms = False
    idle_ns = 0.0
    away_ns = 5e6
    """From the end of a list of samples to the first window of the next."""

    def __init__(self, law: Law, clock: FakeClock) -> None:
        super().__init__(law, clock)
        self.poll_ns = round(law.poll)

    def units(self, ns: Sequence[int]) -> int:
        return sum(ns)

    def sample_idle(self, ns: Sequence[int], idle_ms: float) -> Samples:
        self.clock.time += 1e6 * idle_ms * len(ns)
        self.idle_ns = 1e6 * idle_ms
        try:
            return self.sample(ns, cpu=False)
        finally:
            self.idle_ns = 0.0

    def _run(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        away = np.full(n.size, self.idle_ns)
        away[:1] += self.away_ns
        return run(self.law, n, self.clock, self.own, away)


def run(law: Law, n: Floats, clock: FakeClock, own: float, away: Floats | None = None) -> tuple[Floats, Floats, Floats]:
    """One sample of each n: ns until ``issue`` returns, until ``wait`` returns, and of CPU inside the wait.

    ``away``: ns from the end of the sample before to this one's window, where a poll is locked to that one's look.
    """
    dice, count = clock.dice, n.size
    speed = clock.speed * own

    shared = speed * (1 + law.jitter * dice.standard_normal(count))

    def work(unit: float) -> Floats:
        """ns for n units of work with the law's noise; never negative."""
        drawn = n + law.scatter * np.sqrt(n) * dice.standard_normal(count) if law.scatter else n
        return np.maximum(unit * shared * drawn, 0.0)

    each = np.maximum(n, 1.0)
    hosted, device = work(law.host), work(law.device)
    if law.synchronous:
        issue = hosted + device
        issue = issue + clock.stolen(issue)
        done = issue
        deferred = np.zeros(count)
    else:
        lost = clock.stolen(hosted)
        issue = hosted + lost
        deferred = work(law.deferred) if law.deferred else np.zeros(count)
        if law.overlap == "serial":
            ended = issue + device
        else:
            idle = np.maximum(lost - np.maximum(device - hosted, 0.0) / 2, 0.0)
            ended = np.maximum(hosted / each + device + idle, issue + device / each)
            if law.depth:
                full = hosted / each + (n - law.depth) * device / each + idle
                issue = np.where(n > law.depth, np.maximum(issue, full), issue)
        done = np.maximum(issue + deferred + clock.stolen(deferred), ended)
    begun = np.zeros(count) if law.locked or not law.poll else dice.uniform(0, law.poll, count)
    wake = dice.gamma(2.0, law.wake / 2, count) - 0.8392 * law.wake if law.wake else np.zeros(count)
    late = clock.late(count) if not law.synchronous else np.zeros(count)
    back = np.maximum(law.fixed * speed + wake, 0.0) + late
    if away is not None and law.poll:
        begun = (away + np.concatenate([[0.0], back[:-1]])) % law.poll
    if law.poll:
        taken = begun + (work(law.busy) if law.busy else 0.0)
        first = np.maximum(law.poll, taken)
        looks = np.ceil((np.maximum(begun + done, taken) - first) / law.poll)
        done = np.where(n > 0, np.maximum(first + np.maximum(looks, 0.0) * law.poll - begun, done), done)
    return issue, done + back, deferred
