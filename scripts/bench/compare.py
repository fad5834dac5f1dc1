"""``main.py compare``: how often ``overhead compare`` calls a change where there is none, and misses a real one.

An A/A pair is two disjoint sets of processes from separate runs of one simulated machine, or from runs taken in turn.
``python scripts/bench/compare.py`` writes the figures into docs/compare-bench.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from overhead.versus.calls import BothSides, Decision, decisions
from overhead.versus.decide import POWER, PROMISED
from overhead.versus.sides import Sampled
from scripts.bench.requirement import Requirement, print_requirements
from scripts.bench.simulated_runs import SIMULATED_MACHINES, RunPool, SimulatedRun, simulated

_FIGURES_FILE = Path(__file__).resolve().parents[2] / "docs" / "compare-bench.json"
AA_PAIRS = 200
_MIN_POWER = 0.90
_SHIFT = 0.05
_SHIFTED_CASES = 2
"""Cases of each pair that are made slower, one at a time."""
_SEED = 20_261_121
_SPREAD_BINS = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, math.inf)
_MIN_IN_BIN = 20


@dataclass(frozen=True)
class StudyRow:
    """The result of one setting. ``pairs``: A/A pairs; ``false``: those with any call.

    ``smallest``: median of the smallest detectable change, relative. ``called``: share of shifts of just that size that
    were called; ``at_5``: share of shifts of 5 %; ``by_spread``: the same by the spread between processes.
    """

    machine: str
    cases: int
    processes: int
    runs: int
    in_turn: bool
    pairs: int
    false: int
    smallest: float
    called: float
    at_5: float
    by_spread: dict[str, float] = field(default_factory=dict)


def pairs(pool: Sequence[SimulatedRun], runs: int, dice: np.random.Generator) -> Iterator[list[BothSides]]:
    """A/A pairs, none twice: ``runs`` runs a side, no run on both sides; of each run a random set of its processes."""
    seen: set[frozenset[tuple[bytes, ...]]] = set()
    for _ in range(20 * AA_PAIRS):
        if len(seen) == AA_PAIRS:
            return
        chosen = dice.permutation(len(pool))[: 2 * runs]
        sides = [[_some(pool[i], dice) for i in half] for half in (chosen[:runs], chosen[runs:])]
        base, new = sides
        cases = [BothSides(tuple(r[case] for r in base), tuple(r[case] for r in new)) for case in pool[0]]
        name = frozenset(tuple(sorted(s.slopes.tobytes() for s in side)) for side in (cases[0].base, cases[0].new))
        if name not in seen:
            seen.add(name)
            yield cases


def _some(run: SimulatedRun, dice: np.random.Generator) -> SimulatedRun:
    """All processes of the run but one, if that leaves three; the same for every case where each has a value."""
    least = min(s.slopes.size for s in run.values())
    keep = np.sort(dice.permutation(least)[: max(least - 1, min(least, 3))])
    return {case: _at(s, keep) for case, s in run.items()}


def pairs_in_turn(
    turns: tuple[SimulatedRun, SimulatedRun], count: int, dice: np.random.Generator
) -> Iterator[list[BothSides]]:
    """A/A pairs of ``count`` pairs of processes that were measured in turn; which of two is BASE is left to chance."""
    least = min(s.slopes.size for run in turns for s in run.values())
    for _ in range(AA_PAIRS):
        keep, swapped = dice.permutation(least)[:count], dice.random(count) < 0.5
        cases = []
        for case in turns[0]:
            one, other = (_at(run[case], keep) for run in turns)
            cases.append(BothSides((_mixed(one, other, swapped),), (_mixed(other, one, swapped),), paired=True))
        yield cases


def _at(sampled: Sampled, keep: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Sampled:
    return Sampled(sampled.slopes[keep], sampled.canary[keep] if sampled.canary.size else sampled.canary)


def _mixed(one: Sampled, other: Sampled, swapped: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Sampled:
    canary = np.where(swapped, other.canary, one.canary) if one.canary.size and other.canary.size else np.zeros(0)
    return Sampled(np.where(swapped, other.slopes, one.slopes), canary)


@dataclass
class Study:
    """``at_5``: by case and pair, the processes' spread and whether 5 % was called."""

    false: int = 0
    pairs: int = 0
    missed: int = 0
    moved: int = 0
    smallest: list[float] = field(default_factory=list)
    at_5: list[tuple[float, bool]] = field(default_factory=list)


def study(aa: Iterator[list[BothSides]], dice: np.random.Generator) -> Study:
    """Compare each pair as it is, then with one case at a time made slower on the NEW side, for some of the cases."""
    found = Study()
    for cases in aa:
        calls = decisions(cases)
        found.pairs += 1
        found.false += any(one.verdict in ("faster", "slower") for one in calls)
        for i in dice.permutation(len(cases))[:_SHIFTED_CASES].tolist():
            one = calls[i]
            found.smallest.append(one.smallest)
            found.moved += 1
            found.missed += _with(cases, i, one.smallest).verdict != "slower"
            found.at_5.append((_spread(cases[i]), _with(cases, i, math.log1p(_SHIFT)).verdict == "slower"))
    return found


