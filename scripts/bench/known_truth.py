"""The method against known truth: a fake stack under a stated law and noise, measured by the real code on a fake clock.

Each scenario is run with the seconds that the planner's default profile gives a case of its cost, no more.
"""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from overhead.measure.fitting.across_processes import CANARY_FROM_PROCESSES
from overhead.measure.fitting.case_figures import complete_figure, estimate
from overhead.measure.fitting.data import Process, Series
from overhead.measure.fitting.one_process import wall_rows
from overhead.measure.fitting.quiet_rounds import best_pace, without_slow_rounds
from overhead.measure.sampling.events import Dropped, Event, OneOffMeasured, RoundMeasured, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES, WEIGHT, Cost, Plan
from scripts.bench.other_rules import RULES
from tests.fakes.machine import CANARY_NS, Disturbance, FakeClock, FastFakeChain, Law, PollingFakeChain

FIGURES = ("issue", "host", "complete", "fixed")
KNEE = ("knee_n", "queue_depth")
USUAL = Disturbance(spread=0.005, preemptions=50.0, preempted_ns=(50e3, 5e6))


@dataclass(frozen=True)
class Scenario:
    """A law, a weather and what the planner would take it for. ``slow_share``: of the processes at the second speed."""

    name: str
    law: Law
    cost: Cost = "fast"
    weather: Disturbance = USUAL
    resolution_ns: int = 1
    slow_share: float = 0.0

    @property
    def two_speeds(self) -> bool:
        return self.weather.slowdown > 1

    def truth(self) -> dict[str, float]:
        """ns, and units for ``knee_n`` and ``queue_depth``."""
        return self.law.truth()

    def scale(self, figure: str) -> float:
        """What an error is divided by: the figure's own truth; for ``fixed`` T(1), a locked poll's quantum included."""
        truth = self.truth()
        if figure != "fixed":
            return truth[figure]
        return truth["fixed"] + truth["complete"] + (self.law.poll if self.law.locked else 0.0)


def _law(host: float, device: float, fixed: float, **more: object) -> Law:
    """ns; with the noise of a usual machine unless told otherwise."""
    noise: dict[str, object] = {"wake": 1_000.0, "jitter": 0.005, "scatter": 0.1, "own": 0.003}
    return Law(host, device, fixed, **(noise | more))  # type: ignore[arg-type]


def _sync(unit: float, **more: object) -> Law:
    return _law(unit, 0.0, 0.0, synchronous=True, wake=0.0, **more)


SCENARIOS = (
    Scenario("synchronous, 0.2 us", _sync(200.0), "cheap"),
    Scenario("synchronous, 2 us", _sync(2_000.0), "cheap"),
    Scenario("synchronous, 1 ms", _sync(1e6, scatter=0.01), "slow"),
    Scenario("native submit, deferred work", _law(1_400.0, 500.0, 40e3, deferred=900.0)),
    Scenario("binding, 143 us wait", _law(15e3, 5e3, 143e3)),
    Scenario("deferred more than issued", _law(1_500.0, 1_000.0, 10e3, deferred=2_500.0)),
    Scenario("device-bound, pipelined", _law(1_400.0, 5e3, 20e3)),
    Scenario("nearly balanced, pipelined", _law(5e3, 4.5e3, 20e3)),
    Scenario("device-bound, 200 us", _law(3e3, 200e3, 20e3, scatter=0.02), "slow"),
    Scenario("serial, 2.6 us", _law(600.0, 2e3, 30e3, overlap="serial")),
    Scenario("serial, 100 us", _law(2e3, 100e3, 30e3, overlap="serial", scatter=0.02)),
    Scenario("queue of 1,024", _law(2e3, 5e3, 20e3, depth=1024)),
    Scenario("queue of 64", _law(3e3, 36e3, 20e3, depth=64, scatter=0.03)),
    Scenario("Chromium-like, 5 us clock", _law(12e3, 9e3, 2.5e6, wake=50e3), "slow", resolution_ns=5_000),
    Scenario("free-running 1 ms poll", _law(40e3, 10e3, 1.2e6, poll=1e6, locked=False), "slow"),
    Scenario("locked 0.2 ms poll", _law(3e3, 500.0, 20e3, poll=2e5)),
    Scenario("locked 1 ms poll", _law(4e3, 10e3, 200e3, poll=1e6), "slow"),
    Scenario("Firefox-like, 100 ms poll", _law(2e3, 5e3, 3e6, poll=1e8, wake=50e3), "polling", resolution_ns=20_000),
    Scenario("two speeds, by process", _law(3e3, 2e3, 30e3), weather=replace(USUAL, slowdown=2.0), slow_share=0.4),
    Scenario("two speeds, within a process", _law(3e3, 2e3, 30e3), weather=replace(USUAL, slowdown=1.8, dwell_s=0.15)),
    Scenario("a machine that spreads by 5 %", _law(3e3, 6e3, 30e3, jitter=0.03), weather=replace(USUAL, spread=0.05)),
    Scenario(
        "Firefox-like, busy looker", _law(10e3, 60e3, 1.5e6, poll=1e8, busy=90e3), "polling", resolution_ns=20_000
    ),
)


