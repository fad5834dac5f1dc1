"""Print the table of next-run ranges, made from all runs in ``reports/data``, or predict new runs from them.

    python scripts/next_run.py --write                      # also write overhead/reading/next_run.json
    python scripts/next_run.py --predict RUN.json...        # how many of these runs' figures lie inside

Runs without a device id or with several, or without a figure that is ``ok``, are left out. Several runs on one board
count once, by their mean.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from overhead.errors import UsageError  # noqa: E402
from overhead.loading.reduce import load  # noqa: E402
from overhead.reading import next_run  # noqa: E402
from overhead.reading.next_run import ClassSpread, Coverage, FigureClass, NextRunTable  # noqa: E402
from overhead.results import BOARD, Record  # noqa: E402

_DATA = ROOT / "reports" / "data"
_TABLE = ROOT / "overhead" / "reading" / "next_run.json"
_FIGURES = ("complete", "naive", "empty_wait")
_MIN_COMMON_FIGURES = 5
"""Two runs with fewer figures in common are not compared."""
_CLASSES: tuple[FigureClass, ...] = get_args(FigureClass)

FigureKey = tuple[str, str]
"""The case on its stack, and the figure's name."""


@dataclass(frozen=True)
class ObservedRun:
    """One run: its file's name, kind of machine, board, and ln(figure) with its class for every ``ok`` figure of
    hardware."""

    name: str
    kind: str
    board: str
    logs: Mapping[FigureKey, tuple[float, FigureClass]]


def observed(path: Path) -> ObservedRun | None:
    """The run in a file; None where it names no GPU, no board or several boards, or has no such figure."""
    fingerprint = load(path)
    boards = sorted({r.device for r in fingerprint.records if not r.software and len(r.device) == BOARD})
    kind = next_run.kind_of(fingerprint.machine)
    if len(boards) != 1 or not kind:
        return None
    logs = {
        (_key(record), name): (math.log(value), figure_class)
        for record in fingerprint.records
        if not record.software
        for name in _FIGURES
        if (figure := record.figure(name)) is not None
        and figure.status == "ok"
        and (value := figure.value)
        and value > 0
        and (figure_class := next_run.class_of(record, name))
    }
    return ObservedRun(path.name, kind, boards[0], logs) if logs else None


def _key(record: Record) -> str:
    """The case on its stack, without the device: the next run may be on another board."""
    return f"{record.stack} {record.api} {record.case.key}"


