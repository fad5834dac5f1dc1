"""The rounds of one worker: every case is calibrated and what is taken once is taken, then they alternate in rounds."""

from __future__ import annotations

import functools
import gc
import random
from collections.abc import Callable, Mapping

from overhead.errors import Unverified
from overhead.measure.fitting.data import Round
from overhead.measure.sampling import one_off, staged_calls, window
from overhead.measure.sampling.calibrate import Limits, calibrate, relaid
from overhead.measure.sampling.case import LEAST_ROUNDS, CaseInProgress
from overhead.measure.sampling.clock import Clock, clock_facts
from overhead.measure.sampling.events import Doing, Dropped, Event, Rounded, Settings, Taken, reason_of, status_of
from overhead.measure.sampling.preparing import Preparing
from overhead.measure.sampling.quiet_processor import QuietProcessor
from overhead.measure.sampling.window import Chain, runs_itself

ROUNDS = 120
"""A process's time is cut into at most this many rounds, fewer where the dearest case could not take part in each; a
cheap case passes its ladder several times in a round. Short rounds, since the canary tells of a whole round."""
STAY = 4
"""Rounds on one processor. A move costs what was near the one that is left: moved every round, the first units of
NumPy's step over 256 KiB took twice as long."""
KNEE_SECONDS = 0.5
"""A case with less time than this looks for the queue's knee only if it is one of the extras."""
PREPARING = 1.0
"""Compiling and recording for an n may take as long as the sampling, and is no part of it; what is longer is."""
OVERTIME = 1.5
"""``min_rounds`` may take this many times the seconds allowed, and no more."""


def conduct(chains: Mapping[str, Chain], clock: Clock, settings: Settings, emit: Callable[[Event], None]) -> str:
    """Measure all chains of this worker in alternation; return the rule that stopped it, in words.

    A case that raises is emitted as ``Dropped`` and the rest goes on. KeyboardInterrupt passes through. The garbage
    collector is run and frozen before the windows and off until the end. Once each case has run, so that the stacks
    have started their threads, the calling thread stays on processors that run at full speed, a few rounds on each.
    """
    enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    conductor = _Conductor(chains, clock, settings, emit)
    try:
        return conductor.run()
    finally:
        conductor.close()
        gc.unfreeze()
        if enabled:
            gc.enable()


