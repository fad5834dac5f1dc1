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
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from rich.console import Console
from rich.progress import track

from overhead.blocks.parts import Table
from overhead.blocks.terminal import show
from overhead.measure.fitting.case_figures import DRIFTS, estimate
from overhead.measure.fitting.interval import MEAN
from overhead.measure.fitting.line import Floats
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
_NORMAL_95 = 1.96
"""Half of a 95 % interval of a normal distribution, in standard deviations."""
_MODES_AGREE = 0.02
"""Both modes of a bimodal figure must be this near to the true ones, relative. Chosen, not
measured.
"""
_COVERAGE = (0.92, 0.98)
"""The least and the largest share of the 95 % intervals that may hold the truth. Chosen, not
measured.
"""
_MOST_FAR = 0.01
"""The largest share of ``ok`` figures that may be off by over twice their half-width. Chosen, not
measured.
"""
_LEAST_OK = 0.9
"""The least share of runs in which a slope must be ``ok`` if the best estimator could be as precise
as the profile wants. Chosen, not measured.
"""
_LEAST_BIMODAL = 0.99
"""The least share of runs in which two speeds must be found and told right. Chosen, not
measured.
"""
_LEAST_REFUSED = 0.95
"""The least share of runs in which a law without one slope must be refused. Chosen, not
measured.
"""


@dataclass(frozen=True)
class TruthOutcome:
    """One run of one scenario. ``figures``: each as a dict, ns.

    ``counts``: samples by n in the first process. ``seconds``: simulated seconds per process.
    ``pace``: the mean time of the reference loop in the processes over its undisturbed time, where
    the figures are those at the processes' speed, else 1.
    """

    scenario: str
    seed: int
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    seconds: float = 0.0
    pace: float = 1.0


def run(scenario: Scenario, seed: int, profile: str = "default") -> TruthOutcome:
    """Measure one simulated stack with the real code, in as many processes as the profile plans.

    Its true costs are known, so :func:`score` can say whether the figures are right.
    """
    plan = PROFILES[profile]
    law = scenario.law
    processes: list[Process] = []
    spent_ns = 0.0
    for index in range(plan.processes_of(scenario.cost)):
        clock = _clock(scenario, seed, index, plan)
        begun_ns = clock.time
        events = _measured_events(scenario, clock, plan, index, _seed(scenario, seed, index))
        spent_ns += clock.time - begun_ns
        processes.append(process_of(events, index))

    series = Series(processes, law.synchronous, False, law.overlap, anchored=True)
    estimated = estimate(series, plan.precision)
    figures = {}
    for name in (*TIME_FIGURES, *KNEE_FIGURES):
        if name in estimated:
            figures[name] = structs.asdict(estimated[name])
    units_of_samples = wall_rows(processes[0].rounds)[:, 0]
    counts = Counter(int(n) for n in units_of_samples)
    seconds = spent_ns / 1e9 / len(processes)
    pace = _pace_of_figures(scenario, processes)
    return TruthOutcome(scenario.name, seed, figures, dict(counts), seconds, pace)


def _measured_events(
    scenario: Scenario, clock: FakeClock, plan: Plan, process: int, seed: int
) -> list[Event]:
    """What the real measuring code reports of the simulated stack in one process."""
    fake_chain = PollingFakeChain if scenario.cost == "polling" else FastFakeChain
    seconds = plan.case_s * WEIGHT[scenario.cost]
    settings = Settings(
        seconds,
        plan.precision,
        plan.min_rounds,
        plan.max_rounds,
        seed,
        frozenset({"case"}),
        process=process,
    )
    events: list[Event] = []
    measure_cases({"case": fake_chain(scenario.law, clock)}, clock, settings, events.append)
    return events


def _pace_of_figures(scenario: Scenario, processes: list[Process]) -> float:
    """How slow the machine was where the figures are those at the processes' speed; else 1.

    With few processes, and at two speeds, the estimator does not correct figures for the speed.
    """
    law = scenario.law
    series = Series(processes, law.synchronous, False, law.overlap)
    counted = without_slow_rounds(series).processes
    if scenario.two_speeds or len(counted) < MEAN.reference_from:
        return 1.0
    return pace_of(counted)


def _clock(scenario: Scenario, seed: int, index: int, plan: Plan) -> FakeClock:
    """The clock of one simulated process, with the scenario's noise.

    The scenario's ``slow_share`` of the processes run at the slow speed; chance says which ones.
    """
    count = plan.processes_of(scenario.cost)
    order = np.random.default_rng([seed, 1]).permutation(count)
    is_slow = bool(order[index] < scenario.slow_share * count)
    process_seed = _seed(scenario, seed, index)
    return FakeClock(scenario.disturbance, process_seed, scenario.resolution_ns, is_slow)


