"""Print the table of next-run ranges, made from all runs in ``reports/data``, or predict new runs
from them.

    python scripts/next_run.py --write
        # also write overhead/reading/next_run.json
    python scripts/next_run.py --predict RUN.json...
        # how many of these runs' figures lie inside

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
from overhead.reading.typical_run import LEAST_OTHER_BOARDS, drawn_records  # noqa: E402
from overhead.reading.view import View  # noqa: E402
from overhead.results import BOARD, Record  # noqa: E402

_DATA = ROOT / "reports" / "data"
_TABLE = ROOT / "overhead" / "reading" / "next_run.json"
_FIGURES = ("complete", "naive", "empty_wait")
_MIN_COMMON_FIGURES = 5
"""Two runs with fewer figures in common are not compared. Chosen, not measured."""
_MIN_BOARDS = 3
"""Fewer boards tell no spread. Chosen, not measured."""
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


class ObservedFigure(NamedTuple):
    """The logarithm of a figure's value, and the class whose spread the figure has."""

    log: float
    figure_class: FigureClass


@dataclass(frozen=True)
class ObservedRun:
    """One run: its file's name, kind of machine, board, and every figure of hardware that has a
    value.
    """

    name: str
    kind: str
    board: str
    logs: Mapping[FigureKey, ObservedFigure]
    headline: frozenset[str] = frozenset()
    """The cases that the run's headline figure has a mark of."""


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
    devices = {record.device for record in of_hardware}
    boards = [device for device in devices if len(device) == BOARD]
    kind = next_run.kind_of(fingerprint.machine)
    if len(boards) != 1 or not kind:
        return None
    logs: dict[FigureKey, ObservedFigure] = {}
    for record in of_hardware:
        for name in _FIGURES:
            figure = _observed_figure(record, name)
            if figure is not None:
                logs[next_run.case_of(record), name] = figure
    if not logs:
        return None
    costs = dispatch_costs(View(fingerprint))
    headline: frozenset[str] = frozenset()
    if costs is not None:
        headline = frozenset(map(next_run.case_of, drawn_records(costs)))
    return ObservedRun(path.name, kind, boards[0], logs, headline)


def _observed_figure(record: Record, name: str) -> ObservedFigure | None:
    """A record's figure by name; None where it has no value above 0 or belongs to no class."""
    measured = record.measured(name)
    figure_class = next_run.class_of(record, name)
    if measured is None or measured.value <= 0 or figure_class is None:
        return None
    return ObservedFigure(math.log(measured.value), figure_class)


def differences(base: ObservedRun, new: ObservedRun) -> list[FigureOfTwo]:
    """How far the figures of two runs of one kind on different boards lie apart; [] for other pairs
    of runs.
    """
    if base.kind != new.kind or base.board == new.board:
        return []
    common = base.logs.keys() & new.logs.keys()
    if len(common) < _MIN_COMMON_FIGURES:
        return []
    boards = frozenset({base.board, new.board})
    figures = []
    for key in sorted(common):
        of_base = base.logs[key]
        distance = abs(new.logs[key].log - of_base.log)
        figures.append(FigureOfTwo(key, of_base.figure_class, base.kind, boards, distance))
    return figures


def spreads(
    compared: Sequence[FigureOfTwo], without: Collection[str] = ()
) -> dict[str, ClassSpread]:
    """The spread between boards by class and kind of machine.

    Differences to the boards in ``without`` are left out: a prediction for a board must not use
    this board. Groups with too few boards have no spread.
    """
    by_group: dict[str, list[FigureOfTwo]] = defaultdict(list)
    for difference in compared:
        if difference.boards.isdisjoint(without):
            by_group[difference.group].append(difference)
    spread_of_group = {}
    for group, of_group in by_group.items():
        boards: set[str] = set()
        for difference in of_group:
            boards |= difference.boards
        if len(boards) >= _MIN_BOARDS:
            spread_of_group[group] = _class_spread(of_group, len(boards))
    return spread_of_group


def _class_spread(compared: Sequence[FigureOfTwo], boards: int) -> ClassSpread:
    """The spread that explains these differences between so many boards.

    ``s`` is the standard deviation of ln(figure) between boards, if it is normal. A difference of
    two boards has the standard deviation sqrt(2) s.
    """
    distances = [difference.distance for difference in compared]
    s = _share_within(distances) / (_NORMAL * math.sqrt(2))
    figures = {difference.key for difference in compared}
    return ClassSpread(
        s=round(s, 4), degrees=boards - 1, boards=boards, kinds=1, figures=len(figures)
    )


def _share_within(distances: Sequence[float]) -> float:
    """The distance that ``NEXT_RUN_SHARE`` of these do not exceed."""
    count = math.ceil(next_run.NEXT_RUN_SHARE * len(distances))
    return sorted(distances)[count - 1]


