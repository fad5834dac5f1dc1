"""``bench.py [BENCH]``: known truth of figures and of the split, false calls and misses of compare, what the harness
adds, how the report grows, the tools of others on a GPU, real browsers.

Exit 0 where every claim holds, 1 where one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: the worker processes are the parallelism

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from scripts.agreement.side_by_side import agreement
from scripts.bench.browsers import browsers
from scripts.bench.compare import compare
from scripts.bench.harness import Harness, measure_harness
from scripts.bench.held import Requirement, print_claims
from scripts.bench.known_truth import FIGURES, KNEE, SCENARIOS, Scenario, Score, TruthOutcome, run, score
from scripts.bench.other_rules import RULES
from scripts.bench.report import report
from scripts.bench.shares import split_truth


def _one(job: tuple[int, int, str]) -> TruthOutcome:
    scenario, seed, profile = job
    return run(SCENARIOS[scenario], seed, profile)


def known_truth(options: argparse.Namespace, console: Console) -> bool:
    """Every scenario with every seed; tables and claims, or JSON."""
    jobs = [(index, seed, options.profile) for index in range(len(SCENARIOS)) for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs) as pool:
        each = pool.map(_one, jobs, chunksize=4)
        note = Console(stderr=True)
        outcomes = list(track(each, "known truth", total=len(jobs), console=note, disable=not note.is_terminal))
    grouped = [[o for o in outcomes if o.scenario == s.name] for s in SCENARIOS]
    scores = [
        score(s, group, figure, options.profile)
        for s, group in zip(SCENARIOS, grouped, strict=True)
        for figure in (*FIGURES, *KNEE)
        if figure in s.truth()
    ]
    claims = _claims(scores, options)
    if options.json:
        rules = {s.name: {r: _others(s, g, r) for r in RULES} for s, g in zip(SCENARIOS, grouped, strict=True)}
        body = {"scores": [asdict(s) for s in scores], "other_rules": rules, "claims": [asdict(c) for c in claims]}
        print(json.dumps(body, indent=1))
    else:
        console.print(_coverage_table(scores, options))
        console.print(_rules_table(scores, grouped))
        print_claims(claims, console)
    return all(claim.holds for claim in claims)


def _others(scenario: Scenario, group: list[TruthOutcome], rule: str) -> float:
    """The rule's typical error on this truth, relative to what one more unit costs."""
    return float(np.median([o.others[rule] for o in group])) / scenario.truth()["complete"] - 1


def _claims(scores: list[Score], options: argparse.Namespace) -> list[Requirement]:
    single = {s.name for s in SCENARIOS if not s.two_speeds}
    one = [s for s in scores if s.scenario in single and s.figure in FIGURES]
    slopes = [s for s in one if s.figure != "fixed"]
    within = [s for s in slopes if s.oracle <= options.target]
    two = [s for s in scores if s.scenario not in single and s.figure in FIGURES and s.figure != "fixed"]
    covered = _share(one, "covered", "valued")
    far = _share(one, "far", "ok")
    worst = min(within, key=lambda s: s.ok / s.runs)
    return [
        Requirement(
            f"the 95 % intervals hold the truth in {covered:.1%} of {_sum(one, 'valued'):,} figures (92 to 98 %)",
            0.92 <= covered <= 0.98,
        ),
        Requirement(
            f"of {_sum(one, 'ok'):,} ok figures {far:.2%} are off by over twice their half-width (at most 1 %)",
            far <= 0.01,
        ),
        Requirement(
            f"where an oracle reaches {options.target:.0%}, {_share(within, 'ok', 'runs'):.1%} of the slopes are ok, "
            f"and at the least {worst.ok / worst.runs:.1%} ({worst.figure}, {worst.scenario}) (at least 90 %)",
            worst.ok / worst.runs >= 0.9,
        ),
        Requirement(
            f"two speeds come out bimodal with both within 2 % in {_share(two, 'right', 'runs'):.1%} (at least 99 %)",
            _share(two, "right", "runs") >= 0.99,
        ),
    ]


def _sum(scores: list[Score], name: str) -> int:
    return sum(getattr(score, name) for score in scores)