def _seed(scenario: Scenario, seed: int, process: int) -> int:
    """A different seed for every process of every run."""
    return zlib.crc32(f"{scenario.name} {seed} {process}".encode())


def process_of(events: list[Event], number: int, case: str = "case") -> Process:
    """The samples and one-off values of a case, from the events of one simulated process."""
    rounds = []
    one_off = {}
    for event in events:
        if isinstance(event, FailedEntry):
            raise RuntimeError(f"the fake stack failed: {sentence(event.reason)}")
        if isinstance(event, RoundEntry) and event.case == case:
            rounds.append(event)
        if isinstance(event, OneOffEntry) and event.case == case:
            one_off[event.name] = event
    return Process(rounds, one_off, number=number, pace=best_pace(rounds))


def pace_of(processes: Sequence[Process]) -> float:
    """The mean time of the reference loop in these processes over its undisturbed time."""
    return float(np.mean([process.pace for process in processes])) / REFERENCE_NS


def oracle(scenario: Scenario, counts: dict[int, int], figure: str, processes: int) -> float:
    """The best possible relative 95 % half-width of a figure, given the noise law.

    No estimator can be more precise than this, so a figure that is not ``ok`` although the oracle
    is precise shows a fault of ours. ``counts``: how many samples of n units were taken. NaN for
    figures without such a bound.
    """
    if figure not in TIME_FIGURES or len(counts) < 2:
        return math.nan
    truth = scenario.truth()
    n = np.array(sorted(counts), dtype=np.float64)
    times = np.array([counts[int(units)] for units in n])

    # Weighted least squares: each sample is weighted by its true variance.
    weights = times / _sample_variance(scenario, n, waits=figure in ("complete", "fixed"))
    sum_n = (weights * n).sum()
    sum_n_squared = (weights * n * n).sum()
    information = np.array([[weights.sum(), sum_n], [sum_n, sum_n_squared]])
    covariance = np.linalg.inv(information)  # of the line's start and its slope
    parameter = 0 if figure == "fixed" else 1
    within_process = float(covariance[parameter][parameter])

    relative_spread = scenario.disturbance.spread**2 + scenario.law.own**2
    between_processes = relative_spread * truth[figure] ** 2
    variance = (within_process + between_processes) / processes
    return _NORMAL_95 * math.sqrt(variance) / scenario.scale(figure)


def _sample_variance(scenario: Scenario, n: Floats, waits: bool) -> Floats:
    """The true variance of one sample of n units, ns^2. ``waits``: the sample ends with a wait.

    The terms are those by which ``tests/fakes/machine.py`` makes noise: in proportion to the time,
    unit by unit, and the clock's resolution.
    """
    law = scenario.law
    truth = scenario.truth()
    if waits:
        unit = truth["complete"]
        level = truth["fixed"] + unit * n
    else:
        unit = truth["issue"]
        level = unit * n
    of_level = (law.jitter * level) ** 2
    of_units = (law.scatter * unit) ** 2 * n
    of_clock = scenario.resolution_ns**2 / 6  # both readings are uniform in a step of the clock
    floor = 1.0  # weights stay finite for a law without noise
    variance: Floats = of_level + of_units + of_clock + floor
    if not waits:
        return variance
    of_wait = law.wake**2 / 2
    if not law.locked:
        # A free-running poll ends a wait uniformly in one interval. A locked poll adds no noise.
        of_wait += law.poll**2 / 12
    return variance + of_wait


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


@dataclass(frozen=True)
class _FigureOfRun:
    """A figure that one run of a scenario measured, and what it should be, ns."""

    measured: dict[str, Any]
    truth: float

    @property
    def is_valued(self) -> bool:
        """Whether the figure has an interval that can hold the truth."""
        return self.measured["low"] is not None and self.measured["status"] in ("ok", "noisy")

    @property
    def error(self) -> float:
        """The measured value less the true one, ns."""
        return float(self.measured["value"]) - self.truth

    @property
    def width(self) -> float:
        """The whole width of the interval, so twice its half-width."""
        return float(self.measured["high"]) - float(self.measured["low"])

    @property
    def holds_truth(self) -> bool:
        """Whether the true value lies in the interval."""
        return bool(self.measured["low"] <= self.truth <= self.measured["high"])

    def has_modes(self, modes: Sequence[float]) -> bool:
        """Whether the run found two speeds, and both are near these."""
        if self.measured["status"] != "bimodal":
            return False
        ratios = [
            mode / true_mode for mode, true_mode in zip(self.measured["modes"], modes, strict=True)
        ]
        return all(abs(ratio - 1) <= _MODES_AGREE for ratio in ratios)


