"""``bench.py split``: the shares of fake stacks with injected costs, held against what was injected."""

from __future__ import annotations

import argparse
import json
import math
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict

from rich.console import Console
from rich.progress import track
from rich.table import Table

from overhead.measure.fitting.data import Estimate
from scripts.bench.held import Requirement, print_claims
from scripts.bench.shares_truth import PAIRS, STACKS, WITHIN, ShareScore, score, split


def _one(job: tuple[int, int, str]) -> dict[str, Estimate]:
    stack, seed, profile = job
    return split(STACKS[stack], seed, profile)


def split_truth(options: argparse.Namespace, console: Console) -> bool:
    """Every fake stack with every seed; a table and claims, or JSON."""
    jobs = [(index, seed, options.profile) for index in range(len(STACKS)) for seed in range(options.seeds)]
    with ProcessPoolExecutor(options.jobs) as pool:
        note = Console(stderr=True)
        each = pool.map(_one, jobs, chunksize=4)
        runs = list(track(each, "known split", total=len(jobs), console=note, disable=not note.is_terminal))
    scores = [
        score(stack, share, [run[share] for (i, *_), run in zip(jobs, runs, strict=True) if i == index])
        for index, stack in enumerate(STACKS)
        for share in PAIRS
    ]
    total = sum(s.runs for s in scores)
    right, covered = (sum(getattr(s, name) for s in scores) / total for name in ("right", "covered"))
    claims = [
        Requirement(
            f"{right:.1%} of {total:,} shares are within {WITHIN:.0%} of what was injected, or say that they are not "
            "known that well and hold it (at least 95 %)",
            right >= 0.95,
        ),
        Requirement(f"the 95 % intervals hold the truth in {covered:.1%} (92 to 98 %)", 0.92 <= covered <= 0.98),
    ]
    if options.json:
        print(json.dumps({"scores": [asdict(s) for s in scores], "claims": [asdict(c) for c in claims]}, indent=1))
    else:
        console.print(_table(scores, options))
        print_claims(claims, console)
    return all(claim.holds for claim in claims)


def _table(scores: list[ShareScore], options: argparse.Namespace) -> Table:
    title = f"the split against known truth, {options.seeds} seeds, profile {options.profile}"
    table = Table(title=title, title_justify="left")
    table.add_column("stack")
    table.add_column("share")
    for name in ("injected, us", f"within {WITHIN:.0%}", "holds truth", "separable", "right", "largest error"):
        table.add_column(name, justify="right")
    for s in scores:
        table.add_row(
            s.stack if s.share == next(iter(PAIRS)) else "", s.share, f"{s.truth / 1e3:g}",
            *(f"{part / s.runs:.0%}" for part in (s.within, s.covered, s.separable, s.right)),
            "-" if math.isnan(s.worst) else f"{s.worst:.1%}",
            end_section=s.share == list(PAIRS)[-1],
        )  # fmt: skip
    return table
