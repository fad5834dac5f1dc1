"""``main.py report``: the time and memory of the pages of 1,000 machines, and of one file of 4,000
records.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import psutil
from rich.console import Console

from overhead.loading.files import read_fingerprint
from overhead.results import Fingerprint
from scripts.bench.requirement import Requirement, print_requirements

_DATA = Path(__file__).parents[2] / "reports" / "data"
_SOURCES = ("nvidia-h100", "nvidia-h100-default", "nvidia-h200", "nvidia-h200-default")
_MACHINES, _MACHINES_S, _MACHINES_MIB = 1_000, 30.0, 1_024.0
_POLL_S = 0.02
"""Seconds between two looks at the memory of a command, of at least some seconds."""
_RECORDS, _RECORDS_S, _RECORDS_MIB = 4_000, 10.0, 500.0


def report(options: argparse.Namespace, console: Console) -> bool:
    """Returns whether the pages of both were drawn within their time and memory."""
    runs = [read_fingerprint(_DATA / f"{name}.json") for name in _SOURCES]
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        many, one = Path(folder) / "many", Path(folder) / "one"
        for place in (many, one):
            place.mkdir()
        for number in range(_MACHINES):
            (many / f"{number:04}.json").write_bytes(
                msgspec.json.encode(machine(runs[number % len(runs)], number))
            )
        (one / "one.json").write_bytes(msgspec.json.encode(large(runs[2], _RECORDS)))
        found = {
            f"{_MACHINES:,} machines": (
                *cost_of("report", str(many), "--out", f"{folder}/out"),
                _MACHINES_S,
                _MACHINES_MIB,
            ),
            f"{_RECORDS:,} records": (
                *cost_of("report", str(one), "--out", f"{folder}/out"),
                _RECORDS_S,
                _RECORDS_MIB,
            ),
        }
    requirements = [
        Requirement(
            f"{what}: {wall:.1f} s of {most_s:.0f} s ({cpu:.1f} s of processor time), {mib:.0f} MiB"
            f" of {most_mib:.0f}",
            wall <= most_s and mib <= most_mib,
        )
        for what, (wall, cpu, mib, most_s, most_mib) in found.items()
    ]
    if options.json:
        console.print(json.dumps({what: values[:3] for what, values in found.items()}))
    else:
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def machine(run: Fingerprint, number: int) -> Fingerprint:
    """The run as that of another machine."""
    return msgspec.structs.replace(
        run, machine=msgspec.structs.replace(run.machine, id=f"{number:012x}")
    )


def large(run: Fingerprint, records: int) -> Fingerprint:
    """The run with so many records: its own, and copies with another parameter and the figure
    ``complete`` alone.
    """
    made = list(run.records)
    while len(made) < records:
        made += [
            msgspec.structs.replace(
                record,
                params={**record.params, "copy": len(made)},
                curve=[],
                window={},
                by_processor=[],
                figures=[figure for figure in record.figures if figure.name == "complete"],
            )
            for record in run.records
        ]
    return msgspec.structs.replace(run, records=made[:records])


def cost_of(*arguments: str) -> tuple[float, float, float]:
    """Seconds, seconds of processor time and MiB of the largest process that a command of
    ``overhead`` takes.
    """
    start = time.perf_counter()
    process = psutil.Popen(
        [sys.executable, "-m", "overhead", *arguments], stdout=subprocess.DEVNULL
    )
    cpu_s, peak_bytes = 0.0, 0
    while process.poll() is None:
        # A process that has ended in the meantime has no times and no memory any more.
        with contextlib.suppress(psutil.Error):
            used = process.cpu_times()
            cpu_s = used.user + used.system
            peak_bytes = max(peak_bytes, process.memory_info().rss)
        time.sleep(_POLL_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return time.perf_counter() - start, cpu_s, peak_bytes / 2**20
