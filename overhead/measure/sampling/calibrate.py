"""Which n to run: 0, 1, 100 and geometric up to the smallest top whose slope stands clear."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from overhead.measure.fitting.data import LEGACY_N
from overhead.measure.fitting.line import MAX_MISFIT
from overhead.measure.sampling.clock import Clock, ClockFacts, clock_facts
from overhead.measure.sampling.polling_wait import Stairs, find_stairs, known_stairs, rows_of
from overhead.measure.sampling.trial_samples import TrialSamples
from overhead.measure.sampling.window import Chain, clock_of

Rows = tuple[tuple[int, int, int], ...]

LEGACY_NS = 2_000_000
"""T(100) joins the ladder while it stays under this; a longer sample would cost more than the rest of the pass."""
PASSES = 3, 60
"""The least and the most passes that calibration reckons with, for the noise to average out over."""
SAMPLING = 0.6
"""The share of a case's time that is left for its passes."""
CLOCK_STEPS = 200
"""The slope's part of T(top) in units of the clock's resolution and cost."""
LEAST_NS = 1_000_000
"""The slope's part of T(top) at least: the first units of a chain cost something else, and must not carry the fit."""
HEAD = 0.6
"""What the first units cost beside the slope may be this share of what calls a rung bent."""
HEAD_NS = 10_000_000
"""For that alone the slope's part of T(top) climbs no further."""
CLEAR = 2
"""Spreads of one sample that tell it from noise."""
RUNGS = 6
MOST = 1 << 24
BEND = 1.2
"""``issue`` this many times as steep means that the queue was full."""


@dataclass(frozen=True)
class Limits:
    """What calibration may do. ``target``: relative half-width wanted. ``seconds``: the case's time in this process.

    ``sample_ns``: the longest sample.
    ``knee``: look for the queue's knee above the top too, which takes some of the longest samples.
    """

    target: float = 0.03
    seconds: float = 0.5
    sample_ns: int = 20_000_000
    knee: bool = True
    facts: ClockFacts | None = None


