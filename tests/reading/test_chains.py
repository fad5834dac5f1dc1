"""Test the costs, crossings and sentences of chains, with records whose fits are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from overhead.reading import chains
from overhead.reading.chains import chain_opening, crossing, device_times, fusions, graph_against_wgsl, groups, passings
from overhead.reading.intervals import Span
from overhead.reading.summary import opening
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.parts import Drawing
from overhead.report.sections.chains import chains_section, workload_page
from overhead.results import Api, Fingerprint, Record
from tests.fakes.report import fingerprint, record

GOLDEN = Path(__file__).parents[1] / "data" / "chain_sentences.txt"
"""After an intended change of wording: ``python -m tests.reading.test_chains``."""


def arm(stack: str, pattern: Any, each: float | None, fixed: float, elements: int = 4096, **more: Any) -> Record:
    """A record of the ``recurrence`` workload; times in ns."""
    params = {"elements": elements, **more.pop("params", {})}
    api: Api = "Vulkan" if stack in ("dawn", "wgpu-native") else "CUDA"
    made = record(stack, pattern, each, fixed, api=api, adapter="Fake GPU", unit="step", params=params, **more)
    fields = {name: getattr(made, name) for name in Record.__struct_fields__}
    return Record(**{**fields, "workload": "recurrence"})


def gpu() -> Fingerprint:
    return fingerprint(
        arm("torch", "per-submit", 40_000.0, 10_000.0),
        arm("cuda-graph", "replay", 2_000.0, 20_000.0, params={"maker": "driver"}),
        arm("cuda-graph", "replay", 9_000.0, 20_000.0, params={"maker": "torch"}),
        arm("dawn", "fused", 50.0, 60_000.0),
        arm("dawn", "one-pass", 1_500.0, 50_000.0),
        arm("cuda-driver", "fused", 40.0, 15_000.0),
        arm("jax", "fused", None, 0.0, params={"loop": "scan"}, status="unverified", reason="off by 0.3"),
        arm("torch", "per-submit", 41_000.0, 10_000.0, elements=1_000_000),
        arm("dawn", "fused", 30_000.0, 60_000.0, elements=1_000_000),
        arm("dawn", "one-pass", 31_000.0, 50_000.0, elements=1_000_000),
    )


def by_name(found: Fingerprint) -> dict[str, chains.ArmFit]:
    group = next(g for g in groups(View(found)) if g.elements == 4096)
    return {f"{a.kind.name} {a.record.params.get('maker', '')}".strip(): a for a in group.arms}


def test_every_arm_has_its_kind_and_its_cost() -> None:
    arms = by_name(gpu())
    assert set(arms) == {"eager", "graph driver", "graph torch", "fused-wgsl", "wgsl", "fused-cuda"}
    cost = arms["graph driver"].cost(1500)
    assert cost.value == pytest.approx(20_000 + 1500 * 2_000)
    assert cost.floor < cost.value < cost.ceiling
    assert not arms["graph driver"].extrapolated(4096)
    assert arms["graph driver"].extrapolated(4097)


def test_an_unverified_arm_has_no_cost() -> None:
    group = next(g for g in groups(View(gpu())) if g.elements == 4096)
    assert [r.stack for r in group.failed] == ["jax"]
    assert "jax" not in {a.record.stack for a in group.arms}


def test_the_crossing_follows_from_both_fits() -> None:
    arms = by_name(gpu())
    found = crossing(arms["graph driver"], arms["fused-wgsl"])
    assert found.steps is not None
    assert found.steps.value == pytest.approx(40_000 / 1_950)
    assert found.steps.floor < found.steps.value < found.steps.ceiling
    assert crossing(arms["fused-wgsl"], arms["fused-cuda"]).always
    assert crossing(arms["fused-cuda"], arms["fused-wgsl"]).never


def test_equal_arms_have_no_crossing() -> None:
    one = by_name(gpu())["fused-wgsl"]
    found = crossing(one, one)
    assert (found.steps, found.always, found.never) == (None, False, False)


def test_the_headline_takes_the_cheapest_graph() -> None:
    found = graph_against_wgsl(groups(View(gpu())))
    assert found is not None
    assert (found[1].record.params["maker"], found[2].record.stack) == ("driver", "dawn")
    assert found[1].cost(1500).value == pytest.approx(20_000 + 1500 * 2_000)
    assert opening(View(gpu()))[0] == chain_opening(View(gpu()))


def test_no_headline_without_a_gpu() -> None:
    software = [arm("dawn", "fused", 50.0, 1.0, software=True), arm("cuda-graph", "replay", 2.0, 1.0, software=True)]
    assert chain_opening(View(fingerprint(*software))) == ""
    assert chain_opening(View(fingerprint(record()))) == ""


def test_the_section_draws_the_maps_and_lists_failures() -> None:
    with draw.style():
        parts = [*chains_section(View(gpu())), *workload_page(View(gpu()), "recurrence")]
        drawings = {p.name: draw.svg(p.figure) for p in parts if isinstance(p, Drawing)}
    for title in ("The cheapest way", "A CUDA graph against eager", "Fused WGSL against a CUDA graph", "Fusing the"):
        assert title in drawings["chains-recurrence"]
    assert "chains-recurrence-arms" in drawings
    assert any("unverified: off by 0.3" in str(part) for part in parts)


def chain_sentences() -> str:
    """All sentences on the chains of the run ``gpu``, one per line."""
    found = groups(View(gpu()))
    return "\n".join([chain_opening(View(gpu())), *passings(found), *fusions(found), *device_times(found)]) + "\n"


def test_chain_sentences_are_the_recorded_text() -> None:
    assert chain_sentences() == GOLDEN.read_text(encoding="utf-8")


def test_device_times_of_all_fused_arms_are_compared_with_cuda() -> None:
    unbounded = arm("wgpu-native", "fused", 42.0, 60_000.0, params={"checks": "unbounded-loops"})
    run = fingerprint(*gpu().records, arm("wgpu-native", "fused", 120.0, 60_000.0), unbounded)
    (group,) = (g for g in groups(View(run)) if g.elements == 4096)
    took = {a.way: a.device.value for a in group.arms if a.kind.name in ("fused-cuda", "fused-wgsl") and a.device}
    assert took == {"cuda-driver": 20, "dawn": 25, "wgpu-native": 60, "wgpu-native without loop bounds": 21}
    (said,) = device_times([group])
    assert said.endswith("within 1.5 times: dawn and wgpu-native without loop bounds.")
    none = fingerprint(arm("cuda-driver", "fused", 40.0, 1.0), arm("dawn", "fused", 120.0, 1.0))
    assert device_times(groups(View(none)))[0].endswith("within 1.5 times: none.")


def test_without_an_interval_there_is_no_crossing() -> None:
    one, other = by_name(gpu())["graph driver"], by_name(gpu())["fused-wgsl"]
    bare = dataclasses.replace(other, slope=Span(50.0), fixed=Span(60_000.0))
    found = crossing(one, bare)
    assert (found.steps, found.always, found.never) == (None, False, False)


def test_each_variant_is_a_separate_group() -> None:
    half = arm("torch", "per-submit", 20_000.0, 1.0, params={"precision": "float16"})
    found = groups(View(fingerprint(*gpu().records, half)))
    assert [(g.elements, g.variant) for g in found] == [
        (4096, (("precision", "float16"),)), (4096, ()), (1_000_000, ())
    ]  # fmt: skip
    assert found[0].title == "recurrence (precision=float16), 4,096 elements"


def test_each_way_to_split_a_step_is_a_separate_kind() -> None:
    bodies = [("dawn", "one-pass", "separate"), ("dawn", "one-pass", "one"), ("dawn", "per-submit", "one"),
              ("torch", "per-submit", "library"), ("torch", "per-submit", "separate"),
              ("cuda-driver", "per-submit", "separate"), ("cuda-driver", "per-submit", "one")]  # fmt: skip
    made = [arm(stack, pattern, 1_000.0, 1.0, params={"body": body}) for stack, pattern, body in bodies]
    (group,) = groups(View(fingerprint(*made)))
    assert sorted(a.kind.name for a in group.arms) == [
        "eager", "launches", "launches-separate", "library", "wgsl", "wgsl-separate", "wgsl-submits"
    ]  # fmt: skip


if __name__ == "__main__":
    GOLDEN.write_text(chain_sentences(), encoding="utf-8")
