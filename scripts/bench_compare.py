"""How often ``overhead compare`` calls a change where there is none, and misses one that is there.

    python scripts/bench_compare.py [RECORDED FILE OR FOLDER]...

A/A pairs are two disjoint sets of processes out of separate runs of one machine. With recorded runs (four or more, with
their raw samples) the runs are those; without, they are made on the fake machine of ``overhead.measure.fake``, whose
samples are fitted as real ones are. The output says which. Exits 1 where false calls or misses are over the limits.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from overhead.errors import UsageError
from overhead.measure.fake import FakeClock, FastFakeChain, Law, Weather
from overhead.measure.figures import Process, Round, Series
from overhead.versus.calls import Call, Evidence, call
from overhead.versus.decide import POWER, PROMISED
from overhead.versus.sides import Sampled, read_side, sampled

PAIRS = 200
LEAST_POWER = 0.90
SHIFT = 0.05
LADDER = (1, 4, 16, 64, 128)
ROUNDS = 8
CASES = 20
MOVED = 2
"""Cases of each pair that are made slower, one at a time."""
RUNS = 16
Run = Mapping[str, Sampled]
"""By case, one slope a process."""


@dataclass(frozen=True)
class Machine:
    """A made-up machine. ``run``: standard deviation (logarithm) of a case's cost between runs."""

    name: str
    weather: Weather
    run: float
    processes: int = 3
    slow: float = 0.0
    """Chance that a whole run falls into the machine's second speed."""


MACHINES = (
    Machine("quiet: processes 0.3 %, runs 0.3 %", Weather(spread=0.003), 0.003),
    Machine("usual: processes 1 %, runs 1 %", Weather(spread=0.01), 0.01),
    Machine("usual: processes 1 %, runs 1 %", Weather(spread=0.01), 0.01, processes=5),
    Machine("noisy: processes 3 %, runs 1 %", Weather(spread=0.03), 0.01),
    Machine("two speeds: half of the runs 2 times slower", Weather(spread=0.005, slowdown=2.0), 0.005, slow=0.5),
)


def simulated(machine: Machine, dice: np.random.Generator) -> list[Run]:
    """Runs of a made-up machine, sampled and fitted as real ones are."""
    laws = {f"case {i}": Law(host=500.0 * 2 ** (i % 8), device=100.0, own=0.003) for i in range(CASES)}
    return [_run(machine, laws, dice) for _ in range(RUNS)]


def _run(machine: Machine, laws: Mapping[str, Law], dice: np.random.Generator) -> Run:
    slow = bool(dice.random() < machine.slow)
    today = {name: replace(law, host=law.host * math.exp(dice.normal(0, machine.run))) for name, law in laws.items()}
    clocks = [FakeClock(machine.weather, seed=int(dice.integers(2**32)), slow=slow) for _ in range(machine.processes)]
    measured = [_process(today, clock) for clock in clocks]
    return {name: sampled(Series([one[name] for one in measured])) for name in laws}


def _process(laws: Mapping[str, Law], clock: FakeClock) -> dict[str, Process]:
    chains = {name: FastFakeChain(law, clock) for name, law in laws.items()}
    rounds: dict[str, list[Round]] = {name: [] for name in laws}
    for number in range(ROUNDS):
        canary = clock.canary()
        for name, chain in chains.items():
            rounds[name].append(Round(chain.sample(LADDER, False), canary, number))
    return {name: Process(taken) for name, taken in rounds.items()}


def recorded(paths: Sequence[Path]) -> list[Run]:
    """Recorded runs of one machine, the cases that all of them hold. Raises ``BadFile``."""
    runs = [run.sampled for run in read_side("recorded", paths).runs if run.sampled]
    common = set.intersection(*({k for k, s in run.items() if s.slopes.size > 1} for run in runs)) if runs else set()
    return [{key: run[key] for key in sorted(common)} for run in runs]


def pairs(pool: Sequence[Run], runs: int, dice: np.random.Generator) -> Iterator[list[Evidence]]:
    """A/A pairs: ``runs`` runs a side, no run on both sides; of each run a random set of its processes."""
    for _ in range(PAIRS):
        chosen = dice.permutation(len(pool))[: 2 * runs]
        sides = [[_some(pool[i], dice) for i in half] for half in (chosen[:runs], chosen[runs:])]
        yield [Evidence(*(tuple(run[case] for run in side) for side in sides)) for case in pool[0]]