def _with(cases: Sequence[BothSides], index: int, shift: float) -> Decision:
    """The call on a case when its NEW side really is slower by ``shift`` (a logarithm)."""
    slower = tuple(replace(s, slopes=s.slopes + shift) for s in cases[index].new)
    moved = [*cases[:index], replace(cases[index], new=slower), *cases[index + 1 :]]
    return decisions(moved)[index]


def _spread(case: BothSides) -> float:
    return math.sqrt(float(np.mean([s.slopes.var(ddof=1) for s in (*case.base, *case.new) if s.slopes.size > 1])))


def power_by_spread(found: Study) -> dict[str, float]:
    """How often 5 % was called, by the spread between processes."""
    shares = {}
    for low, high in itertools.pairwise(_SPREAD_BINS):
        hits = [hit for spread, hit in found.at_5 if low <= spread < high]
        if len(hits) >= _MIN_IN_BIN:
            shares[f"{low:.1%} to {high:.1%}" if math.isfinite(high) else f"over {low:.0%}"] = float(np.mean(hits))
    return shares


def rows(pool: RunPool, dice: np.random.Generator) -> Iterator[StudyRow]:
    """One run a side, three a side where there are enough, and one taken in turn."""
    several = [1, 3] if len(pool.runs) >= 6 else [1]
    for runs in several:
        yield _row(pool, runs, False, study(pairs(pool.runs, runs, dice), dice))
    yield _row(pool, 1, True, study(pairs_in_turn(pool.turns, pool.processes, dice), dice))


def _row(pool: RunPool, runs: int, in_turn: bool, found: Study) -> StudyRow:
    return StudyRow(
        machine=pool.name,
        cases=len(pool.runs[0]),
        processes=pool.processes,
        runs=runs,
        in_turn=in_turn,
        pairs=found.pairs,
        false=found.false,
        smallest=math.expm1(float(np.median(found.smallest))),
        called=1 - found.missed / found.moved,
        at_5=float(np.mean([hit for _, hit in found.at_5])),
        by_spread=power_by_spread(found),
    )


def _of_machine(index: int) -> list[StudyRow]:
    dice = np.random.default_rng([_SEED, index])
    return list(rows(simulated(SIMULATED_MACHINES[index], dice), dice))


def measure(jobs: int) -> list[StudyRow]:
    """The rows of every simulated machine."""
    with ProcessPoolExecutor(jobs) as pool:
        return [row for part in pool.map(_of_machine, range(len(SIMULATED_MACHINES))) for row in part]


def requirements(found: Sequence[StudyRow]) -> list[Requirement]:
    """The limits on false calls and on missed ones, checked in every row."""
    false = max(found, key=lambda row: row.false / row.pairs)
    called = min(found, key=lambda row: row.called)
    return [
        Requirement(
            f"where nothing changed, {false.false} of {false.pairs} pairs at the most have a false call, "
            f"in {len(found)} settings (at most {PROMISED:.0%})",
            false.false <= PROMISED * false.pairs,
        ),
        Requirement(
            f"a shift as large as the smallest one told is called in {called.called:.1%} at the least "
            f"(at least {_MIN_POWER:.0%}; stated with {POWER:.0%})",
            called.called >= _MIN_POWER,
        ),
    ]


def how(row: StudyRow) -> str:
    """``in turn`` or how many runs a side."""
    return "in turn" if row.in_turn else f"{row.runs} {'run' if row.runs == 1 else 'runs'} a side"


def _table(found: Sequence[StudyRow]) -> Table:
    table = Table(title=f"compare, where nothing changed and where one case is slower by {_SHIFT:.0%}")
    for name in ("machine (standard deviations)", "cases", "processes", "taken", "pairs", "with a false call"):
        table.add_column(name, justify="left" if name in ("machine (standard deviations)", "taken") else "right")
    for name in ("smallest shift told", "called there", f"{_SHIFT:.0%} called", f"{_SHIFT:.0%} by processes' spread"):
        table.add_column(name, justify="right")
    for row in found:
        cells = [row.machine, str(row.cases), str(row.processes), how(row), str(row.pairs), str(row.false)]
        spreads = "\n".join(f"{spread}: {share:.0%}" for spread, share in row.by_spread.items())
        table.add_row(*cells, f"{row.smallest:.1%}", f"{row.called:.1%}", f"{row.at_5:.0%}", spreads)
    return table


def compare(options: argparse.Namespace, console: Console) -> bool:
    """Measure all settings; print a table or JSON; return whether all requirements hold."""
    found = measure(options.jobs)
    held = requirements(found)
    if options.json:
        print(json.dumps({"rows": [asdict(r) for r in found], "claims": [asdict(r) for r in held]}, indent=1))
    else:
        console.print(_table(found))
        print_requirements(held, console)
    return all(requirement.holds for requirement in held)


if __name__ == "__main__":
    figures = [asdict(row) for row in measure(os.cpu_count() or 1)]
    _FIGURES_FILE.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
