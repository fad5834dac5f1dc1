"""The rounds of one worker: calibrate every case, take what is taken once, then alternate until the time is up."""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from overhead.measure import sampler
from overhead.measure.clock import Clock, clock_facts
from overhead.measure.ladder import LEGACY_N, Ladder, Limits, calibrate
from overhead.measure.sampler import Chain, Samples


@dataclass(frozen=True)
class Settings:
    """``seconds``: sampling time of this process for all its cases. ``target``: relative half-width.

    ``extras``: the cases that also get what benchmarks usually print (``naive_idle``, ``legacy``) and their stages.
    """

    seconds: float
    target: float = 0.03
    min_rounds: int = 6
    max_rounds: int = 400
    seed: int = 0
    extras: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Doing:
    """Said before anything that may hang or crash, outside every window."""

    case: str
    what: str


@dataclass(frozen=True)
class Rounded:
    """One case's samples of one round; ``canary`` is the round's ``[python_ns, native_ns]``."""

    case: str
    round: int
    samples: Samples
    canary: list[int]


@dataclass(frozen=True)
class Taken:
    """Values taken outside the ladder, ns; ``at`` gives each value's n. Empty with a ``reason`` where there is none."""

    case: str
    name: str
    values: list[float]
    at: list[int] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class Dropped:
    """A case that goes no further in this process."""

    case: str
    status: str
    reason: str


Event = Doing | Rounded | Taken | Dropped
_STATUS = {"Unverified": "unverified", "Unsupported": "unavailable", "Unavailable": "unavailable"}


def status_of(error: BaseException) -> str:
    """The status that an exception of a chain stands for, by the names in its class's ancestry."""
    return next((_STATUS[cls.__name__] for cls in type(error).__mro__ if cls.__name__ in _STATUS), "failed")


def reason_of(error: BaseException) -> str:
    """One line: the exception's own words, its type where that says more."""
    words = " ".join(str(error).split())
    return words if status_of(error) != "failed" and words else f"{type(error).__name__}: {words}".rstrip(": ")


@dataclass
class _Live:
    """A case that is still measured."""

    key: str
    chain: Chain
    ladder: Ladder = field(default_factory=lambda: Ladder((0, 1), 1, 0))
    issued: int = 0
    credit: float = 0.0
    rounds: int = 0
    samples: Samples = field(default_factory=list)
    precise: bool = False


