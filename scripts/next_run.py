"""Print the table of next-run ranges, made from all runs in ``reports/data``, or predict new runs
from them.

    python scripts/next_run.py --write                      # also write
    overhead/reading/next_run.json python scripts/next_run.py --predict RUN.json...        # how
    many of these runs' figures lie inside

Runs without a device id or with several, or without a figure that has a value, are left out. The
spread of a class is the one whose range would have held 90 % of all differences between runs on
different boards. A mean square would be set by the few figures that are off by a factor of two.
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
from overhead.reading.dispatch_costs import dispatch_costs  # noqa: E402
from overhead.reading.next_run import ClassSpread, Coverage, FigureClass, NextRunTable  # noqa: E402
from overhead.reading.typical_run import LEAST_OTHER_BOARDS, placed_records  # noqa: E402
from overhead.reading.view import View  # noqa: E402
from overhead.results import BOARD  # noqa: E402

_DATA = ROOT / "reports" / "data"
_TABLE = ROOT / "overhead" / "reading" / "next_run.json"
_FIGURES = ("complete", "naive", "empty_wait")
_MIN_COMMON_FIGURES = 5
"""Two runs with fewer figures in common are not compared."""
_MIN_BOARDS = 3
"""Fewer boards tell no spread."""
_TOLD_APART = ("dawn", "wgpu-native")
"""Stacks whose costs are noisy in most runs: their coverage is told apart, since that of all
figures hides it.
"""
_NORMAL = statistics.NormalDist().inv_cdf((1 + next_run.NEXT_RUN_SHARE) / 2)
_CLASSES: tuple[FigureClass, ...] = get_args(FigureClass)

FigureKey = tuple[str, str]
"""The case on its stack, and the figure's name."""


@dataclass(frozen=True)
class ObservedRun:
    """One run: its file's name, kind of machine, board, and ln(figure) with its class for every
    figure of hardware that has a value.
    """

    name: str
    kind: str
    board: str
    logs: Mapping[FigureKey, tuple[float, FigureClass]]
    headline: frozenset[str] = frozenset()
    """The cases of single dispatches in the run's headline figure that the CPU bounds."""


@dataclass(frozen=True)
class FigureOfTwo:
    """A figure that two runs on different boards have in common. ``distance``: of the two
    logarithms.
    """

    key: FigureKey
    figure_class: FigureClass
    kind: str
    boards: frozenset[str]
    distance: float

    @property
    def group(self) -> str:
        """The class and the kind of machine, as the table names them."""
        return f"{self.figure_class}, {self.kind}"


@dataclass(frozen=True)
class Prediction:
    """A difference, and the half-width of the range that the other boards give."""

    difference: FigureOfTwo
    half_width: float

    @property
    def inside(self) -> bool:
        """Whether the second run lies in the range around the first."""
        return self.difference.distance <= self.half_width


def observed(path: Path) -> ObservedRun | None:
    """The run in a file; None where it names no GPU, no board or several boards, or has no such
    figure.
    """
    fingerprint = load(path)
    boards = sorted(
        {r.device for r in fingerprint.records if not r.software and len(r.device) == BOARD}
    )
    kind = next_run.kind_of(fingerprint.machine)
    if len(boards) != 1 or not kind:
        return None
    logs: dict[FigureKey, tuple[float, FigureClass]] = {}
    for record in fingerprint.records:
        for name in () if record.software else _FIGURES:
            found = record.measured(name)
            figure_class = next_run.class_of(record, name)
            if found is not None and found.value > 0 and figure_class is not None:
                logs[next_run.case_of(record), name] = (math.log(found.value), figure_class)
    costs = dispatch_costs(View(fingerprint))
    headline = (
        frozenset(map(next_run.case_of, placed_records(costs)))
        if costs is not None
        else frozenset()
    )
    return ObservedRun(path.name, kind, boards[0], logs, headline) if logs else None


def differences(base: ObservedRun, new: ObservedRun) -> list[FigureOfTwo]:
    """How far the figures of two runs of one kind on different boards lie apart; [] for other pairs
    of runs.
    """
    common = base.logs.keys() & new.logs.keys()
    if base.kind != new.kind or base.board == new.board or len(common) < _MIN_COMMON_FIGURES:
        return []
    boards = frozenset({base.board, new.board})
    found = []
    for key in sorted(common):
        value, figure_class = base.logs[key]
        found.append(
            FigureOfTwo(key, figure_class, base.kind, boards, abs(new.logs[key][0] - value))
        )
    return found


def spreads(found: Sequence[FigureOfTwo], without: Collection[str] = ()) -> dict[str, ClassSpread]:
    """The spread between boards by class and kind of machine; differences to the boards in
    ``without`` left out.
    """
    groups: dict[str, list[FigureOfTwo]] = defaultdict(list)
    for one in found:
        if one.boards.isdisjoint(without):
            groups[one.group].append(one)
    made = {}
    for group, own in groups.items():
        boards = len(frozenset().union(*(one.boards for one in own)))
        if boards >= _MIN_BOARDS:
            s = _share_within([one.distance for one in own]) / (_NORMAL * math.sqrt(2))
            figures = len({one.key for one in own})
            made[group] = ClassSpread(
                s=round(s, 4), degrees=boards - 1, boards=boards, kinds=1, figures=figures
            )
    return made


