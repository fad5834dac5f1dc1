"""The CUDA sections: launches, graphs and their break-even, synchronisations; from small made-up fingerprints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.reading.graphs import graphs
from overhead.reading.intervals import Span
from overhead.reading.synchronising import synchronised
from overhead.reading.training import trainings
from overhead.reading.view import View
from overhead.results import Comparison, Figure, Fingerprint, Record
from tests.fakes.report import (
    CUDA_GPU,
    CUDA_STEP,
    MAKING,
    cuda_run,
    driver,
    figure,
    fingerprint,
    graph_launch,
    network,
    record,
    replay,
    torch,
    training_run,
)
from tests.report.report_page import numbers


def sections(file: Fingerprint) -> dict[str, list[Any]]:
    pytest.importorskip("matplotlib")
    from overhead.report.core import draw
    from overhead.report.core.registry import registered

    with draw.style():
        return {s.name: list(s.build(View(file))) for s in registered() if s.name in ("launches", "synchronisation")}


def table(parts: list[Any], caption: str) -> Any:
    return next(part for part in parts if part.kind == "table" and part.caption == caption)


def prose(parts: list[Any]) -> str:
    return " ".join(paragraph for part in parts if part.kind == "text" for paragraph in part.paragraphs)


def test_interval_arithmetic_keeps_the_widest_bounds() -> None:
    a, b = Span(10.0, 8.0, 12.0), Span(4.0, 2.0, 5.0)
    assert a + b == Span(14.0, 10.0, 17.0)
    assert a - b == Span(6.0, 3.0, 10.0)
    assert a / b == Span(2.5, 1.6, 6.0)
    assert a / Span(1.0, -1.0, 4.0) == Span(10.0, 2.0, None)
    assert a - Span(1.0) == Span(9.0)


def test_break_even_is_the_cost_of_making_over_the_time_saved() -> None:
    (graph,) = graphs(View(cuda_run()))
    making, even = graph.making(100), graph.break_even(100)
    assert making == Span(540_000.0, 540_000.0, 540_000.0)
    assert even is not None
    assert even.value == pytest.approx(540 / 200)
    assert even.low == pytest.approx(540 / (3.06 - 0.98) / 100)
    assert even.high == pytest.approx(540 / (2.94 - 1.02) / 100)


def test_a_graph_that_saves_nothing_has_no_break_even() -> None:
    parts = sections(fingerprint(driver(3_000.0), replay(3_100.0)))["launches"]
    assert "does not apply" in prose(parts)
    assert any("not applicable" in row for part in parts if part.kind == "table" for row in part.rows)


def test_an_interval_of_the_saving_that_reaches_zero_sets_no_upper_limit() -> None:
    file = fingerprint(driver(3_000.0), replay(2_950.0))
    even = graphs(View(file))[0].break_even(100)
    assert even is not None
    assert even.high is None
    assert "no upper limit" in prose(sections(file)["launches"])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ((replay(1_000.0),), "no eager launch"),
        ((replay(1_000.0), torch(5_000.0)), "no eager launch"),
        ((replay(1_000.0, ()), driver(3_000.0)), "break-even is unknown"),
    ],
)
def test_the_graph_sentence_names_what_is_missing(records: tuple[Record, ...], said: str) -> None:
    assert said in prose(sections(fingerprint(*records))["launches"])


def test_making_a_torch_graph_includes_its_first_launch() -> None:
    own = tuple(f for f in MAKING if "upload" not in f.name)
    first = figure("making:first_launch", 2_500.0, width=0), figure("making:first_launch:fixed", 70_000.0, width=0)
    file = fingerprint(driver(3_000.0), torch(5_000.0), replay(1_000.0, (*own, *first), "torch"))
    (graph,) = graphs(View(file))
    assert graph.eager is not None
    assert graph.eager.stack == "torch"
    wait = graph.record.value("fixed")
    assert wait is not None
    made = graph.making(100)
    assert made is not None
    assert made.value == pytest.approx(430_000.0 + 100 * (2_500.0 - 1_000.0) + 70_000.0 - wait)
    assert list(graph.parts) == ["capture", "instantiate", "first_launch"]


def test_making_a_graph_has_no_cost_if_a_part_is_unknown() -> None:
    own = tuple(f for f in MAKING if "upload" not in f.name)
    (graph,) = graphs(View(fingerprint(torch(5_000.0), replay(1_000.0, own, "torch"))))
    assert graph.making(100) is None
    assert graph.break_even(100) is None


def test_a_synchronisation_costs_its_unit_minus_the_steps_in_it() -> None:
    found = {(s.record.workload, s.act, s.every): s for s in synchronised(View(cuda_run()))}
    once, tenth = found["step", "item", 1], found["step", "item", 10]
    assert once.cost is not None
    assert once.slowdown is not None
    assert once.cost.value == 10_000
    assert once.cost.low == pytest.approx(15_000 * 0.98 - 5_000 * 1.02)
    assert once.slowdown.value == 3
    assert tenth.cost is not None
    assert tenth.cost.value == 10_000
    assert tenth.slowdown is not None
    assert tenth.slowdown.value == pytest.approx(1.2)
    assert found["step", "nonzero", 1].cost is None
    network = found["mlp-forward", "item", 1].cost
    assert network is not None
    assert network.value == 40_000


def test_a_paired_difference_replaces_the_difference_of_two_figures() -> None:
    file = cuda_run()
    read = next(r for r in file.records if r.params.get("sync") == "item" and r.params["every"] == 1)
    figures = [Figure(name="difference", value=9_000.0, low=8_500.0, high=9_500.0, status="ok"),
               Figure(name="ratio", unit="ratio", value=2.9, low=2.8, high=3.0, status="ok")]  # fmt: skip
    pair = Comparison(name="sync-cost", of=read.key, figures=figures)
    (found,) = (s for s in synchronised(View(msgspec.structs.replace(file, comparisons=[pair]))) if s.record == read)
    assert found.cost == Span(9_000.0, 8_500.0, 9_500.0)
    assert found.slowdown == Span(2.9, 2.8, 3.0)
    unsure = msgspec.structs.replace(figures[0], value=-1_000.0, low=-3_000.0, high=1_000.0, status="noisy")
    pair = msgspec.structs.replace(pair, figures=[unsure, figures[1]])
    text = prose(sections(msgspec.structs.replace(file, comparisons=[pair]))["synchronisation"])
    assert "(−3.0 to 1.0 µs)" in text.replace("\u2212", "−")


def test_the_sentences_name_the_cheapest_the_dearest_and_the_rarer() -> None:
    parts = sections(cuda_run())["synchronisation"]
    text = prose(parts)
    assert "adds 3.0" in text
    assert "adds 10.0" in text
    assert "10 steps 1.2" in text
    assert "MLP forward pass" in text
    verdicts = {row[0]: row[1].split()[0] for row in table(parts, "Synchronisations in a captured step").rows}
    assert verdicts == {".item()": "forbidden:", "pinned copy to the device": "kept", "nothing": "removed"}


def test_training_and_synchronisation_costs_are_separate() -> None:
    found = {(t.shapes, t.act): t for t in trainings(synchronised(View(training_run())))}
    assert set(found) == {("fixed", "item"), ("fixed", "h2d"), ("varying", "item")}
    fixed = found["fixed", "item"]
    assert fixed.rest is not None
    assert fixed.rest.value == 600_000
    assert fixed.share is not None
    assert fixed.share.value == pytest.approx(0.1)
    assert found["fixed", "h2d"].forward is None
    assert found["fixed", "h2d"].rest == fixed.rest  # the forward pass alone is the same, whatever the act
    varying = found["varying", "item"]
    assert varying.share is not None
    assert varying.share.value == pytest.approx(0.2)


def test_the_training_panel() -> None:
    parts = sections(training_run())["synchronisation"]
    assert [p.name for p in parts if p.kind == "drawing"] == ["synchronisation", "training"]
    rows = table(parts, "Training and synchronisation").rows
    forward_rest_whole = [[cell.split()[0] for cell in row[3:6]] for row in rows]
    assert forward_rest_whole == [["300", "600", "900"], ["300", "600", "900"], ["310", "650", "960"]]
    assert [row[6] for row in rows if row[2] == "copy to the device"] == [""]
    share = next(row[-1] for row in rows if row[1:3] == ["fixed", ".item()"])
    assert share == "10 % (6 to 14)"


def test_a_training_step_without_its_forward_pass_has_a_row_and_no_panel() -> None:
    file = fingerprint(network("mlp-train", 900_000.0), network("mlp-train", 1_000_000.0, "item"))
    parts = sections(file)["synchronisation"]
    assert "training" not in [p.name for p in parts if p.kind == "drawing"]
    assert "Training and synchronisation" in [p.caption for p in parts if p.kind == "table"]


def test_a_failed_synchronisation_keeps_its_row_and_reason() -> None:
    rows = table(sections(cuda_run())["synchronisation"], "Synchronisations").rows
    (row,) = (r for r in rows if "nonzero" in r)
    assert row[4:6] == ["", ""]
    assert "out of memory" in row[6]


def test_the_chart_of_patterns_shows_one_act_for_all_of_its_pattern() -> None:
    from overhead.report.sections.costs import in_pattern_chart

    item, rare, cpu = torch(9_000.0, "item"), torch(20_000.0, "item", 10), torch(9_500.0, "cpu")
    native, lost = torch(8_500.0, "item", caller="native"), torch(None, "item", status="failed", reason="lost")
    pinned = torch(8_000.0, "h2d-pinned", pattern="per-submit")
    for acts, shown in (
        ([item, cpu, rare], [item]), ([rare, item, cpu, pinned], [item]), ([item, native, cpu], [item, native]),
        ([lost, cpu], [cpu]), ([lost], [lost]), ([rare], [rare]),
    ):  # fmt: skip
        (target,) = View(fingerprint(torch(5_000.0), *acts)).executing
        assert [r for r in target.records if in_pattern_chart(target, r)][1:] == shown
    (odd,) = View(fingerprint(item, record("torch", "fused", each=1.0, **{**CUDA_GPU, "params": CUDA_STEP}))).executing
    assert [in_pattern_chart(odd, r) for r in odd.records] == [True, False]


def test_two_speeds_of_graph_nodes_are_reported() -> None:
    from overhead.report.sections.launches import two_speeds

    def at(nodes: int, complete: float, busy: float) -> Record:
        made = graph_launch({}, "driver")
        figures = [figure("complete", complete, width=0.01), figure("device_busy", busy, width=0.01)]
        return msgspec.structs.replace(made, params={"maker": "driver", "nodes": nodes}, figures=figures)

    one, ten, hundred = at(1, 1_700.0, 1_720.0), at(10, 10_000.0, 11_700.0), at(100, 96_000.0, 114_000.0)
    assert two_speeds([one]) == ""
    assert numbers(two_speeds([one, ten])) == ["10", "0.17"]
    assert numbers(two_speeds([hundred, ten, one])) == ["10", "100", "0.17", "0.18"]


def test_a_synchronisation_without_the_plain_step_has_no_cost() -> None:
    parts = sections(fingerprint(torch(15_000.0, "item")))["synchronisation"]
    assert [p.kind for p in parts] == ["table"]
    assert parts[0].rows[0][4:6] == ["", ""]
    assert "not measured" in parts[0].rows[0][6]


def test_both_sections_are_absent_where_nothing_of_theirs_was_measured(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from overhead.report import render

    assert sections(fingerprint(record())) == {"launches": [], "synchronisation": []}
    text = render([fingerprint(record())], tmp_path).read_text(encoding="utf-8")
    assert "What a launch costs" not in text
    assert "What a synchronisation costs" not in text


def test_both_sections_are_in_the_page(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    from overhead.report import render

    text = render([cuda_run()], tmp_path).read_text(encoding="utf-8")
    assert "What a launch costs" in text
    assert "What a synchronisation costs" in text
    assert {"launches.png", "graphs.png", "synchronisation.png"} <= {p.name for p in (tmp_path / "figures").iterdir()}
