"""Titles and sources of the pages of a report."""

from __future__ import annotations

from collections.abc import Sequence

from overhead.loading.folders import Skipped
from overhead.reading.dispatch_costs import DispatchCosts
from overhead.reading.plain_text import plain
from overhead.results import Fingerprint, Value, formed
from overhead.words.dispatch_costs import title
from overhead.words.format import count, run_time, whole
from overhead.words.printed import printed
from overhead.words.reasons import sentence
from overhead.words.report.example_run import example_lines
from overhead.words.report.machines import machine_name


def front_title(costs: DispatchCosts | None, run: Fingerprint) -> str:
    """The heading of the first page."""
    if costs is not None:
        return title(costs)
    return f"Kernel launch overhead on {machine_name(run.machine)}"


def about_machine(run: Fingerprint) -> str:
    """The machine that a page of several runs is about."""
    gpus = [gpu.name for gpu in run.machine.gpus if not gpu.software]
    names = [plain(name, 60) for name in (*gpus, run.machine.cpu)]
    return " ".join([*example_lines(run), ", ".join(names)])


def about_run(run: Fingerprint) -> str:
    """The machine of a page and when it was measured."""
    day, minute = run.created[:10], run.created[11:16]
    return f"{about_machine(run)}; measured {day} at {minute} UTC, profile {run.profile}"


def about_runs(runs: Sequence[Fingerprint]) -> str:
    """How many runs a page shows, and from when they are."""
    days = sorted(run.created[:10] for run in runs)
    return f"{count(len(days), 'run')}, measured from {days[0]} to {days[-1]}"


def from_run(run: Fingerprint) -> str:
    """Which run a section is of, on a page of several."""
    return f"Measured {run_time(run.created)}, profile {plain(run.profile, 40)}."


def drawn_from(machines: int) -> str:
    """What the pages were made of."""
    if machines == 1:
        return "the result file of one machine"
    counted = Value(machines, origin=formed("kinds of machine"))
    number = printed(f"{machines:,} kinds of machine", counted)
    return f"the result files of {number}"


def title_with_number(title: str, number: int) -> str:
    """The title of a page of many in the navigation."""
    return f"{title} ({whole(number, formed('kinds of machine'))})"


def section_failed(section: str, reason: str) -> str:
    """What stands in place of a section that raised."""
    return f"The section {section} could not be made: {reason}"


def skipped_files(skipped: Sequence[Skipped]) -> list[tuple[str, str]]:
    """The name of each file that could not be read, and why."""
    return [(file.path.name, sentence(file.reason)) for file in skipped]
