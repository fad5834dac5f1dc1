"""Records with known fits: what a chain costs, and whether a graph or a fused kernel is cheaper."""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, Text, cell_text
from overhead.reading.chains import bends_below_zero, groups
from overhead.reading.graph_or_fused import ChainWay, ChainWork, WorkRow, rows
from overhead.reading.view import View
from overhead.report.across.chains import chains_section
from overhead.report.across.graph_or_fused import graph_or_fused
from overhead.report.core import draw
from overhead.report.core.machines import from_fingerprints
from overhead.results import Api, Figure, Fingerprint, LeftOut, Point, Record
from overhead.words.graph_or_fused import lead
from overhead.words.reasons import with_status
from overhead.words.report.chains import without_gpu
from tests.fakes.report import fingerprint, record


def arm(
    stack: str, pattern: Any, each: float | None, fixed: float, elements: int = 4096, **more: Any
) -> Record:
    """A record of the ``recurrence`` workload, or of ``workload``; times in ns."""
    params = {"elements": elements, **more.pop("params", {})}
    workload = more.pop("workload", "recurrence")
    api: Api = (
        "Vulkan" if stack in ("dawn", "wgpu-native") else "CPU" if stack == "numpy" else "CUDA"
    )
    made = record(
        stack, pattern, each, fixed, api=api, adapter="Fake GPU", unit="step", params=params, **more
    )
    fields = {name: getattr(made, name) for name in Record.__struct_fields__}
    return Record(**{**fields, "workload": workload})


def gpu() -> Fingerprint:
    return fingerprint(
        arm("torch", "per-submit", 40_000.0, 10_000.0),
        arm("cuda-graph", "replay", 2_000.0, 20_000.0, params={"maker": "driver"}),
        arm("cuda-graph", "replay", 9.0, 20_000.0, params={"maker": "torch"}),
        arm("dawn", "fused", 50.0, 60_000.0),
        arm("dawn", "fused", 5.0, 6_000.0, params={"checks": "off"}),
        arm("dawn", "one-pass", 1_500.0, 50_000.0),
        arm("cuda-driver", "fused", 40.0, 15_000.0),
        arm(
            "jax",
            "fused",
            None,
            0.0,
            params={"loop": "scan"},
            status="unverified",
            reason="off by 0.3",
        ),
        arm("numpy", "per-submit", 9_000.0, 1.0, elements=256),
        arm("dawn", "fused", 30_000.0, 60_000.0, elements=1_000_000),
    )


def by_label(found: WorkRow) -> dict[str, ChainWay]:
    return {way.label: way for way in found.ways}


def test_a_way_with_unverified_values_has_no_cost() -> None:
    group = next(g for g in groups(View(gpu())) if g.elements == 4096)
    assert [r.stack for r in group.failed] == ["jax"]
    assert "jax" not in {a.record.stack for a in group.arms}
    graph = next(a for a in group.arms if a.record.params.get("maker") == "driver")
    assert graph.cost(1500).value == pytest.approx(20_000 + 1500 * 2_000)
    assert not graph.is_extrapolated(4096)
    assert graph.is_extrapolated(4097)


def test_a_way_whose_fit_starts_far_below_zero_has_no_speed() -> None:
    bent = arm("torch", "hybrid", 40_000.0, 10_000.0)
    figures = [
        msgspec.structs.replace(f, value=-9e6, low=-1e7, high=-8e6) if f.name == "fixed" else f
        for f in bent.figures
    ]
    changed = msgspec.structs.replace(bent, figures=figures)
    (group,) = groups(View(fingerprint(changed)))
    assert not group.arms
    assert bends_below_zero(changed)


def test_each_variant_of_a_workload_is_a_separate_group() -> None:
    half = arm("torch", "per-submit", 20_000.0, 1.0, params={"precision": "float16"})
    found = groups(View(fingerprint(*gpu().records, half)))
    assert [(g.elements, g.variant) for g in found][:2] == [
        (4096, (("precision", "float16"),)),
        (256, ()),
    ]
    assert (found[0].name, found[0].elements) == ("recurrence (precision=float16)", 4096)


def test_a_row_compares_the_whole_chain_with_the_drivers_graph_alone() -> None:
    usual = [
        r
        for r in gpu().records
        if r.params.get("checks") != "off" and r.params.get("maker") != "torch"
    ]
    (row,) = rows(View(fingerprint(*usual)))
    ways = by_label(row)
    assert row.work == ChainWork(1500, 4096)
    assert row.of_kind("other") == [], "this run measured no cheaper way"
    assert row.graph is ways["a graph, by the CUDA driver"]
    wgsl = row.relative(ways["fused WGSL, Dawn"])
    assert wgsl is not None
    assert wgsl.value == pytest.approx((60_000 + 1500 * 50) / (20_000 + 1500 * 2_000))
    assert [row.verdict(way) for way in row.ways] == ["dearer", "tie", "cheaper", "cheaper"]
    first = row.cheaper_from(ways["fused WGSL, Dawn"])
    assert first is not None
    assert first.value == pytest.approx(40_000 / 1_950)
    assert row.fused_wgsl_wins
    assert row.step_below_added
    assert "22" in lead([row])[0]


