"""The rows of the headline figure and its sentences: one run, one GPU, and each cost with its
doubt.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from overhead.reading.dispatch_costs import (
    DispatchCosts,
    DispatchRow,
    OtherOperand,
    dispatch_costs,
    doubt_of,
    unpinned_below,
    unpinned_range,
)
from overhead.reading.headline import (
    batches,
    cheapest,
    further_stacks,
    limited,
    most_overstated,
    python_shares,
    unpinned_apart,
    unpinned_pays_less,
    unpinned_pays_more,
)
from overhead.reading.next_run import next_run
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.headline_figure import headline_figure
from overhead.results import Figure, Params, Record
from overhead.words.dispatch_costs import why_unresolved
from overhead.words.format import costs_text
from overhead.words.headline import (
    further_stacks_sentences,
    lead_sentences,
    limit_sentences,
    trust_sentences,
)
from overhead.words.next_run import next_run_sentence
from tests.fakes.report import H200, figure, fingerprint, record, share

GPU: dict[str, Any] = {"adapter": "Fake GPU 3000", "api": "CUDA", "unit": "launch"}
VULKAN: dict[str, Any] = {"adapter": "Fake GPU 3000"}


def met(*, low_ns: float, high_ns: float, processes: int = 5) -> Figure:
    """The range of a cost in processes that are not pinned to a core."""
    middle = (low_ns + high_ns) / 2
    return Figure(name="met", value=middle, low=low_ns, high=high_ns, processes=processes)


def graph_node(each: float) -> Record:
    """A node of a graph that the CUDA driver made."""
    made_by_driver: Params = {"maker": "driver"}
    return record("cuda-graph", "replay", each, params=made_by_driver, **{**GPU, "unit": "node"})


def gpu_run() -> list[Record]:
    return [
        record("wgpu-native", each=40_000.0, **VULKAN),
        record("wgpu-native", each=16_000.0, caller="native", **VULKAN),
        record("dawn", each=25_000.0, more=(met(low_ns=29_000.0, high_ns=70_000.0),), **VULKAN),
        record("dawn", "one-pass", 3_000.0, **VULKAN),
        record("dawn", "fused", 40.0, **{**VULKAN, "unit": "step"}),
        record("vulkan", each=11_000.0, caller="native", **VULKAN),
        record("cuda-driver", each=4_000.0, **GPU),
        record("cuda-driver", each=3_500.0, caller="native", **GPU),
        graph_node(900.0),
        record("torch", each=2_000.0, api="CPU", adapter="CPU"),
        record("lavapipe", each=1_000.0, software=True),
    ]


def costs(*records: Record, **fields: Any) -> DispatchCosts:
    found = dispatch_costs(View(fingerprint(*records, **fields)))
    assert found is not None
    return found


def row(found: DispatchCosts, label: str) -> DispatchRow:
    return next(one for one in found.rows if one.label == label)


def values(found: DispatchCosts, label: str) -> dict[str, list[float]]:
    """By kind the costs of a row in microseconds."""
    by_kind: dict[str, list[float]] = {}
    for kind, marks in row(found, label).marks.items():
        by_kind[kind] = [cost.value for cost in marks]
    return by_kind


def test_the_rows_of_dispatch_costs_are_sorted_by_cost_from_python_and_hold_hardware_only() -> None:
    found = costs(*gpu_run())
    assert found.hardware
    assert found.device == "Fake GPU 3000"
    assert [one.label for one in found.rows] == [
        "CUDA driver",
        "raw Vulkan",
        "WebGPU, Dawn",
        "WebGPU, wgpu-native",
    ]
    assert cheapest(found) is found.rows[0]


def test_a_row_has_a_cost_for_each_caller_and_for_the_graph_node_that_replaces_the_launch() -> None:
    found = costs(*gpu_run())
    assert values(found, "CUDA driver") == {"python": [4.0], "compiled": [3.5], "batched": [0.9]}
    assert values(found, "WebGPU, Dawn") == {"python": [25.0], "batched": [3.0]}
    assert values(found, "raw Vulkan") == {"compiled": [11.0]}


def test_a_fused_kernel_is_not_shown_as_a_batch() -> None:
    found = costs(
        record("dawn", **VULKAN),
        record("dawn", "fused", 40.0, unit="step", adapter="Fake GPU 3000"),
    )
    assert values(found, "WebGPU, Dawn") == {"python": [20.0]}
    assert row(found, "WebGPU, Dawn").lacks_batch
    assert row(found, "WebGPU, Dawn").kinds == ["python", "batched"]


def test_a_row_has_the_range_of_unpinned_processes_where_the_run_measured_it() -> None:
    found = costs(*gpu_run())
    assert unpinned_range(row(found, "WebGPU, Dawn").records["python"]) == (29.0, 70.0)
    assert unpinned_range(row(found, "CUDA driver").records["python"]) is None
    assert found.has_unpinned
    assert unpinned_pays_more(found)
    assert not costs(record("dawn", **VULKAN)).has_unpinned


def test_unpinned_processes_below_the_undisturbed_cost_are_named() -> None:
    below = record("cuda-driver", each=4_000.0, more=(met(low_ns=3_400.0, high_ns=3_700.0),), **GPU)
    above = record("jax", each=30_000.0, more=(met(low_ns=29_900.0, high_ns=36_000.0),), **GPU)
    found = costs(below, above)
    assert unpinned_below(below)
    assert not unpinned_below(above)
    assert [(one.stack, kind) for one, kind in unpinned_pays_less(found)] == [
        ("cuda-driver", "python")
    ]
    assert not unpinned_pays_more(found), "an interval that holds the cost is not more"


def test_a_cost_just_above_the_unpinned_one_is_said_to_have_no_tick() -> None:
    just_below = record("vulkan", more=(met(low_ns=18_600.0, high_ns=19_000.0),), **VULKAN)
    far_below = record("dawn", more=(met(low_ns=10_000.0, high_ns=12_000.0),), **VULKAN)
    told = trust_sentences(costs(just_below, far_below))
    (together,) = [sentence for sentence in told if "tick" in sentence]
    with_tick, without_tick = together.split(";")
    assert "Dawn" in with_tick
    assert "tick" not in with_tick
    assert "Vulkan" in without_tick
    assert "tick" in without_tick


def test_only_a_known_kind_of_machine_gets_a_sentence_on_the_next_run() -> None:
    known = costs(*gpu_run(), machine=H200)
    unknown = costs(*gpu_run())
    first = known.rows[0].records["python"]
    assert next_run(first, H200) is not None
    assert trust_sentences(unknown)[0] == next_run_sentence(unknown.view.fingerprint.machine)
    assert trust_sentences(known)[0] != trust_sentences(unknown)[0]


@pytest.mark.parametrize("status", ["noisy", "bimodal"])
def test_an_unresolved_cost_has_its_value_its_reason_and_its_place_in_the_order(
    status: Any,
) -> None:
    """The row is sorted by the noisy cost from Python, which it shows first, and not by that of
    compiled code.
    """
    dawn = (
        record("dawn", status=status, **VULKAN),
        record("dawn", caller="native", each=9_000.0, **VULKAN),
    )
    found = costs(*dawn, record("jax", each=15_000.0, **GPU))
    # Jax costs 15 us, Dawn 20 us from Python and 9 us from compiled code.
    assert [one.stack for one in found.rows] == ["jax", "dawn"]
    assert values(found, "WebGPU, Dawn") == {"python": [20.0], "compiled": [9.0]}
    of_dawn = row(found, "WebGPU, Dawn")
    assert not of_dawn.is_resolved("python")
    assert of_dawn.is_resolved("compiled")
    assert doubt_of(dawn[0]) == "status"
    assert why_unresolved(dawn[0]).endswith("19.6 to 20.4")
    assert cheapest(found) is found.rows[0]


def test_a_cost_whose_interval_reaches_zero_is_not_resolved() -> None:
    wide = figure("complete", 12_000.0, width=2.0)  # 12 us, less and plus twice as much
    made = record("dawn", each=None, more=(wide,), **VULKAN)
    assert doubt_of(made) == "not-above-zero"
    assert why_unresolved(made).endswith("−12 to 36")


def test_a_row_notes_an_unusual_unit_or_operation() -> None:
    compiled = record(
        "torch-compile",
        each=38_000.0,
        params={"mode": "default", "ops": 1},
        **{**GPU, "unit": "step"},
    )
    number = record("torch", each=7_000.0, params={"operand": "number"}, **GPU)
    tensor = record("torch", each=6_000.0, params={"operand": "tensor"}, **GPU)
    native = record("torch", each=5_000.0, params={"operand": "tensor"}, caller="native", **GPU)
    found = costs(compiled, number, tensor, native)
    assert row(found, "torch.compile, 1 op").unit == "step"
    assert values(found, "PyTorch x.add_(1)") == {"python": [7.0], "compiled": [5.0]}
    operand = row(found, "PyTorch x.add_(1)").operand
    assert operand == OtherOperand("x.add_(y)", tensor.figure("complete"))


def test_the_share_of_python_names_the_operation_that_was_split() -> None:
    """The row is x.add_(1), compiled code runs x.add_(y): the split says nothing of the row's own
    operation.
    """
    number = record("torch", each=7_000.0, params={"operand": "number"}, **GPU)
    tensor = record("torch", each=6_000.0, params={"operand": "tensor"}, **GPU)
    native = record("torch", each=3_000.0, params={"operand": "tensor"}, caller="native", **GPU)
    found = costs(
        number,
        tensor,
        native,
        comparisons=[share("python-share", tensor, native, difference=3_000.0)],
    )
    (told,) = python_shares(found)
    assert "x.add_(y)" in told.row.split_name
    assert "x.add_(1)" not in told.row.split_name
    assert any(told.row.split_name in sentence for sentence in lead_sentences(found))


def test_the_cpu_time_beside_a_share_is_that_of_the_call_that_was_split() -> None:
    python = record("dawn", each=30e3, **VULKAN)
    compiled = record("dawn", each=12e3, caller="native", **VULKAN)
    split = share("python-share", python, compiled, difference=18e3)
    (found,) = costs(python, compiled, comparisons=[split]).rows
    host = python.value("host")
    assert host is not None
    assert found.cpu_time is not None
    assert found.cpu_time.value == pytest.approx(host / 1e3)
    (without_split,) = costs(python, compiled).rows
    assert without_split.python is None
    assert without_split.cpu_time is None


def test_an_unpinned_cost_is_marked_only_where_it_lies_apart_from_the_cost() -> None:
    """The cost is 20.0 us, 19.6 to 20.4; the median of the unpinned costs is in their middle."""

    def marked(low_us: float, high_us: float) -> bool:
        unpinned = met(low_ns=1e3 * low_us, high_ns=1e3 * high_us)
        return unpinned_apart(record("dawn", more=(unpinned,), **VULKAN)) is not None

    assert marked(24, 30)
    assert marked(12, 16)
    assert not marked(20.2, 30), "some processes paid as little"
    assert not marked(20.5, 21), "hidden behind the mark"
    assert unpinned_apart(record("dawn", **VULKAN)) is None


def test_stacks_of_other_runs_are_told_once_from_the_newest_run_that_has_them() -> None:
    shown = costs(record("torch", each=6_000.0, **GPU))
    newest = View(fingerprint(record("torch", **GPU), record("warp", each=13_000.0, **GPU)))
    oldest = View(
        fingerprint(record("warp", each=14_000.0, **GPU), record("jax", each=30_000.0, **GPU))
    )
    found = further_stacks(shown, [newest, oldest])
    assert [(each.run, [row.stack for row in each.rows]) for each in found] == [
        (newest, ["warp"]),
        (oldest, ["jax"]),
    ]
    of_newest, of_oldest = further_stacks_sentences(found)
    assert "13.0" in of_newest
    assert "30.0" in of_oldest
    assert further_stacks(shown, []) == []


@pytest.mark.needs("matplotlib", "seaborn")
def test_a_share_of_python_that_may_be_zero_is_no_share() -> None:
    python = record("dawn", each=30e3, **VULKAN)
    compiled = record("dawn", each=30.3e3, caller="native", **VULKAN)
    difference = share("python-share", python, compiled, difference=-300.0)
    found = costs(python, compiled, comparisons=[difference])
    python_share = found.rows[0].python
    assert python_share is not None
    assert not python_share.resolved
    assert python_shares(found) == []
    texts: list[str] = []
    with draw.style():
        for axes in headline_figure(found).axes:
            texts += [text.get_text() for text in axes.texts]
    assert texts
    assert not any("%" in text for text in texts)


@pytest.mark.parametrize(
    ("bound", "status", "told"),
    [
        ("host", "ok", True),
        ("device", "ok", False),
        ("balanced", "ok", False),
        ("host", "noisy", True),
        ("host", "bimodal", False),
    ],
)
def test_only_a_single_cost_that_the_cpu_bounds_is_said_to_be_overstated(
    bound: Any, status: Any, told: bool
) -> None:
    made = msgspec.structs.replace(record("dawn", status=status, **VULKAN), bound=bound)
    assert (most_overstated(costs(made)) is not None) == told


def timed_alone(stack: str, each: float, naive: float, width: float, **more: Any) -> Record:
    """A case with a noisy cost and the time of one dispatch with its wait, ns, each with an
    interval of ``width`` to both sides.
    """
    figures = (
        figure("complete", each, status="noisy", width=width),
        figure("naive", naive, width=width),
    )
    return record(stack, each=None, more=figures, **more)


def test_the_most_overstated_cost_is_that_whose_factor_has_the_highest_lower_end() -> None:
    precise = record("cuda-driver", each=20e3, fixed=40e3, **GPU)
    noisy = timed_alone("dawn", 20e3, 80e3, 0.1, **VULKAN)
    vague = timed_alone("wgpu-native", 20e3, 120e3, 0.5, **VULKAN)
    found = most_overstated(costs(precise, noisy, vague))
    assert found is not None
    assert found.record.stack == "dawn"
    assert found.times.floor == pytest.approx(4 * 0.9 / 1.1)


def test_a_cost_from_compiled_code_may_be_the_most_overstated() -> None:
    python = record("cuda-driver", each=20e3, fixed=40e3, **GPU)
    compiled = record("cuda-driver", each=10e3, fixed=40e3, caller="native", **GPU)
    found = most_overstated(costs(python, compiled))
    assert found is not None
    assert found.record.caller == "native"


def test_on_the_cpu_there_is_no_wait_that_could_overstate_a_cost() -> None:
    assert most_overstated(costs(record("numpy", each=600.0, api="CPU", adapter="CPU"))) is None


def test_the_value_of_a_mark_has_the_digits_of_the_table() -> None:
    wide = record("dawn", each=None, more=(figure("complete", 73_600.0, width=0.075),), **VULKAN)
    (found,) = costs(wide).rows
    assert costs_text(found.marks["python"]) == "74"


def test_a_noisy_batch_is_less_by_what_the_interval_allows() -> None:
    batch = record(
        "dawn",
        "one-pass",
        each=None,
        more=(figure("complete", 40_000.0, status="noisy", width=0.4),),
        **VULKAN,
    )
    found = costs(record("dawn", each=70_000.0, **VULKAN), batch)
    (told,) = batches(found)
    assert told.less is not None
    assert told.less.status == "noisy"
    # Alone 70 us with 2 % to both sides, in a batch 40 us with 40 %.
    assert told.less.floor == pytest.approx(70 * 0.98 / (40 * 1.4))
    assert told.less.ceiling == pytest.approx(70 * 1.02 / (40 * 0.6))
    assert any("1.2 to 3.0" in sentence for sentence in lead_sentences(found))


def test_the_device_is_called_the_limit_only_where_the_records_say_so() -> None:
    bounds = {"vulkan": "device", "dawn": "balanced", "wgpu-native": "host"}
    made = [record(stack, each=11_430.0, caller="native", **VULKAN) for stack in bounds]
    found = costs(*(msgspec.structs.replace(one, bound=bounds[one.stack]) for one in made))
    assert {one.stack: one.limit("compiled") for one in found.rows} == bounds
    assert [one.stack for one in limited(found, "device")] == ["vulkan"]
    assert [one.stack for one in limited(found, "balanced")] == ["dawn"]
    device, balanced = limit_sentences(found)
    assert re.search(r"raw Vulkan\b.*\b11\.4", device)
    assert re.search(r"Dawn\b.*\b11\.4", balanced)


@pytest.mark.parametrize(
    ("width", "known"),
    [
        pytest.param(0.02, True, id="a narrow interval"),
        pytest.param(1.5, False, id="an interval that reaches below zero"),
    ],
)
def test_the_share_of_python_is_shown_only_where_both_times_are_resolved(
    width: float, known: bool
) -> None:
    top = record("dawn", each=30e3, **VULKAN)
    native = record("dawn", each=10e3, caller="native", **VULKAN)
    figures = [known_figure for known_figure in native.figures if known_figure.name != "host"]
    figures.append(figure("host", 8_000.0, width=width))
    native = msgspec.structs.replace(native, figures=figures)
    found = costs(top, native, comparisons=[share("python-share", top, native, difference=16e3)])
    assert (row(found, "WebGPU, Dawn").python is not None) == known


def test_without_a_gpu_the_rows_are_of_software_adapters() -> None:
    found = costs(
        record("dawn", software=True), record("numpy", each=700.0, api="CPU", adapter="CPU")
    )
    assert not found.hardware
    assert found.device == "Fake CPU"
    assert [one.label for one in found.rows] == ["NumPy x += 1 (CPU)", "WebGPU, Dawn (software)"]
    assert trust_sentences(found) == []


def test_a_second_gpu_adds_no_rows() -> None:
    other = record("wgpu-native", each=90_000.0, adapter="Integrated Chip 7")
    found = costs(other, record("dawn", **VULKAN), record("vulkan", caller="native", **VULKAN))
    assert {one.stack for one in found.rows} == {"dawn", "vulkan"}


def test_the_sentences_on_dispatch_costs_have_the_figures_of_the_rows() -> None:
    found = costs(*gpu_run(), machine=H200)
    from_python, compiled, *_ = lead_sentences(found)
    for figure_text in (found.rows[0].name, "4.00 µs", "25.0 µs", "Dawn", "40.0 µs", "wgpu-native"):
        assert figure_text in from_python
    for figure_text in ("16.0 µs", "wgpu-native"):
        assert figure_text in compiled
    (batch,) = batches(found)
    assert batch.row.stack == "dawn"
    assert batch.record.value("complete") == 3e3
    assert batch.alone.value("complete") == 25e3
    assert batch.less is not None
    assert batch.less.value == pytest.approx(25 / 3)
    assert lead_sentences(costs(record("dawn", each=None, status="failed", **VULKAN))) == []


def test_the_sentence_on_batches_names_both_speeds_and_prefers_webgpu_to_a_cuda_graph() -> None:
    two = Figure(
        name="complete",
        value=4_000.0,
        low=3_000.0,
        high=5_000.0,
        status="bimodal",
        modes=[3_700.0, 4_500.0],
    )
    node = graph_node(900.0)
    graphed = [record("cuda-driver", each=4_000.0, **GPU), node]
    found = costs(
        *graphed, record("dawn", **VULKAN), record("dawn", "one-pass", None, more=(two,), **VULKAN)
    )
    assert values(found, "WebGPU, Dawn")["batched"] == [3.7, 4.5]
    assert [one.row.stack for one in batches(found)] == ["dawn"]
    assert any(
        "3.7 or 4.5" in sentence and "20.0" in sentence for sentence in lead_sentences(found)
    )
    (batch,) = batches(costs(*graphed))
    # Without WebGPU the graph is the batch.
    assert batch.record == node
    assert batch.alone.stack == "cuda-driver"


def test_a_node_of_the_graph_of_a_stack_is_its_batch() -> None:
    graph = record("warp", each=300.0, pattern="replay", params={"entry": "graph"}, **GPU)
    launch = record("warp", each=9_000.0, params={"entry": "launch"}, **GPU)
    costs = dispatch_costs(View(fingerprint(launch, graph)))
    assert costs is not None
    assert costs.rows[0].records["batched"].pattern == "replay"
    assert costs.rows[0].marks["batched"][0].value == pytest.approx(0.3)


def test_a_batch_is_compared_with_single_dispatches_by_the_same_caller() -> None:
    python = record("dawn", each=26_600.0, status="noisy", **VULKAN)
    compiled = record("dawn", caller="native", **VULKAN)
    batch_from_python = record("dawn", "one-pass", each=3_200.0, **VULKAN)
    found = costs(python, compiled, batch_from_python)
    (told,) = batches(found)
    assert told.alone.caller == "binding"
    assert told.alone.value("complete") == 26_600.0
    assert told.less is not None
    # Each of the two costs has an interval of 2 % to both sides.
    assert told.less.floor == pytest.approx(26.6 * 0.98 / (3.2 * 1.02))
    assert told.less.ceiling == pytest.approx(26.6 * 1.02 / (3.2 * 0.98))
    assert any("7.99 to 8.65" in sentence for sentence in lead_sentences(found))
    failed = record("dawn", each=None, status="failed", **VULKAN)
    assert batches(costs(failed, compiled, batch_from_python)) == []


def test_a_run_in_which_no_stack_ran_the_step_has_no_dispatch_costs() -> None:
    assert dispatch_costs(View(fingerprint())) is None
