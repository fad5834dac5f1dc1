"""Test the list of key figures: the same on every machine, with a reason for each missing
figure.
"""

from __future__ import annotations

import msgspec
import pytest

from overhead.blocks.parts import Cell, Table, cell_text
from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.next_run import next_run
from overhead.reading.view import TargetLabel, View
from overhead.report.sections.waiting import waiting
from overhead.results import Comparison, Fingerprint, MissingStack, Value, about, because
from overhead.words.key_figures import LABELS, value_text, value_with_interval
from tests.fakes.report import H200, crowded, figure, fingerprint, record, share


def numbers(figure: KeyFigure) -> tuple[float | None, ...]:
    found = figure.measured
    assert found is not None
    return found.value, found.low, found.high


def value(figure: KeyFigure) -> float | None:
    return numbers(figure)[0]


def by_key(run: Fingerprint) -> dict[str, KeyFigure]:
    return {k.key: k for k in key_figures(View(run))}


def test_the_list_of_key_figures_is_the_same_for_every_machine_and_has_at_most_fourteen() -> None:
    empty, full = key_figures(View(fingerprint())), key_figures(View(crowded()))
    assert [k.key for k in empty] == [k.key for k in full] == [*LABELS]
    assert len(full) <= 14
    assert all(k.measured is None and k.reason for k in empty)


def test_the_reason_for_a_missing_key_figure_comes_from_the_run() -> None:
    run = fingerprint(
        unavailable=[
            MissingStack(stack="cuda-driver", reason="no libcuda", mend="install a driver")
        ]
    )
    assert by_key(run)["launch-cuda"].reason == about("cuda-driver", "no libcuda")
    noisy = by_key(fingerprint(record(status="noisy", reason="half-width 14 %")))
    assert noisy["dispatch-wgpu"].reason == about("noisy", "half-width 14 %")
    broken = by_key(
        fingerprint(record("dawn", each=None, status="unverified", reason="7 of 8 units ran"))
    )
    assert broken["dispatch-dawn"].reason == about("unverified", "7 of 8 units ran")
    assert broken["dispatch-dawn"].of == TargetLabel("dawn", "Fake Adapter")


def test_a_key_figure_that_is_a_time_has_a_next_run_range_and_a_ratio_has_none() -> None:
    base = record(each=20_000, fixed=60_000)
    top, native = record("dawn"), record("dawn", caller="native", each=10_000)
    shares = [share("python-share", top, native, 1e4)]
    found = by_key(fingerprint(base, top, native, machine=H200, comparisons=shares))
    assert found["dispatch-wgpu"].next_run == next_run(base, H200) is not None
    assert found["python-share-dawn"].next_run is None


def test_the_values_of_key_figures_come_from_the_records() -> None:
    base = record(each=20_000, fixed=60_000)
    found = by_key(fingerprint(base))
    dispatch = found["dispatch-wgpu"]
    assert dispatch.measured == Value(20_000, low=19_600, high=20_400)
    assert dispatch.record == base
    assert dispatch.measured.unit == "ns"
    assert value_text(dispatch) == "20.0 µs"
    assert value_with_interval(dispatch) == "20.0 µs (19.6 to 20.4)"


def test_the_key_figure_of_a_wait_equals_the_one_in_the_table_of_waits() -> None:
    view = View(fingerprint(record("dawn", each=20_000, fixed=60_000), record(each=5_000)))
    table = next(part for part in waiting(view) if isinstance(part, Table))
    dawn = next(row for row in table.rows if isinstance(row[0], Cell) and row[0].stack == "dawn")
    figure = by_key(view.fingerprint)["dispatch-and-wait-dawn"]
    assert value(figure) == 80_000
    assert cell_text(dawn[-1]) == "80.0"
    assert "78.4 to 81.6" in value_with_interval(figure)


def test_key_figures_prefer_hardware_to_software_and_never_use_the_null_backend() -> None:
    soft = record(adapter="soft", software=True, each=5_000)
    null = record(adapter="null", api="Null", executes=False, each=100)
    hard = record(adapter="hard", each=20_000)
    assert by_key(fingerprint(soft, null, hard))["dispatch-wgpu"].record == hard
    assert by_key(fingerprint(null))["dispatch-wgpu"].measured is None
    named = by_key(fingerprint(soft))["dispatch-wgpu"].of
    assert named is not None
    assert "(software)" in named.device