def _share(scores: list[Score], part: str, whole: str) -> float:
    return _sum(scores, part) / max(_sum(scores, whole), 1)


def _coverage_table(scores: list[Score], options: argparse.Namespace) -> Table:
    table = Table(title=f"known truth, {options.seeds} seeds, profile {options.profile}", title_justify="left")
    table.add_column("scenario")
    for name in ("figure", "holds truth", "ok", "off by 2x", "bimodal, right", "bias", "half-width", "oracle's"):
        table.add_column(name, justify="right" if name != "figure" else "left")
    last = ""
    for s in scores:
        table.add_row(
            s.scenario if s.scenario != last else "",
            s.figure,
            f"{s.covered / s.valued:.1%}" if s.valued else "-",
            f"{s.ok / s.runs:.1%}",
            str(s.far),
            f"{s.right / s.runs:.1%}" if s.right else "-",
            f"{s.bias:+.2%}" if s.valued else "-",
            f"{s.half_width:.2%}" if s.valued else "-",
            f"{s.oracle:.2%}" if np.isfinite(s.oracle) else "-",
            end_section=s.figure == [t.figure for t in scores if t.scenario == s.scenario][-1],
        )
        last = s.scenario
    return table


def _rules_table(scores: list[Score], grouped: list[list[TruthOutcome]]) -> Table:
    table = Table(title="what one more unit costs: error of each rule's typical answer", title_justify="left")
    for name in ("scenario", "truth, us", "this program", *RULES):
        table.add_column(name, justify="left" if name == "scenario" else "right")
    biases = {s.scenario: s for s in scores if s.figure == "complete"}
    for scenario, group in zip(SCENARIOS, grouped, strict=True):
        ours = biases[scenario.name]
        errors = [f"{_others(scenario, group, rule):+,.1%}" for rule in RULES]
        mine = "both speeds" if scenario.two_speeds else f"{ours.bias:+.2%}"
        table.add_row(scenario.name, f"{scenario.truth()['complete'] / 1e3:g}", mine, *errors)
    return table


def harness(options: argparse.Namespace, console: Console) -> bool:
    """What the window holds besides the work, on this machine's clock."""
    found: Harness = measure_harness()
    claims = [
        Requirement(
            f"a unit of {found.real_name} takes {found.real_ns:.0f} ns; {found.loop_ns:.1f} ns of them, "
            f"{found.unit_share:.2%}, are the loop around it (under 2 %)",
            found.unit_share < 0.02,
        ),
        Requirement(
            f"a window holds {found.window_ns:.0f} ns of its own (two clock readings, two calls), "
            f"{found.window_share:.3%} of that case's longest sample (under 2 %)",
            found.window_share < 0.02,
        ),
    ]
    if options.json:
        print(json.dumps({**asdict(found), "claims": [asdict(c) for c in claims]}, indent=1))
    else:
        console.print(f"clock: steps of {found.resolution_ns} ns, {found.clock_ns:.0f} ns a reading;"
                      f" the CPU clock {found.cpu_clock_ns:.0f} ns", highlight=False)  # fmt: skip
        print_claims(claims, console)
    return all(claim.holds for claim in claims)


BENCHES: dict[str, Callable[[argparse.Namespace, Console], bool]] = {
    "known-truth": known_truth, "split": split_truth, "compare": compare, "harness": harness, "report": report,
    "agreement": agreement, "browsers": browsers,
}  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="bench.py", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("bench", nargs="?", choices=BENCHES, help="one of them; all without it")
    parser.add_argument("--seeds", type=int, default=200, help="runs of each scenario")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--profile", choices=("quick", "default", "thorough"), default="default")
    parser.add_argument("--json", action="store_true", help="one JSON document a bench")
    options = parser.parse_args(arguments)
    options.target = _target(options.profile)
    console = Console(width=150 if not sys.stdout.isatty() else None)
    chosen = [BENCHES[options.bench]] if options.bench else list(BENCHES.values())
    held = [bench(options, console) for bench in chosen]
    return 0 if all(held) else 1


def _target(profile: str) -> float:
    from overhead.profiles import PROFILES

    return PROFILES[profile].target


if __name__ == "__main__":
    raise SystemExit(main())