def score(
    scenario: Scenario, outcomes: list[TruthOutcome], figure: str, profile: str = "default"
) -> Score:
    """How often one figure was right over all runs of a scenario, and how precise it was.

    A time is compared with its truth at the speed of the run's processes; a number of units does
    not change with speed.
    """
    truth = scenario.truth()[figure]
    runs = []
    for outcome in outcomes:
        if figure in outcome.figures:
            pace = 1.0 if figure in KNEE_FIGURES else outcome.pace
            runs.append(_FigureOfRun(outcome.figures[figure], truth * pace))
    valued = [of_run for of_run in runs if of_run.is_valued]
    ok = [of_run for of_run in valued if of_run.measured["status"] == "ok"]
    covered = [of_run for of_run in valued if of_run.holds_truth]
    far = [of_run for of_run in ok if abs(of_run.error) > of_run.width]
    true_modes = (truth, truth * scenario.disturbance.slowdown)
    right = [of_run for of_run in runs if of_run.has_modes(true_modes)]

    bias = math.nan
    half_width = math.nan
    if valued:
        scale = scenario.scale(figure)
        errors = [of_run.error for of_run in valued]
        half_widths = [of_run.width / 2 for of_run in valued]
        bias = float(np.mean(errors)) / scale
        half_width = float(np.median(half_widths)) / scale
    processes = PROFILES[profile].processes_of(scenario.cost)
    bounds = [oracle(scenario, outcome.counts, figure, processes) for outcome in outcomes]
    return Score(
        scenario=scenario.name,
        figure=figure,
        runs=len(outcomes),
        valued=len(valued),
        covered=len(covered),
        ok=len(ok),
        far=len(far),
        right=len(right),
        bias=bias,
        half_width=half_width,
        oracle=float(np.median(bounds)),
    )


@dataclass(frozen=True)
class RefusalCount:
    """Runs of a law that no single slope describes, and how many of them got one of the right
    statuses.
    """

    scenario: str
    runs: int
    right: int

    @property
    def share(self) -> float:
        """The share of the runs that got a right status."""
        return self.right / self.runs


def refusal(scenario: Scenario, outcomes: list[TruthOutcome]) -> RefusalCount:
    """How often ``complete`` of a scenario with ``refused`` is refused for the right reason."""
    right = [outcome for outcome in outcomes if _is_right(scenario, outcome)]
    return RefusalCount(scenario.name, len(outcomes), len(right))


def _is_right(scenario: Scenario, outcome: TruthOutcome) -> bool:
    """Whether ``complete`` is refused as it must be.

    A ``noisy`` one must say that the cost drifts: it may also be noisy by chance.
    """
    complete = outcome.figures["complete"]
    if complete["status"] not in scenario.refused:
        return False
    if complete["status"] != "noisy":
        return True
    return bool(codes_of(complete["reason"]) & DRIFTS)


class _Job(NamedTuple):
    """One run for a worker process. ``scenario``: its index in ``SCENARIOS``."""

    scenario: int
    seed: int
    profile: str


def _run_job(job: _Job) -> TruthOutcome:
    """Measure the run of a job, in a worker process."""
    return run(SCENARIOS[job.scenario], job.seed, job.profile)


