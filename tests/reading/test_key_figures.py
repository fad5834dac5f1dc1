"""Test the list of key figures: the same on every machine, with a reason for each missing figure."""

from __future__ import annotations

import msgspec
import pytest

from overhead.blocks.parts import Cell, Table
from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.next_run import next_run
from overhead.reading.view import View
from overhead.report.sections.waiting import waiting
from overhead.results import Comparison, Fingerprint, MissingStack, Value
from tests.fakes.report import H200, crowded, figure, fingerprint, record, share


def numbers(figure: KeyFigure) -> tuple[float | None, ...]:
    found = figure.measured
    assert found is not None
    return found.value, found.low, found.high


def value(figure: KeyFigure) -> float | None:
    return numbers(figure)[0]


def by_label(run: Fingerprint) -> dict[str, KeyFigure]:
    return {k.label: k for k in key_figures(View(run))}


def test_the_list_of_key_figures_is_the_same_for_every_machine_and_has_at_most_fourteen() -> None:
    empty, full = key_figures(View(fingerprint())), key_figures(View(crowded()))
    assert [k.label for k in empty] == [k.label for k in full]
    assert len(full) <= 14
    assert all(k.text == "missing" and k.measured is None and k.reason for k in empty)


def test_the_reason_for_a_missing_key_figure_comes_from_the_run() -> None:
    run = fingerprint(unavailable=[MissingStack(stack="cuda-driver", reason="no libcuda", mend="install a driver")])
    assert by_label(run)["One launch, CUDA driver, from Python"].reason == "cuda-driver: no libcuda"
    noisy = by_label(fingerprint(record(status="noisy", reason="half-width 14 %")))
    assert noisy["One dispatch, wgpu-native, from Python"].reason == "noisy: half-width 14 %"
    broken = by_label(fingerprint(record("dawn", each=None, status="unverified", reason="7 of 8 units ran")))
    assert broken["One dispatch, Dawn, from Python"].reason == "unverified: 7 of 8 units ran"
    assert broken["One dispatch, Dawn, from Python"].of == "dawn on Fake Adapter"


def test_a_key_figure_that_is_a_time_has_a_next_run_range_and_a_ratio_has_none() -> None:
    base = record(each=20_000, fixed=60_000)
    top, native = record("dawn"), record("dawn", caller="native", each=10_000)
    shares = [share("python-share", top, native, 1e4)]
    found = by_label(fingerprint(base, top, native, machine=H200, comparisons=shares))
    assert found["One dispatch, wgpu-native, from Python"].next_run == next_run(base, H200) is not None
    assert found["Python's share of the host's time, Dawn"].next_run is None


def test_the_values_of_key_figures_come_from_the_records() -> None:
    base = record(each=20_000, fixed=60_000)
    found = by_label(fingerprint(base))
    dispatch = found["One dispatch, wgpu-native, from Python"]
    assert dispatch.measured == Value(20_000, 19_600, 20_400)
    assert (dispatch.text, dispatch.record, dispatch.measured.unit) == ("20.0 µs", base, "ns")
    assert dispatch.with_interval == "20.0 µs (19.6 to 20.4)"


def test_the_key_figure_of_a_wait_equals_the_one_in_the_table_of_waits() -> None:
    view = View(fingerprint(record("dawn", each=20_000, fixed=60_000), record(each=5_000)))
    table = next(part for part in waiting(view) if isinstance(part, Table))
    dawn = next(row for row in table.rows if isinstance(row[0], Cell) and row[0].stack == "dawn")
    figure = by_label(view.fingerprint)["One dispatch and its wait, Dawn, from Python"]
    assert value(figure) == 80_000
    assert dawn[-1] == "78.4 to 81.6"
    assert "78.4 to 81.6" in figure.with_interval


def test_key_figures_prefer_hardware_to_software_and_never_use_the_null_backend() -> None:
    soft = record(adapter="soft", software=True, each=5_000)
    null = record(adapter="null", api="Null", executes=False, each=100)
    hard = record(adapter="hard", each=20_000)
    assert by_label(fingerprint(soft, null, hard))["One dispatch, wgpu-native, from Python"].record == hard
    assert by_label(fingerprint(null))["One dispatch, wgpu-native, from Python"].measured is None
    assert "(software)" in by_label(fingerprint(soft))["One dispatch, wgpu-native, from Python"].of


