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
from dataclasses import astuple, dataclass
from pathlib import Path

import msgspec
import psutil
from rich.console import Console

from overhead.loading.files import read_fingerprint
from overhead.results import Fingerprint, Record
from scripts.bench.requirement import Requirement, print_requirements

_DATA = Path(__file__).parents[2] / "reports" / "data"
_SOURCES = ("nvidia-h100", "nvidia-h100-default", "nvidia-h200", "nvidia-h200-default")
_MACHINES = 1_000
_MACHINES_S = 30.0
_MACHINES_MIB = 1_024.0
"""The longest time and the largest memory for the pages of all machines. Chosen, not measured."""
_RECORDS = 4_000
_RECORDS_S = 10.0
_RECORDS_MIB = 500.0
"""The longest time and the largest memory for the page of one large file. Chosen, not measured."""
_POLL_S = 0.02
"""Seconds between two looks at the memory of a command, of at least some seconds."""


@dataclass(frozen=True)
class CommandCost:
    """What a command took: its time, its processor time, and its largest memory."""

    wall_s: float
    cpu_s: float
    peak_mib: float

    def is_within(self, most_s: float, most_mib: float) -> bool:
        """Whether the command was fast and small enough."""
        return self.wall_s <= most_s and self.peak_mib <= most_mib


def report(options: argparse.Namespace, console: Console) -> bool:
    """Draw the pages of 1,000 machines, and of one file of 4,000 records; return whether both were
    drawn within their time and memory.
    """
    runs = [read_fingerprint(_DATA / f"{name}.json") for name in _SOURCES]
    with tempfile.TemporaryDirectory(prefix="report-") as folder:
        many = Path(folder) / "many"
        many.mkdir()
        for number in range(_MACHINES):
            of_other_machine = machine(runs[number % len(runs)], number)
            (many / f"{number:04}.json").write_bytes(msgspec.json.encode(of_other_machine))
        one = Path(folder) / "one"
        one.mkdir()
        (one / "one.json").write_bytes(msgspec.json.encode(large(runs[2], _RECORDS)))
        cost_of_many = cost_of("report", str(many), "--out", f"{folder}/out")
        cost_of_one = cost_of("report", str(one), "--out", f"{folder}/out")

    many_name = f"{_MACHINES:,} machines"
    one_name = f"{_RECORDS:,} records"
    requirements = [
        _requirement(many_name, cost_of_many, _MACHINES_S, _MACHINES_MIB),
        _requirement(one_name, cost_of_one, _RECORDS_S, _RECORDS_MIB),
    ]
    if options.json:
        costs = {many_name: astuple(cost_of_many), one_name: astuple(cost_of_one)}
        console.print(json.dumps(costs))
    else:
        print_requirements(requirements, console)
    return all(requirement.holds for requirement in requirements)


def _requirement(name: str, cost: CommandCost, most_s: float, most_mib: float) -> Requirement:
    """That a command took no more than this, with what it took."""
    words = (
        f"{name}: {cost.wall_s:.1f} s of {most_s:.0f} s ({cost.cpu_s:.1f} s of processor time),"
        f" {cost.peak_mib:.0f} MiB of {most_mib:.0f}"
    )
    return Requirement(words, cost.is_within(most_s, most_mib))


def machine(run: Fingerprint, number: int) -> Fingerprint:
    """The run as that of another machine, whose id is this number."""
    other = msgspec.structs.replace(run.machine, id=f"{number:012x}")
    return msgspec.structs.replace(run, machine=other)


def large(run: Fingerprint, records: int) -> Fingerprint:
    """The run with so many records: its own, and copies with another parameter and the figure
    ``complete`` alone.
    """
    made = list(run.records)
    while len(made) < records:
        number = len(made)
        made += [_copied(record, number) for record in run.records]
    return msgspec.structs.replace(run, records=made[:records])


def _copied(record: Record, number: int) -> Record:
    """The record as that of another case, with no more than the page needs of it."""
    return msgspec.structs.replace(
        record,
        params={**record.params, "copy": number},
        curve=[],
        window={},
        by_processor=[],
        figures=[figure for figure in record.figures if figure.name == "complete"],
    )


def cost_of(*arguments: str) -> CommandCost:
    """Run a command of ``overhead`` in a process of its own; return what the command took.

    Raises ``CalledProcessError`` if the command fails.
    """
    start = time.perf_counter()
    command = [sys.executable, "-m", "overhead", *arguments]
    process = psutil.Popen(command, stdout=subprocess.DEVNULL)
    cpu_s = 0.0
    peak_bytes = 0
    while process.poll() is None:
        # A process that has ended in the meantime has no times and no memory any more.
        with contextlib.suppress(psutil.Error):
            used = process.cpu_times()
            cpu_s = used.user + used.system
            peak_bytes = max(peak_bytes, process.memory_info().rss)
        time.sleep(_POLL_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return CommandCost(time.perf_counter() - start, cpu_s, peak_bytes / 2**20)
