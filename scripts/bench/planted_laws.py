"""``main.py planted-laws``: two hundred laws that no line describes, or only up to some n.

A figure is wrong if it is ``ok`` and differs by more than 3 %, and by more than its half-width,
from the mean cost of a unit up to its ``holds_to``.

``main.py straight-laws``: 1,500 laws that are lines, with the usual noise: almost all must be
``ok`` from the first unit on.
"""

from __future__ import annotations

import argparse
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from rich.console import Console

from overhead.blocks.parts import Table
from overhead.blocks.terminal import show
from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.line import Floats
from overhead.measure.fitting.one_process import Process, Series
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES
from overhead.results import FailedEntry, Figure, Why
from scripts.bench.known_truth import process_of
from scripts.bench.requirement import Requirement, print_requirements
from scripts.bench.scenarios import USUAL_NOISE
from tests.fakes.machine import CALM, FakeClock, FastFakeChain, Law

Extra = Callable[[Floats], Floats]
"""What n units cost in addition to the line, ns, for an array of n."""
_SEED = 20261125
_FAR = 0.03
"""An ``ok`` figure misleads if it is off by more than this, relative. Chosen, not measured."""
_MOST_LOST = 1 / 200
"""Share of straight laws that noise may make look bent. Chosen, not measured."""
_STATUSES = ("ok", "noisy", "bimodal", "nonlinear", "below-resolution", "unverified")


@dataclass(frozen=True)
class PlantedLaw:
    """``cost``: the true mean ns per unit from n units on, without a tail. ``mean``: with
    everything, ns; 0 for the same. ``refused``: no status ``ok`` is right at all. ``other``: as
    true as ``cost``: the mean over all n, where ``cost`` is that of most n.
    """

    family: str
    law: Law
    cost: Callable[[float], float]
    mean: float = 0.0
    refused: bool = False
    other: float = 0.0


class _Dice:
    """Random numbers that are the same in every run with the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def between(self, low: float, high: float) -> float:
        """A number whose logarithm is uniform: each order of magnitude is as likely."""
        logarithm = self.random.uniform(np.log(low), np.log(high))
        return float(np.exp(logarithm))

    def yes_or_no(self) -> bool:
        """Either with the same chance."""
        return bool(self.random.integers(2))


def _line(dice: _Dice, unit: float, **more: object) -> Law:
    """A simulated stack with the usual noise whose unit costs ``unit`` ns. ``more`` bends it.

    Half of the stacks are synchronous, without a one-off cost and a wait.
    """
    noise = {"jitter": 0.005, "scatter": 0.1, "own": 0.003}
    if dice.yes_or_no():
        return Law(unit, 0.0, 0.0, synchronous=True, wake=0.0, **noise, **more)  # type: ignore[arg-type]
    fixed = dice.between(2e3, 100e3)
    return Law(unit, 0.0, fixed, synchronous=False, wake=1_000.0, **noise, **more)  # type: ignore[arg-type]


def _constant(unit: float, _: float) -> float:
    """The cost of a unit, whatever n is. With ``partial`` a law's ``cost``."""
    return unit


def _as_line(
    family: str, law: Law, unit: float, mean: float = 0.0, refused: bool = False
) -> PlantedLaw:
    """A law whose unit truly costs the same for every n, whatever else disturbs it."""
    return PlantedLaw(family, law, partial(_constant, unit), mean, refused)


def _stepwise(family: str, dice: _Dice, unit: float, extra: Extra) -> PlantedLaw:
    """A law with ``extra`` host time of n units."""

    def cost(n: float) -> float:
        extra_of_n = float(extra(np.array([n]))[0])
        return unit + extra_of_n / n

    return PlantedLaw(family, _line(dice, unit, extra=extra), cost)


def _flush(dice: _Dice, unit: float) -> PlantedLaw:
    """After every so many units a buffer is emptied, which costs in proportion to its size."""
    every = round(dice.between(50, 20_000))
    share = dice.between(0.1, 2)

    def extra(n: Floats) -> Floats:
        flushes = np.floor(n / every)
        return np.asarray(flushes * every * share * unit)

    return _stepwise("flush", dice, unit, extra)


