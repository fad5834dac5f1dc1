"""``main.py known-truth``: measure simulated stacks with known costs and noise by the real code, on
a fake clock.

Each scenario gets the seconds that the profile's plan gives a case of its cost.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from msgspec import structs
from rich.console import Console
from rich.progress import track

from overhead.blocks.parts import Table
from overhead.blocks.terminal import show
from overhead.measure.fitting.case_figures import DRIFTS, estimate
from overhead.measure.fitting.interval import MEAN
from overhead.measure.fitting.one_process import Process, Series, wall_rows
from overhead.measure.fitting.undisturbed_rounds import best_pace, without_slow_rounds
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.profiles import PROFILES, WEIGHT, Plan
from overhead.results import FailedEntry, OneOffEntry, RoundEntry, codes_of
from overhead.words.reasons import sentence
from scripts.bench.requirement import Requirement, print_requirements
from scripts.bench.scenarios import SCENARIOS, Scenario
from tests.fakes.machine import REFERENCE_NS, FakeClock, FastFakeChain, PollingFakeChain

TIME_FIGURES = ("issue", "host", "complete", "fixed")
KNEE_FIGURES = ("knee_n", "queue_depth")


@dataclass(frozen=True)
class TruthOutcome:
    """One run of one scenario. ``figures``: each as a dict, ns.

    ``counts``: samples by n in the first process. ``seconds``: simulated seconds per process.
    ``pace``: the mean canary of the processes over the undisturbed canary, where the figures are
    those at the processes' canary, else 1.
    """

    scenario: str
    seed: int
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    pace: float = 1.0


def run(scenario: Scenario, seed: int, profile: str = "default") -> TruthOutcome:
    """Measure one scenario in as many processes as the profile plans."""
    plan = PROFILES[profile]
    seconds, law = plan.case_s * WEIGHT[scenario.cost], scenario.law
    processes: list[Process] = []
    spent = 0.0
    for index in range(plan.processes_of(scenario.cost)):
        clock = _clock(scenario, seed, index, plan)
        begun = clock.time
        chain = (PollingFakeChain if scenario.cost == "polling" else FastFakeChain)(law, clock)
        events: list[Event] = []
        own = _seed(scenario, seed, index)
        rounds = plan.min_rounds, plan.max_rounds
        settings = Settings(
            seconds, plan.precision, *rounds, own, frozenset({"case"}), process=index
        )
        measure_cases({"case": chain}, clock, settings, events.append)
        spent += (clock.time - begun) / 1e9
        processes.append(process_of(events, index))
    found = estimate(
        Series(processes, law.synchronous, False, law.overlap, anchored=True), plan.precision
    )
    figures = {
        name: structs.asdict(found[name])
        for name in (*TIME_FIGURES, *KNEE_FIGURES)
        if name in found
    }
    counts = Counter(int(n) for n in wall_rows(processes[0].rounds)[:, 0])
    counted = without_slow_rounds(Series(processes, law.synchronous, False, law.overlap)).processes
    pace = (
        pace_of(counted) if len(counted) >= MEAN.reference_from and not scenario.two_speeds else 1.0
    )
    return TruthOutcome(scenario.name, seed, figures, dict(counts), spent / len(processes), pace)


def _clock(scenario: Scenario, seed: int, index: int, plan: Plan) -> FakeClock:
    """The clock of one process. ``slow_share`` of the processes are slow."""
    count = plan.processes_of(scenario.cost)
    order = np.random.default_rng([seed, 1]).permutation(count)
    slow = bool(order[index] < scenario.slow_share * count)
    return FakeClock(
        scenario.disturbance, _seed(scenario, seed, index), scenario.resolution_ns, slow
    )


def _seed(scenario: Scenario, seed: int, process: int) -> int:
    """A different seed for every process of every run."""
    return zlib.crc32(f"{scenario.name} {seed} {process}".encode())


def process_of(events: list[Event], number: int, case: str = "case") -> Process:
    """The samples and one-off values of a case, from the events of one simulated process."""
    for event in events:
        if isinstance(event, FailedEntry):
            raise RuntimeError(f"the fake stack failed: {sentence(event.reason)}")
    rounds = [e for e in events if isinstance(e, RoundEntry) and e.case == case]
    one_off = {e.name: e for e in events if isinstance(e, OneOffEntry) and e.case == case}
    return Process(rounds, one_off, number=number, pace=best_pace(rounds))


def pace_of(processes: Sequence[Process]) -> float:
    """The mean canary of these processes over the undisturbed canary."""
    return float(np.mean([process.pace for process in processes])) / REFERENCE_NS


def oracle(scenario: Scenario, counts: dict[int, int], figure: str, processes: int) -> float:
    """The best possible relative 95 % half-width, given the noise law and which samples were
    interrupted.

    Weighted least squares over as many samples as were taken, each weighted by its true variance (a
    locked poll adds no noise), and the true spread between processes. NaN for figures without such
    a bound.
    """
    if figure not in TIME_FIGURES or len(counts) < 2:
        return math.nan
    law, truth = scenario.law, scenario.truth()
    n = np.array(sorted(counts), dtype=np.float64)
    times = np.array([counts[int(k)] for k in n])
    waits = figure in ("complete", "fixed")
    unit = truth["complete" if waits else "issue"]
    level = (truth["fixed"] if waits else 0.0) + unit * n
    variance = (
        (law.jitter * level) ** 2
        + (law.scatter * unit) ** 2 * n
        + scenario.resolution_ns**2 / 6
        + 1.0
    )
    if waits:
        variance += law.wake**2 / 2 + (law.poll**2 / 12 if not law.locked else 0.0)
    weights = times / variance
    information = np.array(
        [[weights.sum(), (weights * n).sum()], [(weights * n).sum(), (weights * n * n).sum()]]
    )
    within = float(
        np.linalg.inv(information)[0 if figure == "fixed" else 1][0 if figure == "fixed" else 1]
    )
    between = (scenario.disturbance.spread**2 + law.own**2) * truth[figure] ** 2
    return 1.96 * math.sqrt((within + between) / processes) / scenario.scale(figure)


@dataclass(frozen=True)
class Score:
    """One figure over all runs of a scenario: counts of runs; ``bias`` and ``half_width`` are
    relative.

    ``far``: runs that are ``ok`` with an error over twice the half-width. ``right``: runs that are
    ``bimodal`` with both modes within 2 %. ``oracle``: see :func:`oracle`.
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


