"""How far apart two or more runs of one machine are, record by record: ``python scripts/run_spread.py RUN RUN...``.

The spread of a record is its largest value over its smallest, minus 1. Prints Markdown: spreads by bound (of the first
run) and by stack, and the widest records. A RUN is a fingerprint or a journal; all must have the same machine, profile
and method version.
"""

from __future__ import annotations

import argparse
import collections
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from overhead.errors import UsageError
from overhead.loading.reduce import load
from overhead.reading.markdown import table
from overhead.results import VALUED, Fingerprint, Record

_MAX_HOST_SPREAD = 0.02
"""The largest acceptable spread of a host-bound record."""
_WIDEST_ROWS = 10
_MIN_FOR_SHIFT = 3
"""The fewest records from which a shift common to all is estimated."""
_BOUND_LABELS = {"host": "host-bound", "device": "device-bound", "balanced": "balanced", "": "one submission"}


@dataclass(frozen=True)
class Spread:
    """One record in all runs. ``values``: ns, one per run; ``ok``: whether the figure is ``ok`` in every run."""

    record: Record
    values: tuple[float, ...]
    ok: bool

    @property
    def wide(self) -> float:
        """The largest value over the smallest, minus 1."""
        return _wide(self.values)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="RUN", type=Path)
    parser.add_argument("--figure", default="complete", help="the figure that is compared")
    parser.add_argument("-p", "--stack", action="append", default=[], help="only this stack; may be repeated")
    options = parser.parse_args(arguments)
    try:
        runs = [load(path) for path in options.runs]
        refuse(runs)
    except UsageError as error:
        print(f"run_spread.py: {error}", file=sys.stderr)
        return 2
    found = spreads(runs, options.figure, options.stack)
    print("\n".join(report(runs, options.figure, found)))
    return 0


def refuse(runs: Sequence[Fingerprint]) -> None:
    """Raise ``UsageError`` where the runs cannot be compared."""
    if len(runs) < 2:
        raise UsageError("a spread needs two runs")
    of: dict[str, Callable[[Fingerprint], object]] = {
        "machine": lambda run: run.machine.id, "profile": lambda run: run.profile,
        "method version": lambda run: run.method_version, "start": lambda run: run.created,
    }  # fmt: skip
    for name, get in of.items():
        different = len({get(run) for run in runs})
        if name == "start" and different < len(runs):
            raise UsageError("two of the runs are the same run")
        if name != "start" and different > 1:
            raise UsageError(f"the runs differ in their {name}: {', '.join(str(get(run)) for run in runs)}")


def spreads(runs: Sequence[Fingerprint], name: str, stacks: Sequence[str] = ()) -> list[Spread]:
    """The spread of every record whose figure is above zero in all runs, in the order of the first run."""
    others = [{same(record): record for record in run.records} for run in runs[1:]]
    found = []
    for record in runs[0].records:
        beside = [record, *(own[same(record)] for own in others if same(record) in own)]
        figures = [figure for one in beside if (figure := one.figure(name)) is not None and figure.status in VALUED]
        values = tuple(figure.value for figure in figures if figure.value is not None and figure.value > 0)
        if len(values) == len(runs) and (not stacks or record.stack in stacks):
            found.append(Spread(record, values, all(figure.status == "ok" for figure in figures)))
    return found


def same(record: Record) -> str:
    """The key of a record without its board: the next run of a rented machine may be on another board."""
    return f"{record.stack}@{record.api}:{record.adapter} {record.case.key}"


