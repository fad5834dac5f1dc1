"""The *ladder* of a case: the sizes of n to sample. 0, 1, 100 and halvings of the smallest top that
exceeds the noise.

T(n) is the time of a chain of n units. A pass is one sample of every n of the ladder.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from overhead.measure.fitting.line import LINE
from overhead.measure.fitting.one_process import LEGACY_N
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, ClockFacts, clock_facts
from overhead.measure.sampling.polling_wait import Stairs, find_known_stairs, find_stairs
from overhead.measure.sampling.window import TrialSamples, clock_of
from overhead.results import Why, because


@dataclass(frozen=True)
class ClimbRule:
    """How high the largest n is. Higher values give a more precise slope from fewer, longer
    samples.
    """

    legacy_ns: int = 2_000_000
    """T(100) is sampled while it takes less than this; a longer sample would take more time than
    the other n.
    """
    fewest_averaged: int = 3
    most_averaged: int = 60
    """The passes over which calibration expects the noise to be averaged: more allow a lower
    top.
    """
    sampling_share: float = 0.6
    """The share of a case's time that is left for its passes."""
    clock_steps: int = 200
    """The slope's part of T(top), in units of the clock's resolution plus the cost of a reading."""
    least_ns: int = 1_000_000
    """The slope's part of T(top), at least: the first units cost something else and must not
    dominate the fit.
    """
    head: float = 0.6
    """The extra cost of the first units may be this share of the deviation from the line that marks
    an n as bent.
    """
    least_head: float = 0.02
    """A longer chain tells an extra cost of this share of the slope's part of T(top); a smaller one
    bends no line.
    """
    waits_below: float = 0.9
    """If ``issue`` takes at least this share of T(top), the wait is short. A short wait has no such
    extra cost.
    """
    looks: int = 3
    """The longer chain runs so often, and must tell that extra cost each time."""
    head_ns: int = 10_000_000
    """The slope's part of T(top) is raised up to this for the extra cost of the first units, not
    further.
    """
    clear: float = 2
    """Standard deviations of one sample that separate an effect from noise."""
    sizes: int = 6
    """Halvings of the top: more show a bend better, and take longer."""
    octaves: float = 0.5
    """Each process draws its sizes from a range so wide: a wider one meets more n, and moves the
    top.
    """
    most_n: int = 1 << 24
    bend: float = 1.2
    """The queue is full if ``issue`` rises this many times as steeply as at small n: a lower value
    fits noise.
    """


CLIMB = ClimbRule()


@dataclass(frozen=True)
class Limits:
    """Bounds of a calibration. ``target``: relative half-width wanted. ``seconds``: the case's time
    in this process.

    ``sample_ns``: the longest sample. ``knee``: also look for the queue's knee above the top, which
    takes some of the longest samples. ``facts``: of the clock; None to measure them.
    """

    target: float = 0.03
    seconds: float = 0.5
    sample_ns: int = 20_000_000
    knee: bool = True
    facts: ClockFacts | None = None


