"""Print the table of next-run ranges, made from all runs in ``reports/data``, or predict new runs
from them.

    python scripts/next_run.py --write               # also write overhead/reading/next_run.json
    python scripts/next_run.py --predict RUN.json... # how many of these runs' figures lie inside

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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

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
"""Within so many standard deviations lie ``NEXT_RUN_SHARE`` of the values of a normal
distribution.
"""
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
    of_hardware = [record for record in fingerprint.records if not record.software]
    boards = {record.device for record in of_hardware if len(record.device) == BOARD}
    kind = next_run.kind_of(fingerprint.machine)
    if len(boards) != 1 or not kind:
        return None

    logs: dict[FigureKey, tuple[float, FigureClass]] = {}
    for record in of_hardware:
        for name in _FIGURES:
            measured = record.measured(name)
            figure_class = next_run.class_of(record, name)
            if measured is not None and measured.value > 0 and figure_class is not None:
                key = (next_run.case_of(record), name)
                logs[key] = (math.log(measured.value), figure_class)
    if not logs:
        return None

    costs = dispatch_costs(View(fingerprint))
    headline = frozenset[str]()
    if costs is not None:
        headline = frozenset(next_run.case_of(record) for record in placed_records(costs))
    (board,) = boards
    return ObservedRun(path.name, kind, board, logs, headline)


def differences(base: ObservedRun, new: ObservedRun) -> list[FigureOfTwo]:
    """How far the figures of two runs of one kind on different boards lie apart; [] for other pairs
    of runs.
    """
    common = base.logs.keys() & new.logs.keys()
    if base.kind != new.kind or base.board == new.board or len(common) < _MIN_COMMON_FIGURES:
        return []
    boards = frozenset({base.board, new.board})
    figures = []
    for key in sorted(common):
        base_log, figure_class = base.logs[key]
        new_log, _ = new.logs[key]
        distance = abs(new_log - base_log)
        figures.append(FigureOfTwo(key, figure_class, base.kind, boards, distance))
    return figures


def spreads(found: Sequence[FigureOfTwo], without: Collection[str] = ()) -> dict[str, ClassSpread]:
    """The spread between boards by class and kind of machine; differences to the boards in
    ``without`` left out.
    """
    groups: dict[str, list[FigureOfTwo]] = defaultdict(list)
    for figure in found:
        if figure.boards.isdisjoint(without):
            groups[figure.group].append(figure)

    by_group = {}
    for group, figures in groups.items():
        boards = len(_boards_of(figures))
        if boards < _MIN_BOARDS:
            continue
        # A difference of two runs varies by the square root of 2 times as much as one run.
        within = _share_within([figure.distance for figure in figures])
        by_group[group] = ClassSpread(
            s=round(within / (_NORMAL * math.sqrt(2)), 4),
            degrees=boards - 1,
            boards=boards,
            kinds=1,
            figures=len({figure.key for figure in figures}),
        )
    return by_group


def _boards_of(figures: Sequence[FigureOfTwo]) -> set[str]:
    """All boards on which one of these figures was measured."""
    boards: set[str] = set()
    for figure in figures:
        boards |= figure.boards
    return boards


def _share_within(distances: Sequence[float]) -> float:
    """The distance that ``NEXT_RUN_SHARE`` of these do not exceed."""
    count = math.ceil(next_run.NEXT_RUN_SHARE * len(distances))
    return sorted(distances)[count - 1]


def table_of(runs: Sequence[ObservedRun]) -> NextRunTable:
    """The table, with its coverage over all pairs of runs of one kind on different boards.

    A class and a kind whose ranges held fewer figures than they promise, to a whole percent, have a
    coverage but no spread: a board there is so unlike the others that these do not tell of it.
    """
    pairs = _figures_of_pairs(runs)
    every = list(itertools.chain.from_iterable(pairs))
    # The range of a pair comes from the other boards alone, as it does for a new run.
    boards_of_pairs = {figures[0].boards for figures in pairs}
    spreads_without = {boards: spreads(every, boards) for boards in boards_of_pairs}

    predictions: dict[str, list[Prediction]] = defaultdict(list)
    inside_of_pairs: list[float] = []
    for figures in pairs:
        predicted_figures = []
        for figure in figures:
            spread = spreads_without[figure.boards].get(figure.group)
            if spread is not None:
                prediction = Prediction(figure, next_run.half_width(spread))
                predicted_figures.append(prediction)
                predictions[figure.group].append(prediction)
        if predicted_figures:
            inside_of_pairs.append(_inside(predicted_figures))

    coverage = {group: _coverage(of_group) for group, of_group in sorted(predictions.items())}
    kept_spreads = {}
    for group, spread in sorted(spreads(every).items()):
        if group in coverage and round(coverage[group].inside, 2) >= next_run.NEXT_RUN_SHARE:
            kept_spreads[group] = spread
    good_pairs = [share for share in inside_of_pairs if share >= next_run.NEXT_RUN_SHARE]
    return NextRunTable(
        runs=len(runs),
        boards=len({run.board for run in runs}),
        spreads=kept_spreads,
        coverage=coverage,
        by_stack=_by_stack(list(itertools.chain.from_iterable(predictions.values()))),
        run_pairs=len(inside_of_pairs),
        run_pairs_over_90=round(len(good_pairs) / len(inside_of_pairs), 3),
        worst_pair=round(min(inside_of_pairs), 3),
        costs=_costs(runs),
    )


def _figures_of_pairs(runs: Sequence[ObservedRun]) -> list[list[FigureOfTwo]]:
    """For each two runs that can be compared their common figures."""
    pairs = []
    for base, new in itertools.combinations(runs, 2):
        figures = differences(base, new)
        if figures:
            pairs.append(figures)
    return pairs


def _inside(predictions: Sequence[Prediction]) -> float:
    """The share of the figures that lie inside."""
    return statistics.fmean([prediction.inside for prediction in predictions])


def _by_stack(predictions: Sequence[Prediction]) -> dict[str, float]:
    """The share of the CPU-bound costs inside, of each stack of ``_TOLD_APART``."""
    by_stack: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        case, figure = prediction.difference.key
        stack = case.partition(" ")[0]
        is_cost = figure == "complete" and prediction.difference.figure_class == "host"
        if is_cost and stack in _TOLD_APART:
            by_stack[stack].append(prediction)
    return {stack: round(_inside(of_stack), 3) for stack, of_stack in sorted(by_stack.items())}


def _costs(runs: Sequence[ObservedRun]) -> dict[str, dict[str, dict[str, float]]]:
    """By kind of machine and case the CPU-bound cost on each board, for the cases that enough
    boards have.
    """
    shown: set[str] = set()
    for run in runs:
        shown |= run.headline
    # ln of the costs, by kind of machine and case, and then by board.
    logs: dict[str, dict[str, dict[str, list[float]]]] = {}
    for run in runs:
        for (case, figure), (log, figure_class) in run.logs.items():
            if figure == "complete" and figure_class == "host" and case in shown:
                by_board = logs.setdefault(run.kind, {}).setdefault(case, {})
                by_board.setdefault(run.board, []).append(log)

    costs: dict[str, dict[str, dict[str, float]]] = {}
    for kind, cases in sorted(logs.items()):
        costs[kind] = {}
        for case, by_board in sorted(cases.items()):
            if len(by_board) > LEAST_OTHER_BOARDS:
                costs[kind][case] = _mean_costs(by_board)
    return costs


def _mean_costs(logs_by_board: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The geometric mean of the costs of each board, to six digits."""
    costs = {}
    for board, logs in sorted(logs_by_board.items()):
        cost = math.exp(statistics.fmean(logs))
        costs[board] = float(f"{cost:.6g}")
    return costs