def table_of(runs: Sequence[ObservedRun]) -> NextRunTable:
    """The table, with its coverage over all pairs of runs of one kind on different boards.

    A class and a kind whose ranges held fewer figures than they promise, to a whole percent, have a
    coverage but no spread: a board there is so unlike the others that these do not tell of it.
    """
    pairs = _differences_of_pairs(runs)
    every_difference = list(itertools.chain.from_iterable(pairs))
    predictions_of_pairs = _predictions(pairs, every_difference)
    shares_inside = [_inside(of_pair) for of_pair in predictions_of_pairs]
    kept_promise = [share >= next_run.NEXT_RUN_SHARE for share in shares_inside]

    predictions = list(itertools.chain.from_iterable(predictions_of_pairs))
    coverage = _coverage_by_group(predictions)
    shown_spreads = {}
    for group, spread in sorted(spreads(every_difference).items()):
        if group not in coverage:
            continue
        share_inside = round(coverage[group].inside, 2)
        if share_inside >= next_run.NEXT_RUN_SHARE:
            shown_spreads[group] = spread
    boards = {run.board for run in runs}
    return NextRunTable(
        runs=len(runs),
        boards=len(boards),
        spreads=shown_spreads,
        coverage=coverage,
        by_stack=_by_stack(predictions),
        run_pairs=len(shares_inside),
        run_pairs_over_90=round(statistics.fmean(kept_promise), 3),
        worst_pair=round(min(shares_inside), 3),
        costs=_costs(runs),
    )


def _differences_of_pairs(runs: Sequence[ObservedRun]) -> list[list[FigureOfTwo]]:
    """The differences of each two runs that can be compared."""
    pairs = []
    for base, new in itertools.combinations(runs, 2):
        of_pair = differences(base, new)
        if of_pair:
            pairs.append(of_pair)
    return pairs


def _predictions(
    pairs: Sequence[Sequence[FigureOfTwo]], every_difference: Sequence[FigureOfTwo]
) -> list[list[Prediction]]:
    """The figures of each pair of runs with the range that all other boards give.

    Pairs none of whose figures the other boards give a range for are left out.
    """
    spreads_of_others: dict[frozenset[str], dict[str, ClassSpread]] = {}
    predicted_pairs = []
    for pair in pairs:
        boards = pair[0].boards
        if boards not in spreads_of_others:
            spreads_of_others[boards] = spreads(every_difference, without=boards)
        predictions = []
        for difference in pair:
            spread = spreads_of_others[boards].get(difference.group)
            if spread is not None:
                predictions.append(Prediction(difference, next_run.half_width(spread)))
        if predictions:
            predicted_pairs.append(predictions)
    return predicted_pairs


def _coverage_by_group(predictions: Sequence[Prediction]) -> dict[str, Coverage]:
    """How often the ranges held the figures, by class and kind of machine."""
    by_group: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        by_group[prediction.difference.group].append(prediction)
    return {group: _coverage(of_group) for group, of_group in sorted(by_group.items())}


def _inside(predictions: Sequence[Prediction]) -> float:
    """The share of the figures that lie inside."""
    return statistics.fmean([prediction.inside for prediction in predictions])


def _by_stack(predictions: Sequence[Prediction]) -> dict[str, float]:
    """The share of the CPU-bound costs inside, of each stack of ``_TOLD_APART``."""
    by_stack: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in predictions:
        case, figure = prediction.difference.key
        stack = case.partition(" ")[0]
        is_cpu_bound_cost = prediction.difference.figure_class == "host" and figure == "complete"
        if is_cpu_bound_cost and stack in _TOLD_APART:
            by_stack[stack].append(prediction)
    return {stack: round(_inside(of_stack), 3) for stack, of_stack in sorted(by_stack.items())}


_CostsByBoard = dict[str, float]
"""The cost on each board, ns."""


def _costs(runs: Sequence[ObservedRun]) -> dict[str, dict[str, _CostsByBoard]]:
    """By kind of machine and case the cost on each board, ns.

    The report shows by these where a new run lies among others, and draws their range, so only
    cases of the headline figure that enough boards have are in the table.
    """
    headline_cases: set[str] = set()
    for run in runs:
        headline_cases |= run.headline
    costs: dict[str, dict[str, _CostsByBoard]] = {}
    for kind in sorted({run.kind for run in runs}):
        logs = _logs_by_case([run for run in runs if run.kind == kind], headline_cases)
        of_kind = {}
        for case, by_board in sorted(logs.items()):
            if len(by_board) > LEAST_OTHER_BOARDS:
                of_kind[case] = _mean_costs(by_board)
        if logs:
            costs[kind] = of_kind
    return costs