def test_pythons_share_is_the_share_between_python_and_compiled_code_formed_within_rounds() -> None:
    top, native = record("dawn"), record("dawn", caller="native", each=10_000)
    label = "Python's share of the host's time, Dawn"
    share_of = by_label(fingerprint(top, native, comparisons=[share("python-share", top, native, 1e4)]))[label]
    assert numbers(share_of) == pytest.approx((0.5, 1 - 1 / 1.96, 1 - 1 / 2.04))
    assert (share_of.text, share_of.with_interval) == ("50 %", "50.0 % (49.0 to 51.0)")
    assert by_label(fingerprint(top, native))[label].reason == "not compared with another case in this run"


def test_a_key_figure_without_its_own_stack_and_caller_is_missing() -> None:
    found = by_label(fingerprint(record("vulkan", caller="ffi", each=9_000), record("firefox", caller="browser")))
    raw = found["One dispatch, raw Vulkan, from compiled code"]
    assert (raw.measured, raw.reason) == (None, "not measured from compiled code")
    assert found["One dispatch, Chromium, from JavaScript"].measured is None
    both = by_label(fingerprint(record("dawn"), record("dawn", caller="native", each=9_000)))
    assert value(both["One dispatch, Dawn, from compiled code"]) == 9_000
    assert value(both["One dispatch, Dawn, from Python"]) == 20_000


def test_the_key_figures_of_a_submit_a_graph_node_and_a_fused_step_have_the_values_of_their_records() -> None:
    base, fused = record("dawn"), record("dawn", pattern="fused", each=300, unit="step", params={"elements": 4096})
    fused = msgspec.structs.replace(fused, workload="recurrence")
    raw = record("vulkan", caller="native", each=9_500)
    node = record("cuda-graph", "replay", 1_300, api="CUDA", unit="graph node")
    marginal = Comparison(name="marginal", of=raw.key, figures=[figure("per_submit", 9_000.0)])
    found = by_label(fingerprint(base, fused, raw, node, comparisons=[marginal]))
    assert value(found["One submit, raw Vulkan, from compiled code"]) == 9_000.0
    assert value(found["One node of a CUDA graph, CUDA driver"]) == 1_300
    assert value(found["One fused step, Dawn, from Python"]) == 300
    assert found["One fused step, CUDA driver, from Python"].measured is None


def test_the_key_figure_of_a_graph_node_has_both_speeds_or_names_the_condition() -> None:
    label = "One node of a CUDA graph, CUDA driver"
    node = record("cuda-graph", "replay", 830.0, api="CUDA", unit="node")
    assert by_label(fingerprint(node))[label].reason.startswith("alone on the GPU:")
    assert by_label(fingerprint(node, record("dawn")))[label].reason.startswith("beside other processes:")
    slope = msgspec.structs.replace(figure("complete", 830.0, "bimodal"), modes=[830.0, 1010.0])
    two = by_label(fingerprint(msgspec.structs.replace(node, figures=[slope])))[label]
    assert (two.text, two.with_interval) == ("0.830 or 1.01 µs", "0.830 or 1.01 µs")


def test_a_run_of_another_workload_alone_has_no_key_figures() -> None:
    made = record("dawn", "per-submit", unit="step", params={"elements": 4096})
    alone = msgspec.structs.replace(made, workload="simulation")
    found = by_label(fingerprint(alone))
    assert {(k.measured, k.record) for k in found.values()} == {(None, None)}
    beside = by_label(fingerprint(alone, record("dawn", each=20_000)))
    assert value(beside["One dispatch, Dawn, from Python"]) == 20_000


def test_the_reason_for_a_missing_case_names_its_workload_where_another_of_the_pattern_was_measured() -> None:
    fused = record("dawn", "fused", 40.0, unit="step", params={"elements": 256})
    reason = by_label(fingerprint(record("dawn"), fused))["One fused step, Dawn, from Python"].reason
    assert "recurrence fused elements=4096" in reason