def _some(run: Run, dice: np.random.Generator) -> Run:
    """All processes of the run but one, if that leaves three; the same for every case where each has a value."""
    least = min(s.slopes.size for s in run.values())
    keep = np.sort(dice.permutation(least)[: max(least - 1, min(least, 3))])
    return {case: Sampled(s.slopes[keep], s.canary[keep] if s.canary.size else s.canary) for case, s in run.items()}


@dataclass
class Study:
    """What a set of A/A pairs came to. ``at_5``: by case and pair, the processes' spread and whether 5 % was called."""

    false: int
    pairs: int
    missed: int
    moved: int
    smallest: list[float]
    at_5: list[tuple[float, bool]]

    @property
    def good(self) -> bool:
        return self.false <= PROMISED * self.pairs and self.missed <= (1 - LEAST_POWER) * self.moved


def study(aa: Iterator[list[Evidence]], dice: np.random.Generator) -> Study:
    """Compare each pair as it is, then with one case at a time made slower on the NEW side, for some of the cases."""
    found = Study(0, 0, 0, 0, [], [])
    for cases in aa:
        calls = call(cases)
        found.pairs += 1
        found.false += any(one.verdict in ("faster", "slower") for one in calls)
        for i in dice.permutation(len(cases))[:MOVED].tolist():
            one = calls[i]
            found.smallest.append(one.smallest)
            found.moved += 1
            found.missed += _with(cases, i, one.smallest).verdict != "slower"
            found.at_5.append((_spread(cases[i]), _with(cases, i, math.log1p(SHIFT)).verdict == "slower"))
    return found


def _with(cases: Sequence[Evidence], index: int, shift: float) -> Call:
    """The call on a case when its NEW side really is slower by ``shift`` (a logarithm)."""
    slower = tuple(replace(s, slopes=s.slopes + shift) for s in cases[index].new)
    moved = [*cases[:index], replace(cases[index], new=slower), *cases[index + 1 :]]
    return call(moved)[index]


def _spread(case: Evidence) -> float:
    return math.sqrt(float(np.mean([s.slopes.var(ddof=1) for s in (*case.base, *case.new) if s.slopes.size > 1])))


BINS = (0.0, 0.005, 0.01, 0.02, 0.05, math.inf)


def power_by_spread(found: Study) -> str:
    """How often 5 % was called, by the spread between processes."""
    said = []
    for low, high in itertools.pairwise(BINS):
        hits = [hit for spread, hit in found.at_5 if low <= spread < high]
        if len(hits) >= 20:
            upper = f"{high:.1%}" if math.isfinite(high) else "more"
            said.append(f"{low:.1%} to {upper}: {np.mean(hits):.0%}")
    return ", ".join(said)


def report(name: str, runs: int, found: Study) -> None:
    print(f"{name}; {runs} {'run' if runs == 1 else 'runs'} a side: {'ok' if found.good else 'OVER THE LIMITS'}")
    print(f"  pairs with a false call {found.false} of {found.pairs} (limit {PROMISED:.0%})")
    smallest = math.expm1(float(np.median(found.smallest)))
    called = 1 - found.missed / found.moved
    print(f"  smallest shift told {smallest:.1%} (median); called when there {called:.1%} (limit {LEAST_POWER:.0%})")
    print(f"  a shift of {SHIFT:.0%} called, by the spread between processes: {power_by_spread(found)}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, help="recorded runs of one machine")
    given = parser.parse_args(arguments).paths
    dice = np.random.default_rng(20_261_121)
    if given:
        pool = recorded(given)
        if len(pool) < 4:
            raise UsageError(f"{len(pool)} recorded runs with raw samples; at least 4 are needed")
        pools = [(f"recorded: {len(pool)} runs, {len(pool[0])} cases", pool)]
    else:
        print(f"simulated on a fake clock, not recorded: {RUNS} runs of {CASES} cases each; stated with {POWER:.0%}")
        pools = [(f"{m.name}; {m.processes} processes", simulated(m, dice)) for m in MACHINES]
    good = True
    for name, pool in pools:
        for runs in (1, 3) if len(pool) >= 6 else (1, 2):
            found = study(pairs(pool, runs, dice), dice)
            report(name, runs, found)
            good &= found.good
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as error:
        sys.exit(f"bench_compare: {error}")