def test_ties_and_losses_are_told_with_the_reason_that_the_steps_give() -> None:
    graph, slow = 50_000.0, 300_000.0
    run = fingerprint(
        arm("cuda-graph", "replay", graph, 1_000.0, workload="rastrigin"),
        arm("cuda-driver", "fused", graph, 1_000.0, workload="rastrigin"),
        arm("dawn", "fused", graph * 1.001, 1_000.0, workload="rastrigin"),
        arm("wgpu-native", "fused", graph * 1.2, 1_000.0, workload="rastrigin"),
        arm("cuda-graph", "replay", slow, 1_000.0, 10_000, workload="simulation"),
        arm("cuda-driver", "fused", slow / 6, 1_000.0, 10_000, workload="simulation"),
        arm("dawn", "fused", slow, 1_000.0, 10_000, workload="simulation"),
    )
    simulation, rastrigin = rows(View(run))
    assert {way.stack: rastrigin.verdict(way) for way in rastrigin.of_kind("fused-wgsl")} == {
        "dawn": "tie",
        "wgpu-native": "dearer",
    }
    assert not rastrigin.fused_wgsl_wins
    assert (simulation.why_lost, rastrigin.why_lost) == ("slow-kernel", "graph-adds-little")
    of_slow, of_tie = lead([simulation, rastrigin])
    assert "6.0" in of_slow
    assert "50 µs" in of_tie


def test_the_time_of_a_chain_is_the_measured_one_and_not_that_of_the_line() -> None:
    """As the fused simulation of an H100: the line is 4.5 % low at 1,500 steps and its intercept 8
    times T(1).
    """
    bent = arm("cuda-driver", "fused", 997.0, 122_000.0, 10_000, workload="simulation")
    points = [(1, 14.9e3), (1_438, 1_631e3), (1_590, 1_794e3), (10_744, 10_772e3)]
    curve = [
        Point(n=n, issue=1.0, total=total, q1=0.999 * total, q3=1.001 * total)
        for n, total in points
    ]
    (group,) = groups(View(fingerprint(msgspec.structs.replace(bent, curve=curve))))
    (way,) = group.arms
    measured = 1_631e3 + (1_500 - 1_438) / (1_590 - 1_438) * (1_794e3 - 1_631e3)
    assert way.cost(1_500).value == pytest.approx(measured)
    assert way.cost(1_500).floor < measured < way.cost(1_500).ceiling
    assert not way.is_extrapolated(1_500)
    assert way.cost(20_000).value == pytest.approx(122_000 + 20_000 * 997)
    assert way.is_extrapolated(20_000)


def test_the_cheapest_way_of_any_run_is_in_the_row_and_is_named_before_the_ties() -> None:
    """A graph by torch.compile is three times cheaper: where only another run has it, its own graph
    is its base.
    """
    tie = [
        arm(
            "cuda-graph",
            "replay",
            50_000.0,
            1_000.0,
            workload="rastrigin",
            params={"maker": "driver"},
        ),
        arm("cuda-driver", "fused", 50_000.0, 1_000.0, workload="rastrigin"),
        arm("dawn", "fused", 50_000.0, 1_000.0, workload="rastrigin"),
    ]
    compiled = arm(
        "cuda-graph",
        "replay",
        17_000.0,
        1_000.0,
        workload="rastrigin",
        params={"maker": "torch-compiled"},
    )
    board = [msgspec.structs.replace(one, device="f" * 12) for one in (*tie[:1], compiled)]
    older = View(fingerprint(*board, created="2026-01-01T00:00:00Z"))
    own = View(fingerprint(*(msgspec.structs.replace(one, device="0" * 12) for one in tie)))
    (row,) = rows(own, [older])
    (cheapest,) = row.of_kind("other")
    assert row.ways[0] is cheapest
    assert cheapest.run == "2026-01-01T00:00:00Z"
    times = row.relative(cheapest)
    assert times is not None
    assert times.value == pytest.approx(17 / 50, rel=0.01)
    assert cheapest.arm is not None
    assert cheapest.arm.maker == "torch.compile"
    assert [row.verdict(way) for way in row.of_kind("fused-wgsl")] == ["tie"]
    assert "torch.compile" in lead([row])[0]
    assert row.cheaper_from(cheapest) is None, "of another board"
    assert rows(own)[0].of_kind("other") == []