def _logs_by_case(
    runs: Sequence[ObservedRun], cases: Collection[str]
) -> dict[str, dict[str, list[float]]]:
    """By case and board, the logarithms of the costs of the board's runs."""
    logs: dict[str, dict[str, list[float]]] = {}
    for run in runs:
        for (case, figure), observed_figure in run.logs.items():
            if figure == "complete" and case in cases:
                by_board = logs.setdefault(case, {})
                by_board.setdefault(run.board, []).append(observed_figure.log)
    return logs


def _mean_costs(by_board: Mapping[str, Sequence[float]]) -> _CostsByBoard:
    """The geometric mean of each board's costs, ns, to six digits."""
    costs = {}
    for board, logs in sorted(by_board.items()):
        cost_ns = math.exp(statistics.fmean(logs))
        costs[board] = float(f"{cost_ns:.6g}")
    return costs


def _coverage(predictions: Sequence[Prediction]) -> Coverage:
    """How often these ranges held the figures, and how wide they were.

    ``oracle``: the half-width of the narrowest range that would have held the promised share.
    """
    half_widths = [prediction.half_width for prediction in predictions]
    distances = [prediction.difference.distance for prediction in predictions]
    return Coverage(
        inside=round(_inside(predictions), 3),
        pairs=len(predictions),
        half_width=round(statistics.median(half_widths), 3),
        oracle=round(_share_within(distances), 3),
    )


@dataclass(frozen=True)
class PredictedClass:
    """Of one class of figures: how many lie inside, of how many predicted ones, and the median
    half-width of their ranges.
    """

    inside: int
    count: int
    half_width: float


def predicted(runs: Sequence[ObservedRun], new: ObservedRun) -> dict[FigureClass, PredictedClass]:
    """How many figures of a new run lie in the ranges that runs on other boards give, by class."""
    older = [run for run in runs if run.kind == new.kind and run.board != new.board]
    of_older = list(itertools.chain.from_iterable(_differences_of_pairs(older)))
    spread_of_class = {}
    for group, spread in spreads(of_older).items():
        spread_of_class[group.partition(", ")[0]] = spread

    found: dict[FigureClass, PredictedClass] = {}
    for figure_class in _CLASSES:
        if figure_class in spread_of_class:
            of_class = _predicted_class(older, new, figure_class, spread_of_class[figure_class])
            if of_class is not None:
                found[figure_class] = of_class
    return found


def _predicted_class(
    older: Sequence[ObservedRun], new: ObservedRun, figure_class: FigureClass, spread: ClassSpread
) -> PredictedClass | None:
    """How many figures of one class lie in their ranges; None if no older run has any of them.

    The middle of a range is the mean over boards, so that a board with many runs counts once.
    """
    inside = 0
    half_widths = []
    for key, figure in new.logs.items():
        if figure.figure_class != figure_class:
            continue
        by_board = _logs_by_board(older, key)
        if not by_board:
            continue
        middle = statistics.fmean(map(statistics.fmean, by_board.values()))
        half_width = next_run.half_width(spread, len(by_board))
        half_widths.append(half_width)
        if abs(figure.log - middle) <= half_width:
            inside += 1
    if not half_widths:
        return None
    return PredictedClass(inside, len(half_widths), statistics.median(half_widths))


def _logs_by_board(runs: Sequence[ObservedRun], key: FigureKey) -> dict[str, list[float]]:
    """The logarithm of a figure in each run that has it, by board."""
    by_board: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        if key in run.logs:
            by_board[run.board].append(run.logs[key].log)
    return by_board


def committed_runs() -> list[ObservedRun]:
    """The runs in ``reports/data`` and ``reports/data/again`` that name a board."""
    paths = sorted([*_DATA.glob("*.json"), *(_DATA / "again").glob("*.json")])
    return observed_runs(paths)


def observed_runs(paths: Iterable[Path]) -> list[ObservedRun]:
    """The runs in these files; files without a board or a figure are left out."""
    runs = []
    for path in paths:
        run = observed(path)
        if run is not None:
            runs.append(run)
    return runs


def _print_predicted(runs: Sequence[ObservedRun], new: ObservedRun) -> None:
    """A line for each class of figures of a new run."""
    for figure_class, of_class in predicted(runs, new).items():
        share = of_class.inside / of_class.count
        print(
            f"{new.name}: {figure_class}: {of_class.inside} of {of_class.count} inside"
            f" ({share:.0%}), half-width {of_class.half_width:.1%}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, or how well it predicts the given runs. Returns the exit code."""
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
        new_runs = observed_runs(options.predict)
    except UsageError as error:
        print(f"next_run: {error}", file=sys.stderr)
        return 2
    if options.predict:
        for new in new_runs:
            _print_predicted(runs, new)
        return 0
    text = msgspec.json.format(msgspec.json.encode(table_of(runs)), indent=1) + b"\n"
    if options.write:
        _TABLE.write_bytes(text)
    print(text.decode(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