def test_pythons_share_is_the_share_between_python_and_compiled_code_formed_within_rounds() -> None:
    top, native = record("dawn"), record("dawn", caller="native", each=10_000)
    key = "python-share-dawn"
    rounds = share("python-share", top, native, difference=1e4)
    share_of = by_key(fingerprint(top, native, comparisons=[rounds]))[key]
    # Python takes 20 us, compiled code 10: a ratio of 2, with 2 % to both sides.
    assert numbers(share_of) == pytest.approx((0.5, 1 - 1 / 1.96, 1 - 1 / 2.04))
    assert value_text(share_of) == "50 %"
    assert value_with_interval(share_of) == "50.0 % (49.0 to 51.0)"
    assert by_key(fingerprint(top, native))[key].reason == because("not-compared-in-this-run")


def test_a_key_figure_without_its_own_stack_and_caller_is_missing() -> None:
    found = by_key(
        fingerprint(record("vulkan", caller="ffi", each=9_000), record("firefox", caller="browser"))
    )
    raw = found["dispatch-vulkan-compiled"]
    assert raw.measured is None
    assert raw.reason == because("caller-not-measured", caller="native")
    assert found["dispatch-chromium"].measured is None
    both = by_key(fingerprint(record("dawn"), record("dawn", caller="native", each=9_000)))
    assert value(both["dispatch-dawn-compiled"]) == 9_000
    assert value(both["dispatch-dawn"]) == 20_000


def test_key_figures_of_a_submit_a_graph_node_and_a_fused_step_have_their_records_values() -> None:
    base = record("dawn")
    fused = record("dawn", pattern="fused", each=300, unit="step", params={"elements": 4096})
    fused = msgspec.structs.replace(fused, workload="recurrence")
    raw = record("vulkan", caller="native", each=9_500)
    node = record("cuda-graph", "replay", 1_300, api="CUDA", unit="graph node")
    marginal = Comparison(name="marginal", of=raw.key, figures=[figure("per_submit", 9_000.0)])
    found = by_key(fingerprint(base, fused, raw, node, comparisons=[marginal]))
    assert value(found["submit-vulkan-compiled"]) == 9_000.0
    assert value(found["graph-node"]) == 1_300
    assert value(found["fused-step-dawn"]) == 300
    assert found["fused-step-cuda"].measured is None


def test_the_key_figure_of_a_graph_node_has_both_speeds_or_names_the_condition() -> None:
    key = "graph-node"
    node = record("cuda-graph", "replay", 830.0, api="CUDA", unit="node")
    assert by_key(fingerprint(node))[key].condition == "alone"
    assert by_key(fingerprint(node, record("dawn")))[key].condition == "beside-others"
    # Two speeds in ns: a case alone in its process, and beside others.
    slope = msgspec.structs.replace(
        figure("complete", 830.0, status="bimodal"), modes=[830.0, 1010.0]
    )
    two = by_key(fingerprint(msgspec.structs.replace(node, figures=[slope])))[key]
    assert [speed.value for speed in two.speeds] == [830.0, 1010.0]
    assert two.condition == "", "both speeds stand there: no condition is named"
    assert value_text(two) == value_with_interval(two) == "0.830 or 1.01 µs"


def test_a_run_of_another_workload_alone_has_no_key_figures() -> None:
    made = record("dawn", "per-submit", unit="step", params={"elements": 4096})
    alone = msgspec.structs.replace(made, workload="simulation")
    found = by_key(fingerprint(alone))
    assert {(k.measured, k.record) for k in found.values()} == {(None, None)}
    beside = by_key(fingerprint(alone, record("dawn", each=20_000)))
    assert value(beside["dispatch-dawn"]) == 20_000


def test_the_reason_for_a_missing_case_names_its_workload_where_another_was_measured() -> None:
    fused = record("dawn", "fused", 40.0, unit="step", params={"elements": 256})
    reason = by_key(fingerprint(record("dawn"), fused))["fused-step-dawn"].reason
    assert reason == because(
        "case-not-measured", case="recurrence fused elements=4096", caller="binding"
    )