@dataclass(frozen=True)
class TruthOutcome:
    """One run of one scenario: each figure as the method gave it, and other rules' figure on the same truth, ns.

    ``counts``: samples by n in the first process; ``seconds``: of fake time that a process took; ``pace``: that of the
    processes over the machine's own, where the figures are those at their canary.
    """

    scenario: str
    seed: int
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    pace: float = 1.0


def run(scenario: Scenario, seed: int, profile: str = "default") -> TruthOutcome:
    """Measure one scenario as the program would: in the profile's fake processes, and in further ones while noisy."""
    plan = PROFILES[profile]
    seconds, law = plan.case_s * WEIGHT[scenario.cost], scenario.law
    processes: list[Process] = []
    others: dict[str, list[float]] = {}
    spent = 0.0
    while len(processes) < plan.processes + plan.further:
        series = Series(processes, law.synchronous, False, law.overlap)
        if len(processes) >= plan.processes and complete_figure(series, plan.target).status != "noisy":
            break
        index = len(processes)
        clock = _clock(scenario, seed, index, plan)
        begun = clock.time
        chain = (PollingFakeChain if scenario.cost == "polling" else FastFakeChain)(law, clock)
        events: list[Event] = []
        own = _seed(scenario, seed, index)
        settings = Settings(
            seconds, plan.target, plan.min_rounds, plan.max_rounds, own, frozenset({"case"}),
            slopes_only=index >= plan.processes,
        )  # fmt: skip
        measure_cases({"case": chain}, clock, settings, events.append)
        spent += (clock.time - begun) / 1e9
        processes.append(process_of(events, index))
        for name, rule in RULES.items() if index < plan.processes else ():
            others.setdefault(name, []).append(rule(processes[-1], chain, clock))
    found = estimate(Series(processes, law.synchronous, False, law.overlap), plan.target)
    means = {name: float(np.mean(values)) for name, values in others.items()}
    figures = {name: asdict(found[name]) for name in (*FIGURES, *KNEE) if name in found}
    counts = Counter(int(n) for n in wall_rows(processes[0].rounds)[:, 0])
    counted = without_slow_rounds(Series(processes, law.synchronous, False, law.overlap)).processes
    pace = pace_of(counted) if len(counted) >= CANARY_FROM_PROCESSES and not scenario.two_speeds else 1.0
    return TruthOutcome(scenario.name, seed, figures, means, dict(counts), spent / len(processes), pace)


def _clock(scenario: Scenario, seed: int, index: int, plan: Plan) -> FakeClock:
    """A process's clock: of those planned exactly the scenario's share is slow, a further one by chance."""
    dice = np.random.default_rng([seed, 1])
    order = [*dice.permutation(plan.processes), *(dice.random(plan.further) * plan.processes)]
    slow = bool(order[index] < scenario.slow_share * plan.processes)
    return FakeClock(scenario.weather, _seed(scenario, seed, index), scenario.resolution_ns, slow)


def _seed(scenario: Scenario, seed: int, process: int) -> int:
    """A seed of its own for every process of every run."""
    return zlib.crc32(f"{scenario.name} {seed} {process}".encode())


