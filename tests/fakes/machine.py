"""A stack whose true costs are known, on a simulated clock: tests compare the figures of the method
with them.

All random numbers of a clock come from its own seeded generator. ``FakeChain`` has the methods
``prepare``, ``issue`` and ``wait``; ``FastFakeChain`` takes the samples of many n at once, so that
thousands of whole runs are fast enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from overhead.measure.fitting.line import Floats
from overhead.measure.sampling.chain import Chain, DeviceTime, Samples
from overhead.results import Overlap

_CLOCK_READING_NS = 40
READ_NS = 30e3
"""The time of a read of the values, ns."""
_START_NS = 1e9
"""Reading of the clock when a process starts."""


@dataclass(frozen=True)
class Disturbance:
    """How the machine changes the times of every chain.

    ``spread``: relative standard deviation of the speed between processes. ``slowdown``: time at
    the slow speed divided by time at the fast one, 1 for a single speed. ``dwell_s``: mean seconds
    until the speed changes, 0 if it stays the same in a process. ``preemptions``: number per second
    (Poisson), each for a time within ``preempted_ns`` (log-uniform).
    """

    spread: float = 0.005
    slowdown: float = 1.0
    dwell_s: float = 0.0
    preemptions: float = 50.0
    preempted_ns: tuple[float, float] = (50e3, 5e6)


REFERENCE_NS = 50e3
"""Both times of the reference loop at speed 1."""
CALM = Disturbance(spread=0.0, preemptions=0.0)


class FakeClock:
    """A clock whose time advances only when something takes time. ``speed``: the factor on all
    times at this moment.
    """

    cpu_is_fine = True

    def __init__(
        self,
        disturbance: Disturbance = CALM,
        seed: int = 0,
        resolution_ns: int = 1,
        slow: bool = False,
    ) -> None:
        self.disturbance, self.resolution = disturbance, resolution_ns
        self.random = np.random.default_rng(seed)
        self.time, self.cpu, self.lost = _START_NS, 0.0, 0.0
        self.process_speed = 1.0 + disturbance.spread * self.random.standard_normal()
        self.slow = slow
        self.next_change = self.time + self._dwell()

    def _dwell(self) -> float:
        dwell = self.disturbance.dwell_s
        return self.random.exponential(dwell) * 1e9 if dwell else math.inf

    @property
    def speed(self) -> float:
        while self.time >= self.next_change:
            self.slow = not self.slow
            self.next_change += self._dwell()
        return self.process_speed * (self.disturbance.slowdown if self.slow else 1.0)

    def now(self) -> int:
        self.time += _CLOCK_READING_NS
        return int(self.time) // self.resolution * self.resolution

    def thread_cpu(self) -> int:
        return int(self.cpu)

    def queued(self) -> int:
        return int(self.lost)

    def sleep(self, seconds: float) -> None:
        self.time += seconds * 1e9

    def processors(self) -> list[int]:
        return []

    def move(self, processors: Sequence[int]) -> None:
        raise AssertionError("this clock's machine has no processors to choose from")

    def release_threads(self) -> None:
        return

    def reference_loop(self) -> list[int]:
        """The two times of the reference loop under the current disturbance, ns."""
        work = (
            np.array([REFERENCE_NS, REFERENCE_NS])
            * self.speed
            * (1 + 0.004 * self.random.standard_normal(2))
        )
        times = work + self.preempted(work)
        self.time += float(times.sum())
        self.cpu += float(work.sum())
        return [int(t) for t in times]

    def preempted(self, work: Floats) -> Floats:
        """For each duration of ``work`` (ns) the time lost to preemptions during it, ns."""
        disturbance = self.disturbance
        lost = np.zeros(work.shape)
        hits = (
            self.random.poisson(disturbance.preemptions * 1e-9 * work)
            if disturbance.preemptions
            else lost
        )
        for i in np.nonzero(hits)[0]:
            low, high = np.log(disturbance.preempted_ns)
            lost[i] = np.exp(self.random.uniform(low, high, int(hits[i]))).sum()
        self.lost += float(lost.sum())
        return lost

    def wake_delays(self, count: int) -> Floats:
        """For each of ``count`` waits the delay of its return because of a preemption at that
        moment, ns.
        """
        disturbance = self.disturbance
        low, high = np.log(disturbance.preempted_ns)
        lost = np.zeros(count)
        if disturbance.preemptions:
            longest = disturbance.preempted_ns[1]
            for i in np.nonzero(
                self.random.poisson(disturbance.preemptions * 1e-9 * longest, count)
            )[0]:
                begun, lasts = (
                    self.random.uniform(0, longest),
                    np.exp(self.random.uniform(low, high)),
                )
                lost[i] = max(0.0, lasts - begun)
        self.lost += float(lost.sum())
        return lost


@dataclass(frozen=True)
class Law:
    """The true costs of a chain, ns, and their noise.

    Per unit: ``host``, ``device``, ``deferred`` (the caller's CPU time inside the wait), and
    ``busy`` (work of the polling thread before it polls). Per wait: ``fixed``. ``depth``: units in
    flight before ``issue`` blocks, 0 for no limit. ``poll``: time between two polls of the wait,
    which start with ``issue`` if ``locked``, else at any time.

    Noise: ``wake``, mean delay of the return of a wait (gamma-distributed); ``jitter``, relative,
    of a whole sample; ``scatter``, relative, of one unit; ``own``, relative spread of the speed of
    this case between processes, in addition to the machine's.

    Departures from a straight line or a constant cost: ``bend``, host time in proportion to n
    squared, ns per unit squared; ``first``, extra host time of the first unit; ``late_share`` of
    the samples end ``late`` ns later; ``rise``, relative rise of all work over the first ``rise_s``
    seconds of a process; ``warm``, relative extra cost of all work at the start of a process, which
    falls by a factor of e each ``warm_s`` seconds; ``extra``, host time of n units beyond ``host``,
    ns, from an array of n; ``tail``, the share of the units that take ``tail_ns`` longer times a
    Pareto variable of index ``tail_index``, cut off at a thousand; ``lazy``, the part of the work
    (ns per unit) that is done when the values are read.
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
    bend: float = 0.0
    first: float = 0.0
    late_share: float = 0.0
    late: float = 0.0
    rise: float = 0.0
    rise_s: float = 1.0
    warm: float = 0.0
    warm_s: float = 1.0
    extra: Callable[[Floats], Floats] | None = None
    tail: float = 0.0
    tail_ns: float = 0.0
    tail_index: float = 1.5
    lazy: float = 0.0

    def truth(self) -> dict[str, float]:
        """The true value of each figure, ns (``knee_n``, ``queue_depth``: units)."""
        host, device = self.host, self.device
        if self.synchronous:
            unit = host + device
            return {"issue": unit, "host": unit, "complete": unit, "fixed": self.fixed + self.first}
        figures = {"issue": host, "host": host + self.deferred}
        if self.overlap == "serial":
            figures |= {"complete": host + max(device, self.deferred), "fixed": self.fixed}
        else:
            figures |= {
                "complete": max(host + self.deferred, device, self.busy),
                "fixed": self.fixed + self._overlap_ends(),
            }
        figures["fixed"] += self.first
        if self.poll and not self.locked:
            figures["fixed"] += self.poll / 2
        if self.depth and device > host:
            figures |= {
                "knee_n": (self.depth - host / device) / (1 - host / device),
                "queue_depth": float(self.depth),
            }
        return figures

    def _overlap_ends(self) -> float:
        """Added to the intercept, ns: the device starts after the first unit is issued and ends
        after the last one.
        """
        if self.device > self.host + self.deferred:
            return self.host
        return self.device if not self.deferred else 0.0


def device_time(n: int, span: float) -> DeviceTime:
    """The device time of n units on a device that is always busy."""
    return DeviceTime(n, span, busy=True, quantum=1.0, method="fake")


class FakeChain(Chain):
    """A chain with the costs of a law, on a fake clock."""

    held_n: int = 1 << 20

    def __init__(
        self, law: Law, clock: FakeClock, recorded: bool = False, max_n: int = 1 << 20
    ) -> None:
        self.law, self.clock, self.recorded, self.max_n = law, clock, recorded, max_n
        self.overlap, self.synchronous = law.overlap, law.synchronous
        self.held_n = max_n
        self.own = 1.0 + law.own * clock.random.standard_normal()
        self.ran = self.read = 0
        self.pending: tuple[int, float, float] | None = None

    def prepare(self, n: int) -> None:
        if self.recorded:
            self.clock.time += 100.0 * n

    def issue(self, n: int) -> None:
        issue, total, cpu = simulate(self.law, np.array([float(n)]), self.clock, self.own)
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
        self.clock.time += READ_NS + self.law.lazy * (self.ran - self.read)
        self.read = self.ran
        return self.ran

    def device(self, n: int) -> DeviceTime | None:
        self.ran += n if self.law.device else 0
        return device_time(n, self.law.device * n * self.clock.speed) if self.law.device else None


class FastFakeChain(FakeChain):
    """The same, with all samples of a list of n at once."""

    warms = True

    def _run(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        return simulate(self.law, n, self.clock, self.own)

    def sample(self, ns: Sequence[int], cpu: bool) -> Samples:
        clock, n = self.clock, np.array(ns, dtype=np.float64)
        warm = np.zeros(n.size)
        if self.warms:
            warm = n if self.recorded else np.ones(n.size)
            clock.time += float(self._run(warm)[1].sum())
        issue, total, busy = self._run(n)
        clock.time += float(total.sum()) + 3 * _CLOCK_READING_NS * n.size
        self.ran += int((n + warm).sum())
        step = clock.resolution
        begun = clock.random.integers(0, step, n.size) if step > 1 else np.zeros(n.size)
        columns = [
            n,
            (begun + issue) // step * step,
            (begun + total) // step * step,
            *([busy] if cpu else []),
        ]
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


class PeriodicFakeChain(FastFakeChain):
    """A chain of which every so many units, counted over the life of the process, one takes longer.

    ``every``: the number of units; doubled each time if ``doubles``, as where a table grows.
    ``long_ns``: the extra time of the first such unit; doubled likewise.
    """

    def __init__(
        self, law: Law, clock: FakeClock, every: int, long_ns: float, doubles: bool = False
    ) -> None:
        super().__init__(law, clock)
        self.every, self.long_ns, self.doubles = every, long_ns, doubles
        self.done = 0

    def _run(self, n: Floats) -> tuple[Floats, Floats, Floats]:
        issue, total, busy = super()._run(n)
        extra = np.array([self._extra(int(units)) for units in n])
        return issue + extra, total + extra, busy

    def _extra(self, units: int) -> float:
        """What the next units take longer, ns."""
        before, self.done = self.done, self.done + units
        if not self.doubles:
            return self.long_ns * (self.done // self.every - before // self.every)
        first, last = (math.ceil(math.log2(max(at, 1) / self.every)) for at in (before, self.done))
        return sum(self.long_ns * 2.0**power for power in range(max(first, 0), max(last, 0)))


class PollingFakeChain(FastFakeChain):
    """A chain that declares the poll interval of its wait and runs no warm-up unit.

    The polls come at fixed times, so a sample that starts after an idle time waits less for its
    first poll.
    """

    warms = False
    idle_ns = 0.0
    away_ns = 5e6
    """Time between two lists of samples, ns."""

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
        return simulate(self.law, n, self.clock, self.own, away)


def _beyond_the_line(law: Law, n: Floats, shared: Floats, random: np.random.Generator) -> Floats:
    """The host time of n units that ``extra`` and the tail add, ns."""
    added = shared * law.extra(n) if law.extra else np.zeros(n.size)
    if law.tail:
        events = random.poisson(law.tail * n)
        sums = [
            np.minimum(random.pareto(law.tail_index, k) + 1, 1e3).sum() if k else 0.0
            for k in events
        ]
        added = added + law.tail_ns * np.array(sums)
    return added


def simulate(
    law: Law, n: Floats, clock: FakeClock, own: float, away: Floats | None = None
) -> tuple[Floats, Floats, Floats]:
    """One sample of each n: the time until ``issue`` returns, until ``wait`` returns, and CPU time
    inside the wait, ns.

    ``away``: time from the end of the previous sample to the start of this one, ns; for polls at
    fixed times.
    """
    random, count = clock.random, n.size
    speed = clock.speed * own
    age_s = (clock.time - _START_NS) / 1e9
    speed *= (1 + law.rise * min(1.0, age_s / law.rise_s)) * (
        1 + law.warm * math.exp(-age_s / law.warm_s)
    )
    shared = speed * (1 + law.jitter * random.standard_normal(count))

    def work(unit: float) -> Floats:
        """Time for n units of work with the noise of the law, ns."""
        drawn = n + law.scatter * np.sqrt(n) * random.standard_normal(count) if law.scatter else n
        return np.maximum(unit * shared * drawn, 0.0)

    each = np.maximum(n, 1.0)
    host, device = work(law.host), work(law.device)
    if law.bend or law.first:
        host = host + shared * (law.bend * n**2 + law.first * (n > 0))
    host = host + _beyond_the_line(law, n, shared, random)
    if law.synchronous:
        issue = host + device
        issue = issue + clock.preempted(issue)
        done = issue
        deferred = np.zeros(count)
    else:
        lost = clock.preempted(host)
        issue = host + lost
        deferred = work(law.deferred) if law.deferred else np.zeros(count)
        if law.overlap == "serial":
            ended = issue + device
        else:
            idle = np.maximum(lost - np.maximum(device - host, 0.0) / 2, 0.0)
            ended = np.maximum(host / each + device + idle, issue + device / each)
            if law.depth:
                full = host / each + (n - law.depth) * device / each + idle
                issue = np.where(n > law.depth, np.maximum(issue, full), issue)
        done = np.maximum(issue + deferred + clock.preempted(deferred), ended)
    begun = np.zeros(count) if law.locked or not law.poll else random.uniform(0, law.poll, count)
    wake = (
        random.gamma(2.0, law.wake / 2, count) - 0.8392 * law.wake if law.wake else np.zeros(count)
    )
    late = clock.wake_delays(count) if not law.synchronous else np.zeros(count)
    back = np.maximum(law.fixed * speed + wake, 0.0) + late
    if law.late_share:
        late = late + law.late * (random.random(count) < law.late_share)
    if away is not None and law.poll:
        begun = (away + np.concatenate([[0.0], back[:-1]])) % law.poll
    if law.poll:
        taken = begun + (work(law.busy) if law.busy else 0.0)
        first = np.maximum(law.poll, taken)
        polls = np.ceil((np.maximum(begun + done, taken) - first) / law.poll)
        done = np.where(
            n > 0, np.maximum(first + np.maximum(polls, 0.0) * law.poll - begun, done), done
        )
    return issue, done + back, deferred
