"""The sampling of one worker: each case gets a ladder (sizes of n) and one-off values; then all
take turns.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from overhead.errors import Unsupported
from overhead.measure.sampling import anchors, one_off, unpinned, window
from overhead.measure.sampling.calibrate import CLIMB, Limits, calibrate, retime_ladder
from overhead.measure.sampling.case import ROUNDS, CaseInProgress
from overhead.measure.sampling.chain import Chain, Samples
from overhead.measure.sampling.clock import Clock, clock_facts, cpu_clock_counts
from overhead.measure.sampling.collector import collector_off
from overhead.measure.sampling.events import Doing, Event, Settings, reason_of, status_of
from overhead.measure.sampling.undisturbed_processor import UndisturbedProcessor
from overhead.results import FailedEntry, RoundEntry, Why, because

Judge = Callable[[str, BaseException], BaseException]
"""Gives the error that stands for the one which the first call of a case raised."""


@dataclass(frozen=True)
class RoundsSoFar:
    """What decides whether another round starts. ``rounds``: how many were run. ``spent_s``:
    seconds of sampling. ``live_cases``: the cases that have not been dropped.
    """

    settings: Settings
    rounds: int
    spent_s: float
    live_cases: int


def _no_case_is_left(so_far: RoundsSoFar) -> Why:
    """All cases were dropped, since each raised an error."""
    return because("no-case-left") if so_far.live_cases == 0 else ""


def _rounds_are_done(so_far: RoundsSoFar) -> Why:
    """The process has made as many rounds as its settings allow."""
    if so_far.rounds < so_far.settings.max_rounds:
        return ""
    return because("rounds-done", rounds=so_far.rounds)


def _time_is_over(so_far: RoundsSoFar) -> Why:
    """The rule that ends the rounds when the seconds of the settings are over. While the process
    has fewer rounds than the settings ask for, it may take ``ROUNDS.overtime`` times as long; it
    always gets ``ROUNDS.least`` rounds. Returns the reason to stop; '' to go on.
    """
    if so_far.rounds < ROUNDS.least:
        return ""
    allowed_s = so_far.settings.seconds
    # Rounds that are still owed may take half as long again, but not more.
    if so_far.rounds < so_far.settings.min_rounds:
        allowed_s *= ROUNDS.overtime
    if so_far.spent_s < allowed_s:
        return ""
    return because("time-is-over", seconds=so_far.settings.seconds)


STOPPING_RULES: tuple[Callable[[RoundsSoFar], Why], ...] = (
    _no_case_is_left,
    _rounds_are_done,
    _time_is_over,
)
"""Why to stop before another round: the reason of the first rule that gives one."""


def measure_cases(
    chains: Mapping[str, Chain],
    clock: Clock,
    settings: Settings,
    emit: Callable[[Event], None],
    judge_first: Judge = lambda case, error: error,
) -> Why:
    """Measure all cases of this worker, whose open chains are ``chains``, in alternation; return
    the rule that stopped it. ``emit`` gets each result at once, so that a crash loses little.

    A case that raises is emitted as a ``FailedEntry`` and the others go on; KeyboardInterrupt
    passes through. ``judge_first`` gets the error of a case's first call and returns the one to
    report: where nothing has run on a target yet, the machine may lack something. The garbage
    collector is off while a sample is timed and runs between rounds. Once the stacks have started
    their threads, the calling thread is moved to processors that run at full speed, a few rounds on
    each.
    """
    gc.collect()
    with collector_off():
        return _Measurement(chains, clock, settings, emit, judge_first).run()


class _Measurement:
    """One worker's measurement of its cases (ways to launch work), step by step, as
    ``measure_cases`` describes it. ``live``: the cases that have not been dropped.

    ``began_ns``: the time at which this object was made, from which the age of the process counts.
    ``counted_from_ns``: the time from which sampling counts: it starts at ``began_ns`` and moves on
    by all time that is not sampling. ``preparing_ns``: the time of the first ``prepare`` of each n,
    in which a stack may compile or record.
    """

    processor: UndisturbedProcessor

    def __init__(
        self,
        chains: Mapping[str, Chain],
        clock: Clock,
        settings: Settings,
        emit: Callable[[Event], None],
        judge_first: Judge,
    ) -> None:
        self.clock = clock
        self.settings = settings
        self.emit = emit
        self.judge_first = judge_first
        # A chain with its own loop (in a browser page, say) brings its own CPU clock, and its calls
        # cannot be timed one by one from here.
        cpu_clock_counts_work = cpu_clock_counts(clock)
        self.live: dict[str, CaseInProgress] = {}
        for key, chain in chains.items():
            # Without names in the settings the lines of the case name its key alone.
            unnamed = {"target": "", "case": key, "worker": "", "process": settings.process}
            # ``seconds / len(chains)``: each case's share of the time. ``staged``: its calls are
            # also timed one by one.
            self.live[key] = CaseInProgress(
                key,
                chain,
                settings.seconds / len(chains),
                reads_cpu=cpu_clock_counts_work or chain.own_loop,
                staged=key in settings.staged and not chain.own_loop,
                names=settings.names.get(key) or unnamed,
            )
        self.preparing_ns = 0
        # A wrapper around each chain's own method: all code that samples calls ``chain.prepare``.
        for chain in chains.values():
            chain.prepare = self.timed(chain.prepare)  # type: ignore[assignment]
        # Sampling time counts from ``counted_from_ns``, which moves on by all time that is not
        # sampling; the age of the process counts from ``began_ns``, which stays.
        self.counted_from_ns: float = clock.now()
        self.began_ns = self.counted_from_ns
        # Seeded, so that the order of the cases and their sizes can be repeated.
        self.dice = random.Random(settings.seed)
        self.facts = clock_facts(clock)

    def timed(self, prepare: Callable[[int], None]) -> Callable[[int], None]:
        """A wrapper of a chain's ``prepare`` that adds the time of the first call for each n to
        ``preparing_ns``: that call may compile or record, and does not count as sampling.
        """
        known: set[int] = set()

        def first_timed(n: int) -> None:
            if n in known:
                return prepare(n)
            began = self.clock.now()
            prepare(n)
            self.preparing_ns += self.clock.now() - began
            # A call that raised does not count as the first one.
            known.add(n)

        return first_timed

    def run(self) -> Why:
        """Measure; return the rule that stopped it.

        The order matters. The first calls start the threads of the stacks, and the unpinned costs
        need the processors that the system gives, so both come before the thread is bound to a
        processor. The anchors (samples of a very large n) come last: they show what has changed
        since the rounds.
        """
        # A list, here and below, since a case that fails is removed meanwhile. ``attempt``: one
        # step of one case, whose error drops the case alone.
        for case in list(self.live.values()):
            self.attempt(case, "first", self.measure_first_call)
        # Its time does not count as sampling.
        self.outside_the_budget(self.measure_unpinned_costs)
        # From here on the thread is bound to one processor at a time, and leaves a slow one.
        with contextlib.closing(UndisturbedProcessor(self.clock)) as self.processor:
            for case in list(self.live.values()):
                self.processor.leave_if_slow()
                self.attempt(case, "calibrate", self.calibrate)
            for case in list(self.live.values()):
                # ``others``: another worker should measure before this one goes on. Its turn ends
                # the slower speed of CUDA graphs: docs/cuda.md.
                self.announce(Doing("", "once", others=True))
                self.processor.leave_if_slow()
                self.attempt(case, "once", self.measure_one_off_values)
            # The rounds, which the figures of the line come from.
            rule = self.alternate()
            self.wait_until_old_enough()
            for case in list(self.live.values()):
                self.processor.leave_if_slow()
                self.attempt(case, "anchor", self.take_anchors)
            return rule

    def alternate(self) -> Why:
        """Run rounds, in each of which the cases take turns, until a rule stops them; return the
        rule.
        """
        gc.collect()
        gc.freeze()  # so that the collections between rounds have almost nothing to traverse
        number = 0
        while True:
            rule = self.stopping_rule(number)
            if rule:
                return rule
            self.measure_round(number)
            number += 1

    def stopping_rule(self, number: int) -> Why:
        """Why to stop before the round of this number, from the first of ``STOPPING_RULES`` that
        gives a reason; empty to go on.
        """
        spent_s = self.sampling_ns() / 1e9
        so_far = RoundsSoFar(self.settings, number, spent_s, len(self.live))
        for rule in STOPPING_RULES:
            reason = rule(so_far)
            if reason:
                return reason
        return ""

    def wait_until_old_enough(self) -> None:
        """Run the cases in turn, without keeping a sample, until the process is as old as its
        anchors require. Anchors (samples of a very large n, taken last) show a warm-up that
        outlasts the rounds, but only in a process of some age. A case that fails meanwhile is
        dropped like in a round.
        """
        # The cases take turns; the age is looked at before each.
        while self.live:
            for case in list(self.live.values()):
                age_ns = self.clock.now() - self.began_ns
                if age_ns >= anchors.ANCHORS.least_age_s * 1e9:
                    return
                self.attempt(case, "grow older", self.grow_older)

    def emit_all(self, entries: Iterable[Event]) -> None:
        """Emit these entries one after another."""
        for entry in entries:
            self.emit(entry)

    def announce(self, doing: Doing) -> None:
        """Emit what comes next. Other workers may measure before this returns: that time does not
        count.
        """
        began = self.clock.now()
        self.emit(doing)
        self.counted_from_ns += self.clock.now() - began

    def attempt(
        self, case: CaseInProgress, what: str, act: Callable[[CaseInProgress], None]
    ) -> None:
        """Do one step of one case; if it raises, drop the case and emit why. ``what`` names the
        step; the error of a step "first" may be replaced by the one that ``judge_first`` gives.
        """
        # Tells the runner what comes next, before a step that may hang or crash.
        self.announce(Doing(case.key, what))
        try:
            act(case)
        except (Exception, SystemExit) as error:
            # Dropped: no later step of this process measures the case.
            del self.live[case.key]
            judged: BaseException = error
            if what == "first":
                # Where nothing has run on the target yet, the machine may lack something: then the
                # case is unavailable, which says what, and not failed.
                judged = self.judge_first(case.key, error)
            status = status_of(judged)
            self.emit(FailedEntry(**case.names, status=status, reason=reason_of(judged)))

    def measure_first_call(self, case: CaseInProgress) -> None:
        """Time the first call of the case in this process, and emit the facts of the clock that its
        samples use. Raises ``Unsupported`` if that clock stands still: no sample could have a time.
        """
        # ``facts``: the smallest step of the clock, and what a reading costs, as measured.
        if not self.facts.resolution_ns:
            raise Unsupported(because("clock-stands"))
        self.emit_all(one_off.time_first_call(case, self.clock))
        # The step of the chain's own clock where it has one.
        facts = window.clock_of(case.chain, self.facts)
        self.emit(case.once("clock", [facts.resolution_ns, facts.cost_ns, facts.cpu_cost_ns]))

    def measure_unpinned_costs(self) -> None:
        """Measure the unpinned costs (``met`` in files): what a program pays that runs on any
        processor and with the garbage collector on. A few turns of each case, in which the cases
        alternate, so that a disturbance of some seconds meets them all.

        ``lengths`` has the two sizes of n of each case for which such sizes were found.
        """
        lengths: dict[str, unpinned.Lengths] = {}
        gc.enable()
        try:
            # A list, since a case that fails is removed meanwhile.
            for case in list(self.live.values()):
                # ``settings.met``: the cases for which this cost is wanted.
                if case.key in self.settings.met:
                    find = functools.partial(self.find_unpinned_lengths, lengths)
                    self.attempt(case, "met", find)
            for _ in range(unpinned.UNPINNED.turns):
                for case in list(self.live.values()):
                    if case.key in lengths:
                        turn = functools.partial(self.take_unpinned_turn, lengths[case.key])
                        self.attempt(case, "met", turn)
        finally:
            gc.disable()

    def find_unpinned_lengths(
        self, lengths: dict[str, unpinned.Lengths], case: CaseInProgress
    ) -> None:
        """Find the two sizes of n whose difference gives the case's unpinned cost, and add them to
        ``lengths``. A case that has none is emitted with the reason; it is measured further all the
        same, without an unpinned cost.
        """
        # The n that an earlier process of the case found, if there was one.
        ladder = self.settings.ladders.get(case.key, ())
        try:
            lengths[case.key] = unpinned.find_lengths(case, self.clock, ladder)
        except Unsupported as error:
            self.emit(case.once("met", reason=reason_of(error)))
        case.verify()

    def take_unpinned_turn(self, lengths: unpinned.Lengths, case: CaseInProgress) -> None:
        """One turn of the case's unpinned cost, verified."""
        slope = unpinned.take_turn(case, self.clock, lengths)
        case.verify()
        self.emit(case.once("met", [slope], [lengths.long]))

    def calibrate(self, case: CaseInProgress) -> None:
        """Give the case its ladder, the sizes of n that its rounds sample: found by a search, or
        taken from an earlier process and only timed again.

        Each process then draws its sizes within half an octave: below those that it found, or
        around those that it took.
        """
        chain = case.chain
        # The n at which the queue is full (the knee) is searched for in each process anew.
        queues = chain.overlap == "pipelined" and not chain.synchronous
        # 0.5 s: the search takes long samples. ``extras``: cases that get the slow values in any
        # case.
        has_time = case.seconds >= ROUNDS.knee_seconds or case.key in self.settings.extras
        knee = queues and has_time
        known = self.settings.ladders.get(case.key)
        if known and not knee:
            ladder = retime_ladder(chain, self.clock, known)
            # Sizes are drawn from half an octave: by a quarter up and down around known ones, ...
            raised = CLIMB.octaves / 2
        else:
            limits = Limits(self.settings.precision, case.seconds, knee=knee, facts=self.facts)
            ladder = calibrate(chain, self.clock, limits)
            # ... and only down from those that a search found.
            raised = 0.0
        # With a declared poll the sizes stay: the search already began at a random n.
        if not chain.poll_ns:
            ladder = ladder.drawn(self.dice, raised, chain.max_n)

        case.ladder = ladder
        if ladder.stairs:
            self.emit(case.once("wait_quantum", [ladder.stairs.quantum_ns]))
        # The journal gets the sizes, and why the largest is smaller than wanted (``shortfall``).
        sizes = [float(n) for n in ladder.ns]
        self.emit(case.once("ladder", sizes, reason=ladder.shortfall))
        # What is known for planning: ns per pass, and the units that ran so far.
        case.cost = ladder.pass_ns
        case.issued += ladder.issued
        # Reads the values that the units wrote, and raises unless all issued units ran.
        case.verify()
        self.clock.release_threads()

    def measure_one_off_values(self, case: CaseInProgress) -> None:
        """Measure what does not come from samples of several n: waits without work, single units,
        device time, and making recordings.
        """
        extra = case.key in self.settings.extras
        self.emit_all(one_off.time_short_chains(case, self.clock, extra))
        case.verify()
        # Units that ran and that ``executed`` leaves out, before the work that is not counted.
        aside = case.chain.aside
        # These may run any number of units, so the units are counted again afterwards.
        uncounted = list(one_off.time_device_and_recordings(case, self.clock))
        self.emit_all(uncounted)
        if uncounted:
            case.recount(aside)
        # Threads that a stack started meanwhile may use all processors, not only this one.
        self.clock.release_threads()

    def grow_older(self, case: CaseInProgress) -> None:
        """Run the case without keeping a sample."""
        ns = [anchors.aging_n(case.ladder, case.chain.max_n)]
        window.sample(case.chain, ns, self.clock)
        case.issued += case.chain.units(ns)

    def take_anchors(self, case: CaseInProgress) -> None:
        """Take the case's anchors, samples of n far beyond and far below those of the rounds, and
        verify that all units ran. Before them, emit how fast the processor is now and how old the
        process is: the fit compares the anchors with the rounds.
        """
        # Index 0: the loop in Python, as in the rounds.
        python_ns = self.processor.reference_loop()[0]
        self.emit(case.once("anchor_canary", [float(python_ns)]))
        age_ns = self.clock.now() - self.began_ns
        self.emit(case.once("anchor_age", [float(age_ns)]))
        far = case.key in self.settings.far
        self.emit_all(anchors.take(case, self.clock, self.settings.process, far))
        self.emit_all(anchors.take_near(case, self.clock))
        case.verify()
        self.clock.release_threads()

    def outside_the_budget(self, act: Callable[[], None]) -> None:
        """Do something whose time does not count as sampling."""
        before = self.sampling_ns()
        preparing_ns = self.preparing_ns
        act()
        self.preparing_ns = preparing_ns
        self.counted_from_ns += self.sampling_ns() - before

    def sampling_ns(self) -> float:
        """ns of sampling so far. Preparing does not count, up to the sampling time of the
        process.
        """
        not_counted_ns = min(self.preparing_ns, self.settings.seconds * 1e9)
        return self.clock.now() - self.counted_from_ns - not_counted_ns

    def left_ns(self) -> float:
        """ns of sampling time that are left."""
        return max(0.0, self.settings.seconds * 1e9 - self.sampling_ns())

    def rounds_that_fit(self, number: int) -> int:
        """How many more rounds to make, from the ``number``-th one on, so that even the slowest
        case can pay for a pass (one sample of every n) in each: a difference of two cases needs
        both in the same round. At least as many as are still required, and one.
        """
        left_for_each = self.left_ns() / len(self.live)
        # ``cost``: ns per pass so far. Passes that the dearest case can pay for with its share of
        # the time that is left. ``ROUNDS.most``: so many rounds are planned at most.
        of_slowest_case = min(left_for_each / case.cost for case in self.live.values())
        fitting = min(ROUNDS.most - number, int(of_slowest_case))
        return max(1, self.settings.min_rounds - number, fitting)

    def measure_round(self, number: int) -> None:
        """Run one round: every live case once, in a new random order. Each case gets the same time,
        whatever a pass (one sample of every n) costs it, so a cheap one makes several passes and an
        expensive one may sit out a round.
        """
        # Other workers may measure now; before the first round, another one should.
        self.announce(Doing("", f"round {number}", others=number == 0))
        gc.collect()
        # Every fourth round on the next processor: each move makes caches cold, and a disturbance
        # that the reference loop does not show then meets a few rounds only.
        if number % ROUNDS.on_one_processor == 0:
            self.processor.move_on()
        left_for_each = self.left_ns() / len(self.live)
        # The time of each case in this round.
        slot_ns = left_for_each / self.rounds_that_fit(number)
        # Time that a case did not use stays its credit, until it can pay for a pass.
        for case in self.live.values():
            case.credit += slot_ns
        order = list(self.live.values())
        self.dice.shuffle(order)
        is_due = number < self.settings.min_rounds
        for case in order:
            passes = case.passes(is_due)
            if passes:
                sample = functools.partial(self.sample, number, passes)
                self.attempt(case, f"round {number}", sample)

    def sample(self, number: int, passes: int, case: CaseInProgress) -> None:
        """Take one case's samples of a round, verify that its units ran, and emit them. The
        reference loop, which shows the processor's speed, is timed before and after; the slower
        time counts, since a disturbance may begin in between.
        """
        # Moves to another processor if this one is slow. ``before``: the times of the reference
        # loop.
        before = self.processor.leave_if_slow()
        chain = case.chain
        # ns of sampling so far; preparing does not count.
        start = self.sampling_ns()
        ns = case.ladder.draw(passes, self.dice)
        queued_before = self.clock.queued()
        # ``queued``: for how long the thread waited for its processor while it sampled.
        rows = window.sample(chain, ns, self.clock)
        queued = self.clock.queued() - queued_before
        case.issued += chain.units(ns)
        # Where a wait keeps the CPU busy anyway, CPU time in it says nothing.
        if case.reads_cpu and not (chain.synchronous or chain.wait_spins):
            rows += self.sample_with_cpu(case, passes)
        if case.staged:
            self.emit_all(one_off.time_stages(case, self.clock))
        case.verify()

        after = self.processor.reference_loop()
        slower = [max(times) for times in zip(before, after, strict=True)]
        # The samples that calibration took for the fit are emitted with the first round.
        if case.rounds == 0:
            # ``extra``: samples above the knee and around the steps of a polling wait.
            rows = rows + case.ladder.extra
        # The time counts against the case's credit.
        case.spend(self.sampling_ns() - start, passes)
        self.emit(
            RoundEntry(**case.names, round=number, samples=rows, canary=slower, queued=queued)
        )
        self.clock.release_threads()

    def sample_with_cpu(self, case: CaseInProgress, passes: int) -> Samples:
        """Samples that also read the CPU clock, for the CPU time in ``wait``. A chain's own loop
        (in a browser page, say) may have no such clock: its rows then lack that fourth number, and
        it is not asked again.
        """
        ns = case.ladder.draw_for_cpu(passes, case.rounds)
        rows = window.sample(case.chain, ns, self.clock, cpu=True)
        case.issued += case.chain.units(ns)
        # Four columns: n, time of ``issue``, T(n), CPU time in the wait.
        case.reads_cpu = all(len(row) == 4 for row in rows)
        return rows