def process_of(events: list[Event], number: int, case: str = "case") -> Process:
    """What one fake process gave of a case."""
    for event in events:
        if isinstance(event, Dropped):
            raise RuntimeError(f"the fake stack failed: {event.reason}")
    rounds = [e.round for e in events if isinstance(e, RoundMeasured) and e.case == case]
    one_off = {e.name: e.one_off for e in events if isinstance(e, OneOffMeasured) and e.case == case}
    return Process(rounds, one_off, number=number, pace=best_pace(rounds))


def pace_of(processes: Sequence[Process]) -> float:
    """How many times the machine's own canary these processes' took."""
    return float(np.mean([process.pace for process in processes])) / CANARY_NS


def oracle(scenario: Scenario, counts: dict[int, int], figure: str, processes: int) -> float:
    """Relative 95 % half-width of one who knows the noise law and which samples were interrupted.

    Weighted least squares over as many samples as were taken, each weighted by its true variance (a locked poll is
    taken as no noise at all), and the true spread between processes. NaN for figures without such a bound.
    """
    if figure not in FIGURES or len(counts) < 2:
        return math.nan
    law, truth = scenario.law, scenario.truth()
    n = np.array(sorted(counts), dtype=np.float64)
    times = np.array([counts[int(k)] for k in n])
    waits = figure in ("complete", "fixed")
    unit = truth["complete" if waits else "issue"]
    level = (truth["fixed"] if waits else 0.0) + unit * n
    variance = (law.jitter * level) ** 2 + (law.scatter * unit) ** 2 * n + scenario.resolution_ns**2 / 6 + 1.0
    if waits:
        variance += law.wake**2 / 2 + (law.poll**2 / 12 if not law.locked else 0.0)
    weights = times / variance
    information = np.array([[weights.sum(), (weights * n).sum()], [(weights * n).sum(), (weights * n * n).sum()]])
    within = float(np.linalg.inv(information)[0 if figure == "fixed" else 1][0 if figure == "fixed" else 1])
    between = (scenario.weather.spread**2 + law.own**2) * truth[figure] ** 2
    return 1.96 * math.sqrt((within + between) / processes) / scenario.scale(figure)


@dataclass(frozen=True)
class Score:
    """What a scenario's runs come to, for one figure: counts of runs; ``bias`` and ``half_width`` relative.

    ``far``: ``ok`` and yet off by more than twice the half-width stated. ``right``: ``bimodal`` with both modes within
    2 %. ``oracle``: the relative half-width that one who knows the noise would reach.
    """

    scenario: str
    figure: str
    runs: int
    valued: int
    covered: int
    ok: int
    far: int
    right: int
    bias: float
    half_width: float
    oracle: float


def score(scenario: Scenario, outcomes: list[TruthOutcome], figure: str, profile: str = "default") -> Score:
    """Hold one figure of a scenario's runs against its truth."""
    truth, scale = scenario.truth()[figure], scenario.scale(figure)
    rows: list[dict[str, Any]] = [
        o.figures[figure] | {"truth": truth * (1.0 if figure in KNEE else o.pace)}
        for o in outcomes
        if figure in o.figures
    ]
    valued = [r for r in rows if r["low"] is not None and r["status"] in ("ok", "noisy")]
    ok = [r for r in valued if r["status"] == "ok"]
    both = (truth, truth * scenario.weather.slowdown)
    right = [
        r
        for r in rows
        if r["status"] == "bimodal" and all(abs(m / t - 1) <= 0.02 for m, t in zip(r["modes"], both, strict=True))
    ]
    processes = PROFILES[profile].processes
    return Score(
        scenario=scenario.name,
        figure=figure,
        runs=len(outcomes),
        valued=len(valued),
        covered=sum(r["low"] <= r["truth"] <= r["high"] for r in valued),
        ok=len(ok),
        far=sum(abs(r["value"] - r["truth"]) > r["high"] - r["low"] for r in ok),
        right=len(right),
        bias=float(np.mean([r["value"] - r["truth"] for r in valued])) / scale if valued else math.nan,
        half_width=float(np.median([(r["high"] - r["low"]) / 2 for r in valued])) / scale if valued else math.nan,
        oracle=float(np.median([oracle(scenario, o.counts, figure, processes) for o in outcomes])),
    )