@dataclass(frozen=True)
class Ladder:
    """The n to sample (``ns``, ascending), and rough times to plan with.

    ``pass_ns``, ``one_ns``, ``unit_ns``: estimates of a pass, T(1) and one more unit, above 0: they
    bound times and are never a figure. ``issued``: units that calibration issued. ``stairs``: set
    if T(n) is a staircase because the wait polls; the rounds then draw n around the edges of two
    stairs. ``extra``: samples of the calibration beyond the ladder (above the n that fills the
    queue, around the stairs), part of the fit. ``shortfall``: why the top is lower than the target
    requires; else empty.
    """

    ns: tuple[int, ...]
    pass_ns: float
    one_ns: float
    unit_ns: float
    issued: int
    stairs: Stairs | None = None
    extra: Samples = field(default_factory=list)
    shortfall: Why = ""

    def draw(self, passes: int, dice: random.Random) -> list[int]:
        """The n of this number of passes, each pass in a new order."""
        if self.stairs:
            return [n for _ in range(passes) for n in self.stairs.draw(dice)]
        return [n for _ in range(passes) for n in dice.sample(self.ns, len(self.ns))]

    def drawn(self, dice: random.Random, raised: float, most: int) -> Ladder:
        """The same ladder with sizes of n drawn for this process, log-uniformly, up to ``raised``
        octaves higher.

        A cost that depends on n being even, a power of two or just below a flush must not meet the
        same n everywhere. 0, 1, 100 and sizes up to 8 stay, and so do the sizes of a staircase:
        they lie around its steps.
        """
        if self.stairs:
            return self
        kept = {n for n in self.ns if n <= 8 or n == LEGACY_N}
        others = [
            round(n * 2 ** (raised - dice.uniform(0, CLIMB.octaves)))
            for n in self.ns
            if n not in kept
        ]
        return replace(self, ns=tuple(sorted(kept | {min(most, n) for n in others})))

    def draw_for_cpu(self, passes: int, number: int) -> list[int]:
        """The n of the samples with CPU time in the ``number``-th round of a case: one for each
        pass, in rotation.
        """
        if self.stairs:
            return [self.stairs.short, self.ns[-1]] if number % 4 == 0 else []
        few = sorted({1, self.ns[len(self.ns) // 2], self.ns[-1]} - {0})
        return [few[(number + i) % len(few)] for i in range(passes)]


def calibrate(chain: Chain, clock: Clock, limits: Limits) -> Ladder:
    """Find the ladder of a chain: its top is raised until the slope exceeds noise and clock, or a
    limit is met.
    """
    trial = TrialSamples(chain, clock)
    known = find_known_stairs(trial, chain.poll_ns, limits.target) if chain.poll_ns else None
    if known:
        one = float(known.quantum_ns)
        ns = tuple(sorted({1, known.short, *known.edges}))
        return Ladder(ns, known.pass_ns, one, known.unit_ns, trial.issued, known, trial.seen)
    trial.run([1, 1])
    least = chain.least_ns
    limits = replace(limits, sample_ns=max(limits.sample_ns, 2 * least))
    climb = _Climb(
        trial,
        limits,
        clock_of(chain, limits.facts or clock_facts(clock)),
        max(CLIMB.least_ns, least),
    )
    heights = climb.fixed, climb.at, climb.noise
    stairs = None
    if not chain.synchronous:
        stairs = find_stairs(trial, climb.flat, climb.rise, *heights, limits.sample_ns)
    if stairs:
        ns = tuple(sorted({1, stairs.short, *stairs.edges}))
        cost = 6 * climb.fixed + (stairs.edges[1] - stairs.edges[0]) * climb.slope()
        one = max(climb.fixed, 1.0)
        return Ladder(
            ns, cost, one, climb.slope(), trial.issued, stairs, trial.seen, climb.shortfall
        )
    climb.look_ahead()
    climb.straighten()
    slope, top = climb.slope(), climb.top()
    before = len(trial.seen)
    seeks_knee = limits.knee and chain.overlap == "pipelined" and not chain.synchronous
    knee = _knee(trial, top, slope, limits) if seeks_knee else 0
    extra = trial.seen[before:] if knee else []
    ns = _sizes(top, knee, climb.fixed, slope, chain.max_n, head=climb.head > 0 or climb.ahead > 0)
    cost = _pass_ns(ns, chain, climb.fixed, slope)
    return Ladder(
        ns, cost, max(climb.fixed, 1.0), slope, trial.issued, None, extra, climb.shortfall
    )


def retime_ladder(chain: Chain, clock: Clock, ns: Sequence[int]) -> Ladder:
    """The ladder with the n ``ns`` of an earlier process and the times of this one. Not for a
    staircase.
    """
    trial = TrialSamples(chain, clock)
    trial.run([1])
    one = max(trial.total(1, 3)[0], 1.0)
    top, _ = trial.total(ns[-1])
    slope = max(top - one, 1.0) / max(ns[-1] - 1, 1)
    return Ladder(tuple(ns), _pass_ns(ns, chain, one, slope), one, slope, trial.issued)


def _pass_ns(ns: Sequence[int], chain: Chain, fixed: float, slope: float) -> float:
    """An estimate of a pass, ns, warm units included."""
    once = sum(fixed + n * slope for n in ns)
    return once + (once if chain.recorded else len(ns) * fixed)


class _Climb:
    """The search for the top: n is doubled, or multiplied by eight while the slope is hidden by the
    fixed cost.

    ``flat``: the highest n that showed no rise. ``rise``: the last n tried, ``at`` its T in ns.
    ``most``: the highest n allowed. ``head``: ns by which the first units deviate from the line;
    ``ahead``: the same as a longer chain shows it. ``straight``: ns that the slope must contribute
    so that the head bends no n.
    """

    def __init__(self, trial: TrialSamples, limits: Limits, facts: ClockFacts, least: int) -> None:
        self.trial, self.limits, self.facts, self.least = trial, limits, facts, least
        self.most = min(trial.chain.max_n, CLIMB.most_n)
        self.fixed, noise = trial.total(1, 3)
        self.noises, self.short = [noise], [noise]
        self.flat = self.rise = 1
        self.at = self.fixed
        self.head = self.ahead = self.straight = 0.0
        self.shortfall: Why = ""
        while not self.done():
            self.step()

    @property
    def noise(self) -> float:
        """Standard deviation of one sample, ns: the median of the last three n, against
        interruptions.
        """
        return statistics.median(_measured_noises(self.noises)[-3:])

    def clearance(self) -> float:
        """ns that the slope must contribute to T(top): the averaged noise of a difference, over a
        third of the target.

        The noise is that of short samples: against noise that grows with the sample, a longer
        sample does not help.
        """
        affordable = (
            CLIMB.sampling_share
            * self.limits.seconds
            * 1e9
            / (CLIMB.sizes * max(self.at + self.fixed, 1.0))
        )
        passes = min(max(affordable, CLIMB.fewest_averaged), CLIMB.most_averaged)
        noise = (
            2.0
            * statistics.median(_measured_noises(self.short))
            / (self.limits.target / 3 * passes**0.5)
        )
        return max(
            noise, self.least, CLIMB.clock_steps * (self.facts.resolution_ns + self.facts.cost_ns)
        )

    def done(self) -> bool:
        """Whether the last n is a sufficient top, or a limit is met; the limit is then in
        ``shortfall``.
        """
        height = self.at - self.fixed
        if self.rise >= 4 and height >= self.clearance():
            self.at = min(self.at, self.trial.total(self.rise)[0])  # an interruption is not a rise
            height = self.at - self.fixed
            if height >= self.clearance():
                return True
        if self.rise >= self.most:
            self.shortfall = because("n-is-bounded", most=self.rise)
        elif height > self.limits.sample_ns / 2 and (
            self.rise >= 4 or height > self.limits.sample_ns
        ):
            self.shortfall = because("sample-too-long", most_ms=self.limits.sample_ns / 1e6)
        return bool(self.shortfall)

    def step(self) -> None:
        """Try the next n."""
        lost = self.at - self.fixed < self.clearance() / 16
        if lost:
            self.flat = self.rise
        near = 8 * (self.at - self.fixed) > self.limits.sample_ns
        factor = 8 if lost and self.rise > 1 and not near else 2
        before, at = self.rise, self.at
        self.rise = min(self.rise * factor, self.most)
        self.at, noise = self.trial.total(self.rise)
        self.noises.append(noise)
        self.head = self._head(before, at, CLIMB.clear * max(noise, self.noise))
        if self.at - self.fixed < self.least or len(self.short) < 2:
            self.short.append(noise)

    def _head(self, before: int, at: float, hidden: float) -> float:
        """ns by which the first units cost more, or less, than the slope between the last two n; 0
        if that is noise.

        Two causes: a wait that spins for a short time and then sleeps, and cold caches. A value
        found before is kept if the noise is now too large to confirm it.
        """
        part = (before - 1) / max(self.rise - 1, 1)
        off = abs(at - self.fixed - part * (self.at - self.fixed))
        if off > hidden and part < 1:
            return off / (1 - part)
        return self.head if hidden > self.head * (1 - part) else 0.0

    def look_ahead(self) -> None:
        """Find the head again by a chain eight times as long: the noise of short ones may hide it.

        Example: Dawn's wait adds 80 us to all but the shortest chains, which is 7 % of a line that
        rises by 1.2 ms.
        """
        far = 8 * self.rise
        if self.trial.chain.synchronous or self.shortfall or far > self.most or self.rise < 4:
            return
        issue = self.trial.shortest_issue(self.rise)
        if 8 * self.at > self.limits.sample_ns or issue > CLIMB.waits_below * self.at:
            return
        part = (self.rise - 1) / (far - self.rise)
        rows = self.trial.run([self.rise, far] * CLIMB.looks)
        pairs = [(near[2], at[2]) for near, at in zip(rows[::2], rows[1::2], strict=True)]
        heads = [near - self.fixed - (at - near) * part for near, at in pairs]
        if min(heads) > CLIMB.least_head * (self.at - self.fixed):
            self.ahead = min(heads)

    def straighten(self) -> None:
        """Raise the top until the cost of the first units bends no n; after the search for stairs,
        which look alike.
        """
        highest = max(self.least, min(CLIMB.head_ns, self.limits.sample_ns / 2))
        while not self.shortfall:
            self.straight = min(
                max(self.head, self.ahead) / (CLIMB.head * max(self.limits.target, LINE.misfit)),
                highest,
            )
            if self.at - self.fixed >= self.straight or self.rise >= self.most:
                break
            self.step()

    def slope(self) -> float:
        """An estimate of ns per unit, to bound times and place sizes; never a figure."""
        return max(self.at - self.fixed, 1.0) / max(self.rise - 1, 1)

    def top(self) -> int:
        """The last n halved as long as its slope still exceeds the clearance; at least 4 if 4 were
        tried.
        """
        top = self.rise
        while top // 2 >= max(4.0, 1 + max(self.clearance(), self.straight) / self.slope()):
            top //= 2
        return top


def _measured_noises(noises: Sequence[float]) -> Sequence[float]:
    """The noises above 0; a single sample at an n has none."""
    return [noise for noise in noises if noise > 0] or [0.0]


def _knee(trial: TrialSamples, top: int, slope: float, limits: Limits) -> int:
    """Roughly the n at which ``issue`` bends because the queue is full; 0 if it does not up to the
    longest sample.
    """
    most = min(trial.chain.max_n, int(limits.sample_ns / slope))
    short = max(2, min(top, most) // 2)
    pace = (trial.shortest_issue(short) - trial.shortest_issue(1)) / (short - 1)
    if most < 8 or pace <= 0 or slope < CLIMB.bend * pace:
        return 0
    near = most - most // 4
    far, bend = (
        trial.shortest_issue(most),
        trial.shortest_issue(near) + CLIMB.bend * pace * (most - near),
    )
    if far >= bend:  # a preemption is not a bend
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


def _sizes(
    top: int, knee: int, fixed: float, slope: float, most: int, *, head: bool
) -> tuple[int, ...]:
    """0, 1, 100 if it is cheap, the top and its halvings, below the knee if there is one.

    ``head``: the first units cost something else, so 1 and 100 would tilt the line.
    """
    step = min(top, max(3, int(knee * 0.8))) if knee else top
    sizes = {0, 0 if head else 1, top, step} if step > 4 else {top, *range(step + 1)}
    while step >= 4 and len(sizes) < CLIMB.sizes + 1:
        step //= 2
        sizes.add(step)
    if not head and most >= LEGACY_N and fixed + LEGACY_N * slope < CLIMB.legacy_ns:
        sizes.add(LEGACY_N)
    return tuple(sorted(sizes))
