"""``main.py compare``: errors and power of ``overhead compare`` on pairs of runs made of the
committed samples.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from overhead.blocks.parts import Table
from overhead.blocks.terminal import show
from overhead.comparing.decide import PROMISED
from overhead.comparing.judge import CaseSamples, verdicts_by_test
from overhead.comparing.sides import FIGURE, Sampled, sampled
from overhead.comparing.verdicts import CaseVerdict, Verdicts, Yardstick
from overhead.loading.reduce import load, series_by_record
from overhead.results import WithFigures
from scripts.bench.requirement import Requirement, print_requirements

_SAMPLES = Path(__file__).parents[2] / "reports" / "samples"
_POOLS = (
    (("h100-2", "h100-default-2"), 48),
    (("h200", "h200-default"), 47),
    (("h100-2", "h100-quick-without-vulkan"), 35),
    (("h100-default-2",), 35),
    (("h200-default",), 35),
)
"""Groups of runs. The processes of a group are mixed and divided at random into two runs of equal
cost. The number: how many such pairs. Chosen, not measured: 200 pairs in all.
"""
_PLANTED = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5)
"""The planted changes: a changed case costs so many times as much. Chosen, not measured."""
_ABOVE = 1.17
"""Planted changes above this one are wider than the widest next-run range."""
_LIMIT = 10.0
"""The limit of the gate, per cent: ``overhead compare --fail-over 10``. Chosen, not measured."""
_EVERY = 10
"""One case in so many is changed. Chosen, not measured."""
_GATE_CODES = "013"
"""Exit codes of the gate: it passes, it fails, it could not see a change."""

Counts = defaultdict[str, int]
"""How often something happened, by its name. ``--json`` prints all names that were ever read."""
PyperfTest = Callable[[list[float], list[float]], tuple[bool, float]]
"""pyperf's test whether two lists of times differ: the answer, and the t score."""


@dataclass(frozen=True)
class PooledCase:
    """One case of a group of runs, with the processes of all these runs.

    ``ok``: whether the case's figure is ``ok`` in each of the runs.
    """

    samples: Sampled
    ok: bool


@dataclass(frozen=True)
class CaseOfPair:
    """One case of two runs that truly cost the same. ``ok``: whether its figure is ``ok``."""

    base: Sampled
    new: Sampled
    ok: bool


@dataclass(frozen=True)
class Power:
    """Which share of the planted changes by one factor were found, by us and by pyperf."""

    factor: float
    told: float
    by_pyperf: float


def pool(names: Sequence[str]) -> dict[str, PooledCase]:
    """The cases that all of these committed runs have, each with the processes of all runs.

    More processes than one run has are needed to form two runs that differ by chance alone.
    """
    runs = [_cases_of_run(name) for name in names]
    pooled = {}
    for key in runs[0]:
        if not all(key in run for run in runs):
            continue
        of_each_run = [run[key] for run in runs]
        samples = _joined([case.samples for case in of_each_run])
        pooled[key] = PooledCase(samples, all(case.ok for case in of_each_run))
    return pooled


def _cases_of_run(name: str) -> dict[str, PooledCase]:
    """The cases of one committed run that have a cost, by a key without the board's id.

    Without the id, the cases of runs on different boards are the same ones.
    """
    path = _SAMPLES / f"nvidia-{name}.samples.jsonl.gz"
    series = series_by_record(path)
    cases = {}
    for record in load(path).records:
        if WithFigures.measured(record, FIGURE):
            key = re.sub("#[0-9a-f]{12}", "", record.key)
            cases[key] = PooledCase(sampled(series[record.key]), record.status == "ok")
    return cases


def _joined(samples: Sequence[Sampled]) -> Sampled:
    """The samples of several runs as those of one run."""
    joined = {}
    for field in fields(Sampled):
        joined[field.name] = np.concatenate([getattr(run, field.name) for run in samples])
    return Sampled(**joined)


def pairs(dice: np.random.Generator) -> Iterator[list[CaseOfPair]]:
    """Pairs of runs that truly cost the same: the processes of a group, divided at random.

    Cases that some process of the group did not measure are left out.
    """
    for names, count in _POOLS:
        cases = pool(names).values()
        processes = max(case.samples.numbers.size for case in cases)
        complete = [case for case in cases if case.samples.numbers.size == processes]
        half = processes // 2
        for _ in range(count):
            mixed = dice.permutation(processes)
            in_base = mixed[:half]
            in_new = mixed[half : half * 2]
            yield [
                CaseOfPair(case.samples.at(in_base), case.samples.at(in_new), case.ok)
                for case in complete
            ]


def judged(cases: Sequence[CaseOfPair], factor: float, first: int) -> list[CaseVerdict]:
    """The verdicts of ``compare`` where every tenth case costs ``factor`` times as much in NEW.

    ``first``: the index of the first changed case; -1 changes none. A verdict's name is the index
    of its case.
    """
    samples = []
    for index, case in enumerate(cases):
        new = case.new
        if index % _EVERY == first:
            # slopes and whole are logarithms, so a factor on the cost is added.
            shift = np.log(factor)
            new = replace(new, slopes=new.slopes + shift, whole=new.whole + shift)
        undecided = CaseVerdict(str(index), "undecided")
        samples.append(CaseSamples.of(undecided, [case.base], [new], False))
    # One process a side has no spread between processes to test by.
    testable = [case_samples for case_samples in samples if min(case_samples.case.processes) > 1]
    return verdicts_by_test(testable, _LIMIT)