def report(runs: Sequence[Fingerprint], name: str, found: Sequence[Spread]) -> list[str]:
    """The lines of the Markdown report."""
    machine = ", ".join(gpu.name for gpu in runs[0].machine.gpus if not gpu.software) or runs[0].machine.cpu
    starts = ", ".join(run.created for run in runs)
    times = collections.Counter(same(record) for run in runs for record in run.records)
    devices = collections.defaultdict[tuple[str, str, str], set[str]](set)
    for record in (record for run in runs for record in run.records):
        devices[record.stack, record.api, record.adapter].add(record.device)
    gpus = max(map(len, devices.values()), default=0)
    alone = sum(count < len(runs) for count in times.values())
    lines = [f"`{name}` of {machine}, profile {runs[0].profile}, {len(runs)} runs: {starts}.", ""]
    lines += [f"{len(found)} records have it in every run; {alone} records are not in all of them.", ""]
    lines += [f"They ran on {gpus} GPUs of that name.", ""] if gpus > 1 else []
    lines += [*paces(runs), *by_bound(found)]
    host = [s for s in found if s.record.bound == "host"]
    if host:
        within = sum(s.wide <= _MAX_HOST_SPREAD for s in host)
        lines += [f"{within} of {len(host)} host-bound records lie within {_MAX_HOST_SPREAD:.0%}.", ""]
    stacks = dict.fromkeys(s.record.stack for s in found)
    lines += _summary("stack", [(stack, [s for s in found if s.record.stack == stack]) for stack in stacks])
    widest = sorted(found, key=lambda s: -s.wide)[:_WIDEST_ROWS]
    rows = [[same(s.record), _BOUND_LABELS[s.record.bound], "yes" if s.ok else "no", f"{s.wide:.1%}",
             ", ".join(f"{value / 1e3:.4g}" for value in s.values)] for s in widest]  # fmt: skip
    return [*lines, *table(["the widest", "bound", "ok in each", "spread", "us"], rows)]


def paces(runs: Sequence[Fingerprint]) -> list[str]:
    """The canary of each run, with its fastest and slowest process; empty where a run has none."""
    canaries = [[run.volatile.get(f"canary_us{which}") for which in ("", "_least", "_most")] for run in runs]
    if any(None in one for one in canaries):
        return []
    words = (f"{usual} us (by process {least} to {most})" for usual, least, most in canaries)
    return [f"The canary took {', '.join(words)}.", ""]


def by_bound(found: Sequence[Spread]) -> list[str]:
    """The spreads by bound (host, device, balanced) of the first run, as lines of a table."""
    return _summary(
        "bound", [(words, [s for s in found if s.record.bound == bound]) for bound, words in _BOUND_LABELS.items()]
    )


def _summary(heading: str, groups: Iterable[tuple[str, list[Spread]]]) -> list[str]:
    rows = []
    for words, group in groups:
        all_ok = [s for s in group if s.ok]
        if group:
            rows.append([words, *_spread_cells(group), *_spread_cells(all_ok), *_shift_cells(all_ok)])
    names = ("records", "median", "largest")
    shifts = ("common shift", "median less it")
    return [*table([heading, *names, *(f"{name}, ok in each" for name in (*names, *shifts))], rows), ""]


def _spread_cells(group: list[Spread]) -> list[str]:
    wide = [s.wide for s in group]
    return [str(len(wide)), *((f"{statistics.median(wide):.1%}", f"{max(wide):.1%}") if wide else ("-", "-"))]


def _shift_cells(group: list[Spread]) -> list[str]:
    """The median factor from the first run to each other run, and the median spread without these factors."""
    if len(group) < _MIN_FOR_SHIFT:
        return ["-", "-"]
    first = [s.values[0] for s in group]
    runs = list(zip(*(s.values for s in group), strict=True))
    factors = [statistics.median(v / f for v, f in zip(run, first, strict=True)) for run in runs]
    left = [_wide([v / f for v, f in zip(s.values, factors, strict=True)]) for s in group]
    return [", ".join(f"{factor - 1:+.1%}" for factor in factors[1:]), f"{statistics.median(left):.1%}"]


def _wide(values: Sequence[float]) -> float:
    return max(values) / min(values) - 1


if __name__ == "__main__":
    raise SystemExit(main())