class _Conductor:
    def __init__(
        self, chains: Mapping[str, Chain], clock: Clock, settings: Settings, emit: Callable[[Event], None]
    ) -> None:
        self.live = {
            key: CaseInProgress(
                key, chain, settings.share(key, len(chains)), staged=key in settings.staged and not runs_itself(chain)
            )
            for key, chain in chains.items()
        }
        self.clock, self.settings, self.emit = clock, settings, emit
        self.preparing = Preparing(chains.values(), clock, PREPARING * settings.seconds * 1e9)
        self.start = clock.now()
        self.dice = random.Random(settings.seed)
        self.facts = clock_facts(clock)
        self.shelter: QuietProcessor | None = None

    def tell(self, doing: Doing) -> None:
        """Say what comes next; others may measure before this returns, so its time is not this process's."""
        said = self.clock.now()
        self.emit(doing)
        self.start += self.clock.now() - said

    def close(self) -> None:
        if self.shelter is not None:
            self.shelter.close()

    def run(self) -> str:
        for case in list(self.live.values()):
            self.guard(case, "first", self.first)
        self.shelter = QuietProcessor(self.clock)
        for case in list(self.live.values()):
            self.shelter.settle()
            self.guard(case, "calibrate", self.calibrate)
        if not self.settings.slopes_only:
            for case in list(self.live.values()):
                # Another process's turn ends the slower speed of CUDA graphs: docs/cuda.md.
                self.tell(Doing("", "once", others=True))
                self.shelter.settle()
                self.guard(case, "once", self.once)
        gc.collect()
        gc.freeze()  # so that the collections between rounds have next to nothing to look at
        number, self.planned = 0, self.plan()
        while not (rule := self.rule(number)):
            if number == LEAST_ROUNDS:  # by now a part's whole cost is known
                self.planned = number + self.plan()
            self.round(number)
            number += 1
        return rule

    def guard(self, case: CaseInProgress, what: str, act: Callable[[CaseInProgress], None]) -> None:
        """Do one thing to one case; whatever it raises costs that case alone."""
        self.tell(Doing(case.key, what))
        try:
            act(case)
        except (Exception, SystemExit) as error:
            del self.live[case.key]
            self.emit(Dropped(case.key, status_of(error), reason_of(error)))

    def rule(self, number: int) -> str:
        """Why to stop before this round, or nothing."""
        spent = self.spent() / 1e9
        if not self.live:
            return "no case left"
        if number >= self.settings.max_rounds:
            return f"{number} rounds"
        enough = number >= self.settings.min_rounds
        if enough and all(case.steady for case in self.live.values()):
            return f"after {number} rounds each case held within a quarter of {self.settings.target:.0%}"
        if number >= LEAST_ROUNDS and spent >= self.settings.seconds * (1 if enough else OVERTIME):
            return f"time: {self.settings.seconds:.1f} s"
        return ""

    def first(self, case: CaseInProgress) -> None:
        """The first call in this process."""
        for taken in one_off.first(case.chain, self.clock):
            case.issued += taken.issued
            if not self.settings.slopes_only:
                self.emit(Taken(case.key, taken.name, taken.values, taken.at))
        facts = window.clock_of(case.chain, self.facts)
        self.emit(Taken(case.key, "clock", [facts.resolution_ns, facts.cost_ns, facts.cpu_cost_ns]))

    def calibrate(self, case: CaseInProgress) -> None:
        queues = case.chain.overlap == "pipelined" and not (case.chain.synchronous or self.settings.slopes_only)
        knee = queues and (case.key in self.settings.extras or case.seconds >= KNEE_SECONDS)
        known = self.settings.ladders.get(case.key)
        if known and not knee:
            case.ladder = relaid(case.chain, self.clock, known)
        else:
            limits = Limits(self.settings.target, case.seconds, knee=knee, facts=self.facts)
            case.ladder = calibrate(case.chain, self.clock, limits)
        if case.ladder.stairs:
            self.emit(Taken(case.key, "wait_quantum", [case.ladder.stairs.quantum_ns]))
        self.emit(Taken(case.key, "ladder", [float(n) for n in case.ladder.ns], reason=case.ladder.shortfall))
        case.cost = case.ladder.pass_ns
        case.issued += case.ladder.issued
        case.verify()

    def once(self, case: CaseInProgress) -> None:
        """What is taken outside the ladder."""
        for taken in one_off.take(case.chain, self.clock, case.ladder, case.seconds, case.key in self.settings.extras):
            case.issued += taken.issued
            self.emit(Taken(case.key, taken.name, taken.values, taken.at, taken.reason))
        case.verify()
        staged = case.key in self.settings.staged
        told = list(one_off.inside(case.chain, self.clock, case.ladder, case.seconds, staged))
        for taken in told:
            self.emit(Taken(case.key, taken.name, taken.values, taken.at, taken.reason))
        if told:  # these ran units uncounted
            case.issued = case.chain.executed()

    def spent(self) -> float:
        """ns of sampling so far."""
        return self.clock.now() - self.start - self.preparing.ns

    def left(self) -> float:
        """ns of the time that remain."""
        return max(0.0, self.settings.seconds * 1e9 - self.spent())

    def plan(self) -> int:
        """How many rounds to cut the time into, so that every case can take part in each: pairs are formed by round."""
        shares = sum(case.seconds for case in self.live.values())
        most = min((self.left() * case.seconds / shares / case.cost for case in self.live.values()), default=0.0)
        return max(self.settings.min_rounds, min(ROUNDS, int(most)))

    def round(self, number: int) -> None:
        """Every live case once, in a new order; each gets time in proportion to its share, whatever a pass costs it."""
        self.tell(Doing("", f"round {number}", others=number == 0))
        gc.collect()
        assert self.shelter is not None
        if number % STAY == 0:
            self.shelter.leave()
        shares = sum(case.seconds for case in self.live.values())
        slot = self.left() / shares / max(1, self.planned - number)
        for case in self.live.values():
            case.credit += slot * case.seconds
        order = list(self.live.values())
        self.dice.shuffle(order)
        for case in order:
            passes = case.passes(number < self.settings.min_rounds)
            if passes:
                self.guard(case, f"round {number}", functools.partial(self.sample, number, passes))

    def sample(self, number: int, passes: int, case: CaseInProgress) -> None:
        """One case's part of a round, and the proof that it happened."""
        assert self.shelter is not None
        before, chain, start = self.shelter.settle(), case.chain, self.spent()
        ns = case.ladder.draw(passes, self.dice)
        rows = window.sample(chain, ns, self.clock)
        case.issued += window.units(chain, ns)
        if case.reads_cpu and not (chain.synchronous or chain.wait_spins):
            ns = case.ladder.cpu(passes, case.rounds)
            read = window.sample(chain, ns, self.clock, cpu=True)
            case.issued += window.units(chain, ns)
            case.reads_cpu = all(len(row) == 4 for row in read)
            rows += read
        if case.staged:
            self.stages(case)
        case.verify()
        weather = [max(pair) for pair in zip(before, self.shelter.again(), strict=True)]
        case.keep(Round(rows, weather, number), self.settings.target)
        if case.rounds == 0:
            rows = rows + [list(row) for row in case.ladder.extra]
        case.spend(self.spent() - start, passes)
        self.emit(Rounded(case.key, number, rows, weather))

    def stages(self, case: CaseInProgress) -> None:
        """The case's calls one by one; never again where it has none to tell."""
        n = staged_calls.length(case.ladder)
        parts, issued = staged_calls.staged(case.chain, n, self.clock)
        case.issued += issued
        case.staged = bool(parts)
        for name, value in parts.items():
            self.emit(Taken(case.key, name, [value], [n]))


__all__ = [
    "Doing", "Dropped", "Event", "Rounded", "Settings", "Taken", "Unverified", "conduct", "reason_of", "status_of",
]  # fmt: skip