def score(
    scenario: Scenario, outcomes: list[TruthOutcome], figure: str, profile: str = "default"
) -> Score:
    """Compare one figure of a scenario's runs with its true value."""
    truth, scale = scenario.truth()[figure], scenario.scale(figure)
    rows: list[dict[str, Any]] = [
        o.figures[figure] | {"truth": truth * (1.0 if figure in KNEE_FIGURES else o.pace)}
        for o in outcomes
        if figure in o.figures
    ]
    valued = [r for r in rows if r["low"] is not None and r["status"] in ("ok", "noisy")]
    ok = [r for r in valued if r["status"] == "ok"]
    both = (truth, truth * scenario.disturbance.slowdown)
    right = [
        r
        for r in rows
        if r["status"] == "bimodal"
        and all(abs(m / t - 1) <= 0.02 for m, t in zip(r["modes"], both, strict=True))
    ]
    processes = PROFILES[profile].processes_of(scenario.cost)
    return Score(
        scenario=scenario.name,
        figure=figure,
        runs=len(outcomes),
        valued=len(valued),
        covered=sum(r["low"] <= r["truth"] <= r["high"] for r in valued),
        ok=len(ok),
        far=sum(abs(r["value"] - r["truth"]) > r["high"] - r["low"] for r in ok),
        right=len(right),
        bias=(
            float(np.mean([r["value"] - r["truth"] for r in valued])) / scale
            if valued
            else math.nan
        ),
        half_width=(
            float(np.median([(r["high"] - r["low"]) / 2 for r in valued])) / scale
            if valued
            else math.nan
        ),
        oracle=float(np.median([oracle(scenario, o.counts, figure, processes) for o in outcomes])),
    )


@dataclass(frozen=True)
class RefusalCount:
    """Runs of a law that no single slope describes, and how many of them got one of the right
    statuses.
    """

    scenario: str
    runs: int
    right: int


def refusal(scenario: Scenario, outcomes: list[TruthOutcome]) -> RefusalCount:
    """How often ``complete`` of a scenario with ``refused`` is refused for the right reason."""
    right = sum(_is_right(scenario, outcome) for outcome in outcomes)
    return RefusalCount(scenario.name, len(outcomes), right)


def _is_right(scenario: Scenario, outcome: TruthOutcome) -> bool:
    """Whether ``complete`` is refused as it must be (a ``noisy`` one drifts)."""
    found = outcome.figures["complete"]
    return found["status"] in scenario.refused and (
        found["status"] != "noisy" or bool(codes_of(found["reason"]) & DRIFTS)
    )


def _one(job: tuple[int, int, str]) -> TruthOutcome:
    scenario, seed, profile = job
    return run(SCENARIOS[scenario], seed, profile)