def spreads(runs: Sequence[ObservedRun], without: Collection[str] = ()) -> dict[FigureClass, ClassSpread]:
    """The spread between boards by class, pooled over cases and kinds of machines; boards in ``without`` left out."""
    logs: dict[tuple[str, FigureKey], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    classes: dict[FigureKey, FigureClass] = {}
    for run in runs:
        if run.board in without:
            continue
        for key, (value, figure_class) in run.logs.items():
            logs[run.kind, key][run.board].append(value)
            classes[key] = figure_class
    found: dict[FigureClass, ClassSpread] = {}
    for figure_class in _CLASSES:
        squares, degrees, figures = 0.0, 0, 0
        boards: set[tuple[str, str]] = set()
        for (kind, key), by_board in logs.items():
            if classes[key] == figure_class and len(by_board) > 1:
                means = [statistics.fmean(values) for values in by_board.values()]
                squares += statistics.variance(means) * (len(means) - 1)
                degrees, figures = degrees + len(means) - 1, figures + 1
                boards |= {(kind, board) for board in by_board}
        if degrees:
            kinds = len({kind for kind, _ in boards})
            found[figure_class] = ClassSpread(
                s=round(math.sqrt(squares / degrees), 4),
                degrees=min(next_run.MOST_DEGREES_OF_FREEDOM, len(boards) - kinds),
                boards=len(boards),
                kinds=kinds,
                figures=figures,
            )
    return found


def table_of(runs: Sequence[ObservedRun]) -> NextRunTable:
    """The table, with its coverage over all ordered pairs of runs of one kind on different boards."""
    hits: dict[tuple[FigureClass, str], list[bool]] = defaultdict(list)
    widths: dict[FigureClass, list[float]] = defaultdict(list)
    distances: dict[FigureClass, list[float]] = defaultdict(list)
    by_pair: list[float] = []
    for base, new in itertools.permutations(runs, 2):
        common = base.logs.keys() & new.logs.keys()
        if base.kind != new.kind or base.board == new.board or len(common) < _MIN_COMMON_FIGURES:
            continue
        known = spreads(runs, {base.board, new.board})
        inside = []
        for key in common:
            value, figure_class = base.logs[key]
            if figure_class in known:
                half, distance = next_run.half_width(known[figure_class]), abs(new.logs[key][0] - value)
                widths[figure_class].append(half)
                distances[figure_class].append(distance)
                hits[figure_class, base.kind].append(distance <= half)
                inside.append(distance <= half)
        if inside:
            by_pair.append(statistics.fmean(inside))
    return NextRunTable(
        runs=len(runs),
        boards=len({run.board for run in runs}),
        classes=spreads(runs),
        coverage={name: _coverage(widths[name], distances[name]) for name in _CLASSES if widths[name]},
        by_kind={f"{name}, {kind}": round(statistics.fmean(own), 3) for (name, kind), own in sorted(hits.items())},
        run_pairs=len(by_pair),
        run_pairs_over_90=round(statistics.fmean([share >= next_run.NEXT_RUN_SHARE for share in by_pair]), 3),
        worst_pair=round(min(by_pair), 3),
    )


def _coverage(widths: Sequence[float], distances: Sequence[float]) -> Coverage:
    return Coverage(
        inside=round(statistics.fmean([d <= w for w, d in zip(widths, distances, strict=True)]), 3),
        pairs=len(widths),
        half_width=round(statistics.median(widths), 3),
        oracle=round(sorted(distances)[math.ceil(next_run.NEXT_RUN_SHARE * len(distances)) - 1], 3),
    )


def predicted(runs: Sequence[ObservedRun], new: ObservedRun) -> dict[FigureClass, tuple[int, int, float]]:
    """By class: figures inside, figures predicted, median half-width; from other boards of the same kind."""
    older = [run for run in runs if run.kind == new.kind and run.board != new.board]
    known = spreads(runs, {new.board})
    found: dict[FigureClass, tuple[int, int, float]] = {}
    for name in _CLASSES:
        hits, halves = [], []
        for key, (value, figure_class) in new.logs.items():
            by_board: dict[str, list[float]] = defaultdict(list)
            for run in older:
                if key in run.logs:
                    by_board[run.board].append(run.logs[key][0])
            if figure_class == name and by_board and name in known:
                middle = statistics.fmean(map(statistics.fmean, by_board.values()))
                halves.append(next_run.half_width(known[name], len(by_board)))
                hits.append(abs(value - middle) <= halves[-1])
        if hits:
            found[name] = sum(hits), len(hits), statistics.median(halves)
    return found


def committed_runs() -> list[ObservedRun]:
    """The runs in ``reports/data`` and ``reports/data/again`` that name a board."""
    paths = sorted([*_DATA.glob("*.json"), *(_DATA / "again").glob("*.json")])
    return [run for path in paths if (run := observed(path))]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the table that the package reads")
    parser.add_argument("--predict", metavar="RUN.json", nargs="+", type=Path, default=[], help="runs to predict")
    options = parser.parse_args(arguments)
    try:
        runs = committed_runs()
        new_runs = [run for path in options.predict if (run := observed(path))]
    except UsageError as error:
        print(f"next_run: {error}", file=sys.stderr)
        return 2
    if options.predict:
        for new in new_runs:
            for name, (inside, count, half) in predicted(runs, new).items():
                print(f"{new.name}: {name}: {inside} of {count} inside ({inside / count:.0%}), half-width {half:.1%}")
        return 0
    text = msgspec.json.format(msgspec.json.encode(table_of(runs)), indent=1) + b"\n"
    if options.write:
        _TABLE.write_bytes(text)
    print(text.decode(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
