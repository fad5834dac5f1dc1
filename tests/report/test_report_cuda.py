"""The sections on CUDA launches, graphs and synchronisations, from small made-up fingerprints."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Table, cell_text, without_pictures
from overhead.reading.graphs import graphs
from overhead.reading.synchronising import StepKind, synchronised
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.registry import registered
from overhead.results import Comparison, Figure, Fingerprint, Record, Value
from overhead.words.report.launches import pays_off
from overhead.words.report.waiting import act_name, step_text, synchronised_remark
from tests.fakes.report import (
    MAKING,
    cuda_run,
    driver,
    figure,
    fingerprint,
    record,
    replay,
    torch,
    training_run,
)


def sections(file: Fingerprint) -> dict[str, list[Any]]:
    """The parts of the sections ``launches`` and ``synchronisation`` for this run."""
    pytest.importorskip("matplotlib")
    with draw.style():
        return {
            s.name: list(s.build(View(file)))
            for s in registered()
            if s.name in ("launches", "synchronisation")
        }


def value(span: Value | None) -> float | None:
    return None if span is None else span.value


def test_sums_and_quotients_of_values_have_the_widest_intervals() -> None:
    a, b = Value(10.0, 8.0, 12.0), Value(4.0, 2.0, 5.0)
    assert a + b == Value(14.0, 10.0, 17.0)
    assert a - b == Value(6.0, 3.0, 10.0)
    assert a / b == Value(2.5, 1.6, 6.0)
    assert a / Value(1.0, -1.0, 4.0) == Value(10.0, 2.0, None)
    assert a - Value(1.0) == Value(9.0)


def test_a_graph_pays_off_after_its_making_time_divided_by_the_time_saved() -> None:
    (graph,) = graphs(View(cuda_run()))
    even = graph.break_even(100)
    assert graph.making_time(100) == Value(540_000.0, 540_000.0, 540_000.0)
    assert even is not None
    expected = [540 / 200, 540 / (3.06 - 0.98) / 100, 540 / (2.94 - 1.02) / 100]
    assert [even.value, even.low, even.high] == pytest.approx(expected)


def test_a_graph_with_an_uncertain_saving_pays_off_after_a_number_without_upper_limit() -> None:
    file = fingerprint(driver(3_000.0), replay(2_950.0))
    even = graphs(View(file))[0].break_even(100)
    assert even is not None
    assert even.high is None


@pytest.mark.parametrize(
    ("records", "code"),
    [
        ((driver(3_000.0), replay(3_100.0)), "saves-nothing"),
        ((replay(1_000.0),), "no-eager-launch"),
        ((replay(1_000.0), torch(5_000.0)), "no-eager-launch"),
        ((replay(1_000.0, ()), driver(3_000.0)), "no-making-time"),
    ],
)
def test_the_table_of_a_graph_says_why_no_number_of_replays_is_known(
    records: tuple[Record, ...], code: str
) -> None:
    run = fingerprint(*records)
    (graph,) = graphs(View(run))
    assert (graph.break_even(100), graph.no_break_even(100)) == (None, code)
    (table,) = sections(run)["launches"]
    assert pays_off(graph, 100) in table.rows[0]


TORCH_MAKING = tuple(f for f in MAKING if "upload" not in f.name)


def test_the_making_time_of_a_torch_graph_includes_its_first_launch() -> None:
    first = (
        figure("making:first_launch", 2_500.0, width=0),
        figure("making:first_launch:fixed", 70_000.0, width=0),
    )
    file = fingerprint(
        driver(3_000.0), torch(5_000.0), replay(1_000.0, (*TORCH_MAKING, *first), "torch")
    )
    (graph,) = graphs(View(file))
    assert graph.eager is not None
    assert graph.eager.stack == "torch"
    wait = graph.record.value("fixed")
    assert wait is not None
    assert value(graph.making_time(100)) == pytest.approx(
        430_000.0 + 100 * (2_500.0 - 1_000.0) + 70_000.0 - wait
    )
    assert list(graph.parts) == ["capture", "instantiate", "first_launch"]


def test_the_making_time_of_a_graph_is_unknown_if_a_part_is() -> None:
    (graph,) = graphs(View(fingerprint(torch(5_000.0), replay(1_000.0, TORCH_MAKING, "torch"))))
    assert (graph.making_time(100), graph.break_even(100)) == (None, None)


def test_the_cost_of_a_synchronisation_is_its_time_less_that_of_the_steps() -> None:
    found = {(s.record.workload, s.act, s.every): s for s in synchronised(View(cuda_run()))}
    once, tenth = found["step", "item", 1], found["step", "item", 10]
    assert (value(once.cost), value(once.slowdown)) == (10_000, 3)
    assert once.cost is not None
    assert once.cost.low == pytest.approx(15_000 * 0.98 - 5_000 * 1.02)
    assert value(tenth.cost) == 10_000
    assert value(tenth.slowdown) == pytest.approx(1.2)
    assert found["step", "nonzero", 1].cost is None
    assert value(found["mlp-forward", "item", 1].cost) == 40_000


def test_the_cost_of_a_synchronisation_is_the_difference_within_rounds_where_the_file_has_it() -> (
    None
):
    file = cuda_run()
    read = next(
        r for r in file.records if r.params.get("sync") == "item" and r.params["every"] == 1
    )
    figures = [
        Figure(name="difference", value=9_000.0, low=8_500.0, high=9_500.0, status="ok"),
        Figure(name="ratio", unit="ratio", value=2.9, low=2.8, high=3.0, status="ok"),
    ]
    pair = Comparison(name="sync-cost", of=read.key, figures=figures)
    (found,) = (
        s
        for s in synchronised(View(msgspec.structs.replace(file, comparisons=[pair])))
        if s.record == read
    )
    assert found.cost == Value(9_000.0, 8_500.0, 9_500.0)
    assert found.slowdown == Value(2.9, 2.8, 3.0)
    unsure = msgspec.structs.replace(
        figures[0], value=-1_000.0, low=-3_000.0, high=1_000.0, status="noisy"
    )
    pair = msgspec.structs.replace(pair, figures=[unsure, figures[1]])
    parts = sections(msgspec.structs.replace(file, comparisons=[pair]))["synchronisation"]
    table = next(part.table if part.kind == "drawing" else part for part in parts)
    (row,) = (row for row in table.rows if "−3.0 to 1.0" in row[5].replace("\u2212", "−"))
    (found,) = (
        s
        for s in synchronised(View(msgspec.structs.replace(file, comparisons=[pair])))
        if s.record == read
    )
    assert found.doubt == "no-effect"
    assert row[-1] == synchronised_remark(found) != ""


LOST = torch(None, "item", status="failed", reason="error 700")


@pytest.mark.parametrize("records", [[torch(15_000.0, "item")], [torch(5_000.0), LOST]])
def test_a_synchronisation_without_a_cost_has_a_table_row_with_the_reason(
    records: list[Record],
) -> None:
    run = fingerprint(*records)
    (found,) = synchronised(View(run))
    assert (found.alone is None) == (len(records) == 1)
    (row,) = next(part for part in sections(run)["synchronisation"] if part.kind == "table").rows
    assert row[5:] == ["", "", synchronised_remark(found)]
    assert ("error 700" in row[7]) == (LOST in records)


def test_a_run_without_cuda_has_no_sections_of_graphs_and_synchronisations() -> None:
    assert sections(fingerprint(record())) == {"launches": [], "synchronisation": []}


def test_the_synchronisations_of_a_training_step_are_compared_with_that_step() -> None:
    parts = without_pictures(sections(training_run())["synchronisation"])
    rows = next(p for p in parts if isinstance(p, Table)).rows
    found = {tuple(row[1:3]): [cell_text(cell) for cell in row[4:6]] for row in rows}
    names = {
        name: step_text(StepKind(name, (), varying=False)) for name in ("mlp-train", "mlp-forward")
    }
    whole, forward = (found[names[name], act_name("item")] for name in names)
    assert [text.split()[0] for text in (*whole, *forward)] == ["900", "100", "300", "40"]