@dataclass(frozen=True)
class Ladder:
    """``ns``: one pass, ascending. ``pass_ns``, ``one_ns``, ``unit_ns``: about what a pass, T(1) and one more unit
    take, to bound times and never a figure. ``issued``: units that calibration issued.

    ``stairs`` where the wait's quantum is over 5 % of T(top): the rounds then draw n around two stairs' edges.
    ``extra``: calibration's samples beyond the ladder (above the queue's knee, around the stairs), part of the fit.
    ``shortfall``: in words, why the top is lower than the target asks for, or empty.
    """

    ns: tuple[int, ...]
    pass_ns: float
    one_ns: float
    unit_ns: float
    issued: int
    stairs: Stairs | None = None
    extra: Rows = ()
    shortfall: str = ""

    @property
    def wait_quantum_ns(self) -> int:
        """ns between two looks of a polling wait that the fit must allow for; else 0."""
        return self.stairs.quantum_ns if self.stairs else 0

    def draw(self, passes: int, dice: random.Random) -> list[int]:
        """The n of so many passes, each in an order of its own."""
        if self.stairs:
            return [n for _ in range(passes) for n in self.stairs.draw(dice)]
        return [n for _ in range(passes) for n in dice.sample(self.ns, len(self.ns))]

    def cpu(self, passes: int, number: int) -> list[int]:
        """The n of the samples that read the CPU clock in this round, a case's ``number``-th: one a pass, in turn."""
        if self.stairs:
            return [self.stairs.short, self.ns[-1]] if number % 4 == 0 else []
        few = sorted({1, self.ns[len(self.ns) // 2], self.ns[-1]} - {0})
        return [few[(number + i) % len(few)] for i in range(passes)]


def calibrate(chain: Chain, clock: Clock, limits: Limits) -> Ladder:
    """Climb until the slope's part of T(n) outgrows noise and clock, or a limit is met; then lay the rungs."""
    trial = TrialSamples(chain, clock)
    poll_ns = getattr(chain, "poll_ns", 0)
    known = known_stairs(trial, poll_ns, limits.target) if poll_ns else None
    if known:
        one = float(known.quantum_ns)
        ns = tuple(sorted({1, known.short, *known.edges}))
        return Ladder(ns, known.pass_ns, one, known.unit_ns, trial.issued, known, rows_of(trial.seen))
    trial.run([1, 1])
    least = getattr(chain, "least_ns", 0)
    limits = replace(limits, sample_ns=max(limits.sample_ns, 2 * least))
    climb = _Climb(trial, limits, clock_of(chain, limits.facts or clock_facts(clock)), max(LEAST_NS, least))
    waits = not getattr(chain, "synchronous", False)
    heights = climb.fixed, climb.at, climb.noise
    stairs = find_stairs(trial, climb.flat, climb.rise, *heights, limits.sample_ns) if waits else None
    if stairs:
        ns = tuple(sorted({1, stairs.short, *stairs.edges}))
        extra = rows_of(trial.seen)
        cost = 6 * climb.fixed + (stairs.edges[1] - stairs.edges[0]) * climb.slope()
        return Ladder(ns, cost, climb.fixed, climb.slope(), trial.issued, stairs, extra, climb.shortfall)
    climb.on()
    slope, top = climb.slope(), climb.top()
    before = len(trial.seen)
    looks = limits.knee and chain.overlap == "pipelined" and not chain.synchronous
    knee = _knee(trial, top, slope, limits) if looks else 0
    extra = rows_of(trial.seen[before:]) if knee else ()
    ns = _rungs(top, knee, climb.fixed, slope, chain.max_n, head=climb.head > 0)
    cost = _pass_ns(ns, chain, climb.fixed, slope)
    return Ladder(ns, cost, climb.fixed, slope, trial.issued, None, extra, climb.shortfall)


def relaid(chain: Chain, clock: Clock, ns: Sequence[int]) -> Ladder:
    """The ladder that another process of the case calibrated, with this one's times; not for a polling wait."""
    trial = TrialSamples(chain, clock)
    trial.run([1])
    one, _ = trial.total(1, 3)
    top, _ = trial.total(ns[-1])
    slope = max(top - one, 1.0) / max(ns[-1] - 1, 1)
    return Ladder(tuple(ns), _pass_ns(ns, chain, one, slope), one, slope, trial.issued)


def _pass_ns(ns: Sequence[int], chain: Chain, fixed: float, slope: float) -> float:
    """About what a pass takes, its warm units included."""
    once = sum(fixed + n * slope for n in ns)
    return once + (once if chain.recorded else len(ns) * fixed)


class _Climb:
    """The search for the top: doubling, eightfold while the slope is lost in the fixed cost.

    ``flat``: the highest n that showed no rise; ``rise``: the last n tried, ``at`` its T in ns; ``most``: the highest.
    """

    def __init__(self, trial: TrialSamples, limits: Limits, facts: ClockFacts, least: int) -> None:
        self.trial, self.limits, self.facts, self.least = trial, limits, facts, least
        self.most = min(trial.chain.max_n, MOST)
        self.fixed, noise = trial.total(1, 3)
        self.noises, self.short = [noise], [noise]
        self.flat = self.rise = 1
        self.at = self.fixed
        self.head = self.straight = 0.0
        self.shortfall = ""
        while not self.done():
            self.step()

    @property
    def noise(self) -> float:
        """ns, of one sample: the median of the last three, so that one interruption does not send the top up."""
        return statistics.median(_told(self.noises)[-3:])

    def clearance(self) -> float:
        """ns that the slope must add: the noise of a difference over the passes, against a third of the target.

        The noise is that of short samples: noise that grows with a sample is outgrown by no longer one.
        """
        affordable = SAMPLING * self.limits.seconds * 1e9 / (RUNGS * (self.at + self.fixed))
        passes = min(max(affordable, PASSES[0]), PASSES[1])
        noise = 2.0 * statistics.median(_told(self.short)) / (self.limits.target / 3 * passes**0.5)
        return max(noise, self.least, CLOCK_STEPS * (self.facts.resolution_ns + self.facts.cost_ns))

    def done(self) -> bool:
        height = self.at - self.fixed
        if self.rise >= 4 and height >= self.clearance():
            self.at = min(self.at, self.trial.total(self.rise)[0])  # one interruption is no rise
            height = self.at - self.fixed
            if height >= self.clearance():
                return True
        if self.rise >= self.most:
            self.shortfall = f"the stack bounds n at {self.rise}"
        elif height > self.limits.sample_ns / 2 and (self.rise >= 4 or height > self.limits.sample_ns):
            self.shortfall = f"a longer sample would take over {self.limits.sample_ns / 1e6:.0f} ms"
        return bool(self.shortfall)

    def step(self) -> None:
        lost = self.at - self.fixed < self.clearance() / 16
        if lost:
            self.flat = self.rise
        near = 8 * (self.at - self.fixed) > self.limits.sample_ns
        factor = 8 if lost and self.rise > 1 and not near else 2
        before, at = self.rise, self.at
        self.rise = min(self.rise * factor, self.most)
        self.at, noise = self.trial.total(self.rise)
        self.noises.append(noise)
        self.head = self._head(before, at, CLEAR * max(noise, self.noise))
        if self.at - self.fixed < self.least or len(self.short) < 2:
            self.short.append(noise)

    def _head(self, before: int, at: float, hidden: float) -> float:
        """ns by which the first units cost more, or less, than the slope between the last two n, unless that is noise.

        A wait that sleeps where a short one spins costs such a step, and so does what a call finds cold. Where noise
        would hide what was seen before, that stands.
        """
        part = (before - 1) / max(self.rise - 1, 1)
        off = abs(at - self.fixed - part * (self.at - self.fixed))
        if off > hidden and part < 1:
            return off / (1 - part)
        return self.head if hidden > self.head * (1 - part) else 0.0

    def on(self) -> None:
        """Climb on until what the first units cost bends no rung, which ``straight`` ns of the slope's see to.

        After stairs were looked for: a stair is no such step, and looks like one.
        """
        highest = max(self.least, min(HEAD_NS, self.limits.sample_ns / 2))
        while not self.shortfall:
            self.straight = min(self.head / (HEAD * max(self.limits.target, MAX_MISFIT)), highest)
            if self.at - self.fixed >= self.straight or self.rise >= self.most:
                break
            self.step()

    def slope(self) -> float:
        """ns per unit, to bound times and place rungs; never a figure."""
        return max(self.at - self.fixed, 1.0) / max(self.rise - 1, 1)

    def top(self) -> int:
        """The smallest power of two times a rung that clears, at least 4 where 4 were tried."""
        top = self.rise
        while top // 2 >= max(4.0, 1 + max(self.clearance(), self.straight) / self.slope()):
            top //= 2
        return top


def _told(noises: Sequence[float]) -> Sequence[float]:
    """Those that samples told; a single sample at an n tells none."""
    return [noise for noise in noises if noise > 0] or [0.0]


def _knee(trial: TrialSamples, top: int, slope: float, limits: Limits) -> int:
    """The n at which ``issue`` bends within the longest sample, about; 0 where it doesn't.

    The last quarter of the longest n tells: a queue that never filled leaves ``issue`` on its line.
    """
    most = min(trial.chain.max_n, int(limits.sample_ns / slope))
    short = max(2, min(top, most) // 2)
    pace = (trial.issue(short) - trial.issue(1)) / (short - 1)
    if most < 8 or pace <= 0 or slope < BEND * pace:
        return 0
    near = most - most // 4
    far, bend = trial.issue(most), trial.issue(near) + BEND * pace * (most - near)
    if far >= bend:  # a preemption is no bend
        far = min(far, *(row[1] for row in trial.run([most] * 2)))
    if far < bend:
        return 0
    depth = most - far / slope
    knee = round(depth / (1 - pace / slope))
    if not 4 <= knee < most:
        return 0
    for times in (1.1, 1.3, 1.6, 2.0):
        trial.run([min(most, round(knee * times))] * 5)
    return knee


def _rungs(top: int, knee: int, fixed: float, slope: float, most: int, *, head: bool) -> tuple[int, ...]:
    """0, 1, 100 where it is cheap, the top, and halvings of it; with a knee the halvings start below that.

    ``head``: the first units cost something else, so that 1 and 100 would tilt the line of the others.
    """
    step = min(top, max(3, int(knee * 0.8))) if knee else top
    rungs = {0, 0 if head else 1, top, step} if step > 4 else {top, *range(step + 1)}
    while step >= 4 and len(rungs) < RUNGS + 1:
        step //= 2
        rungs.add(step)
    if not head and most >= LEGACY_N and fixed + LEGACY_N * slope < LEGACY_NS:
        rungs.add(LEGACY_N)
    return tuple(sorted(rungs))