def _bucket(dice: _Dice, unit: float) -> PlantedLaw:
    """So many units are cheap; each further one costs ``factor`` times as much."""
    free = dice.between(100, 50_000)
    factor = dice.between(1.2, 10)

    def extra(n: Floats) -> Floats:
        beyond = np.maximum(n - free, 0)
        return np.asarray(beyond * (factor - 1) * unit)

    return _stepwise("bucket", dice, unit, extra)


def _cache(dice: _Dice, unit: float) -> PlantedLaw:
    """From a number of units on all units cost more, since a cache no longer holds them."""
    capacity = dice.between(200, 50_000)
    share = dice.between(0.1, 1)

    def extra(n: Floats) -> Floats:
        return np.where(n > capacity, n * share * unit, 0)

    return _stepwise("cache", dice, unit, extra)


def _cheaper(dice: _Dice, unit: float) -> PlantedLaw:
    """Units after the first so many cost less."""
    full_price = dice.between(200, 50_000)
    share = dice.random.uniform(0.1, 0.8)

    def extra(n: Floats) -> Floats:
        beyond = np.maximum(n - full_price, 0)
        return np.asarray(-beyond * share * unit)

    return _stepwise("cheaper later", dice, unit, extra)


def _parity(dice: _Dice, unit: float) -> PlantedLaw:
    """Where n is a multiple of 2 to 32, all units cost less: most n cost ``unit`` each."""
    divisor = int(dice.random.choice([2, 4, 8, 16, 32]))
    share = dice.random.uniform(0.1, 0.5)

    def extra(n: Floats) -> Floats:
        return np.where(n % divisor == 0, -n * share * unit, 0)

    law = _line(dice, unit, extra=extra)
    mean_over_all_n = unit * (1 - share / divisor)
    return PlantedLaw("parity", law, partial(_constant, unit), other=mean_over_all_n)


def _powers(dice: _Dice, unit: float) -> PlantedLaw:
    """Powers of two are cheaper. A ladder of these n alone would show a wrong cost."""
    share = dice.random.uniform(0.1, 0.6)

    def extra(n: Floats) -> Floats:
        is_power_of_two = np.log2(np.maximum(n, 1)) % 1 == 0
        return np.where(is_power_of_two, -n * share * unit, 0)

    return _as_line("powers of two", _line(dice, unit, extra=extra), unit)


def _warm_up(dice: _Dice, unit: float) -> PlantedLaw:
    """A unit costs more at first; the surplus falls by a factor of e each 0.05 to 10 s."""
    warm = dice.random.uniform(0.2, 1.0)
    warm_s = dice.between(0.05, 10)
    return _as_line("warm-up", _line(dice, unit, warm=warm, warm_s=warm_s), unit)


def _poll(dice: _Dice, unit: float) -> PlantedLaw:
    """A wait looks at the device only every 0.2 to 16 ms."""
    poll = dice.between(2e5, 16e6)
    locked = dice.yes_or_no()
    return _as_line("poll", _line(dice, unit, poll=poll, locked=locked), unit)


def _tail(dice: _Dice, unit: float) -> PlantedLaw:
    """A few units take much longer: up to 1,000 times ``size``, with a power law between."""
    size = dice.between(10, 1000) * unit
    index = dice.random.uniform(1.5, 3)
    share = dice.between(0.002, 0.05) * unit / size
    law = _line(dice, unit, tail=share, tail_ns=size, tail_index=index)

    # The mean of a Pareto distribution that begins at 1 and is cut off at 1,000.
    mean_of_tail = index / (index - 1) * (1 - 1000 ** (1 - index) / index)
    return _as_line("tail", law, unit, mean=unit + share * size * mean_of_tail)


def _lazy(dice: _Dice, unit: float) -> PlantedLaw:
    """Work is done only when the values are read: no figure can see it, so none may be ``ok``."""
    lazy = dice.between(0.1, 20) * unit
    return _as_line("lazy", _line(dice, unit, lazy=lazy), unit, refused=True)


_FAMILIES = (_flush, _bucket, _cache, _cheaper, _parity, _powers, _warm_up, _poll, _tail, _lazy)


