"""Figures of two runs or boards are never subtracted or divided; those of one run are."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.chains import groups
from overhead.reading.graphs import graphs
from overhead.reading.intervals import DifferentRunsError, measured, ratio
from overhead.reading.joined_runs import joined_run, measured_cases, run_by_place, run_to_show
from overhead.reading.sources import apart, source_of
from overhead.reading.view import View
from overhead.results import Fingerprint, Params, Record
from tests.fakes.report import driver, fingerprint, record, replay

_BOARDS = ("a" * 12, "b" * 12)


def _joined(*runs: Fingerprint) -> Fingerprint:
    """The runs as one, newest first."""
    have = [measured_cases(run) for run in runs]
    head, places = run_to_show(have), run_by_place(have)
    return joined_run({i: runs[i] for i in sorted({head, *places.values()})}, head, places)


def _run(day: int, *records: Record) -> Fingerprint:
    on_board = [msgspec.structs.replace(r, device=_BOARDS[day % 2]) for r in records]
    return fingerprint(*on_board, created=f"2026-01-0{day}T00:00:00Z")


def _launch(each: float, **params: str) -> Record:
    return msgspec.structs.replace(driver(each), params={**driver(each).params, **params})


def _two_runs() -> tuple[Record, Record, Fingerprint]:
    """A base case, a variant of an older run on another board, and both runs joined."""
    newer = _run(2, _launch(4_400.0), record("dawn", each=9.0), record("torch", each=9.0))
    older = _run(1, _launch(4_280.0), _launch(4_290.0, wait="context"))
    page = _joined(newer, older)
    base, variant = (r for r in page.records if r.stack == "cuda-driver")
    return base, variant, page


def test_records_of_a_single_file_may_be_compared() -> None:
    first, second = record("dawn"), record("torch")
    assert apart(first, second) == ""
    assert ratio(measured(first, "complete"), measured(second, "complete")) is not None


def test_records_on_two_boards_of_one_file_may_not_be_compared() -> None:
    first, second = (msgspec.structs.replace(record(), device=board) for board in _BOARDS)
    assert "different boards" in apart(first, second)
    numbered = [msgspec.structs.replace(record(), device=number) for number in ("0", "1")]
    assert apart(*numbered) == ""


def test_a_joined_record_keeps_its_run_and_board_and_stays_out_of_files() -> None:
    base, variant, _ = _two_runs()
    assert base.device == variant.device == _BOARDS[0]
    assert [source_of(r).device for r in (base, variant)] == [*_BOARDS]
    assert "2026-01-01" in apart(base, variant)
    assert msgspec.json.decode(msgspec.json.encode(variant), type=Record) == variant


def test_the_view_of_a_joined_run_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    _, variant, page = _two_runs()
    view, made = View(page), list[Fingerprint]()

    def counted(run: Fingerprint) -> View:
        made.append(run)
        return View(run)

    monkeypatch.setattr("overhead.reading.view.View", counted)
    assert view.own_run(variant) is view.own_run(variant)
    assert len(made) == 1


def test_a_difference_or_ratio_of_two_runs_is_refused() -> None:
    base, variant, _ = _two_runs()
    first, second = measured(base, "complete"), measured(variant, "complete")
    assert first is not None
    assert second is not None
    assert ratio(first, second) is None
    with pytest.raises(DifferentRunsError):
        first - second
    with pytest.raises(DifferentRunsError):
        first / second


def test_a_variant_stands_beside_the_base_case_of_its_own_run() -> None:
    pytest.importorskip("matplotlib")
    from overhead.report.core import draw
    from overhead.report.core.parts import Table, Text
    from overhead.report.sections.variants import axes

    _, _, page = _two_runs()
    with draw.style():
        (table,) = (part for part in axes(View(page)) if isinstance(part, Table))
    assert [[str(cell).split()[0] for cell in row[4:6]] for row in table.rows] == [["4.28", "4.29"]]
    lone = _joined(_run(2, _launch(4_400.0), record("dawn", each=9.0)), _run(1, _launch(4_290.0, wait="context")))
    (said,) = axes(View(lone))
    assert isinstance(said, Text)
    assert "was not measured in the same run" in said.paragraphs[1]


def test_a_graph_is_compared_with_the_launch_of_its_own_run() -> None:
    newer = _run(2, driver(4_400.0), record("dawn", each=9.0), record("torch", each=9.0))
    (found,) = graphs(View(_joined(newer, _run(1, driver(4_000.0), replay(1_000.0)))))
    assert found.saved is not None
    assert found.saved.value == pytest.approx(3_000.0)
    (alone,) = graphs(View(_joined(newer, _run(1, replay(1_000.0)))))
    assert alone.saved is None


def test_ways_to_run_a_chain_are_compared_inside_one_run() -> None:
    params: Params = {"elements": 4096}

    def arm(stack: str, pattern: str, each: float) -> Record:
        own = record(stack, pattern, each, unit="step", params=params)  # type: ignore[arg-type]
        return msgspec.structs.replace(own, workload="recurrence")

    eager, graph = arm("torch", "per-submit", 9_000.0), arm("cuda-graph", "replay", 1_000.0)
    newer = _run(2, eager, arm("dawn", "fused", 90.0))
    (together,) = groups(View(_run(2, eager, graph)))
    (joined,) = groups(View(_joined(newer, _run(1, graph))))
    assert [arm.record.stack for arm in joined.arms] == ["torch", "dawn"]
    assert together.rivals("eager", "graph-driver", 100) is not None
    assert joined.rivals("eager", "graph-driver", 100) is None
