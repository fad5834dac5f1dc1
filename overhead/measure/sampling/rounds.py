"""The sampling of one worker: each case gets a ladder (sizes of n) and one-off values; then all
take turns.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import random
from collections.abc import Callable, Iterable, Mapping

from overhead.errors import Unsupported
from overhead.measure.sampling import anchors, met, one_off, window
from overhead.measure.sampling.calibrate import CLIMB, Limits, calibrate, retime_ladder
from overhead.measure.sampling.case import ROUNDS, CaseInProgress
from overhead.measure.sampling.chain import Chain
from overhead.measure.sampling.clock import Clock, clock_facts, cpu_clock_counts
from overhead.measure.sampling.events import Doing, Event, Settings, reason_of, status_of
from overhead.measure.sampling.quiet_processor import QuietProcessor
from overhead.results import FailedEntry, RoundEntry, Why, because

Judge = Callable[[str, BaseException], BaseException]
"""Gives the error that stands for the one which the first call of a case raised."""


def measure_cases(
    chains: Mapping[str, Chain],
    clock: Clock,
    settings: Settings,
    emit: Callable[[Event], None],
    judge_first: Judge = lambda case, error: error,
) -> Why:
    """Measure all chains of this worker in alternation; return the rule that stopped it.

    A case that raises is emitted as a ``FailedEntry`` and the others go on; KeyboardInterrupt
    passes through. The garbage collector is off while a sample is timed and runs between rounds.
    After each case's first call, when the stacks have started their threads, and after the *met*
    costs (what a program pays when nothing is left out), the calling thread is moved to processors
    that run at full speed, a few rounds on each.
    """
    enabled = gc.isenabled()
    frozen_by_the_caller = gc.get_freeze_count() > 0
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        return _Measurement(chains, clock, settings, emit, judge_first).run()
    finally:
        if not frozen_by_the_caller:  # Python cannot tell the caller's objects from ours
            gc.unfreeze()
        if enabled:
            gc.enable()


class _Measurement:
    """All steps of ``measure_cases``. ``live``: the cases that have not been dropped.

    ``preparing_ns``: the time of the first ``prepare`` of each n, in which a stack may compile or
    record.
    """

    processor: QuietProcessor

    def __init__(
        self,
        chains: Mapping[str, Chain],
        clock: Clock,
        settings: Settings,
        emit: Callable[[Event], None],
        judge_first: Judge,
    ) -> None:
        counts = cpu_clock_counts(clock)
        self.live = {
            key: CaseInProgress(
                key,
                chain,
                settings.seconds / len(chains),
                reads_cpu=counts or chain.own_loop,
                staged=key in settings.staged and not chain.own_loop,
                names=settings.names.get(key)
                or {"target": "", "case": key, "worker": "", "process": 0},
            )
            for key, chain in chains.items()
        }
        self.clock, self.settings, self.emit = clock, settings, emit
        self.judge_first = judge_first
        self.preparing_ns = 0
        for chain in chains.values():
            chain.prepare = self.timed(chain.prepare)  # type: ignore[assignment]
        self.start: float = clock.now()
        self.born = self.start
        self.dice = random.Random(settings.seed)
        self.facts = clock_facts(clock)

    def timed(self, prepare: Callable[[int], None]) -> Callable[[int], None]:
        """The same ``prepare``, which adds the time of its first call for each n to
        ``preparing_ns``.
        """
        known: set[int] = set()

        def first_timed(n: int) -> None:
            if n in known:
                return prepare(n)
            began = self.clock.now()
            prepare(n)
            self.preparing_ns += self.clock.now() - began
            known.add(n)

        return first_timed

    def run(self) -> Why:
        """Measure; return the rule that stopped it."""
        for case in list(self.live.values()):
            self.attempt(case, "first", self.measure_first_call)
        self.outside_the_budget(self.measure_met_costs)
        with contextlib.closing(QuietProcessor(self.clock)) as self.processor:
            for case in list(self.live.values()):
                self.processor.leave_if_slow()
                self.attempt(case, "calibrate", self.calibrate)
            for case in list(self.live.values()):
                # Another process's turn ends the slower speed of CUDA graphs: docs/cuda.md.
                self.announce(Doing("", "once", others=True))
                self.processor.leave_if_slow()
                self.attempt(case, "once", self.measure_one_off_values)
            rule = self.alternate()
            for case in itertools.cycle(list(self.live.values())):
                if (
                    self.clock.now() - self.born >= anchors.ANCHORS.least_age_s * 1e9
                    or not self.live
                ):
                    break
                self.attempt(case, "grow older", self.grow_older)
            for case in list(self.live.values()):
                self.processor.leave_if_slow()
                self.attempt(case, "anchor", self.take_anchors)
            return rule

    def alternate(self) -> Why:
        """Run rounds until a rule stops them; return the rule."""
        gc.collect()
        gc.freeze()  # so that the collections between rounds have almost nothing to traverse
        number = 0
        while not (rule := self.stop_rule(number)):
            self.measure_round(number)
            number += 1
        return rule

    def emit_all(self, lines: Iterable[Event]) -> None:
        """Emit these lines one after another."""
        for line in lines:
            self.emit(line)

    def announce(self, doing: Doing) -> None:
        """Emit what comes next. Other workers may measure before this returns: that time does not
        count.
        """
        began = self.clock.now()
        self.emit(doing)
        self.start += self.clock.now() - began

    def attempt(
        self, case: CaseInProgress, what: str, act: Callable[[CaseInProgress], None]
    ) -> None:
        """Do one step of one case; drop the case if it raises."""
        self.announce(Doing(case.key, what))
        try:
            act(case)
        except (Exception, SystemExit) as error:
            del self.live[case.key]
            judged = self.judge_first(case.key, error) if what == "first" else error
            self.emit(FailedEntry(**case.names, status=status_of(judged), reason=reason_of(judged)))

    def stop_rule(self, number: int) -> Why:
        """Why to stop before this round; empty to go on."""
        spent = self.sampling_ns() / 1e9
        if not self.live:
            return because("no-case-left")
        if number >= self.settings.max_rounds:
            return because("rounds-done", rounds=number)
        enough = number >= self.settings.min_rounds
        if number >= ROUNDS.least and spent >= self.settings.seconds * (
            1 if enough else ROUNDS.overtime
        ):
            return because("time-is-over", seconds=self.settings.seconds)
        return ""

    def measure_first_call(self, case: CaseInProgress) -> None:
        """The first call in this process, and the facts of the clock. Raises ``Unsupported`` for
        one that stands.
        """
        if not self.facts.resolution_ns:
            raise Unsupported(because("clock-stands"))
        self.emit_all(one_off.time_first_call(case, self.clock))
        facts = window.clock_of(case.chain, self.facts)
        self.emit(case.once("clock", [facts.resolution_ns, facts.cost_ns, facts.cpu_cost_ns]))

    def measure_met_costs(self) -> None:
        """What a program without this suite pays, with the garbage collector on."""
        lengths: dict[str, met.Lengths] = {}
        gc.enable()
        try:
            for case in [case for key, case in self.live.items() if key in self.settings.met]:
                self.attempt(case, "met", functools.partial(self.find_met_lengths, lengths))
            for _ in range(met.MET.turns):
                for case in [case for key, case in self.live.items() if key in lengths]:
                    self.attempt(
                        case, "met", functools.partial(self.take_met_turn, lengths[case.key])
                    )
        finally:
            gc.disable()

    def find_met_lengths(self, lengths: dict[str, met.Lengths], case: CaseInProgress) -> None:
        """Add the case's two sizes of n; emit the reason if it has none."""
        try:
            lengths[case.key] = met.find_lengths(
                case, self.clock, self.settings.ladders.get(case.key, ())
            )
        except Unsupported as error:
            self.emit(case.once("met", reason=reason_of(error)))
        case.verify()

    def take_met_turn(self, lengths: met.Lengths, case: CaseInProgress) -> None:
        """One turn of the case's met cost, verified."""
        slope = met.take_turn(case, self.clock, lengths)
        case.verify()
        self.emit(case.once("met", [slope], [lengths.long]))

    def calibrate(self, case: CaseInProgress) -> None:
        """Find the case's ladder, or take that of an earlier process."""
        queues = case.chain.overlap == "pipelined" and not case.chain.synchronous
        knee = queues and (case.key in self.settings.extras or case.seconds >= ROUNDS.knee_seconds)
        known = self.settings.ladders.get(case.key)
        if known and not knee:
            ladder, raised = retime_ladder(case.chain, self.clock, known), CLIMB.octaves / 2
        else:
            limits = Limits(self.settings.target, case.seconds, knee=knee, facts=self.facts)
            ladder, raised = calibrate(case.chain, self.clock, limits), 0.0
        case.ladder = (
            ladder if case.chain.poll_ns else ladder.drawn(self.dice, raised, case.chain.max_n)
        )
        if case.ladder.stairs:
            self.emit(case.once("wait_quantum", [case.ladder.stairs.quantum_ns]))
        self.emit(
            case.once("ladder", [float(n) for n in case.ladder.ns], reason=case.ladder.shortfall)
        )
        case.cost = case.ladder.pass_ns
        case.issued += case.ladder.issued
        case.verify()
        self.clock.release_threads()

    def measure_one_off_values(self, case: CaseInProgress) -> None:
        """The values that are measured outside the ladder."""
        self.emit_all(one_off.time_short_chains(case, self.clock, case.key in self.settings.extras))
        case.verify()
        aside = case.chain.aside
        uncounted = list(one_off.time_device_and_recordings(case, self.clock))
        self.emit_all(uncounted)
        if uncounted:
            case.recount(aside)
        self.clock.release_threads()

    def grow_older(self, case: CaseInProgress) -> None:
        """Run the case without keeping a sample, so that the anchors show a warm-up that outlasts
        the rounds.
        """
        ns = [anchors.aging_n(case.ladder, case.chain.max_n)]
        window.sample(case.chain, ns, self.clock)
        case.issued += case.chain.units(ns)

    def take_anchors(self, case: CaseInProgress) -> None:
        """The case's anchors, verified: on the processor of the last rounds."""
        self.emit(case.once("anchor_canary", [float(self.processor.canary()[0])]))
        self.emit(case.once("anchor_age", [float(self.clock.now() - self.born)]))
        self.emit_all(
            anchors.take(
                case, self.clock, int(case.names["process"]), case.key in self.settings.far
            )
        )
        self.emit_all(anchors.take_near(case, self.clock))
        case.verify()
        self.clock.release_threads()

    def outside_the_budget(self, act: Callable[[], None]) -> None:
        """Do something whose time does not count as sampling."""
        before, preparing_ns = self.sampling_ns(), self.preparing_ns
        act()
        self.preparing_ns = preparing_ns
        self.start += self.sampling_ns() - before

    def sampling_ns(self) -> float:
        """ns of sampling so far. Preparing does not count, up to the sampling time of the
        process.
        """
        return self.clock.now() - self.start - min(self.preparing_ns, self.settings.seconds * 1e9)

    def left_ns(self) -> float:
        """ns of sampling time that are left."""
        return max(0.0, self.settings.seconds * 1e9 - self.sampling_ns())

    def rounds_that_fit(self, number: int) -> int:
        """The further rounds for the time left in which every case can take part: a pair needs both
        in a round.
        """
        each = self.left_ns() / len(self.live)
        most = min(each / case.cost for case in self.live.values())
        return max(1, self.settings.min_rounds - number, min(ROUNDS.most - number, int(most)))

    def measure_round(self, number: int) -> None:
        """Every live case once, in a new order. Each gets the same time, whatever a pass costs."""
        self.announce(Doing("", f"round {number}", others=number == 0))
        gc.collect()
        if number % ROUNDS.on_one_processor == 0:
            self.processor.move_on()
        slot = self.left_ns() / len(self.live) / self.rounds_that_fit(number)
        for case in self.live.values():
            case.credit += slot
        order = list(self.live.values())
        self.dice.shuffle(order)
        for case in order:
            passes = case.passes(number < self.settings.min_rounds)
            if passes:
                self.attempt(
                    case, f"round {number}", functools.partial(self.sample, number, passes)
                )

    def sample(self, number: int, passes: int, case: CaseInProgress) -> None:
        """One case's samples of a round, verified."""
        before, chain, start = self.processor.leave_if_slow(), case.chain, self.sampling_ns()
        ns = case.ladder.draw(passes, self.dice)
        queued = self.clock.queued()
        rows = window.sample(chain, ns, self.clock)
        queued = self.clock.queued() - queued
        case.issued += chain.units(ns)
        if case.reads_cpu and not (chain.synchronous or chain.wait_spins):
            ns = case.ladder.draw_for_cpu(passes, case.rounds)
            with_cpu = window.sample(chain, ns, self.clock, cpu=True)
            case.issued += chain.units(ns)
            case.reads_cpu = all(len(row) == 4 for row in with_cpu)
            rows += with_cpu
        if case.staged:
            self.emit_all(one_off.time_stages(case, self.clock))
        case.verify()
        canary = [max(pair) for pair in zip(before, self.processor.canary(), strict=True)]
        if case.rounds == 0:
            rows = rows + case.ladder.extra
        case.spend(self.sampling_ns() - start, passes)
        self.emit(
            RoundEntry(**case.names, round=number, samples=rows, canary=canary, queued=queued)
        )
        self.clock.release_threads()
