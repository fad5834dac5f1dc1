"""``main.py compare``: errors and power of ``overhead compare`` on pairs of runs made of the
committed samples.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path

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
cost. The number: how many such pairs.
"""
_PLANTED, _ABOVE, _LIMIT, _EVERY = (1.02, 1.05, 1.1, 1.15, 1.2, 1.3, 1.5), 1.17, 10.0, 10
"""The changes; those above the widest next-run range; the limit of the gate, %; one case in so many
is changed.
"""


def pool(names: Sequence[str]) -> dict[str, tuple[Sampled, bool]]:
    """The samples of the cases that all runs have, whatever their board, and whether the figure is
    ``ok`` in all.
    """
    runs = []
    for path in (_SAMPLES / f"nvidia-{name}.samples.jsonl.gz" for name in names):
        records, series = load(path).records, series_by_record(path)
        valued = [r for r in records if WithFigures.measured(r, FIGURE)]
        runs.append(
            {
                re.sub("#[0-9a-f]{12}", "", r.key): (sampled(series[r.key]), r.status == "ok")
                for r in valued
            }
        )
    return {
        key: (
            Sampled(
                *(
                    np.concatenate([getattr(r[key][0], f.name) for r in runs])
                    for f in fields(Sampled)
                )
            ),
            all(r[key][1] for r in runs),
        )
        for key in runs[0]
        if all(key in r for r in runs)
    }


def pairs(dice: np.random.Generator) -> Iterator[list[tuple[Sampled, Sampled, bool]]]:
    """Each case of a pair of equal runs: BASE, NEW, and whether its figure is ``ok``."""
    for names, count in _POOLS:
        held = pool(names)
        most = max(s.numbers.size for s, _ in held.values())
        whole = {key: one for key, one in held.items() if one[0].numbers.size == most}
        for _ in range(count):
            mixed = dice.permutation(most)
            halves = mixed[: most // 2], mixed[most // 2 : most // 2 * 2]
            yield [(s.at(halves[0]), s.at(halves[1]), ok) for s, ok in whole.values()]


def judged(
    cases: Sequence[tuple[Sampled, Sampled, bool]], by: float, first: int
) -> list[CaseVerdict]:
    """The verdicts where every tenth case from ``first`` on costs ``by`` times as much in NEW."""
    made = []
    for i, (base, new, _) in enumerate(cases):
        moved = np.log(by) * (i % _EVERY == first)
        slower = replace(new, slopes=new.slopes + moved, whole=new.whole + moved)
        made.append(CaseSamples.of(CaseVerdict(str(i), "undecided"), [base], [slower], False))
    return verdicts_by_test([one for one in made if min(one.case.processes) > 1], _LIMIT)


def compare(options: argparse.Namespace, console: Console) -> bool:
    """Judge all pairs; print the counts; return whether the requirements hold."""
    try:
        is_significant = importlib.import_module("pyperf._utils").is_significant
    except ImportError:
        is_significant = None
    dice, count = np.random.default_rng(42), defaultdict[str, int](int)
    for pair in pairs(dice):
        count["pairs"] += 1
        count["false"] += any(v.verdict in ("slower", "faster") for v in judged(pair, 1.0, -1))
        cases, first = [case for case in pair if case[2]], int(dice.integers(_EVERY))
        for by in (1.0, *_PLANTED):
            found = judged(cases, by, first)
            gate = Verdicts((), (), True, (), Yardstick("nothing-tested"), _LIMIT, tuple(found))
            count[
                f"gate {by}: " + ("1" if gate.failed else "0" if gate.tested_enough() else "3")
            ] += 1
            mine = [v for v in found if int(v.case) % _EVERY == first]
            count[f"planted {by}"] += len(mine)
            count[f"told {by}"] += sum(v.verdict == "slower" for v in mine)
            for base, new, _ in (cases[int(v.case)] for v in mine) if is_significant else ():
                significant, _ = is_significant(
                    np.exp(base.whole).tolist(), (by * np.exp(new.whole)).tolist()
                )
                count[f"pyperf {by}"] += significant
    share = {
        by: tuple(count[f"{who} {by}"] / count[f"planted {by}"] for who in ("told", "pyperf"))
        for by in _PLANTED
    }
    above = [share[by] for by in _PLANTED if by > _ABOVE]
    wrong = count["gate 1.0: 1"]
    held = [
        Requirement(
            f"{count['false']} of {count['pairs']} equal pairs have a false verdict (at most"
            f" {PROMISED:.0%})",
            count["false"] <= PROMISED * count["pairs"],
        ),
        Requirement(
            f"the gate of {_LIMIT:g} % fails {wrong} of {count['pairs']} equal pairs",
            wrong <= PROMISED * count["pairs"],
        ),
    ]
    if is_significant:
        told, other = np.mean(above, axis=0)
        held.append(
            Requirement(
                f"changes above {_ABOVE - 1:.0%}: {told:.1%} told, {other:.1%} by pyperf",
                told >= other,
            )
        )
    else:
        console.print(
            "without pyperf (pip install pyperf) there is nothing to compare the power with"
        )
    rows = [
        [
            f"{by - 1:.0%}",
            *(f"{one:.1%}" for one in both),
            *(str(count[f"gate {by}: {code}"]) for code in "013"),
        ]
        for by, both in share.items()
    ]
    columns = [
        "one case in ten slower by",
        "told",
        "by pyperf",
        "gate passes",
        "fails",
        "could not see",
    ]
    if options.json:
        console.print(json.dumps({"counts": count, "claims": [asdict(one) for one in held]}))
    else:
        show(
            [Table(f"{count['pairs']} pairs of equal runs", columns, rows, numeric=range(6))],
            console,
        )
        print_requirements(held, console)
    return all(one.holds for one in held)