def planted_laws(seed: int, count: int = 200) -> list[PlantedLaw]:
    """So many laws, of each family the same number, with units of 0.3 to 50 us."""
    dice = _Dice(seed)
    laws = []
    for number in range(count):
        family = _FAMILIES[number % len(_FAMILIES)]
        unit = dice.between(300, 50e3)
        laws.append(family(dice, unit))
    return laws


def straight_laws(seed: int, count: int = 1_500) -> list[PlantedLaw]:
    """So many lines, with units of 30 ns to 50 us and the noise of the planted laws."""
    dice = _Dice(seed)
    laws = []
    for _ in range(count):
        unit = dice.between(30, 50e3)
        laws.append(_as_line("straight", _line(dice, unit), unit))
    return laws


@dataclass(frozen=True)
class LawOutcome:
    """``complete`` of one law. ``off``: its relative error up to ``holds_to``; ``off_mean``: that
    of ``everything``, 0 where that is not ``ok``; ``half_width``: relative, the wider one of both.
    ``fixed``: the status of that figure.
    """

    law: int
    family: str
    status: str
    reason: Why = ""
    holds_to: int = 0
    off: float = 0.0
    off_mean: float = 0.0
    half_width: float = 0.0
    holds_from: int = 0
    fixed: str = ""

    def wrong(self, law: PlantedLaw) -> bool:
        """Whether the figure is ``ok`` and misleads."""
        if self.status != "ok":
            return False
        off = max(abs(self.off), abs(self.off_mean))
        return law.refused or off > max(_FAR, self.half_width)


class _Job(NamedTuple):
    """One law to measure in a worker process, which forms the law again from its number and the
    seed: laws hold functions, and those cannot be sent to another process.
    """

    number: int
    seed: int
    profile: str


def _measure_planted(job: _Job) -> LawOutcome:
    """Measure the planted law of a job, in a worker process."""
    law = planted_laws(job.seed)[job.number]
    return measure(law, job.number, job.seed, job.profile)


def _measure_straight(job: _Job) -> LawOutcome:
    """Measure the straight law of a job, in a worker process."""
    law = straight_laws(job.seed)[job.number]
    return measure(law, job.number, job.seed, job.profile)


def measure(planted: PlantedLaw, number: int, seed: int, profile: str) -> LawOutcome:
    """Measure a law with the real code, in as many processes as the profile plans, and say how far
    its cost is off.
    """
    plan = PROFILES[profile]
    # What preempts a process is no part of the true mean.
    disturbance = CALM if planted.mean else USUAL_NOISE
    processes: list[Process] = []
    ladders: dict[str, list[int]] = {}
    # As in a run, the quick profile takes no sample far beyond the line's sizes of n.
    far: frozenset[str] = frozenset() if profile == "quick" else frozenset({"case"})
    for index in range(plan.processes):
        process_seed = zlib.crc32(f"{seed} {number} {index}".encode())
        clock = FakeClock(disturbance, process_seed)
        settings = Settings(
            plan.case_s,
            plan.precision,
            plan.min_rounds,
            plan.max_rounds,
            process_seed,
            process=index,
            ladders=ladders,
            far=far,
        )
        events: list[Event] = []
        chain = FastFakeChain(planted.law, clock)
        measure_cases({"case": chain}, clock, settings, events.append)
        for event in events:
            if isinstance(event, FailedEntry):
                return LawOutcome(number, planted.family, event.status, event.reason)
        processes.append(process_of(events, index))
        # All processes use the ladder of the first one, as in a run. A process whose wait polls
        # (wait_quantum) has to choose its own.
        if "wait_quantum" not in processes[0].one_off:
            ladders = {"case": [int(n) for n in processes[0].values("ladder")]}

    law = planted.law
    series = Series(processes, law.synchronous, False, law.overlap, anchored=True)
    return _outcome(planted, number, estimate(series, plan.precision))