def known_truth(options: argparse.Namespace, console: Console) -> bool:
    """Run every scenario with every seed; print tables or JSON; return whether all requirements
    hold.
    """
    outcomes = _all_outcomes(options)
    scores = []
    refusals = []
    for scenario in SCENARIOS:
        of_scenario = [outcome for outcome in outcomes if outcome.scenario == scenario.name]
        for figure in (*TIME_FIGURES, *KNEE_FIGURES):
            if figure in scenario.truth():
                scores.append(score(scenario, of_scenario, figure, options.profile))
        if scenario.refused:
            refusals.append(refusal(scenario, of_scenario))

    requirements = _requirements(scores, PROFILES[options.profile].precision)
    requirements.append(_refusal_requirement(refusals))
    if options.json:
        body = {
            "scores": [asdict(score) for score in scores],
            "refusals": [asdict(count) for count in refusals],
            "claims": [asdict(requirement) for requirement in requirements],
        }
        print(json.dumps(body, indent=1))
    else:
        show([_coverage_table(scores, options)], console)
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _all_outcomes(options: argparse.Namespace) -> list[TruthOutcome]:
    """Every scenario with every seed, on several processes, with a bar of progress."""
    jobs = []
    for index in range(len(SCENARIOS)):
        for seed in range(options.seeds):
            jobs.append(_Job(index, seed, options.profile))
    note = Console(stderr=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        each = pool.map(_run_job, jobs, chunksize=4)
        bar = track(
            each, "known truth", total=len(jobs), console=note, disable=not note.is_terminal
        )
        return list(bar)


def _requirements(scores: list[Score], precision: float) -> list[Requirement]:
    """What must hold of the figures over all runs. ``precision``: the half-width that a figure must
    reach to be ``ok``, relative.
    """
    two_speeds = {scenario.name for scenario in SCENARIOS if scenario.two_speeds}
    times = [score for score in scores if score.figure in TIME_FIGURES]
    of_one_speed = [score for score in times if score.scenario not in two_speeds]
    of_two_speeds = [score for score in times if score.scenario in two_speeds]
    slopes = [score for score in of_one_speed if score.figure != "fixed"]
    reachable = [score for score in slopes if score.oracle <= precision]
    bimodal_slopes = [score for score in of_two_speeds if score.figure != "fixed"]
    return [
        _coverage_requirement(of_one_speed),
        _far_requirement(of_one_speed),
        _ok_requirement(reachable, precision),
        _bimodal_requirement(bimodal_slopes),
    ]


def _coverage_requirement(scores: list[Score]) -> Requirement:
    """Intervals of 95 % must hold the truth about as often as they say."""
    covered = _share(scores, "covered", "valued")
    least, most = _COVERAGE
    return Requirement(
        f"the 95 % intervals hold the truth in {covered:.1%} of {_sum(scores, 'valued'):,} figures"
        " (92 to 98 %)",
        least <= covered <= most,
    )


def _far_requirement(scores: list[Score]) -> Requirement:
    """A figure that is called ``ok`` must almost never be far off."""
    far = _share(scores, "far", "ok")
    return Requirement(
        f"of {_sum(scores, 'ok'):,} ok figures {far:.2%} are off by over twice their half-width"
        " (at most 1 %)",
        far <= _MOST_FAR,
    )


def _ok_requirement(scores: list[Score], precision: float) -> Requirement:
    """Where the best estimator is precise enough, ours must be so in nearly all runs."""
    share = _share(scores, "ok", "runs")
    worst = min(scores, key=_share_ok)
    least = _share_ok(worst)
    words = (
        f"where an oracle reaches {precision:.0%}, {share:.1%} of the slopes are ok, and at the"
        f" least {least:.1%} ({worst.figure}, {worst.scenario}) (at least 90 %)"
    )
    return Requirement(words, least >= _LEAST_OK)


def _bimodal_requirement(scores: list[Score]) -> Requirement:
    """Two speeds of the machine must be found, and both told right."""
    right = _share(scores, "right", "runs")
    return Requirement(
        f"two speeds come out bimodal with both within 2 % in {right:.1%} (at least 99 %)",
        right >= _LEAST_BIMODAL,
    )


def _refusal_requirement(refusals: list[RefusalCount]) -> Requirement:
    """Laws that no single slope describes must get no slope."""
    worst = min(refusals, key=lambda count: count.share)
    right = sum(count.right for count in refusals)
    runs = sum(count.runs for count in refusals)
    words = (
        f"laws without one slope are refused for the right reason in {right} of {runs} runs, at the"
        f" least {worst.share:.1%} ({worst.scenario}) (at least 95 %)"
    )
    return Requirement(words, worst.share >= _LEAST_REFUSED)


def _share_ok(score: Score) -> float:
    """The share of the runs in which the figure is ``ok``."""
    return score.ok / score.runs


def _sum(scores: list[Score], name: str) -> int:
    """The sum of one count over all scores, by the name of its field."""
    return sum(getattr(score, name) for score in scores)


def _share(scores: list[Score], part: str, whole: str) -> float:
    """The share of one count in another one over all scores; 0 where nothing was counted."""
    return _sum(scores, part) / max(_sum(scores, whole), 1)


def _coverage_table(scores: list[Score], options: argparse.Namespace) -> Table:
    """A row a figure of a scenario; the scenario's name stands in its first row only."""
    rows = []
    ends = []
    before = None
    for index, score in enumerate(scores):
        is_first = score.scenario != before
        if is_first:
            ends.append(index - 1)
        rows.append([score.scenario if is_first else "", *_coverage_cells(score)])
        before = score.scenario
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
    return Table(title, columns, rows, numeric=range(2, 9), ends=ends)


def _coverage_cells(score: Score) -> list[str]:
    """The cells of a figure's row; ``-`` where a figure has no such number."""
    covered = bias = half_width = right = bound = "-"
    if score.valued:
        covered = f"{score.covered / score.valued:.1%}"
        bias = f"{score.bias:+.2%}"
        half_width = f"{score.half_width:.2%}"
    if score.right:
        right = f"{score.right / score.runs:.1%}"
    if np.isfinite(score.oracle):
        bound = f"{score.oracle:.2%}"
    share_ok = f"{_share_ok(score):.1%}"
    return [score.figure, covered, share_ok, str(score.far), right, bias, half_width, bound]