def known_truth(options: argparse.Namespace, console: Console) -> bool:
    """Run every scenario with every seed; print tables or JSON; return whether all requirements
    hold.
    """
    jobs = [
        (index, seed, options.profile)
        for index in range(len(SCENARIOS))
        for seed in range(options.seeds)
    ]
    with ProcessPoolExecutor(options.jobs) as pool:
        each = pool.map(_one, jobs, chunksize=4)
        note = Console(stderr=True)
        outcomes = list(
            track(each, "known truth", total=len(jobs), console=note, disable=not note.is_terminal)
        )
    grouped = [[o for o in outcomes if o.scenario == s.name] for s in SCENARIOS]
    scores = [
        score(s, group, figure, options.profile)
        for s, group in zip(SCENARIOS, grouped, strict=True)
        for figure in (*TIME_FIGURES, *KNEE_FIGURES)
        if figure in s.truth()
    ]
    refusals = [refusal(s, group) for s, group in zip(SCENARIOS, grouped, strict=True) if s.refused]
    requirements = [
        *_requirements(scores, PROFILES[options.profile].precision),
        _refusal_requirement(refusals),
    ]
    if options.json:
        body = {
            "scores": [asdict(s) for s in scores],
            "refusals": [asdict(r) for r in refusals],
            "claims": [asdict(r) for r in requirements],
        }
        print(json.dumps(body, indent=1))
    else:
        show([_coverage_table(scores, options)], console)
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _requirements(scores: list[Score], target: float) -> list[Requirement]:
    single = {s.name for s in SCENARIOS if not s.two_speeds}
    one = [s for s in scores if s.scenario in single and s.figure in TIME_FIGURES]
    slopes = [s for s in one if s.figure != "fixed"]
    within = [s for s in slopes if s.oracle <= target]
    two = [
        s
        for s in scores
        if s.scenario not in single and s.figure in TIME_FIGURES and s.figure != "fixed"
    ]
    covered = _share(one, "covered", "valued")
    far = _share(one, "far", "ok")
    worst = min(within, key=lambda s: s.ok / s.runs)
    return [
        Requirement(
            f"the 95 % intervals hold the truth in {covered:.1%} of {_sum(one, 'valued'):,} figures"
            " (92 to 98 %)",
            0.92 <= covered <= 0.98,
        ),
        Requirement(
            f"of {_sum(one, 'ok'):,} ok figures {far:.2%} are off by over twice their half-width"
            " (at most 1 %)",
            far <= 0.01,
        ),
        Requirement(
            f"where an oracle reaches {target:.0%}, {_share(within, 'ok', 'runs'):.1%} of the"
            f" slopes are ok, and at the least {worst.ok / worst.runs:.1%} ({worst.figure},"
            f" {worst.scenario}) (at least 90 %)",
            worst.ok / worst.runs >= 0.9,
        ),
        Requirement(
            "two speeds come out bimodal with both within 2 % in"
            f" {_share(two, 'right', 'runs'):.1%} (at least 99 %)",
            _share(two, "right", "runs") >= 0.99,
        ),
    ]


def _refusal_requirement(refusals: list[RefusalCount]) -> Requirement:
    least = min(refusals, key=lambda r: r.right / r.runs)
    return Requirement(
        "laws without one slope are refused for the right reason in"
        f" {sum(r.right for r in refusals)} of {sum(r.runs for r in refusals)} runs, at the least"
        f" {least.right / least.runs:.1%} ({least.scenario}) (at least 95 %)",
        least.right / least.runs >= 0.95,
    )


def _sum(scores: list[Score], name: str) -> int:
    return sum(getattr(score, name) for score in scores)


def _share(scores: list[Score], part: str, whole: str) -> float:
    return _sum(scores, part) / max(_sum(scores, whole), 1)


def _coverage_table(scores: list[Score], options: argparse.Namespace) -> Table:
    firsts = [n for n, s in enumerate(scores) if n == 0 or s.scenario != scores[n - 1].scenario]
    rows = [
        [
            s.scenario if n in firsts else "",
            s.figure,
            f"{s.covered / s.valued:.1%}" if s.valued else "-",
            f"{s.ok / s.runs:.1%}",
            str(s.far),
            f"{s.right / s.runs:.1%}" if s.right else "-",
            f"{s.bias:+.2%}" if s.valued else "-",
            f"{s.half_width:.2%}" if s.valued else "-",
            f"{s.oracle:.2%}" if np.isfinite(s.oracle) else "-",
        ]
        for n, s in enumerate(scores)
    ]
    columns = [
        "scenario",
        "figure",
        "holds truth",
        "ok",
        "off by 2x",
        "bimodal, right",
        "bias",
        "half-width",
        "oracle's",
    ]
    title = f"known truth, {options.seeds} seeds, profile {options.profile}"
    return Table(title, columns, rows, numeric=range(2, 9), ends=[n - 1 for n in firsts])
