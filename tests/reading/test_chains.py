"""Records with known fits: what a chain costs, and whether a graph or a fused kernel is cheaper."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, Text, cell_text
from overhead.reading.chain_ways import ChainWay
from overhead.reading.chains import Group, bends_below_zero, groups
from overhead.reading.graph_or_fused import ChainWork, WorkRow, chain_rows, rows
from overhead.reading.view import View
from overhead.report.across.chains import chains_section
from overhead.report.across.graph_or_fused import graph_or_fused
from overhead.report.core import draw
from overhead.report.core.machines import from_fingerprints
from overhead.results import Api, Figure, Fingerprint, LeftOut, Point, Record, Value
from overhead.words.format import run_time
from overhead.words.graph_or_fused import (
    WAY_VERDICTS,
    answer,
    bullets,
    compared,
    row_label,
    run_marks,
    runs_text,
    variant_label,
)
from overhead.words.reasons import with_status
from overhead.words.report.chains import without_gpu
from overhead.words.report.graph_or_fused import verdict_at_end
from tests.fakes.report import fingerprint, record

APIS: dict[str, Api] = {"dawn": "Vulkan", "wgpu-native": "Vulkan", "numpy": "CPU"}
"""Of the stacks that are not of CUDA."""
SUPERSCRIPTS = "\u00b9\u00b2\u00b3"
"""Marks of other runs."""


def arm(
    stack: str,
    pattern: Any,
    *,
    step_ns: float | None,
    fixed_ns: float,
    elements: int = 4096,
    **more: Any,
) -> Record:
    """A record of the ``recurrence`` workload, or of ``workload``. A chain of n steps takes
    ``fixed_ns + n * step_ns``.
    """
    params = {"elements": elements, **more.pop("params", {})}
    workload = more.pop("workload", "recurrence")
    place: dict[str, Any] = {"api": APIS.get(stack, "CUDA"), "adapter": "Fake GPU"}
    made = record(stack, pattern, step_ns, fixed_ns, unit="step", params=params, **place, **more)
    return msgspec.structs.replace(made, workload=workload)


def with_curve(made: Record, times_ns: Mapping[int, float], quartiles_ns: float) -> Record:
    """The record with measured chains: by n the time. Quartiles lie so far on both sides."""
    curve = []
    for n, total in times_ns.items():
        low = total - quartiles_ns
        curve.append(Point(n=n, issue=1.0, total=total, q1=low, q3=total + quartiles_ns))
    return msgspec.structs.replace(made, curve=curve)


def rows_of(*records: Record) -> list[WorkRow]:
    return rows(View(fingerprint(*records)))


def gpu() -> Fingerprint:
    """A run with the usual ways to run a chain of 4,096 elements, and a few that are set apart."""
    return fingerprint(
        arm("torch", "per-submit", step_ns=40_000.0, fixed_ns=10_000.0),
        arm("cuda-graph", "replay", step_ns=2_000.0, fixed_ns=20_000.0, params={"maker": "driver"}),
        arm("cuda-graph", "replay", step_ns=9.0, fixed_ns=20_000.0, params={"maker": "torch"}),
        arm("dawn", "fused", step_ns=50.0, fixed_ns=60_000.0),
        arm("dawn", "fused", step_ns=5.0, fixed_ns=6_000.0, params={"checks": "off"}),
        arm("dawn", "one-pass", step_ns=1_500.0, fixed_ns=50_000.0),
        arm("cuda-driver", "fused", step_ns=40.0, fixed_ns=15_000.0),
        arm("jax", "fused", step_ns=None, fixed_ns=0.0, status="unverified", reason="off by 0.3"),
        arm("numpy", "per-submit", step_ns=9_000.0, fixed_ns=1.0, elements=256),
        arm("dawn", "fused", step_ns=30_000.0, fixed_ns=60_000.0, elements=1_000_000),
    )


def way_of(row: WorkRow, kind: str, stack: str = "") -> ChainWay:
    """The fastest way of this kind, of this stack if one is named."""
    return next(way for way in row.of_kind(kind) if stack in ("", way.stack))


def test_a_way_with_unverified_values_has_no_cost() -> None:
    group = usual_group()
    assert [failed.stack for failed in group.failed] == ["jax"]
    assert "jax" not in {arm.record.stack for arm in group.arms}


def usual_group() -> Group:
    """The arms of ``gpu`` at the usual size."""
    (group,) = (group for group in groups(View(gpu())) if group.elements == 4096)
    return group


def test_a_chain_that_is_longer_than_all_measured_ones_is_read_off_the_line() -> None:
    (graph,) = (a for a in usual_group().arms if a.record.params.get("maker") == "driver")
    assert graph.cost(1500).value == pytest.approx(20_000 + 1500 * 2_000)
    assert not graph.is_extrapolated(4096)
    assert graph.is_extrapolated(4097)


def test_a_way_whose_fit_starts_far_below_zero_has_no_speed() -> None:
    bent = arm("torch", "hybrid", step_ns=40_000.0, fixed_ns=10_000.0)
    figures = [figure for figure in bent.figures if figure.name != "fixed"]
    figures.append(Figure(name="fixed", value=-9e6, low=-1e7, high=-8e6))
    changed = msgspec.structs.replace(bent, figures=figures)
    (group,) = groups(View(fingerprint(changed)))
    # No chain of 0 steps takes -9 ms: the times are no line.
    assert not group.arms
    assert bends_below_zero(changed)


def test_each_variant_of_a_workload_is_a_separate_group() -> None:
    half = arm(
        "torch", "per-submit", step_ns=20_000.0, fixed_ns=1.0, params={"precision": "float16"}
    )
    found = groups(View(fingerprint(*gpu().records, half)))
    of_half, usual, *_ = found
    assert of_half.elements == 4096
    assert of_half.variant == (("precision", "float16"),)
    assert of_half.name == "recurrence (precision=float16)"
    assert usual.elements == 256
    assert usual.variant == ()


def test_a_row_compares_the_whole_chain_with_the_drivers_graph_alone() -> None:
    (row,) = rows_of(*gpu().records)
    assert row.work == ChainWork(1500, 4096)
    assert row.graph is not None
    assert row.graph.cost is not None
    # A row compares chains of 1,500 steps: fixed time plus 1,500 times that of a step, in ns.
    fused_ns = 60_000 + 1500 * 50
    graph_ns = 20_000 + 1500 * 2_000
    assert row.graph.cost.value == pytest.approx(graph_ns), "made by the driver"
    dawn = way_of(row, "fused-wgsl")
    wgsl = row.relative(dawn)
    assert wgsl is not None
    assert wgsl.value == pytest.approx(fused_ns / graph_ns), "with the checks, as usual"
    first = row.cheaper_from(dawn)
    assert first is not None
    # Fused WGSL begins 60 - 20 us later and then saves 2,000 - 50 ns in each step.
    assert first.value == pytest.approx(40_000 / 1_950)
    assert row.fused_wgsl_wins
    assert row.step_below_added
    webgpu = next(text for text in bullets([row]) if "WebGPU" in text)
    assert "22" in webgpu, "the whole chain is 22 times faster: 3,020 us to 135 us"


def test_every_measured_way_is_shown_once_by_kind_with_the_fastest_first() -> None:
    (row,) = rows_of(*gpu().records)
    shown = row.shown
    in_picture = []
    for each in shown:
        in_picture += [each.first, *each.others]
    timed = [way for way in row.ways if way.cost is not None]
    assert sorted(map(id, timed)) == sorted(map(id, in_picture))
    kinds = [each.first.kind for each in shown]
    assert kinds == [
        "graph-captured",
        "fused-cuda",
        "fused-wgsl",
        "wgsl",
        "graph-driver",
        "eager",
    ]
    (wgsl,) = (each for each in shown if each.first.kind == "fused-wgsl")
    assert wgsl.first.is_usual, "not the faster one without the checks of its library"
    assert [way.is_usual for way in wgsl.others] == [False]


def test_the_cpu_and_compiled_code_are_not_compared_but_not_lost() -> None:
    on_cpu = arm("numpy", "per-submit", step_ns=9.0, fixed_ns=1.0)
    compiled = arm("vulkan", "fused", step_ns=9.0, fixed_ns=1.0, caller="native")
    (row,) = rows_of(*gpu().records, on_cpu, compiled)
    assert {way.stack for way in row.more_ways} == {"numpy", "vulkan"}
    assert not {way.stack for way in row.ways} & {"numpy", "vulkan"}


def test_ties_and_losses_are_told_with_the_reason_that_the_steps_give() -> None:
    # Dawn costs as much as the graph in both workloads. In "rastrigin" a fused CUDA kernel costs
    # the same: the graph adds little. In "simulation" it needs a sixth: the WGSL kernel is slow.
    simulation, rastrigin = rows_of(
        arm("cuda-graph", "replay", step_ns=50_000.0, fixed_ns=1_000.0, workload="rastrigin"),
        arm("cuda-driver", "fused", step_ns=50_000.0, fixed_ns=1_000.0, workload="rastrigin"),
        arm("dawn", "fused", step_ns=50_050.0, fixed_ns=1_000.0, workload="rastrigin"),
        arm("wgpu-native", "fused", step_ns=60_000.0, fixed_ns=1_000.0, workload="rastrigin"),
        arm(
            "cuda-graph",
            "replay",
            step_ns=300_000.0,
            fixed_ns=1_000.0,
            elements=10_000,
            workload="simulation",
        ),
        arm(
            "cuda-driver",
            "fused",
            step_ns=50_000.0,
            fixed_ns=1_000.0,
            elements=10_000,
            workload="simulation",
        ),
        arm(
            "dawn",
            "fused",
            step_ns=300_000.0,
            fixed_ns=1_000.0,
            elements=10_000,
            workload="simulation",
        ),
    )
    verdicts = {way.stack: rastrigin.verdict(way) for way in rastrigin.of_kind("fused-wgsl")}
    assert verdicts == {"dawn": "tie", "wgpu-native": "dearer"}
    assert not rastrigin.fused_wgsl_wins
    assert rastrigin.why_lost == "graph-adds-little"
    assert simulation.why_lost == "slow-kernel"
    webgpu = next(text for text in bullets([simulation, rastrigin]) if "WebGPU" in text)
    assert "6.0" in webgpu, "fused WGSL takes 300 us a step, fused CUDA 50 us"
    assert "50 µs" in webgpu, "the cost of a step of both"


def test_a_ratio_outside_of_five_per_cent_is_no_tie_though_its_interval_holds_1() -> None:
    """The graph takes 1.0 ms; the interval of each time is 20 % wide."""
    for fused_ns, verdict in ((0.92e6, "unclear"), (0.97e6, "tie"), (1.08e6, "unclear")):
        (row,) = rows_of(*gpu().records)
        graph = row.graph
        assert graph is not None
        base = dataclasses.replace(graph, cost=Value(1e6, 0.9e6, 1.1e6))
        way = dataclasses.replace(
            way_of(row, "fused-cuda"), cost=Value(fused_ns, 0.9 * fused_ns, 1.1 * fused_ns)
        )
        of_both = dataclasses.replace(row, ways=(base, way))
        assert of_both.verdict(way) == verdict
        said = verdict_at_end(of_both, way, Value(fused_ns / 1e6))
        assert (WAY_VERDICTS["tie"] in said) == (verdict == "tie")


def test_a_footnote_of_another_run_has_its_mark_at_a_label() -> None:
    """Fused CUDA of another run: labelled where it is much faster, else a small mark."""
    graph = arm("cuda-graph", "replay", step_ns=2_000.0, fixed_ns=20_000.0)
    for step_ns, is_labelled in ((39.9, False), (20.0, True)):
        of_cupy = arm("cupy", "fused", step_ns=step_ns, fixed_ns=15_000.0)
        older = View(fingerprint(graph, of_cupy, created="2025-01-01T00:00:00Z"))
        found = rows(View(gpu()), [older])
        labelled = {shown.first.run for row in found for shown in row.shown}
        assert set(run_marks(found)) == labelled - {""}
        assert bool(run_marks(found)) == is_labelled
        said = runs_text(found, gpu().created)
        assert "2025-01-01" in said, "also the run of a small mark is named"
        assert any(mark in said for mark in SUPERSCRIPTS) == is_labelled


def test_a_label_tells_the_slowest_of_its_kind_and_no_faster_one_as_slower() -> None:
    (row,) = rows_of(*gpu().records, arm("cupy", "fused", step_ns=80.0, fixed_ns=30_000.0))
    by_kind = {shown.first.kind: shown for shown in row.shown}
    # 15 + 1,500 * 0.04 = 75 us; 30 + 1,500 * 0.08 = 150 us.
    assert "2.0×" in row_label(row, by_kind["fused-cuda"])
    assert "2.0×" not in row_label(row, by_kind["fused-cuda"], is_short=True)
    # The other one is faster, because it has no checks.
    of_wgsl = row_label(row, by_kind["fused-wgsl"])
    assert "1 more" in of_wgsl
    assert "×" not in of_wgsl


def test_the_time_of_a_chain_is_the_measured_one_and_not_that_of_the_line() -> None:
    """As the fused simulation of an H100: the line is 4.5 % low at 1,500 steps and its intercept 8
    times T(1).
    """
    bent = arm(
        "cuda-driver",
        "fused",
        step_ns=997.0,
        fixed_ns=122_000.0,
        elements=10_000,
        workload="simulation",
    )
    times_ns = {1: 14.9e3, 1_438: 1_631e3, 1_590: 1_794e3, 10_744: 10_772e3}
    measured_chains = with_curve(bent, times_ns, quartiles_ns=1e3)
    (group,) = groups(View(fingerprint(measured_chains)))
    (way,) = group.arms
    # 1,500 steps lie between two measured chains, of 1,438 and 1,590 steps: interpolated in n.
    share_of_gap = (1_500 - 1_438) / (1_590 - 1_438)
    measured_ns = 1_631e3 + share_of_gap * (1_794e3 - 1_631e3)
    assert way.cost(1_500).value == pytest.approx(measured_ns)
    assert way.cost(1_500).floor < measured_ns < way.cost(1_500).ceiling
    assert not way.is_extrapolated(1_500)
    # No chain of 20,000 steps was measured: only the line is left.
    assert way.cost(20_000).value == pytest.approx(122_000 + 20_000 * 997)
    assert way.is_extrapolated(20_000)


def test_the_cheapest_way_of_any_run_is_in_the_row_and_is_named_before_the_ties() -> None:
    """A graph by torch.compile is three times cheaper: where only another run has it, its own graph
    is its base.
    """

    def rastrigin(stack: str, pattern: str, *, step_ns: float, board: str, **params: str) -> Record:
        made = arm(
            stack, pattern, step_ns=step_ns, fixed_ns=1_000.0, workload="rastrigin", params=params
        )
        return msgspec.structs.replace(made, device=board)

    other_board = "f" * 12
    graph_there = rastrigin(
        "cuda-graph", "replay", step_ns=50_000.0, board=other_board, maker="driver"
    )
    compiled = rastrigin(
        "cuda-graph", "replay", step_ns=17_000.0, board=other_board, maker="torch-compiled"
    )
    older = View(fingerprint(graph_there, compiled, created="2026-01-01T00:00:00Z"))
    board = "0" * 12
    graph = rastrigin("cuda-graph", "replay", step_ns=50_000.0, board=board, maker="driver")
    fused_cuda = rastrigin("cuda-driver", "fused", step_ns=50_000.0, board=board)
    fused_wgsl = rastrigin("dawn", "fused", step_ns=50_000.0, board=board)
    own = View(fingerprint(graph, fused_cuda, fused_wgsl))
    (row,) = rows(own, [older])
    cheapest = way_of(row, "graph-compiled")
    assert row.fastest is cheapest
    assert row.beats_fused is cheapest
    assert cheapest.run == "2026-01-01T00:00:00Z"
    times = row.relative(cheapest)
    assert times is not None
    assert times.value == pytest.approx(17 / 50, rel=0.01), "beside the graph of its own run"
    assert [row.verdict(way) for way in row.of_kind("fused-wgsl")] == ["tie"]
    assert "torch.compile" in answer([row])
    assert row.cheaper_from(cheapest) is None, "of another board"
    assert rows(own)[0].of_kind("graph-compiled") == []


def test_what_another_run_measured_with_no_graph_is_kept_but_not_compared() -> None:
    older = View(
        fingerprint(arm("cupy", "fused", step_ns=1.0, fixed_ns=1.0), created="2025-01-01T00:00:00Z")
    )
    works = {row.work: row for row in chain_rows(View(gpu()), [older])}
    row = works[ChainWork(1500, 4096)]
    (cupy,) = (way for way in row.ways if way.stack == "cupy")
    assert cupy.run == "2025-01-01T00:00:00Z"
    assert row.relative(cupy) is None
    assert cupy not in row.by_time(row.ways)


def test_of_ways_that_are_not_told_apart_the_one_of_the_main_run_stands_for_its_kind() -> None:
    graph = arm("cuda-graph", "replay", step_ns=2_000.0, fixed_ns=20_000.0)
    slightly_faster = arm("cupy", "fused", step_ns=39.9, fixed_ns=15_000.0)
    much_faster = arm("cupy", "fused", step_ns=20.0, fixed_ns=15_000.0)
    for other, expected in ((slightly_faster, "cuda-driver"), (much_faster, "cupy")):
        older = View(fingerprint(graph, other, created="2025-01-01T00:00:00Z"))
        (row,) = rows(View(gpu()), [older])
        assert way_of(row, "fused-cuda").stack == expected


def test_of_several_runs_a_row_comes_from_the_newest_whatever_their_profiles_call_noisy() -> None:
    """A default run calls 5 % noisy, a quick run of method 1 calls 8 % ok."""

    def run(created: str, status: str) -> View:
        graph = arm(
            "cuda-graph", "replay", step_ns=5e3, fixed_ns=9.0, workload="acrobot", status=status
        )
        fused = arm("dawn", "fused", step_ns=5e3, fixed_ns=9.0, workload="acrobot", status=status)
        return View(fingerprint(graph, fused, created=created))

    newest = run("2026-02-01T00:00:00Z", "noisy")
    older = run("2026-01-01T00:00:00Z", "ok")
    (row,) = rows(View(fingerprint(record())), [newest, older])
    assert row.run == "2026-02-01T00:00:00Z"
    for way in row.ways:
        assert way.cost is not None
        assert way.cost.status == "ok", "2 % are no wide interval"


def bending_record(times_ns: Mapping[int, float]) -> Record:
    """Fused WGSL whose cost bends from 30 to 20 ns a step. ``times_ns``: by n the measured
    chains.
    """
    bent = arm("dawn", "fused", step_ns=None, fixed_ns=0.0, status="nonlinear", reason="bends")
    figures = [Figure(name="complete", status="nonlinear", reason="bends", modes=[30.0, 20.0])]
    bent = msgspec.structs.replace(bent, figures=figures)
    return with_curve(bent, times_ns, quartiles_ns=1e3)


def bending_way(times_ns: Mapping[int, float]) -> ChainWay:
    """This case as a way, beside a CUDA graph."""
    graph = arm("cuda-graph", "replay", step_ns=1_000.0, fixed_ns=20_000.0)
    (row,) = rows_of(graph, bending_record(times_ns))
    return way_of(row, "fused-wgsl")


@pytest.mark.parametrize(
    ("times_ns", "expected_ns"),
    [
        pytest.param({1000: 90e3, 2000: 110e3}, 100e3, id="between two measured lengths"),
        # 500 more steps at 30 ns, the first of its two costs of a step.
        pytest.param({1000: 90e3}, 90e3 + 500 * 30, id="beyond the longest"),
        # The empty chain is no measured length: 500 steps less than the shortest one.
        pytest.param({0: 50e3, 2000: 110e3}, 110e3 - 500 * 30, id="below the shortest"),
    ],
)
def test_a_time_that_bends_is_read_from_the_measured_lengths_beside_it(
    times_ns: dict[int, float], expected_ns: float
) -> None:
    cost = bending_way(times_ns).cost
    assert cost is not None
    assert cost.value == pytest.approx(expected_ns), "of a chain of 1,500 steps"
    assert cost.status == "nonlinear"
    assert cost.floor < cost.value < cost.ceiling


def test_without_a_graph_fused_wgsl_stands_beside_the_dispatches_of_its_own_stack() -> None:
    wgsl = [r for r in gpu().records if r.stack == "dawn"]
    (row,) = rows_of(*wgsl)
    assert {way.kind for way in row.ways} == {"wgsl", "fused-wgsl"}
    fused = way_of(row, "fused-wgsl")
    times = row.relative(fused)
    assert times is not None
    # 1,500 steps: 50 us + 1,500 * 1.5 us as dispatches, 60 us + 1,500 * 50 ns fused.
    assert times.value == pytest.approx(1 / 17, rel=0.05)
    assert row.verdict(fused) == "cheaper"


def test_a_software_adapter_has_no_row() -> None:
    wgsl = [r for r in gpu().records if r.stack == "dawn"]
    assert rows_of(*(msgspec.structs.replace(r, software=True) for r in wgsl)) == []


def test_what_the_run_lacks_comes_from_another_run_that_is_named() -> None:
    graph = arm("cuda-graph", "replay", step_ns=5e3, fixed_ns=9.0, workload="acrobot")
    fused = arm("dawn", "fused", step_ns=2e3, fixed_ns=9.0, workload="acrobot")
    other = View(fingerprint(graph, fused, *gpu().records, created="2026-01-01T00:00:00Z"))
    found = {row.name: row.run for row in rows(View(gpu()), [other])}
    assert found == {"recurrence": "", "acrobot": "2026-01-01T00:00:00Z"}


@pytest.mark.needs("matplotlib", "seaborn")
def test_the_picture_names_what_has_no_figure_and_why() -> None:
    left = LeftOut(
        target="wgpu-native@Vulkan:Fake GPU",
        case="recurrence fused binding chained",
        reason="no budget",
    )
    run = msgspec.structs.replace(gpu(), left_out=[left])
    text, drawing, *_ = graph_or_fused(from_fingerprints([run]))
    assert isinstance(text, Text)
    assert isinstance(drawing, Drawing)
    assert isinstance(drawing.table, Table)
    assert "no budget" in str(drawing.table.rows)
    assert drawing.draw_narrow is not None
    for make in (drawing.draw, drawing.draw_narrow):
        figure = make()
        (axes,) = figure.axes
        drawn = [drawn.get_text() for drawn in axes.texts]
        assert any("recurrence" in one for one in drawn)
        assert any(run_time(run.created) in one for one in drawn), "on one line"
        if make is drawing.draw_narrow:
            assert "1×" in drawn, "the numbers of the axis, beside the rows"
        # The label of the fastest is in bold.
        bold = [one.get_text() for one in axes.texts if one.get_fontweight() == "bold"]
        assert any(one.startswith("CUDA graph, PyTorch") for one in bold)
        with draw.style():
            figure.savefig(io.BytesIO(), format="svg")
    nothing = list(graph_or_fused(from_fingerprints([fingerprint(record())])))
    assert nothing == []


def parts_of_the_page(run: Fingerprint) -> tuple[list[Table], list[Text], list[Drawing]]:
    """The tables, texts and drawings of the page of chains."""
    tables, texts, drawings = [], [], []
    for part in chains_section(from_fingerprints([run])):
        if isinstance(part, Table):
            tables.append(part)
        elif isinstance(part, Text):
            texts.append(part)
        elif isinstance(part, Drawing):
            drawings.append(part)
    return tables, texts, drawings


def test_the_page_opens_with_its_answer_and_has_one_table_of_all_variants() -> None:
    (overview, variants), (first, *texts), _ = parts_of_the_page(gpu())
    assert first.lead
    assert [cell_text(row[1]) for row in overview.rows] == ["4,096", "1,000,000"]
    assert without_gpu(1) in str(texts)
    assert variants.sortable
    assert len(variants.rows) == len(gpu().records)
    assert with_status("unverified", "off by 0.3") in str(variants)


@pytest.mark.needs("matplotlib", "seaborn")
def test_the_picture_of_the_page_has_a_row_for_each_size_with_several_kinds() -> None:
    _, _, (drawing,) = parts_of_the_page(gpu())
    assert drawing.draw_narrow is not None
    for make in (drawing.draw, drawing.draw_narrow):
        (axes,) = make().axes
        labels = [text.get_text() for text in axes.texts]
        assert any("4,096" in label for label in labels)
        assert not any("1,000,000" in label for label in labels), "it has fused WGSL alone"


def test_the_table_of_the_fastest_compares_them_in_the_words_of_the_first_page() -> None:
    (overview, _), _, _ = parts_of_the_page(gpu())
    (row,) = (row for row in rows_of(*gpu().records) if row.is_chain)
    fastest = row.fastest
    assert fastest is not None
    assert compared(row, fastest) in [cell_text(cell) for cell in overview.rows[0]]


def test_without_a_gpu_the_cheapest_way_is_marked_as_on_the_processor() -> None:
    run = fingerprint(arm("numpy", "per-submit", step_ns=9_000.0, fixed_ns=1.0))
    (overview, _), _, drawings = parts_of_the_page(run)
    assert "(CPU)" in cell_text(overview.rows[0][3])
    assert drawings == []


def test_the_first_page_and_the_page_of_chains_show_the_same_run() -> None:
    """A newer run of a few ways, and an older one of many."""
    newer = [arm("cuda-graph", "replay", step_ns=1.9e3, fixed_ns=9.0)]
    newer.append(arm("cuda-driver", "fused", step_ns=41.0, fixed_ns=9.0))
    newer.append(arm("dawn", "fused", step_ns=51.0, fixed_ns=9.0))
    runs = [View(fingerprint(*newer, created="2026-03-01T00:00:00Z")), View(gpu())]
    (front,) = rows(runs[0], runs[1:])
    (page,) = (row for row in chain_rows(runs[0], runs[1:]) if row.work == ChainWork(1500, 4096))
    assert front.run == page.run == ""
    of_front = {way.stack: way.run for way in front.ways}
    of_page = {way.stack: way.run for way in page.ways}
    assert of_front == of_page
    assert of_front["torch"] == gpu().created, "only the older run has it"


def test_a_time_between_measured_lengths_is_shown_where_the_line_is_refused() -> None:
    """No two costs of a step are known, but the time of the chain itself was measured."""
    reason = "fixed is far above T(1)"
    refused = arm(
        "cuda-driver", "fused", step_ns=None, fixed_ns=0.0, status="nonlinear", reason=reason
    )
    figures = [Figure(name="complete", status="nonlinear", reason=reason)]
    refused = msgspec.structs.replace(refused, figures=figures)
    graph = arm("cuda-graph", "replay", step_ns=1_000.0, fixed_ns=20_000.0)
    (row,) = rows_of(graph, with_curve(refused, {1000: 90e3, 2000: 110e3}, quartiles_ns=1e3))
    way = way_of(row, "fused-cuda")
    assert way.cost is not None
    assert way.cost.value == pytest.approx(100e3), "1,500 steps: halfway from 90 us to 110 us"
    assert way.step is None
    assert not way.beyond


def test_variants_without_a_line_are_told_apart_by_their_parameters() -> None:
    """A time that bends has no fitted line, but its label has the same parameters."""
    checks_off = msgspec.structs.replace(
        bending_record({1000: 90e3, 2000: 110e3}), params={"elements": 4096, "checks": "off"}
    )
    (row,) = rows_of(checks_off, *gpu().records)
    labels = [variant_label(way) for way in row.ways if way.kind == "fused-wgsl"]
    assert len(set(labels)) == len(labels)
    assert any("checks=off" in label for label in labels)