def test_of_several_runs_a_row_comes_from_the_newest_whatever_their_profiles_call_noisy() -> None:
    """A default run calls 5 % noisy, a quick run of method 1 calls 8 % ok."""
    parts = (("cuda-graph", "replay"), ("dawn", "fused"))
    ok = [arm(*one, 5e3, 9.0, workload="acrobot") for one in parts]
    noisy = [arm(*one, 5e3, 9.0, workload="acrobot", status="noisy") for one in parts]
    newest = View(fingerprint(*noisy, created="2026-02-01T00:00:00Z"))
    older = View(fingerprint(*ok, created="2026-01-01T00:00:00Z"))
    (row,) = rows(View(fingerprint(record())), [newest, older])
    assert row.run == "2026-02-01T00:00:00Z"
    assert all(way.cost is not None and way.cost.status == "ok" for way in row.ways), (
        "2 % are no wide interval"
    )


def test_a_time_that_bends_is_read_from_the_measured_lengths_beside_it() -> None:
    bent = arm("dawn", "fused", None, 0.0, status="nonlinear", reason="bends")
    figures = [Figure(name="complete", status="nonlinear", reason="bends", modes=[30.0, 20.0])]
    points = [
        Point(n=n, issue=1.0, total=t, q1=t - 1e3, q3=t + 1e3)
        for n, t in ((1000, 90e3), (2000, 110e3))
    ]
    graph = arm("cuda-graph", "replay", 1_000.0, 20_000.0)
    for curve, expected in ((points, 100e3), (points[:1], 90e3 + 500 * 30)):
        (row,) = rows(
            View(fingerprint(graph, msgspec.structs.replace(bent, figures=figures, curve=curve)))
        )
        cost = by_label(row)["fused WGSL, Dawn"].cost
        assert cost is not None
        assert cost.value == pytest.approx(expected)
        assert cost.status == "nonlinear"
        assert cost.floor < cost.value < cost.ceiling


def test_without_a_graph_fused_wgsl_stands_beside_the_dispatches_of_its_own_stack() -> None:
    wgsl = [r for r in gpu().records if r.stack == "dawn"]
    (row,) = rows(View(fingerprint(*wgsl)))
    assert [way.kind for way in row.ways] == ["wgsl", "fused-wgsl"]
    times = row.relative(row.ways[1])
    assert times is not None
    assert times.value == pytest.approx(1 / 17, rel=0.05)
    assert row.verdict(row.ways[1]) == "cheaper"
    assert rows(View(fingerprint(*(msgspec.structs.replace(r, software=True) for r in wgsl)))) == []


def test_what_the_run_lacks_comes_from_another_run_that_is_named() -> None:
    acrobot = [
        arm(*one, workload="acrobot")
        for one in (("cuda-graph", "replay", 5e3, 9.0), ("dawn", "fused", 2e3, 9.0))
    ]
    other = View(fingerprint(*acrobot, *gpu().records, created="2026-01-01T00:00:00Z"))
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
    assert "no budget" in str(drawing.table.rows[-1])
    with draw.style():
        drawing.draw().savefig(io.BytesIO(), format="svg")
    nothing = list(graph_or_fused(from_fingerprints([fingerprint(record())])))
    assert nothing == []


def test_the_cheapest_way_is_told_for_sizes_with_a_gpu_alone() -> None:
    overview, said, *tables = chains_section(from_fingerprints([gpu()]))
    assert isinstance(overview, Table)
    cells = [[cell_text(cell) for cell in row] for row in overview.rows]
    assert [(row[1], row[3]) for row in cells] == [
        ("4,096", "dawn, fused checks=off"),
        ("1,000,000", "dawn, fused"),
    ]
    assert without_gpu(1) in str(said)
    assert any(with_status("unverified", "off by 0.3") in str(table) for table in tables)


def test_without_a_gpu_the_cheapest_way_is_marked_as_on_the_processor() -> None:
    overview, *_ = chains_section(
        from_fingerprints([fingerprint(arm("numpy", "per-submit", 9_000.0, 1.0))])
    )
    assert isinstance(overview, Table)
    assert "(CPU)" in cell_text(overview.rows[0][3])


def test_a_time_between_measured_lengths_is_shown_where_the_line_is_refused() -> None:
    """No two costs of a step are known, but the time of the chain itself was measured."""
    bent = arm(
        "cuda-driver", "fused", None, 0.0, status="nonlinear", reason="fixed is far above T(1)"
    )
    figures = [Figure(name="complete", status="nonlinear", reason="fixed is far above T(1)")]
    curve = [
        Point(n=n, issue=1.0, total=t, q1=t - 1e3, q3=t + 1e3)
        for n, t in ((1000, 90e3), (2000, 110e3))
    ]
    graph = arm("cuda-graph", "replay", 1_000.0, 20_000.0)
    (row,) = rows(
        View(fingerprint(graph, msgspec.structs.replace(bent, figures=figures, curve=curve)))
    )
    way = by_label(row)["fused CUDA"]
    assert way.cost is not None
    assert way.cost.value == pytest.approx(100e3)
    assert way.step is None
    assert not way.beyond
