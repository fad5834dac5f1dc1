"""The *ladder* of a case: the sizes of n to sample. 0, 1, 100 and halvings of the smallest top that
exceeds the noise.

T(n) is the time of a chain of n units. A pass is one sample of every n of the ladder. The *top* is
the largest n of the ladder. The *rise* of an n is what the slope contributes to its time: T(n) less
T(1). The *first units* of a chain may cost more than the later ones, by an amount that is paid
once: a wait that spins for a short time and then sleeps, or cold caches.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from overhead.measure.fitting.line import LINE
from overhead.measure.fitting.one_process import LEGACY_N
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, ClockFacts, clock_facts
from overhead.measure.sampling.polling_wait import (
    RisingPart,
    Stairs,
    find_known_stairs,
    find_stairs,
)
from overhead.measure.sampling.window import TrialSamples, clock_of
from overhead.results import Why, because


@dataclass(frozen=True)
class ClimbRule:
    """How high the largest n is. Higher values give a more precise slope from fewer, longer
    samples.

    The numbers were chosen, not measured, where a line does not name a run. ``make bench
    ARGS=known-truth`` shows what a change of one does.
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
    least_n: int = 4
    """The top is at least this n, so that its halvings are still different sizes."""
    fast_factor: int = 8
    """While noise or the fixed cost hides the slope, the next n is this many times larger. Close to
    the longest sample it is only twice as large.
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
    longer: int = 8
    """The longer chain that looks for this cost is this many times as long. Example: Dawn's wait
    adds 80 us to all but the shortest chains, which is 7 % of a line that rises by 1.2 ms, and
    which the noise of short chains may hide.
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
    """Bounds of a calibration. ``precision``: relative half-width wanted. ``seconds``: the case's
    time in this process.

    ``sample_ns``: the longest sample. ``knee``: also look for the queue's knee above the top, which
    takes some of the longest samples. ``facts``: of the clock; None to measure them.
    """

    precision: float = 0.03
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
    queue, around the stairs), part of the fit. ``shortfall``: why the top is lower than the wanted
    precision requires; else empty.
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
        """The n to sample in a round: this number of passes, each of them every n of the ladder in
        a new random order, so that a slow change of the machine does not follow n. Where T(n) is a
        staircase, since the wait polls, the n are drawn anew for each pass.
        """
        ns: list[int] = []
        for _ in range(passes):
            if self.stairs:
                ns += self.stairs.draw(dice)
            else:
                ns += dice.sample(self.ns, len(self.ns))
        return ns

    def drawn(self, dice: random.Random, raised: float, most: int) -> Ladder:
        """The same ladder with each n moved at random, by ``raised`` octaves up at most, by
        ``raised`` less half an octave (``CLIMB.octaves``) at least, and not above ``most``.

        So the processes of a run meet different n: a cost that depends on n being even, a power of
        two or just below a flush must not meet the same n everywhere. 0, 1, 100 and sizes up to 8
        stay, and so do the sizes of a case whose wait polls: they lie around the steps of its T(n).
        """
        # ``stairs``: the steps of T(n), set where the wait polls.
        if self.stairs:
            return self
        ns: set[int] = set()
        for n in self.ns:
            if n <= 8 or n == LEGACY_N:
                ns.add(n)
            else:
                # An octave is a factor of two: by so many of them n is moved up (above 0) or down.
                # ``CLIMB.octaves``: half an octave, the width of the range.
                octaves = raised - dice.uniform(0, CLIMB.octaves)
                ns.add(min(most, round(n * 2**octaves)))
        return replace(self, ns=tuple(sorted(ns)))

    def draw_for_cpu(self, passes: int, number: int) -> list[int]:
        """The n of the samples that also read the CPU clock, in the ``number``-th round of a case.
        These cost extra time, so each pass gets one of three n in rotation: 1, a middle one and the
        largest. A case whose wait polls, so that its samples are long, gets two n in every fourth
        round.
        """
        # ``short``: an n whose ``issue`` takes some ms. ``stairs``: set where the wait polls.
        if self.stairs:
            return [self.stairs.short, self.ns[-1]] if number % 4 == 0 else []
        middle = self.ns[len(self.ns) // 2]
        # A chain of 0 units never enters a line, so 0 is left out. It can be the ladder's middle.
        rotation = sorted({1, middle, self.ns[-1]} - {0})
        turns = range(number, number + passes)
        return [rotation[turn % len(rotation)] for turn in turns]


def calibrate(chain: Chain, clock: Clock, limits: Limits) -> Ladder:
    """Find the ladder of a chain: its top is raised until the slope exceeds noise and clock, or a
    limit is met.

    The steps: try larger and larger n (``_TopSearch``); where T(n) turns out to be a staircase, the
    sizes are those around two stairs; else raise the top until the extra cost of the first units
    bends no n, look for the n that fills the queue, and take halvings of the top.
    """
    trial = TrialSamples(chain, clock)
    if chain.poll_ns:
        stairs = find_known_stairs(trial, chain.poll_ns, limits.precision)
        if stairs:
            return Ladder(
                ns=_sizes_around(stairs),
                pass_ns=stairs.pass_ns,
                one_ns=float(stairs.quantum_ns),
                unit_ns=stairs.unit_ns,
                issued=trial.issued,
                stairs=stairs,
                extra=trial.seen,
            )

    trial.run([1, 1])
    longest_ns = max(limits.sample_ns, 2 * chain.least_ns)
    limits = replace(limits, sample_ns=longest_ns)
    facts = clock_of(chain, limits.facts or clock_facts(clock))
    least_rise_ns = max(CLIMB.least_ns, chain.least_ns)
    search = _TopSearch(trial, limits, facts, least_rise_ns)
    search.raise_until_stopped()

    stairs = None
    if not chain.synchronous:
        stairs = find_stairs(trial, search.rising_part(), search.noise, limits.sample_ns)
    if stairs:
        units_between_edges = stairs.edges[1] - stairs.edges[0]
        pass_ns = 6 * search.fixed_ns + units_between_edges * search.unit_ns
        return Ladder(
            ns=_sizes_around(stairs),
            pass_ns=pass_ns,
            one_ns=max(search.fixed_ns, 1.0),
            unit_ns=search.unit_ns,
            issued=trial.issued,
            stairs=stairs,
            extra=trial.seen,
            shortfall=search.shortfall,
        )

    # After the search for stairs: these look like an extra cost of the first units.
    by_longer_chain_ns = search.first_units_by_longer_chain()
    straight_rise_ns = search.raise_until_straight(by_longer_chain_ns)
    top = search.smallest_top(straight_rise_ns)
    first_units_differ = search.first_units_ns > 0 or by_longer_chain_ns > 0

    seen_before = len(trial.seen)
    knee = 0
    if limits.knee and chain.overlap == "pipelined" and not chain.synchronous:
        knee = _knee(trial, top, search.unit_ns, limits)
    estimate = _Estimate(search.fixed_ns, search.unit_ns)
    ns = _sizes(top, knee, estimate, chain.max_n, first_units_differ=first_units_differ)
    return Ladder(
        ns=ns,
        pass_ns=_pass_ns(ns, chain, estimate),
        one_ns=max(search.fixed_ns, 1.0),
        unit_ns=search.unit_ns,
        issued=trial.issued,
        extra=trial.seen[seen_before:] if knee else [],
        shortfall=search.shortfall,
    )


def retime_ladder(chain: Chain, clock: Clock, ns: Sequence[int]) -> Ladder:
    """The ladder (the sizes of n to sample) with the n ``ns`` that an earlier process found, and
    rough times of this process, so that only the first process of a case has to search. Not where
    the wait polls.
    """
    trial = TrialSamples(chain, clock)
    trial.run([1])
    # Three samples, also where one takes long; of the top, one is then enough.
    one_ns = max(trial.total(1, 3).median, 1.0)
    top_ns = trial.total(ns[-1]).median
    # Between T(1) and T(top) lie top - 1 units.
    units = max(ns[-1] - 1, 1)
    unit_ns = max(top_ns - one_ns, 1.0) / units
    pass_ns = _pass_ns(ns, chain, _Estimate(one_ns, unit_ns))
    return Ladder(tuple(ns), pass_ns, one_ns, unit_ns, trial.issued)


def _sizes_around(stairs: Stairs) -> tuple[int, ...]:
    """The sizes of n of a staircase, ascending: 1, a short one, and those where two stairs end."""
    return tuple(sorted({1, stairs.short, *stairs.edges}))


class _Estimate(NamedTuple):
    """Roughly T(1) and the cost of one more unit, ns: to bound times and place sizes, never a
    figure.
    """

    fixed_ns: float
    unit_ns: float


def _pass_ns(ns: Sequence[int], chain: Chain, estimate: _Estimate) -> float:
    """An estimate of the time of a pass (one sample of every n of ``ns``), ns. It includes the warm
    units before each sample: a recording is warmed by a launch of the same n, other chains by one
    unit.
    """
    once = sum(estimate.fixed_ns + n * estimate.unit_ns for n in ns)
    # Warm units: as many again of a recording, else one unit before each sample.
    if chain.recorded:
        return once + once
    return once + len(ns) * estimate.fixed_ns


class _TopSearch:
    """The search for the *top*, the largest n of a case's ladder: n is doubled, or multiplied by
    eight while the fixed cost hides what the units add, until the slope of T(n) stands out from
    noise and clock.

    The methods are called in this order: ``raise_until_stopped``, then
    ``first_units_by_longer_chain``, ``raise_until_straight`` and ``smallest_top``.

    ``n``: the last n tried, ``total_ns`` its T(n). ``fixed_ns``: T(1). ``n_without_rise``: the
    highest n whose T(n) was not clearly above T(1). ``most_n``: the highest n allowed. ``noises``:
    the standard deviation of a sample at each n tried; ``noises_of_short_chains``: the same at the
    short ones. ``first_units_ns``: by how much the first units of a chain cost more or less than
    the later ones, in all; 0 as far as noise hides it. ``shortfall``: the limit that ended the
    search too early; else empty.
    """

    def __init__(
        self, trial: TrialSamples, limits: Limits, facts: ClockFacts, least_rise_ns: int
    ) -> None:
        self.trial = trial
        self.limits = limits
        self.facts = facts
        self.least_rise_ns = least_rise_ns
        self.most_n = min(trial.chain.max_n, CLIMB.most_n)
        # At least three samples; of a slow n elsewhere one may do.
        one = trial.total(1, 3)
        self.fixed_ns = one.median
        self.noises = [one.noise]
        self.noises_of_short_chains = [one.noise]
        # The highest n whose T(n) did not clearly exceed T(1): so far only 1 was tried.
        self.n_without_rise = 1
        self.n = 1
        self.total_ns = one.median
        # ``first_units_ns``: what the first units of a chain cost in addition. ``shortfall``: why
        # the search ended below the n that it wanted; '' if it did not.
        self.first_units_ns = 0.0
        self.shortfall: Why = ""

    @property
    def rise_ns(self) -> float:
        """What the slope contributes to the time of the last n, ns."""
        return self.total_ns - self.fixed_ns

    @property
    def unit_ns(self) -> float:
        """An estimate of ns per unit, to bound times and place sizes; never a figure."""
        return max(self.rise_ns, 1.0) / max(self.n - 1, 1)

    @property
    def noise(self) -> float:
        """Standard deviation of one sample, ns: the median of the last three n, against
        interruptions.
        """
        return statistics.median(_measured_noises(self.noises)[-3:])

    def rising_part(self) -> RisingPart:
        """Between which n T(n) rises, and from where to where, for the search for stairs."""
        return RisingPart(self.n_without_rise, self.n, self.fixed_ns, self.total_ns)

    def needed_rise_ns(self) -> float:
        """What the slope must contribute to the time of the largest n, ns, so that it can be told:
        enough against the noise, the clock and the least rise of the chain.

        Against the noise means: the noise of a difference of two samples, averaged over all passes
        (one sample of each n) of the process, is below a third of the wanted precision. The noise
        is that of short chains: against noise that grows with the sample, a longer sample does not
        help.
        """
        sampling_ns = CLIMB.sampling_share * self.limits.seconds * 1e9
        # How many passes fit. A pass has about ``CLIMB.sizes`` chains, each counted as long as the
        # longest one and a warm unit.
        pass_ns = CLIMB.sizes * max(self.total_ns + self.fixed_ns, 1.0)
        # Between 3 and 60: the noise is expected to be averaged over so many passes.
        passes = min(max(sampling_ns / pass_ns, CLIMB.fewest_averaged), CLIMB.most_averaged)
        # The slope comes from a difference of two samples, which each have noise. Their mean over
        # the passes is less noisy by the root of the number of passes.
        noise_of_difference = 2.0 * statistics.median(_measured_noises(self.noises_of_short_chains))
        against_noise = noise_of_difference / (self.limits.precision / 3 * passes**0.5)
        # What a reading of the clock is uncertain by: its step, and its own cost.
        step_ns = self.facts.resolution_ns + self.facts.cost_ns
        # 200 steps; ``least_rise_ns``: 1 ms or what the chain asks for, as the first units cost
        # something else.
        return max(against_noise, self.least_rise_ns, CLIMB.clock_steps * step_ns)

    def raise_until_stopped(self) -> None:
        """Raise n until one of ``TOP_RULES`` stops the search: the slope stands out, or n or the
        time of a sample has met its limit, which is then the ``shortfall``.
        """
        while True:
            # A rule returns None to go on, or why the search ends.
            for rule in TOP_RULES:
                stop = rule(self)
                if stop is not None:
                    self.shortfall = stop.shortfall
                    return
            self.step()

    def step(self) -> None:
        """Raise n once and time it: n doubles, or grows by ``CLIMB.fast_factor`` as long as T(n)
        hardly exceeds T(1).
        """
        # ``rise_ns``: T(n) less T(1), what the units add. Far below what is needed (a sixteenth),
        # it is still hidden by T(1).
        rise_is_hidden = self.rise_ns < self.needed_rise_ns() / 16
        if rise_is_hidden:
            self.n_without_rise = self.n
        # Near the longest sample a fast step would go far beyond it.
        # ``fast_factor``: 8.
        near_limit = CLIMB.fast_factor * self.rise_ns > self.limits.sample_ns
        factor = 2
        if rise_is_hidden and self.n > 1 and not near_limit:
            factor = CLIMB.fast_factor
        # Time the larger n, and keep the one before for comparison.
        before = _Tried(self.n, self.total_ns)
        self.n = min(self.n * factor, self.most_n)
        tried = self.trial.total(self.n)
        self.total_ns = tried.median
        self.noises.append(tried.noise)
        # A deviation below this may be noise: two standard deviations of a sample.
        hidden_ns = CLIMB.clear * max(tried.noise, self.noise)
        # By how much the first units of a chain cost more, or less, than the later ones.
        self.first_units_ns = self._first_units(before, hidden_ns)
        # Noise that grows with the sample must not raise ``needed_rise_ns``: only short chains are
        # kept.
        if self.rise_ns < self.least_rise_ns or len(self.noises_of_short_chains) < 2:
            self.noises_of_short_chains.append(tried.noise)

    def _first_units(self, before: _Tried, hidden_ns: float) -> float:
        """ns by which the first units of a chain cost more, or less, than the later ones, in all; 0
        if that is less than noise hides. ``before``: the n tried before this one; ``hidden_ns``:
        the largest deviation that may be noise.

        If all units cost the same, T at the n before lies on the line from T(1) to T of the last n.
        An extra cost E of the first units is in both times once, and lifts the line there by E
        times ``part_before`` only. So T at the n before is off the line by the rest, E times ``1 -
        part_before``. A value of E found earlier is kept if the noise is now too large to confirm
        it.
        """
        # Where the n before lies between 1 and the last n, as a share of that range.
        part_before = (before.n - 1) / max(self.n - 1, 1)
        off_line = abs(before.total_ns - self.fixed_ns - part_before * self.rise_ns)
        if off_line > hidden_ns and part_before < 1:
            return off_line / (1 - part_before)
        # An E found earlier would show as ``E * (1 - part_before)``, which the noise now hides.
        if hidden_ns > self.first_units_ns * (1 - part_before):
            return self.first_units_ns
        return 0.0

    def first_units_by_longer_chain(self) -> float:
        """ns by which T of the last n lies above what T(1) and the cost of the later units predict:
        what the first units of a chain cost in addition. A chain eight times as long tells the cost
        of the later units; the noise of shorter ones may hide the difference.

        0 if it is small, or if there is no time to look.
        """
        far_n = CLIMB.longer * self.n
        # A synchronous chain has no wait that could cost more; a shortfall leaves no longer chain.
        if self.trial.chain.synchronous or self.shortfall:
            return 0.0
        if far_n > self.most_n or self.n < CLIMB.least_n:
            return 0.0
        enqueue_ns = self.trial.shortest_issue(self.n)
        # A wait that hardly lasts does not sleep, which is what makes the first units cost more.
        wait_is_short = enqueue_ns > CLIMB.waits_below * self.total_ns
        if wait_is_short or CLIMB.longer * self.total_ns > self.limits.sample_ns:
            return 0.0

        # The units of the near chain after its first one, over those that the far chain has more. A
        # pair of both chains runs ``CLIMB.looks`` times; index 2 of a row is T(n).
        units_ratio = (self.n - 1) / (far_n - self.n)
        rows = self.trial.run([self.n, far_n] * CLIMB.looks)
        deviations: list[float] = []
        for near, far in zip(rows[::2], rows[1::2], strict=True):
            # The units after the first would take so long if they cost what those far out do.
            after_first_ns = (far[2] - near[2]) * units_ratio
            deviations.append(near[2] - self.fixed_ns - after_first_ns)
        # The smallest counts: an interruption of one chain near is no cost of its first units.
        # 2 % of the rise: less bends no line.
        if min(deviations) <= CLIMB.least_head * self.rise_ns:
            return 0.0
        return min(deviations)

    def raise_until_straight(self, by_longer_chain_ns: float) -> float:
        """Raise n until an extra cost of the first units is so small a share of T(n) that the fit
        does not take T(n) for bent, or until a limit is met. Returns the rise (T(n) less T(1)) that
        this needs, ns; 0 if the search had met a limit before.

        ``by_longer_chain_ns``: that extra cost as ``first_units_by_longer_chain`` returned it.
        """
        # Above this rise the samples would take too long.
        highest_ns = max(self.least_rise_ns, min(CLIMB.head_ns, self.limits.sample_ns / 2))
        # The share of the rise that an extra cost may be without the fit calling T(n) bent.
        most_off = CLIMB.head * max(self.limits.precision, LINE.misfit)
        needed_ns = 0.0
        while not self.shortfall:
            first_units_ns = max(self.first_units_ns, by_longer_chain_ns)
            # At this rise the extra cost is just that share.
            needed_ns = min(first_units_ns / most_off, highest_ns)
            if self.rise_ns >= needed_ns or self.n >= self.most_n:
                break
            # Raises n, and times it.
            self.step()
        return needed_ns

    def smallest_top(self, straight_rise_ns: float) -> int:
        """The largest n that the rounds will sample: the last n halved as long as its slope still
        contributes enough, since the search may have jumped far beyond that. At least 4 if 4 were
        tried. ``straight_rise_ns``: as ``raise_until_straight`` returned it.
        """
        needed_ns = max(self.needed_rise_ns(), straight_rise_ns)
        # One unit more than those that add the rise: T(1) contains no rise.
        units_needed = 1 + needed_ns / self.unit_ns
        least = max(float(CLIMB.least_n), units_needed)
        top = self.n
        # ``least_n``: 4, so that the halvings of the top are different sizes.
        while top // 2 >= least:
            top //= 2
        return top


class _Tried(NamedTuple):
    """An n that the search tried, and its T(n), ns."""

    n: int
    total_ns: float


@dataclass(frozen=True)
class TopStop:
    """That the search for the top ends. ``shortfall``: the limit that ended it; '' if the top is
    high enough.
    """

    shortfall: Why = ""


def _rises_enough(search: _TopSearch) -> TopStop | None:
    """Stop the search for the largest n if the units contribute enough to T of the last n. That n
    is sampled again before, and the shorter time counts: an interruption is not a rise.
    """
    # Below 4 units the halvings of the largest n would not be different sizes. ``rise_ns``: T of
    # the last n less T(1).
    if search.n < CLIMB.least_n or search.rise_ns < search.needed_rise_ns():
        return None
    again = search.trial.total(search.n)
    search.total_ns = min(search.total_ns, again.median)
    if search.rise_ns < search.needed_rise_ns():
        return None
    return TopStop()


def _n_is_bounded(search: _TopSearch) -> TopStop | None:
    """Stop at the largest n that the stack accepts."""
    if search.n < search.most_n:
        return None
    return TopStop(because("n-is-bounded", most=search.n))


def _sample_is_too_long(search: _TopSearch) -> TopStop | None:
    """Stop the search for the largest n if twice the last n would take longer than the longest
    sample. An n below 4 goes on until it takes that long itself: the fit needs a few sizes.
    """
    # Compared with the rise, T(n) less T(1), since only that grows with n.
    longest_ns: float = search.limits.sample_ns
    if search.n >= CLIMB.least_n:
        # The next n is at least twice this one, and must not exceed the longest sample.
        longest_ns /= 2
    if search.rise_ns <= longest_ns:
        return None
    return TopStop(because("sample-too-long", most_ms=search.limits.sample_ns / 1e6))


TOP_RULES: tuple[Callable[[_TopSearch], TopStop | None], ...] = (
    _rises_enough,
    _n_is_bounded,
    _sample_is_too_long,
)
"""When the search for the top stops: the first rule that applies. None: go on."""


def _measured_noises(noises: Sequence[float]) -> Sequence[float]:
    """The noises above 0; a single sample at an n has none."""
    return [noise for noise in noises if noise > 0] or [0.0]


def _knee(trial: TrialSamples, top: int, unit_ns: float, limits: Limits) -> int:
    """Roughly the *knee*: the n at which the time of ``issue`` bends, because the device's queue is
    full and each further call waits until the device takes an earlier unit. 0 if it does not bend
    up to the longest sample.

    Below the knee a unit takes the host ``pace_ns``; above it, the host waits for the device, so a
    unit takes ``unit_ns``. A few samples above the knee are taken too, which later give the exact
    knee.
    """
    most = min(trial.chain.max_n, int(limits.sample_ns / unit_ns))
    # Half of the largest n of the line: together with n = 1 it tells the slope of ``issue`` while
    # no queue is full.
    short = max(2, min(top, most) // 2)
    # The host's time per unit at small n, from the shortest times of ``issue`` (no waiting yet).
    of_short_ns = trial.shortest_issue(short)
    pace_ns = (of_short_ns - trial.shortest_issue(1)) / (short - 1)
    # A host that is not clearly faster than the device does not fill its queue.
    if most < 8 or pace_ns <= 0 or unit_ns < CLIMB.bend * pace_ns:
        return 0

    # Is ``issue`` steeper over the last quarter up to the longest chain than at small n?
    near = most - most // 4
    far_ns = trial.shortest_issue(most)
    near_ns = trial.shortest_issue(near)
    bent_ns = near_ns + CLIMB.bend * pace_ns * (most - near)
    if far_ns >= bent_ns:
        # Sampled again: a preemption is not a bend. Index 1 of a row is the time of ``issue``.
        again = [row[1] for row in trial.run([most] * 2)]
        far_ns = min(far_ns, *again)
    if far_ns < bent_ns:
        return 0

    # When the host has issued the longest chain, after ``far_ns``, the device has finished one unit
    # in each ``unit_ns``; the others fill the queue (``depth``).
    depth = most - far_ns / unit_ns
    # Up to the knee the host took ``knee * pace_ns``, in which the device finished ``knee * pace_ns
    # / unit_ns`` units; the rest of the ``knee`` units is the depth. Solved for the knee:
    knee = round(depth / (1 - pace_ns / unit_ns))
    # Below 4, or at the longest chain, it counts as none.
    if not 4 <= knee < most:
        return 0
    # The fit of the second slope of ``issue`` needs samples above the knee.
    for factor in (1.1, 1.3, 1.6, 2.0):
        above_knee = min(most, round(knee * factor))
        trial.run([above_knee] * 5)
    return knee


def _sizes(
    top: int, knee: int, estimate: _Estimate, most: int, *, first_units_differ: bool
) -> tuple[int, ...]:
    """The n that the rounds sample, ascending: 0, 1, ``top`` and its halvings, and 100 if that is
    cheap.

    ``knee``: the n at which the queue is full, or 0; only the top lies above it, since the slope of
    ``issue`` is fitted below. ``most``: the largest n that the stack accepts.
    ``first_units_differ``: the first units cost something else, so 1 and 100 are left out: they
    would tilt the line.
    """
    # The largest n to halve: the top, or with a full queue a size safely below the knee, since
    # ``issue`` is fitted there.
    largest_halved = top
    if knee:
        # Four fifths of it: the knee is known only roughly here.
        largest_halved = min(top, max(3, int(knee * 0.8)))
    # Few sizes are left to halve: take all of them.
    if largest_halved <= 4:
        sizes = {top, *range(largest_halved + 1)}
    elif first_units_differ:
        sizes = {0, top, largest_halved}
    else:
        sizes = {0, 1, top, largest_halved}

    # Halve until enough sizes are found, or below 4 units.
    halved = largest_halved
    while halved >= 4 and len(sizes) < CLIMB.sizes + 1:
        halved //= 2
        sizes.add(halved)

    # T(100), which published figures divide by 100, if a sample of it is short enough.
    legacy_ns = estimate.fixed_ns + LEGACY_N * estimate.unit_ns
    # Below 2 ms: a longer one would take more time than the other n.
    if not first_units_differ and most >= LEGACY_N and legacy_ns < CLIMB.legacy_ns:
        sizes.add(LEGACY_N)
    return tuple(sorted(sizes))
