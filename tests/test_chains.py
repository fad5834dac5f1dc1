"""The costs, crossings and sentences of chains, from records whose fits are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overhead.reading import chains
from overhead.reading.chains import crossing, graph_against_wgsl, groups
from overhead.reading.sentences import chain_opening, opening
from overhead.reading.view import View
from overhead.report import render
from overhead.results import Api, Fingerprint, Record
from tests.fake_report import fingerprint, record


def arm(stack: str, pattern: Any, each: float | None, fixed: float, elements: int = 4096, **more: Any) -> Record:
    """A record of the recurrence; ns."""
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


def by_name(found: Fingerprint) -> dict[str, chains.Arm]:
    group = next(g for g in groups(View(found)) if g.elements == 4096)
    return {f"{a.kind.name} {a.record.params.get('maker', '')}".strip(): a for a in group.arms}


def test_every_arm_has_its_kind_and_its_cost() -> None:
    arms = by_name(gpu())
    assert set(arms) == {"eager", "graph driver", "graph torch", "fused-wgsl", "wgsl", "fused-cuda"}
    cost = arms["graph driver"].cost(1500)
    assert cost.value == pytest.approx(20_000 + 1500 * 2_000)
    assert cost.low < cost.value < cost.high
    assert not arms["graph driver"].extrapolated(4096)
    assert arms["graph driver"].extrapolated(4097)


def test_an_arm_that_is_not_verified_has_no_speed() -> None:
    group = next(g for g in groups(View(gpu())) if g.elements == 4096)
    assert [r.stack for r in group.failed] == ["jax"]
    assert "jax" not in {a.record.stack for a in group.arms}


def test_where_one_passes_another() -> None:
    arms = by_name(gpu())
    found = crossing(arms["graph driver"], arms["fused-wgsl"])
    assert found.steps is not None
    assert found.steps.value == pytest.approx(40_000 / 1_950)
    assert found.steps.low < found.steps.value < found.steps.high
    assert crossing(arms["fused-wgsl"], arms["fused-cuda"]).always
    assert crossing(arms["fused-cuda"], arms["fused-wgsl"]).never


def test_equal_arms_are_not_told_apart() -> None:
    one = by_name(gpu())["fused-wgsl"]
    found = crossing(one, one)
    assert (found.steps, found.always, found.never) == (None, False, False)


def test_the_headline_takes_the_cheapest_graph() -> None:
    found = graph_against_wgsl(groups(View(gpu())))
    assert found is not None
    assert (found[1].record.params["maker"], found[2].record.stack) == ("driver", "dawn")
    said = opening(View(gpu()))[0]
    assert said == chain_opening(View(gpu()))
    assert "1,500 dependent steps of 4,096 elements" in said
    assert "a CUDA graph takes 3,020 " in said
    assert "fused WGSL is" in said


def test_no_headline_without_a_gpu() -> None:
    software = [arm("dawn", "fused", 50.0, 1.0, software=True), arm("cuda-graph", "replay", 2.0, 1.0, software=True)]
    assert chain_opening(View(fingerprint(*software))) == ""
    assert chain_opening(View(fingerprint(record()))) == ""


def test_the_page_draws_the_map(tmp_path: Path) -> None:
    page = render([gpu()], tmp_path).read_text(encoding="utf-8")
    assert "The cheapest way to run recurrence" in page
    assert "a CUDA graph of all steps passes eager operations from" in page or "beats eager operations" in page
    assert "unverified: off by 0.3" in page
    assert "Fusing the steps of recurrence in WGSL makes a step cheaper by" in page
