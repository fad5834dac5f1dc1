"""Where a run lies among the committed runs on other boards of its kind of machine."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.loading.files import read_fingerprint, write_fingerprint
from overhead.reading import typical_run
from overhead.reading.dispatch_costs import DispatchCosts, dispatch_costs
from overhead.reading.next_run import case_of, committed_table, kind_of
from overhead.reading.typical_run import (
    Place,
    most_typical,
    other_boards,
    place_of,
    placed_records,
)
from overhead.reading.view import View
from overhead.report.core.machines import from_paths
from overhead.results import BOARD, Fingerprint
from overhead.words.typical_run import place_sentence
from tests.fakes.report import H200, fingerprint, record

DATA = Path(__file__).parents[2] / "reports" / "data"
STACKS = ("torch", "jax", "cupy", "cuda-driver", "triton", "warp")


def costs_of(
    factor: float,
    board: str = "f" * BOARD,
    bound: str = "host",
    first: float | None = None,
    **more: Any,
) -> DispatchCosts:
    """A run whose costs are so many times those that ``committed`` has at the median. ``first``: of
    the first stack.
    """
    factors = [factor if first is None else first, *[factor] * (len(STACKS) - 1)]
    records = []
    for stack, times in zip(STACKS, factors, strict=True):
        made = record(stack, each=times * 10_000.0, api="CUDA", **more)
        records.append(msgspec.structs.replace(made, device=board, bound=bound))
    found = dispatch_costs(View(fingerprint(*records, machine=H200)))
    assert found is not None
    return found


def verdict(place: Place) -> str:
    assert not (place.is_fast and place.is_slow)
    if place.is_fast:
        return "fast"
    return "slow" if place.is_slow else ""


@pytest.fixture
def committed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five boards whose costs lie within 4 % of 10 us."""
    by_board = {str(i) * BOARD: 10_000.0 * (0.96 + 0.02 * i) for i in range(5)}
    cases = {case_of(one): by_board for one in placed_records(costs_of(1.0))}
    table = msgspec.structs.replace(committed_table(), costs={kind_of(H200): cases})
    monkeypatch.setattr(typical_run, "committed_table", lambda: table)


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize(("factor", "where"), [(0.8, "fast"), (1.0, ""), (1.2, "slow")])
def test_a_run_is_placed_among_those_of_the_other_boards(factor: float, where: str) -> None:
    found = place_of(costs_of(factor))
    assert found is not None
    assert (found.costs, found.boards) == (6, 5)
    assert found.times.value == pytest.approx(1 / factor)
    assert verdict(found) == where
    assert place_sentence(costs_of(factor))


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize("first", [0.8, 1.2])
def test_one_cost_beyond_all_others_makes_no_fast_and_no_slow_run(first: float) -> None:
    found = place_of(costs_of(1.0, first=first))
    assert found is not None
    assert found.lowest + found.highest == 1
    assert verdict(found) == ""


@pytest.mark.usefixtures("committed")
@pytest.mark.parametrize(("stacks", "placed"), [(4, False), (5, True)])
def test_a_run_with_few_costs_has_no_place(stacks: int, placed: bool) -> None:
    whole = costs_of(0.8)
    records = whole.view.fingerprint.records[:stacks]
    few = dispatch_costs(View(fingerprint(*records, machine=H200)))
    assert few is not None
    assert (place_of(few) is not None) == placed


@pytest.mark.usefixtures("committed")
def test_a_board_is_not_compared_with_itself() -> None:
    found = place_of(costs_of(0.94, board="0" * BOARD))
    assert found is not None
    assert (found.boards, found.lowest) == (4, 6)


