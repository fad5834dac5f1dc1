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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

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
from overhead.results import FailedEntry, Why
from scripts.bench.known_truth import process_of
from scripts.bench.requirement import Requirement, print_requirements
from scripts.bench.scenarios import USUAL_NOISE
from tests.fakes.machine import CALM, FakeClock, FastFakeChain, Law

Extra = Callable[[Floats], Floats]
_SEED, _FAR = 20261125, 0.03
_MOST_LOST = 1 / 200
"""Share of straight laws that noise may make look bent."""
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
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def between(self, low: float, high: float) -> float:
        """Log-uniform."""
        return float(np.exp(self.random.uniform(np.log(low), np.log(high))))


def _line(dice: _Dice, unit: float, **more: object) -> Law:
    synchronous = bool(dice.random.integers(2))
    fixed = 0.0 if synchronous else dice.between(2e3, 100e3)
    noise = {"wake": 0.0 if synchronous else 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}
    return Law(unit, 0.0, fixed, synchronous=synchronous, **noise, **more)  # type: ignore[arg-type]


def _stepwise(family: str, dice: _Dice, unit: float, extra: Extra) -> PlantedLaw:
    """A law with ``extra`` host time of n units."""

    def cost(n: float) -> float:
        return unit + float(extra(np.array([n]))[0]) / n

    return PlantedLaw(family, _line(dice, unit, extra=extra), cost)


def _flush(dice: _Dice, unit: float) -> PlantedLaw:
    every, share = round(dice.between(50, 20_000)), dice.between(0.1, 2)
    return _stepwise("flush", dice, unit, lambda n: np.floor(n / every) * every * share * unit)


def _bucket(dice: _Dice, unit: float) -> PlantedLaw:
    free, factor = dice.between(100, 50_000), dice.between(1.2, 10)
    return _stepwise("bucket", dice, unit, lambda n: np.maximum(n - free, 0) * (factor - 1) * unit)


def _cache(dice: _Dice, unit: float) -> PlantedLaw:
    at, share = dice.between(200, 50_000), dice.between(0.1, 1)
    return _stepwise("cache", dice, unit, lambda n: np.where(n > at, n * share * unit, 0))


def _cheaper(dice: _Dice, unit: float) -> PlantedLaw:
    at, share = dice.between(200, 50_000), dice.random.uniform(0.1, 0.8)
    return _stepwise("cheaper later", dice, unit, lambda n: -np.maximum(n - at, 0) * share * unit)


def _parity(dice: _Dice, unit: float) -> PlantedLaw:
    of, share = int(dice.random.choice([2, 4, 8, 16, 32])), dice.random.uniform(0.1, 0.5)
    found = _stepwise("parity", dice, unit, lambda n: np.where(n % of == 0, -n * share * unit, 0))
    return PlantedLaw("parity", found.law, lambda n: unit, other=unit * (1 - share / of))


def _powers(dice: _Dice, unit: float) -> PlantedLaw:
    share = dice.random.uniform(0.1, 0.6)

    def extra(n: Floats) -> Floats:
        return np.where(np.log2(np.maximum(n, 1)) % 1 == 0, -n * share * unit, 0)

    return PlantedLaw("powers of two", _line(dice, unit, extra=extra), lambda n: unit)


def _warm_up(dice: _Dice, unit: float) -> PlantedLaw:
    warm = dice.random.uniform(0.2, 1.0)
    return PlantedLaw(
        "warm-up", _line(dice, unit, warm=warm, warm_s=dice.between(0.05, 10)), lambda n: unit
    )


def _poll(dice: _Dice, unit: float) -> PlantedLaw:
    law = _line(dice, unit, poll=dice.between(2e5, 16e6), locked=bool(dice.random.integers(2)))
    return PlantedLaw("poll", law, lambda n: unit)


def _tail(dice: _Dice, unit: float) -> PlantedLaw:
    size, index = dice.between(10, 1000) * unit, dice.random.uniform(1.5, 3)
    share = dice.between(0.002, 0.05) * unit / size
    mean = index / (index - 1) * (1 - 1000 ** (1 - index) / index)
    law = _line(dice, unit, tail=share, tail_ns=size, tail_index=index)
    return PlantedLaw("tail", law, lambda n: unit, unit + share * size * mean)


def _lazy(dice: _Dice, unit: float) -> PlantedLaw:
    return PlantedLaw(
        "lazy", _line(dice, unit, lazy=dice.between(0.1, 20) * unit), lambda n: unit, refused=True
    )


_FAMILIES = (_flush, _bucket, _cache, _cheaper, _parity, _powers, _warm_up, _poll, _tail, _lazy)


def planted_laws(seed: int, count: int = 200) -> list[PlantedLaw]:
    """So many laws, of each family the same number, with units of 0.3 to 50 us."""
    dice = _Dice(seed)
    return [_FAMILIES[i % len(_FAMILIES)](dice, dice.between(300, 50e3)) for i in range(count)]


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
        """Whether it is ``ok`` and misleads."""
        off = max(abs(self.off), abs(self.off_mean))
        return self.status == "ok" and (law.refused or off > max(_FAR, self.half_width))


def _measure(job: tuple[int, int, str]) -> LawOutcome:
    number, seed, profile = job
    return measure(planted_laws(seed)[number], number, seed, profile)


