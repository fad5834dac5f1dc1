"""The fixed list: the same on every machine, missing ones with their reason."""

from __future__ import annotations

import msgspec
import pytest

from overhead.reading.key_figures import KeyFigure, key_figures
from overhead.reading.next_run import next_run_text
from overhead.reading.summary import opening
from overhead.reading.view import View
from overhead.results import Comparison, Figure, Fingerprint, MissingStack
from tests.fakes.report import crowded, figure, fingerprint, record, share


def by_label(run: Fingerprint) -> dict[str, KeyFigure]:
    return {k.label: k for k in key_figures(run)}


def test_the_list_is_the_same_for_every_machine_and_at_most_twelve() -> None:
    empty, full = key_figures(fingerprint()), key_figures(crowded())
    assert [k.label for k in empty] == [k.label for k in full]
    assert len(full) <= 12


def test_a_missing_figure_has_a_reason_and_no_value() -> None:
    for k in key_figures(fingerprint()):
        assert (k.text, k.value) == ("missing", None)
        assert k.reason


def test_the_reason_is_that_of_the_run() -> None:
    run = fingerprint(unavailable=[MissingStack(stack="cuda-driver", reason="no libcuda", mend="install a driver")])
    assert by_label(run)["One launch, CUDA driver"].reason == "cuda-driver: no libcuda; install a driver"
    broken = by_label(fingerprint(record("dawn", each=None, status="unverified", reason="7 of 8 units ran")))
    assert broken["One dispatch, Dawn"].reason == "unverified: 7 of 8 units ran"
    assert broken["One dispatch, Dawn"].of == "dawn on Fake Adapter"


def test_a_slope_has_a_next_run_range_and_a_fixed_cost_has_none() -> None:
    base = record(each=20_000, fixed=60_000)
    found = by_label(fingerprint(base))
    assert found["One dispatch, wgpu-native"].next_run == next_run_text(base) != ""
    assert found["One wait"].next_run == ""


def test_values_are_those_of_the_record() -> None:
    base = record(each=20_000, fixed=60_000)
    found = by_label(fingerprint(base))
    dispatch = found["One dispatch, wgpu-native"]
    assert (dispatch.value, dispatch.low, dispatch.high) == pytest.approx((20_000, 19_600, 20_400))
    assert (dispatch.text, dispatch.record, dispatch.unit) == ("20.0 µs", base.key, "ns")
    assert found["One wait"].text == "60 µs"
    naive = found["A single timed dispatch overstates"]
    assert naive.value == pytest.approx(4.0)
    assert naive.text == "4.00×"
    assert (naive.low, naive.high) == pytest.approx((80 * 0.98 / 20.4, 80 * 1.02 / 19.6))


def test_hardware_is_preferred_to_software_and_null_is_never_used() -> None:
    soft = record(adapter="soft", software=True, each=5_000)
    null = record(adapter="null", api="Null", executes=False, each=100)
    hard = record(adapter="hard", each=20_000)
    assert by_label(fingerprint(soft, null, hard))["One dispatch, wgpu-native"].record == hard.key
    assert by_label(fingerprint(null))["One dispatch, wgpu-native"].value is None
    assert "(software)" in by_label(fingerprint(soft))["One dispatch, wgpu-native"].of


def test_python_share_comes_from_the_paired_ratio() -> None:
    top, native = record(caller="binding"), record(caller="native")
    found = by_label(fingerprint(top, native, comparisons=[share("python-share", top, native, 1e4)]))
    share_of = found["Python's share of the host's time"]
    assert share_of.value == pytest.approx(0.5)
    assert (share_of.low, share_of.high) == pytest.approx((1 - 1 / 1.9, 1 - 1 / 2.1))
    assert share_of.text == "50 %"
    assert share_of.unit == "share"
    ratio = Figure(name="ratio", unit="ratio", status="noisy", value=0.0, low=-1.0, high=1.0)
    zero = Comparison(name="python-share", of=top.key, against=[native.key], figures=[ratio])
    assert by_label(fingerprint(top, native, comparisons=[zero]))["Python's share of the host's time"].value is None


def test_submit_graph_node_and_fused_step() -> None:
    base, fused = record(), record(pattern="fused", each=300, unit="step")
    node = record("cuda-graph", "replay", 1_300, api="CUDA", unit="graph node")
    marginal = Comparison(name="marginal", of=base.key, figures=[figure("per_submit", 9_000.0)])
    found = by_label(fingerprint(base, fused, node, comparisons=[marginal]))
    assert found["One submit"].value == 9_000.0
    assert found["One graph node"].value == 1_300
    assert found["One fused step"].value == 300


def test_a_noisy_figure_is_marked() -> None:
    found = by_label(fingerprint(record(status="noisy", reason="half-width 14 %")))
    assert found["One dispatch, wgpu-native"].reason == "noisy: half-width 14 %"


def test_a_run_of_one_workload_has_no_figures_of_the_step() -> None:
    made = record("dawn", "per-submit", unit="step", params={"elements": 4096})
    alone = msgspec.structs.replace(made, workload="simulation")
    found = by_label(fingerprint(alone))
    assert {(k.value, k.record) for k in found.values()} == {(None, "")}
    assert found["One dispatch, Dawn"].reason == "the step was not part of this run"
    beside = by_label(fingerprint(alone, record("dawn", each=20_000)))
    assert beside["One dispatch, Dawn"].value == 20_000
    assert "dawn" not in " ".join(opening(View(fingerprint(alone))))