@pytest.mark.usefixtures("committed")
def test_the_range_of_other_boards_is_without_the_run_s_own_and_needs_three(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs = costs_of(1.0, board="0" * BOARD)
    record_of_row = costs.rows[0].records["python"]
    found = other_boards(costs.view, record_of_row)
    assert found is not None
    # Of 9.6, 9.8, 10, 10.2 and 10.4 us the first is its own.
    assert (found.low_us, found.median_us, found.high_us) == pytest.approx((9.8, 10.1, 10.4))
    by_board = {str(i) * BOARD: 10_000.0 for i in range(3)}
    few = msgspec.structs.replace(
        committed_table(), costs={kind_of(H200): {case_of(record_of_row): by_board}}
    )
    monkeypatch.setattr(typical_run, "committed_table", lambda: few)
    assert other_boards(costs.view, record_of_row) is None, "two others"
    assert other_boards(costs_of(1.0).view, record_of_row) is not None, "three others"


@pytest.mark.usefixtures("committed")
def test_costs_that_the_device_bounds_and_unknown_machines_have_no_place() -> None:
    assert place_of(costs_of(1.0, bound="device")) is None
    assert place_of(costs_of(1.0, software=True)) is None
    of_unknown_machine = [record(stack, api="CUDA") for stack in STACKS]
    other = dispatch_costs(View(fingerprint(*of_unknown_machine)))
    assert other is not None
    assert place_sentence(other) == ""


def test_the_committed_costs_are_those_of_the_committed_runs() -> None:
    """One case, read from the files without the package: the mean of the logarithms of a board's
    runs.
    """
    case = "torch CUDA step per-submit binding chained alloc=in-place operand=number wait=stream"
    wanted: dict[str, list[float]] = {}
    kind = "NVIDIA H100 80GB HBM3 with Intel(R) Xeon(R) Processor"
    for path in (*DATA.glob("*.json"), *(DATA / "again").glob("*.json")):
        run = json.loads(path.read_bytes())
        gpu = run["machine"]["gpus"][0]["name"]
        if f"{gpu} with {run['machine']['cpu']}" != kind:
            continue
        records = run.get("records", ())
        devices = {made.get("device", "") for made in records}
        boards = [device for device in devices if len(device) == BOARD]
        if len(boards) == 1:
            costs = [_cost(made) for made in records if _is_torch(made)]
            wanted.setdefault(boards[0], []).extend(costs)
    committed_costs = committed_table().costs[kind][case]
    assert committed_costs.keys() == {board for board, costs in wanted.items() if any(costs)}
    for board, cost in committed_costs.items():
        logs = [math.log(each) for each in wanted[board] if each]
        assert cost == pytest.approx(math.exp(statistics.fmean(logs)), rel=1e-3)


def _is_torch(r: dict[str, Any]) -> bool:
    usual = {"alloc": "in-place", "operand": "number", "wait": "stream"}
    where = (
        r["stack"],
        r.get("workload", "step"),
        r["pattern"],
        r.get("caller", "binding"),
        r.get("bound"),
    )
    return where == ("torch", "step", "per-submit", "binding", "host") and r.get("params") == usual


def _cost(r: dict[str, Any]) -> float:
    found = next(f for f in r["figures"] if f["name"] == "complete")
    return float(found["value"]) if found.get("status", "ok") in ("ok", "noisy", "bimodal") else 0.0


def test_a_run_below_all_other_boards_is_called_fast() -> None:
    """It is below every other board in 9 of 11 costs, which no reader sees from one run alone."""
    view = View(read_fingerprint(DATA / "nvidia-h100-stacks.json"))
    found = dispatch_costs(view)
    assert found is not None
    place = place_of(found)
    assert place is not None
    assert place.lowest > 0.75 * place.costs, "the lowest of all boards in most costs"
    assert verdict(place) == "fast"


@pytest.mark.usefixtures("committed")
def test_the_most_typical_run_lies_nearest_to_the_median_of_the_other_boards() -> None:
    runs = [costs_of(factor).view for factor in (0.8, 1.1, 1.03, 0.9)]
    found = most_typical(runs)
    assert found is not None
    assert found.view is runs[2]


@pytest.mark.usefixtures("committed")
def test_a_typical_run_has_the_stacks_that_half_of_the_runs_have_and_the_newest_method() -> None:
    whole, older, near, far = (costs_of(factor).view.fingerprint for factor in (1.0, 1.1, 1.2, 1.3))
    few = View(fingerprint(*whole.records[:5], machine=H200))
    newer = [View(msgspec.structs.replace(run, method_version=2)) for run in (far, near)]
    found = most_typical([few, View(older), *newer])
    assert found is not None
    assert found.view is newer[1]


def test_no_run_is_typical_where_no_place_is_known() -> None:
    assert most_typical([]) is None
    of_unknown_machine = [record(stack, api="CUDA") for stack in STACKS]
    assert most_typical([View(fingerprint(*of_unknown_machine))]) is None


def test_the_run_that_the_readme_draws_is_neither_fast_nor_slow() -> None:
    runs = [View(read_fingerprint(path)) for path in sorted(DATA.glob("*h100*.json"))]
    found = most_typical(runs)
    assert found is not None
    place = place_of(found)
    assert place is not None
    assert verdict(place) == ""
    assert 1 / 1.1 < place.times.value < 1.1
    assert found.has_unpinned


H100_RUNS = ("nvidia-h100-stacks", "nvidia-h100-all", "nvidia-h100-default", "nvidia-h100-step")


def h100(name: str) -> Fingerprint:
    return read_fingerprint(DATA / f"{name}.json")


def on_own_board(run: Fingerprint, created: str) -> Fingerprint:
    """The run as if a user had measured it on another board."""
    records = [msgspec.structs.replace(each, device="e" * BOARD) for each in run.records]
    return msgspec.structs.replace(run, records=records, created=created)


def test_of_published_runs_of_many_boards_the_typical_one_is_shown_and_not_the_newest(
    tmp_path: Path,
) -> None:
    for name in H100_RUNS:
        write_fingerprint(tmp_path / f"{name}.json", h100(name))
    machines = from_paths([tmp_path])
    costs = most_typical(machines.runs)
    assert costs is not None
    assert machines.own is costs.view
    assert machines.is_chosen
    assert max(run.fingerprint.created for run in machines.runs) != costs.view.fingerprint.created


def test_a_user_s_own_run_is_shown_even_if_published_runs_of_its_kind_of_machine_are_newer(
    tmp_path: Path,
) -> None:
    own = on_own_board(h100("nvidia-h100-default"), "2026-01-02T00:00:00Z")
    older = on_own_board(h100("nvidia-h100-default"), "2026-01-01T00:00:00Z")
    published = tmp_path / "published"
    published.mkdir()
    for name in H100_RUNS:
        write_fingerprint(published / f"{name}.json", h100(name))
    first = tmp_path / "own.json"
    write_fingerprint(first, own)
    write_fingerprint(tmp_path / "older.json", older)
    for paths in ([first, published], [tmp_path, published], [tmp_path / "older.json", first]):
        machines = from_paths(paths)
        assert machines.own.fingerprint.created == own.created
        assert not machines.is_chosen


def test_a_single_published_run_is_shown_as_it_is() -> None:
    machines = from_paths([DATA / "nvidia-h100-stacks.json", DATA])
    shown = machines.own.path
    assert shown is not None
    assert shown.name == "nvidia-h100-stacks.json"
    assert not machines.is_chosen