class _Conductor:
    def __init__(
        self, chains: Mapping[str, Chain], clock: Clock, settings: Settings, emit: Callable[[Event], None]
    ) -> None:
        self.live = {key: _Live(key, chain) for key, chain in chains.items()}
        self.clock, self.settings, self.emit = clock, settings, emit
        self.deadline = clock.now() + settings.seconds * 1e9
        self.random = random.Random(settings.seed)
        self.facts = clock_facts(clock)

    def guard(self, case: _Live, what: str, act: Callable[[_Live], None]) -> None:
        """Do one thing to one case; whatever it raises costs that case alone."""
        self.emit(Doing(case.key, what))
        try:
            act(case)
        except (Exception, RecursionError) as error:
            del self.live[case.key]
            self.emit(Dropped(case.key, status_of(error), reason_of(error)))

    def each(self, what: str, act: Callable[[_Live], None]) -> None:
        for case in list(self.live.values()):
            self.guard(case, what, act)

    def run(self) -> str:
        self.each("first", self.first)
        self.each("calibrate", self.calibrate)
        self.each("once", self.once)
        number = 0
        while True:
            rule = self.stop(number)
            if rule:
                return rule
            self.round(number)
            number += 1

    def stop(self, number: int) -> str:
        if not self.live:
            return "no case left"
        if all(case.precise for case in self.live.values()):
            return f"every case within a third of {self.settings.target:.0%} in this process"
        if number >= self.settings.max_rounds:
            return f"{number} rounds"
        if self.clock.now() >= self.deadline and number >= self.settings.min_rounds:
            return f"time budget of {self.settings.seconds:.1f} s"
        return ""

    def first(self, case: _Live) -> None:
        """The first call in this process, and what its preparation took."""
        chain, now = case.chain, self.clock.now
        if sampler.runs_itself(chain):
            return
        t0 = now()
        chain.prepare(1)
        t1 = now()
        chain.issue(1)
        chain.wait()
        t2 = now()
        case.issued += 1
        self.emit(Taken(case.key, "first", [t2 - t0], [1]))
        if chain.recorded:
            self.emit(Taken(case.key, "prepare", [t1 - t0], [1]))

    def calibrate(self, case: _Live) -> None:
        share = self.settings.seconds / len(self.live)
        case.ladder = calibrate(case.chain, self.clock, Limits(self.settings.target, share, facts=self.facts))
        case.issued += case.ladder.issued
        self.verify(case)

    def once(self, case: _Live) -> None:
        chain, clock = case.chain, self.clock
        values = sampler.empty_wait(chain, 5, clock)
        case.issued += sampler.units(chain, [0] * 5)
        self.emit(Taken(case.key, "empty_wait", [float(v) for v in values], [0] * 5))
        values = sampler.naive(chain, 5, clock)
        case.issued += sampler.units(chain, [1] * 5)
        self.emit(Taken(case.key, "naive", [float(v) for v in values], [1] * 5))
        if chain.latency:
            count = 200
            values = sampler.latencies(chain, count, clock)
            case.issued += sampler.units(chain, [1] * count)
            self.emit(Taken(case.key, "latency", [float(v) for v in values], [1] * count))
        if case.key in self.settings.extras and not sampler.runs_itself(chain):
            values = sampler.naive_idle(chain, 5, clock)
            case.issued += 5
            self.emit(Taken(case.key, "naive_idle", [float(v) for v in values], [1] * 5))
        self.verify(case)
        held = chain.device(max(case.ladder.ns))
        if held is not None:
            name = "device_busy" if held.busy else "device_span"
            self.emit(Taken(case.key, name, [float(held.span)], [held.n], held.method))

    def round(self, number: int) -> None:
        order = list(self.live.values())
        self.random.shuffle(order)
        self.emit(Doing("", f"round {number}"))
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            weather = sampler.canary(self.clock)
            for case in order:
                self.guard(case, "sample", lambda case: self.sample(case, number, weather))
        finally:
            gc.enable()
            gc.unfreeze()

    def sample(self, case: _Live, number: int, weather: list[int]) -> None:
        ns = list(case.ladder.ns)
        self.random.shuffle(ns)
        rows = sampler.sample(case.chain, ns, self.clock)
        cpu = sampler.sample(case.chain, [1, max(ns)], self.clock, cpu=True)
        case.issued += sampler.units(case.chain, [*ns, 1, max(ns)])
        self.verify(case)
        case.rounds += 1
        self.emit(Rounded(case.key, number, rows + cpu, weather))

    def verify(self, case: _Live) -> None:
        """Compare what ran with what was issued. Raises, and so drops the case, where they differ."""
        done = case.chain.executed()
        if done != case.issued and case.chain.executes:
            raise Unverified(f"{case.issued} units issued, {done} executed")


class Unverified(Exception):
    """The device ran another number of units than were issued."""


def conduct(chains: Mapping[str, Chain], clock: Clock, settings: Settings, emit: Callable[[Event], None]) -> str:
    """Measure all chains of this worker in alternation; return the rule that stopped it, in words.

    A case that raises is emitted as ``Dropped`` and the rest goes on. KeyboardInterrupt passes through.
    """
    return _Conductor(chains, clock, settings, emit).run()


__all__ = ["LEGACY_N", "Doing", "Dropped", "Event", "Rounded", "Settings", "Taken", "conduct", "reason_of", "status_of"]