def _share_within(distances: Sequence[float]) -> float:
    """The distance that ``NEXT_RUN_SHARE`` of these do not exceed."""
    return sorted(distances)[math.ceil(next_run.NEXT_RUN_SHARE * len(distances)) - 1]


def table_of(runs: Sequence[ObservedRun]) -> NextRunTable:
    """The table, with its coverage over all pairs of runs of one kind on different boards.

    A class and a kind whose ranges held fewer figures than they promise, to a whole percent, have a
    coverage but no spread: a board there is so unlike the others that these do not tell of it.
    """
    pairs = [
        found for base, new in itertools.combinations(runs, 2) if (found := differences(base, new))
    ]
    every = [one for found in pairs for one in found]
    known = {boards: spreads(every, boards) for boards in {found[0].boards for found in pairs}}
    predictions: dict[str, list[Prediction]] = defaultdict(list)
    by_pair: list[float] = []
    for found in pairs:
        own = []
        for one in found:
            spread = known[one.boards].get(one.group)
            if spread is not None:
                own.append(Prediction(one, next_run.half_width(spread)))
        for prediction in own:
            predictions[prediction.difference.group].append(prediction)
        if own:
            by_pair.append(_inside(own))
    coverage = {group: _coverage(own) for group, own in sorted(predictions.items())}
    held = {
        group
        for group, found in coverage.items()
        if round(found.inside, 2) >= next_run.NEXT_RUN_SHARE
    }
    return NextRunTable(
        runs=len(runs),
        boards=len({run.board for run in runs}),
        spreads={
            group: spread for group, spread in sorted(spreads(every).items()) if group in held
        },
        coverage=coverage,
        by_stack=_by_stack([one for own in predictions.values() for one in own]),
        run_pairs=len(by_pair),
        run_pairs_over_90=round(
            statistics.fmean([share >= next_run.NEXT_RUN_SHARE for share in by_pair]), 3
        ),
        worst_pair=round(min(by_pair), 3),
        costs=_costs(runs),
    )


def _inside(predictions: Sequence[Prediction]) -> float:
    """The share of the figures that lie inside."""
    return statistics.fmean([one.inside for one in predictions])


def _by_stack(predictions: Sequence[Prediction]) -> dict[str, float]:
    """The share of the CPU-bound costs inside, of each stack of ``_TOLD_APART``."""
    found: dict[str, list[Prediction]] = defaultdict(list)
    for one in predictions:
        case, figure = one.difference.key
        stack = case.partition(" ")[0]
        if one.difference.figure_class == "host" and figure == "complete" and stack in _TOLD_APART:
            found[stack].append(one)
    return {stack: round(_inside(own), 3) for stack, own in sorted(found.items())}


def _costs(runs: Sequence[ObservedRun]) -> dict[str, dict[str, dict[str, float]]]:
    """By kind of machine and case the CPU-bound cost on each board, for the cases that enough
    boards have.
    """
    shown = frozenset().union(*(run.headline for run in runs))
    logs: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in runs:
        for (case, figure), (log, figure_class) in run.logs.items():
            if figure == "complete" and figure_class == "host" and case in shown:
                logs.setdefault(run.kind, {}).setdefault(case, {}).setdefault(run.board, []).append(
                    log
                )
    return {
        kind: {
            case: {
                board: float(f"{math.exp(statistics.fmean(own)):.6g}")
                for board, own in sorted(by_board.items())
            }
            for case, by_board in sorted(cases.items())
            if len(by_board) > LEAST_OTHER_BOARDS
        }
        for kind, cases in sorted(logs.items())
    }


def _coverage(predictions: Sequence[Prediction]) -> Coverage:
    return Coverage(
        inside=round(_inside(predictions), 3),
        pairs=len(predictions),
        half_width=round(statistics.median([one.half_width for one in predictions]), 3),
        oracle=round(_share_within([one.difference.distance for one in predictions]), 3),
    )


def predicted(
    runs: Sequence[ObservedRun], new: ObservedRun
) -> dict[FigureClass, tuple[int, int, float]]:
    """By class: figures inside, figures predicted, median half-width; from other boards of the same
    kind.
    """
    older = [run for run in runs if run.kind == new.kind and run.board != new.board]
    every = [
        one for base, other in itertools.combinations(older, 2) for one in differences(base, other)
    ]
    known = {group.partition(", ")[0]: spread for group, spread in spreads(every).items()}
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--write", action="store_true", help="write the table that the package reads"
    )
    parser.add_argument(
        "--predict", metavar="RUN.json", nargs="+", type=Path, default=[], help="runs to predict"
    )
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
                print(
                    f"{new.name}: {name}: {inside} of {count} inside ({inside / count:.0%}),"
                    f" half-width {half:.1%}"
                )
        return 0
    text = msgspec.json.format(msgspec.json.encode(table_of(runs)), indent=1) + b"\n"
    if options.write:
        _TABLE.write_bytes(text)
    print(text.decode(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