def compare(options: argparse.Namespace, console: Console) -> bool:
    """Judge all pairs of equal runs, with and without planted changes; print how often ``compare``
    was wrong and how many changes it found; return whether the requirements hold.
    """
    pyperf_test = _pyperf_test()
    counts = Counts(int)
    dice = np.random.default_rng(42)
    for pair in pairs(dice):
        _count_false_verdicts(pair, counts)
        ok_cases = [case for case in pair if case.ok]
        first = int(dice.integers(_EVERY))
        for factor in (1.0, *_PLANTED):
            _count_planted(ok_cases, factor, first, pyperf_test, counts)

    powers = [_power(factor, counts) for factor in _PLANTED]
    requirements = _error_requirements(counts)
    if pyperf_test is not None:
        requirements.append(_power_requirement(powers))
    else:
        console.print(
            "without pyperf (pip install pyperf) there is nothing to compare the power with"
        )
    table = _power_table(powers, counts)
    if options.json:
        claims = [asdict(requirement) for requirement in requirements]
        console.print(json.dumps({"counts": counts, "claims": claims}))
    else:
        show([table], console)
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _pyperf_test() -> PyperfTest | None:
    """pyperf's test of significance; None if pyperf is not installed."""
    try:
        utils: Any = importlib.import_module("pyperf._utils")
    except ImportError:
        return None
    test: PyperfTest = utils.is_significant
    return test


def _count_false_verdicts(pair: Sequence[CaseOfPair], counts: Counts) -> None:
    """Count a pair of equal runs, and whether any of its cases is called slower or faster."""
    counts["pairs"] += 1
    verdicts = [case.verdict for case in judged(pair, 1.0, -1)]
    counts["false"] += int("slower" in verdicts or "faster" in verdicts)


def _count_planted(
    cases: Sequence[CaseOfPair],
    factor: float,
    first: int,
    pyperf_test: PyperfTest | None,
    counts: Counts,
) -> None:
    """Plant one change in a pair, and count what the gate said and who found the changed cases."""
    verdicts = judged(cases, factor, first)
    counts[f"gate {factor}: {_gate_code(verdicts)}"] += 1
    changed = [verdict for verdict in verdicts if int(verdict.case) % _EVERY == first]
    counts[f"planted {factor}"] += len(changed)
    counts[f"told {factor}"] += [verdict.verdict for verdict in changed].count("slower")
    if pyperf_test is None:
        return
    for verdict in changed:
        case = cases[int(verdict.case)]
        base_ns = np.exp(case.base.whole)
        new_ns = factor * np.exp(case.new.whole)
        significant, _ = pyperf_test(base_ns.tolist(), new_ns.tolist())
        counts[f"pyperf {factor}"] += significant


def _gate_code(verdicts: Sequence[CaseVerdict]) -> str:
    """The exit code of ``overhead compare --fail-over`` for these verdicts."""
    gate = Verdicts((), (), True, (), Yardstick("nothing-tested"), _LIMIT, tuple(verdicts))
    if gate.failed:
        return "1"
    return "0" if gate.tested_enough() else "3"


def _power(factor: float, counts: Counts) -> Power:
    """The shares of the changes by this factor that ``compare`` and pyperf found."""
    planted = counts[f"planted {factor}"]
    told = counts[f"told {factor}"] / planted
    by_pyperf = counts[f"pyperf {factor}"] / planted
    return Power(factor, told, by_pyperf)


def _error_requirements(counts: Counts) -> list[Requirement]:
    """What ``overhead compare`` promises of runs that truly cost the same."""
    most = PROMISED * counts["pairs"]
    failed_gates = counts["gate 1.0: 1"]
    false_verdicts = (
        f"{counts['false']} of {counts['pairs']} equal pairs have a false verdict (at most"
        f" {PROMISED:.0%})"
    )
    false_gates = f"the gate of {_LIMIT:g} % fails {failed_gates} of {counts['pairs']} equal pairs"
    return [
        Requirement(false_verdicts, counts["false"] <= most),
        Requirement(false_gates, failed_gates <= most),
    ]


def _power_requirement(powers: Sequence[Power]) -> Requirement:
    """Whether ``compare`` finds at least as many large changes as pyperf."""
    above = [power for power in powers if power.factor > _ABOVE]
    told = float(np.mean([power.told for power in above]))
    by_pyperf = float(np.mean([power.by_pyperf for power in above]))
    return Requirement(
        f"changes above {_ABOVE - 1:.0%}: {told:.1%} told, {by_pyperf:.1%} by pyperf",
        told >= by_pyperf,
    )


def _power_table(powers: Sequence[Power], counts: Counts) -> Table:
    """A row a planted change: who found which share of it, and what the gate said."""
    rows = []
    for power in powers:
        gates = [str(counts[f"gate {power.factor}: {code}"]) for code in _GATE_CODES]
        shares = [f"{power.told:.1%}", f"{power.by_pyperf:.1%}"]
        rows.append([f"{power.factor - 1:.0%}", *shares, *gates])
    columns = [
        "one case in ten slower by",
        "told",
        "by pyperf",
        "gate passes",
        "fails",
        "could not see",
    ]
    return Table(f"{counts['pairs']} pairs of equal runs", columns, rows, numeric=range(6))
