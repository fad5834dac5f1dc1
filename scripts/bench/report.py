"""How the report grows with the number of fingerprints: seconds and MiB for 1, 10, 100 and 1,000 machines.

The files are the reference fingerprints under other machine ids, written for the time of the bench.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil
from rich.console import Console
from rich.table import Table

from overhead.loading.files import read_fingerprint, write_fingerprint
from scripts.bench.held import Requirement, print_claims

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = ROOT / "reports" / "data"
SIZES = (1, 10, 100, 1_000)
LIMIT_SECONDS, LIMIT_MIB = 30.0, 1024.0
LOOK = 0.05
"""Seconds between two looks at the memory."""


@dataclasses.dataclass(frozen=True)
class Grown:
    """One report. ``cpu_seconds`` of all its processes together; ``mib``: the most that they held at once (RSS)."""

    machines: int
    seconds: float
    cpu_seconds: float
    mib: float
    pages: int


def report(options: argparse.Namespace, console: Console) -> bool:
    """A table by the number of machines, and whether the largest report keeps within its limits."""
    found = measure()
    largest = found[-1]
    claims = [
        Requirement(
            f"a report of {largest.machines:,} machines takes {largest.seconds:.1f} s (at most {LIMIT_SECONDS:.0f})",
            largest.seconds <= LIMIT_SECONDS,
        ),
        Requirement(f"and {largest.mib:,.0f} MiB (at most {LIMIT_MIB:,.0f})", largest.mib <= LIMIT_MIB),
    ]
    if options.json:
        body = {"report": [dataclasses.asdict(one) for one in found], "claims": [dataclasses.asdict(c) for c in claims]}
        print(json.dumps(body, indent=1))
    else:
        processors, load = os.cpu_count(), psutil.getloadavg()[0]
        title = f"the report by machines, {processors} processors, load {load:.1f}"
        table = Table(title=title, title_justify="left")
        for name in ("machines", "seconds", "CPU seconds", "MiB", "pages"):
            table.add_column(name, justify="right")
        for one in found:
            table.add_row(f"{one.machines:,}", f"{one.seconds:.1f}", f"{one.cpu_seconds:.1f}", f"{one.mib:,.0f}",
                          f"{one.pages:,}")  # fmt: skip
        console.print(table)
        print_claims(claims, console)
    return all(claim.holds for claim in claims)


def measure(sizes: Sequence[int] = SIZES) -> list[Grown]:
    """A report of each size, drawn by the command in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="overhead-bench-") as name:
        folder = Path(name)
        return [_one(folder, size) for size in sorted(sizes)]


def make(folder: Path, machines: int) -> None:
    """Fill the folder up to so many machines: the reference fingerprints in turn, each under an id of its own."""
    references = [read_fingerprint(path) for path in sorted(REFERENCES.glob("*.json"))]
    for i in range(len(list(folder.glob("*.json"))), machines):
        run = references[i % len(references)]
        named = msgspec.structs.replace(run.machine, id=f"{i:012x}", cpu=f"{run.machine.cpu} {i}")
        write_fingerprint(folder / f"{i:06d}.json", msgspec.structs.replace(run, machine=named))


def _one(folder: Path, machines: int) -> Grown:
    files, out = folder / "files", folder / f"report-{machines}"
    files.mkdir(exist_ok=True)
    make(files, machines)
    start = time.perf_counter()
    child = psutil.Popen([sys.executable, "-m", "overhead", "report", str(files), "--out", str(out)], cwd=ROOT,
                         stdout=subprocess.DEVNULL)  # fmt: skip
    most, cpu = 0, 0.0
    while child.poll() is None:
        held, spent = _tree(child)
        most, cpu = max(most, held), max(cpu, spent)
        time.sleep(LOOK)
    seconds = time.perf_counter() - start
    if child.returncode:
        raise RuntimeError(f"the report of {machines} machines ended with exit code {child.returncode}")
    pages = 1 + len(list((out / "pages").glob("*.html")))
    return Grown(machines, seconds, cpu, most / 2**20, pages)


def _tree(child: psutil.Process) -> tuple[int, float]:
    """Bytes held and CPU seconds spent by the process and its children now."""
    held, spent = 0, 0.0
    try:
        for one in [child, *child.children(recursive=True)]:
            held += one.memory_info().rss
            times = one.cpu_times()
            spent += times.user + times.system
    except psutil.NoSuchProcess:
        pass
    return held, spent