def measure(planted: PlantedLaw, number: int, seed: int, profile: str) -> LawOutcome:
    """Measure a law in as many processes as the profile plans."""
    plan = PROFILES[profile]
    disturbance = (
        CALM if planted.mean else USUAL_NOISE
    )  # what preempts a process is no part of the true mean
    law, processes = planted.law, list[Process]()
    ladders: dict[str, list[int]] = {}
    for index in range(plan.processes):
        own, events = zlib.crc32(f"{seed} {number} {index}".encode()), list[Event]()
        clock = FakeClock(disturbance, own)
        settings = Settings(
            *(plan.case_s, plan.precision, plan.min_rounds, plan.max_rounds, own),
            process=index,
            ladders=ladders,
            far=frozenset() if profile == "quick" else frozenset({"case"}),
        )
        measure_cases({"case": FastFakeChain(law, clock)}, clock, settings, events.append)
        if failed := [event for event in events if isinstance(event, FailedEntry)]:
            return LawOutcome(number, planted.family, failed[0].status, failed[0].reason)
        processes.append(process_of(events, index))
        if "wait_quantum" not in processes[0].one_off:
            ladders = {"case": [int(n) for n in processes[0].values("ladder")]}
    found = estimate(
        Series(processes, law.synchronous, False, law.overlap, anchored=True), plan.precision
    )
    one = found["complete"]
    if one.value is None:
        return LawOutcome(number, planted.family, one.status, one.reason)
    truths = {one.name: planted.cost(max(one.holds_to, 1))} | (
        {"everything": planted.mean} if planted.mean else {}
    )
    sure = [
        figure
        for name in truths
        if (figure := found.get(name)) and figure.status == "ok" and figure.value
    ]
    off = {figure.name: figure.value / truths[figure.name] - 1 for figure in sure if figure.value}
    if planted.other and one.name in off:
        off[one.name] = min(off[one.name], one.value / planted.other - 1, key=abs)
    width = max(
        ((f.high - f.low) / 2 / truths[f.name] for f in sure if f.high and f.low), default=0.0
    )
    return LawOutcome(
        number,
        planted.family,
        one.status,
        one.reason,
        holds_to=one.holds_to,
        off=off.get(one.name, 0.0),
        off_mean=off.get("everything", 0.0),
        half_width=width,
        holds_from=one.holds_from,
        fixed=found["fixed"].status,
    )


def straight_laws(seed: int, count: int = 1_500) -> list[PlantedLaw]:
    """So many lines, with units of 30 ns to 50 us and the noise of the planted laws."""
    dice = _Dice(seed)
    found = []
    for _ in range(count):
        unit = dice.between(30, 50e3)
        found.append(PlantedLaw("straight", _line(dice, unit), partial(_constant, unit)))
    return found


def _constant(unit: float, _: float) -> float:
    return unit


def _measure_straight(job: tuple[int, int, str]) -> LawOutcome:
    number, seed, profile = job
    return measure(straight_laws(seed)[number], number, seed, profile)


def straight(options: argparse.Namespace, console: Console) -> bool:
    """Measure 1,500 straight lines; return whether no more than 1 in 200 is lost."""
    laws = straight_laws(_SEED)
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [(number, _SEED, options.profile) for number in range(len(laws))]
        found = list(pool.map(_measure_straight, jobs, chunksize=4))
    lost = [outcome for outcome in found if outcome.status != "ok"]
    later = [outcome for outcome in found if outcome.status == "ok" and outcome.holds_from > 1]
    counts = Counter(outcome.status for outcome in found)
    fixed = Counter(outcome.fixed for outcome in found)
    rows = [
        ["the cost", *(str(counts[status]) for status in _STATUSES)],
        ["the one-off cost", *(str(fixed[status]) for status in _STATUSES)],
    ]
    show([Table(f"straight laws, profile {options.profile}", ["", *_STATUSES], rows)], console)
    most = len(laws) * _MOST_LOST
    words = f"of {len(laws)} straight laws {len(lost)} are not ok (at most {most:.0f})"
    begins = f"{len(later)} are said to begin after the first unit (at most {most:.0f})"
    requirements = [
        Requirement("; ".join([words, *map(str, lost)]), len(lost) <= most),
        Requirement("; ".join([begins, *map(str, later)]), len(later) <= most),
    ]
    print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def planted(options: argparse.Namespace, console: Console) -> bool:
    """Measure two hundred laws; print what became of each family; return whether no figure
    misleads.
    """
    laws = planted_laws(_SEED)
    with ProcessPoolExecutor(options.jobs) as pool:
        jobs = [(number, _SEED, options.profile) for number in range(len(laws))]
        found = list(pool.map(_measure, jobs, chunksize=4))
    rows = []
    for family in dict.fromkeys(law.family for law in laws):
        own = [outcome for outcome in found if outcome.family == family]
        counts = Counter(outcome.status for outcome in own)
        wrong = [outcome for outcome in own if outcome.wrong(laws[outcome.law])]
        rows.append(
            [family, *(str(counts.get(status, 0)) for status in _STATUSES), str(len(wrong))]
        )
    show(
        [
            Table(
                f"planted laws, profile {options.profile}",
                ["family", *_STATUSES, "misleading"],
                rows,
            )
        ],
        console,
    )
    wrong = [outcome for outcome in found if outcome.wrong(laws[outcome.law])]
    off = f"off by over {_FAR:.0%}, and more than their half-width, up to holds_to"
    words = f"of {len(laws)} planted laws {len(wrong)} are ok and {off} (none)"
    print_requirements([Requirement("; ".join([words, *map(str, wrong)]), not wrong)], console)
    return not wrong