def _outcome(planted: PlantedLaw, number: int, figures: Mapping[str, Figure]) -> LawOutcome:
    """How far the estimated figures of a law are from the true ones.

    Figures that are not ``ok`` mislead nobody: their error counts as 0.
    """
    complete = figures["complete"]
    if complete.value is None:
        return LawOutcome(number, planted.family, complete.status, complete.reason)
    truths = {"complete": planted.cost(max(complete.holds_to, 1))}
    if planted.mean:
        truths["everything"] = planted.mean

    off: dict[str, float] = {}
    half_width = 0.0
    for name, truth in truths.items():
        figure = figures.get(name)
        if figure is None or figure.status != "ok" or not figure.value:
            continue
        off[name] = figure.value / truth - 1
        if figure.high and figure.low:
            of_figure = (figure.high - figure.low) / 2 / truth
            half_width = max(half_width, of_figure)
    if planted.other and "complete" in off:
        # Either of the two true costs is right: the nearer one counts.
        off_other = complete.value / planted.other - 1
        off["complete"] = min(off["complete"], off_other, key=abs)
    return LawOutcome(
        number,
        planted.family,
        complete.status,
        complete.reason,
        holds_to=complete.holds_to,
        off=off.get("complete", 0.0),
        off_mean=off.get("everything", 0.0),
        half_width=half_width,
        holds_from=complete.holds_from,
        fixed=figures["fixed"].status,
    )


def _outcomes(
    measure_job: Callable[[_Job], LawOutcome], count: int, options: argparse.Namespace
) -> list[LawOutcome]:
    """What became of so many laws, measured in several processes."""
    jobs = [_Job(number, _SEED, options.profile) for number in range(count)]
    with ProcessPoolExecutor(options.jobs) as pool:
        return list(pool.map(measure_job, jobs, chunksize=4))


def _counts_by_status(statuses: Iterable[str]) -> list[str]:
    """How often each status occurs, as the cells of a row."""
    counts = Counter(statuses)
    return [str(counts[status]) for status in _STATUSES]


def straight(options: argparse.Namespace, console: Console) -> bool:
    """Measure 1,500 straight lines; return whether no more than 1 in 200 is lost."""
    laws = straight_laws(_SEED)
    outcomes = _outcomes(_measure_straight, len(laws), options)
    lost = [outcome for outcome in outcomes if outcome.status != "ok"]
    ok = [outcome for outcome in outcomes if outcome.status == "ok"]
    later = [outcome for outcome in ok if outcome.holds_from > 1]
    of_cost = _counts_by_status([outcome.status for outcome in outcomes])
    of_one_off_cost = _counts_by_status([outcome.fixed for outcome in outcomes])
    rows = [["the cost", *of_cost], ["the one-off cost", *of_one_off_cost]]
    title = f"straight laws, profile {options.profile}"
    show([Table(title, ["", *_STATUSES], rows)], console)

    most = len(laws) * _MOST_LOST
    words = f"of {len(laws)} straight laws {len(lost)} are not ok (at most {most:.0f})"
    begins = f"{len(later)} are said to begin after the first unit (at most {most:.0f})"
    none_lost = Requirement(_with_outcomes(words, lost), len(lost) <= most)
    none_later = Requirement(_with_outcomes(begins, later), len(later) <= most)
    print_requirements([none_lost, none_later], console)
    return none_lost.holds and none_later.holds


def planted(options: argparse.Namespace, console: Console) -> bool:
    """Measure two hundred laws; print what became of each family; return whether no figure
    misleads.
    """
    laws = planted_laws(_SEED)
    outcomes = _outcomes(_measure_planted, len(laws), options)
    wrong = [outcome for outcome in outcomes if outcome.wrong(laws[outcome.law])]
    rows = []
    for family in dict.fromkeys(law.family for law in laws):
        statuses = [outcome.status for outcome in outcomes if outcome.family == family]
        wrong_of_family = [outcome for outcome in wrong if outcome.family == family]
        counts = _counts_by_status(statuses)
        rows.append([family, *counts, str(len(wrong_of_family))])
    title = f"planted laws, profile {options.profile}"
    show([Table(title, ["family", *_STATUSES, "misleading"], rows)], console)
    off = f"off by over {_FAR:.0%}, and more than their half-width, up to holds_to"
    words = f"of {len(laws)} planted laws {len(wrong)} are ok and {off} (none)"
    none_wrong = Requirement(_with_outcomes(words, wrong), not wrong)
    print_requirements([none_wrong], console)
    return none_wrong.holds


def _with_outcomes(words: str, outcomes: Sequence[LawOutcome]) -> str:
    """The words, and each of these outcomes in full, so that its law can be looked at."""
    return "; ".join([words, *map(str, outcomes)])
