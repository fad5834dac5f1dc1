"""Browsers for real: every planned case in a minute, and in Firefox a slope that is none of its polling wait."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

import overhead
from overhead.measure.fitting.case_figures import estimate
from overhead.measure.fitting.data import Estimate, Process, Series
from overhead.measure.sampling import polling_wait
from overhead.measure.sampling.clock import SystemClock
from overhead.measure.sampling.events import Event, Settings
from overhead.measure.sampling.rounds import measure_cases
from overhead.probes import browsers as stacks
from overhead.probes._support.browser import cases
from overhead.probes._support.browser.launch import Kind, find
from overhead.probes.base import Unavailable
from overhead.profiles import PROFILES, WEIGHT
from overhead.results import VALUED
from scripts.bench.held import Requirement, print_claims
from scripts.bench.known_truth import process_of

MINUTE = 60.0
DOUBLED = 2
"""In place of ``stairs.KNOWN_LEVEL``: the ladder then ends at the second stair, not at the first."""


def browsers(_: argparse.Namespace, console: Console) -> bool:
    """Each browser by the program itself, then Firefox's base case twice, the second time twice as far."""
    claims: list[Requirement] = []
    kinds: tuple[Kind, ...] = ("chromium", "firefox")
    for stack in kinds:
        try:
            find(stack)
        except Unavailable as refused:
            console.print(f"{stack} is left out: {refused.reason}", highlight=False)
            continue
        claims.append(_quick(stack))
        if stack == "firefox":
            claims += _ladder()
    print_claims(claims, console)
    return all(claim.holds for claim in claims)


def _quick(stack: str) -> Requirement:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run.json"
        command = [sys.executable, "-m", "overhead", "run", "-p", stack, "--profile", "quick", "--out", str(out)]
        begun = time.monotonic()
        subprocess.run([*command, "--json"], check=True, stdout=subprocess.DEVNULL, timeout=600)
        seconds = time.monotonic() - begun
        records = overhead.load(out).records
    lost = [f"{r.case.key}: {r.status}" for r in records if r.value("complete") is None or r.status not in VALUED]
    return Requirement(
        f"{stack}: {len(records) - len(lost)} of {len(records)} planned cases have a slope, in {seconds:.0f} s "
        f"(all, in {MINUTE:.0f} s){': ' if lost else ''}{'; '.join(lost)}",
        not lost and len(records) > 0 and seconds <= MINUTE,
    )


def _ladder() -> list[Requirement]:
    """The processes of both ladders take turns, so that both see the same weather."""
    usual = polling_wait.KNOWN_LEVEL
    processes: dict[bool, list[Process]] = {False: [], True: []}
    try:
        for seed in range(PROFILES["quick"].processes_of("polling")):
            for doubled, own in processes.items():
                polling_wait.KNOWN_LEVEL = DOUBLED if doubled else usual
                own.append(_base_case(seed))
    finally:
        polling_wait.KNOWN_LEVEL = usual
    once, twice = map(_slope, processes.values())
    told = [value for own in processes.values() for p in own for value in p.values("legacy")]
    if once.low is None or once.high is None or twice.value is None or not told:
        return [Requirement(f"firefox: the slope has no interval ({once.status}: {once.reason})", False)]
    interval, legacy = f"{once.low / 1e3:.1f} to {once.high / 1e3:.1f} us", sum(told) / len(told) / 100
    return [
        Requirement(f"firefox: the slope's interval, {interval}, excludes T(100)/100, {legacy / 1e3:.0f} us",
              not once.low <= legacy <= once.high),
        Requirement(f"firefox: with the ladder doubled the slope, {twice.value / 1e3:.1f} us, stays inside it",
              once.low <= twice.value <= once.high),
    ]  # fmt: skip


def _base_case(seed: int) -> Process:
    """``per-submit`` in a fresh browser."""
    plan, probe = PROFILES["quick"], stacks.FirefoxProbe()
    events: list[Event] = []
    chain = probe.open(probe.targets()[0], cases.space().base)
    seconds = plan.case_s * WEIGHT["polling"]
    settings = Settings(seconds, plan.target, plan.min_rounds, plan.max_rounds, seed, frozenset({"case"}))
    try:
        measure_cases({"case": chain}, SystemClock(), settings, events.append)
    finally:
        probe.session().close()
    return process_of(events, seed)


def _slope(processes: list[Process]) -> Estimate:
    return estimate(Series(processes, False, False, "pipelined"), PROFILES["quick"].target)["complete"]