def _coverage(predictions: Sequence[Prediction]) -> Coverage:
    half_widths = [prediction.half_width for prediction in predictions]
    distances = [prediction.difference.distance for prediction in predictions]
    return Coverage(
        inside=round(_inside(predictions), 3),
        pairs=len(predictions),
        half_width=round(statistics.median(half_widths), 3),
        oracle=round(_share_within(distances), 3),
    )


class ClassPrediction(NamedTuple):
    """How many figures of a class were predicted, how many lie inside, and the median half-width of
    their ranges (of the logarithms).
    """

    inside: int
    count: int
    half_width: float


def predicted(runs: Sequence[ObservedRun], new: ObservedRun) -> dict[FigureClass, ClassPrediction]:
    """How well the runs on other boards of the same kind of machine predict this one, by class."""
    older = [run for run in runs if run.kind == new.kind and run.board != new.board]
    every = list(itertools.chain.from_iterable(_figures_of_pairs(older)))
    spread_of_class = {}
    for group, spread in spreads(every).items():
        figure_class = group.partition(", ")[0]
        spread_of_class[figure_class] = spread

    predictions: dict[FigureClass, ClassPrediction] = {}
    for name in _CLASSES:
        if name not in spread_of_class:
            continue
        inside = 0
        half_widths = []
        for key, (log, figure_class) in new.logs.items():
            by_board = _logs_by_board(older, key)
            if figure_class != name or not by_board:
                continue
            # Each board counts once, whatever its number of runs.
            middle = statistics.fmean(map(statistics.fmean, by_board.values()))
            half_width = next_run.half_width(spread_of_class[name], len(by_board))
            half_widths.append(half_width)
            if abs(log - middle) <= half_width:
                inside += 1
        if half_widths:
            median = statistics.median(half_widths)
            predictions[name] = ClassPrediction(inside, len(half_widths), median)
    return predictions


def _logs_by_board(runs: Sequence[ObservedRun], key: FigureKey) -> dict[str, list[float]]:
    """ln of a figure in each run that has it, by board."""
    by_board: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if key in run.logs:
            log, _ = run.logs[key]
            by_board[run.board].append(log)
    return by_board


def committed_runs() -> list[ObservedRun]:
    """The runs in ``reports/data`` and ``reports/data/again`` that name a board."""
    paths = sorted([*_DATA.glob("*.json"), *(_DATA / "again").glob("*.json")])
    return _observed_all(paths)


def _observed_all(paths: Iterable[Path]) -> list[ObservedRun]:
    """The runs in these files, without those that ``observed`` leaves out."""
    runs = [observed(path) for path in paths]
    return [run for run in runs if run is not None]


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
        new_runs = _observed_all(options.predict)
    except UsageError as error:
        print(f"next_run: {error}", file=sys.stderr)
        return 2
    if options.predict:
        for new in new_runs:
            for name, found in predicted(runs, new).items():
                share = found.inside / found.count
                print(
                    f"{new.name}: {name}: {found.inside} of {found.count} inside ({share:.0%}),"
                    f" half-width {found.half_width:.1%}"
                )
        return 0
    text = msgspec.json.format(msgspec.json.encode(table_of(runs)), indent=1) + b"\n"
    if options.write:
        _TABLE.write_bytes(text)
    print(text.decode(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
