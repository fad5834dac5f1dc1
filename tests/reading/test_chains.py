"""Test the costs, crossings and sentences of chains, with records whose fits are known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.blocks.parts import Drawing, Table, cell_text
from overhead.reading import chains
from overhead.reading.chain_sentences import (
    break_even_sentences,
    chain_opening,
)
from overhead.reading.chains import crossing, groups
from overhead.reading.view import View
from overhead.report.core import draw
from overhead.report.core.machines import from_fingerprints
from overhead.report.sections.chains import chains_section, without_figure, workload_page
from overhead.results import Api, Fingerprint, Gpu, Record, Value
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
    return {a.kind.name: a for a in group.arms}


def test_every_way_to_run_a_chain_has_its_kind_and_its_cost() -> None:
    arms = by_name(gpu())
    assert set(arms) == {"eager", "graph-driver", "graph-torch", "fused-wgsl", "wgsl", "fused-cuda"}
    cost = arms["graph-driver"].cost(1500)
    assert cost.value == pytest.approx(20_000 + 1500 * 2_000)
    assert cost.floor < cost.value < cost.ceiling
    assert not arms["graph-driver"].is_extrapolated(4096)
    assert arms["graph-driver"].is_extrapolated(4097)


def test_a_way_with_unverified_values_has_no_cost() -> None:
    group = next(g for g in groups(View(gpu())) if g.elements == 4096)
    assert [r.stack for r in group.failed] == ["jax"]
    assert "jax" not in {a.record.stack for a in group.arms}


def test_the_length_at_which_one_way_passes_another_follows_from_both_fits() -> None:
    arms = by_name(gpu())
    found = crossing(arms["graph-driver"], arms["fused-wgsl"])
    assert found.steps is not None
    assert found.steps.value == pytest.approx(40_000 / 1_950)
    assert found.steps.floor < found.steps.value < found.steps.ceiling
    assert crossing(arms["fused-wgsl"], arms["fused-cuda"]).always
    assert crossing(arms["fused-cuda"], arms["fused-wgsl"]).never


def test_two_equally_expensive_ways_have_no_length_at_which_one_passes_the_other() -> None:
    one = by_name(gpu())["fused-wgsl"]
    found = crossing(one, one)
    assert (found.steps, found.always, found.never) == (None, False, False)


def test_a_run_without_a_gpu_has_no_opening_sentence() -> None:
    software = [arm("dawn", "fused", 50.0, 1.0, software=True), arm("cuda-graph", "replay", 2.0, 1.0, software=True)]
    assert chain_opening(View(fingerprint(*software))) == ""
    assert chain_opening(View(fingerprint(record()))) == ""


def test_the_section_of_chains_names_the_cheapest_way_and_lists_failures() -> None:
    with draw.style():
        parts = [*chains_section(View(gpu())), *workload_page(View(gpu()), "recurrence")]
    assert [p.name for p in parts if isinstance(p, Drawing)] == ["chains-recurrence-ways"]
    cheapest = next(p for p in parts if isinstance(p, Table) and "by elements and dependent steps" in p.caption)
    cells = [[cell_text(c) for c in row] for row in cheapest.rows]
    assert cells[0][1] == "a fused CUDA kernel, 15.0 µs"
    assert cells[0][-2:] == ["a fused CUDA kernel, 415 µs*", "jax"]
    assert any("unverified: off by 0.3" in str(part) for part in parts)


def chain_sentences() -> str:
    """All sentences on the chains of the run ``gpu``, one per line."""
    found = groups(View(gpu()))
    return (
        "\n".join(
            [
                chain_opening(View(gpu())),
                *break_even_sentences(found),
            ]
        )
        + "\n"
    )


def test_the_sentences_on_chains_equal_the_recorded_text() -> None:
    assert chain_sentences() == GOLDEN.read_text(encoding="utf-8")


def test_each_maker_of_a_graph_has_its_own_name() -> None:
    makers = {"driver": 51_300.0, "torch": 186_000.0, "torch-compiled": 18_400.0}
    graphs = [arm("cuda-graph", "replay", each, 8_000.0, params={"maker": maker}) for maker, each in makers.items()]
    found = groups(View(fingerprint(*graphs, arm("cuda-driver", "fused", 51_200.0, 9_000.0))))
    (group,) = found
    assert len({a.kind.title for a in group.arms}) == len({a.label for a in group.arms}) == 4
    assert "made by torch.compile" in chain_opening(View(fingerprint(*graphs, arm("dawn", "fused", 50.0, 60_000.0))))


def test_the_opening_sentence_needs_a_graph_and_a_fused_kernel_in_the_run_that_is_shown() -> None:
    graph = arm("cuda-graph", "replay", 2_000.0, 20_000.0, params={"maker": "driver"})
    older = fingerprint(record("dawn"), graph, arm("dawn", "fused", 50.0, 60_000.0), created="2026-01-01T00:00:00Z")
    newer = fingerprint(record("dawn"), graph, arm("dawn", "fused", 75.0, 60_000.0), created="2026-01-03T00:00:00Z")
    assert "172 µs as WGSL through dawn." in chain_opening(from_fingerprints([newer, older]).own)
    bare = fingerprint(record("dawn"), created="2026-01-03T00:00:00Z")
    assert chain_opening(from_fingerprints([bare, older]).own) == ""


def test_the_tables_of_chains_name_the_stacks_without_a_figure_at_each_size() -> None:
    numpy = msgspec.structs.replace(
        arm("numpy", "per-submit", 9_000.0, 1.0, elements=256), api="CPU", adapter="CPU", device="cpu"
    )
    view = View(fingerprint(*gpu().records, numpy))
    assert {g.elements: without_figure(view, g) for g in groups(view)} == {
        256: ["any GPU stack"],
        4096: ["jax", "numpy (CPU)"],
        1_000_000: ["cuda-driver", "cuda-graph", "numpy (CPU)"],
    }
    with draw.style():
        tables = [p for p in (*chains_section(view), *workload_page(view, "recurrence")) if isinstance(p, Table)]
    named = [row for table in tables for row in table.rows if "256" in row]
    assert len(named) == 2
    assert all("any GPU stack" in row for row in named)
    own = fingerprint(numpy)
    for gpus, missing in (([Gpu(name="Fake GPU")], ["any GPU stack"]), ([], [])):
        alone = View(msgspec.structs.replace(own, machine=msgspec.structs.replace(own.machine, gpus=gpus)))
        assert without_figure(alone, groups(alone)[0]) == missing


def test_a_way_whose_fit_starts_far_below_zero_has_no_speed() -> None:
    bent = arm("torch", "hybrid", 40_000.0, 10_000.0)
    figures = [
        msgspec.structs.replace(f, value=-9e6, low=-1e7, high=-8e6) if f.name == "fixed" else f for f in bent.figures
    ]
    changed = msgspec.structs.replace(bent, figures=figures)
    (group,) = groups(View(fingerprint(changed)))
    assert not group.arms
    assert chains.why_no_speed(changed).startswith("nonlinear: ")


def test_ways_without_intervals_have_no_length_at_which_one_passes_the_other() -> None:
    one, other = by_name(gpu())["graph-driver"], by_name(gpu())["fused-wgsl"]
    bare = dataclasses.replace(other, slope=Value(50.0), fixed=Value(60_000.0))
    found = crossing(one, bare)
    assert (found.steps, found.always, found.never) == (None, False, False)


def test_each_variant_of_a_workload_is_a_separate_group() -> None:
    half = arm("torch", "per-submit", 20_000.0, 1.0, params={"precision": "float16"})
    found = groups(View(fingerprint(*gpu().records, half)))
    assert [(g.elements, g.variant) for g in found] == [
        (4096, (("precision", "float16"),)),
        (4096, ()),
        (1_000_000, ()),
    ]
    assert found[0].title == "recurrence (precision=float16), 4,096 elements"


def test_separate_operations_and_a_library_call_are_kinds_of_their_own() -> None:
    bodies = [
        ("dawn", "one-pass", "separate"),
        ("dawn", "one-pass", "one"),
        ("dawn", "per-submit", "one"),
        ("torch", "per-submit", "library"),
        ("torch", "per-submit", "separate"),
        ("cuda-driver", "per-submit", "separate"),
        ("cuda-driver", "per-submit", "one"),
    ]
    made = [arm(stack, pattern, 1_000.0, 1.0, params={"body": body}) for stack, pattern, body in bodies]
    (group,) = groups(View(fingerprint(*made)))
    assert sorted(a.kind.name for a in group.arms) == [
        "eager",
        "launches",
        "launches-separate",
        "library",
        "wgsl",
        "wgsl-separate",
        "wgsl-submits",
    ]


if __name__ == "__main__":
    GOLDEN.write_text(chain_sentences(), encoding="utf-8")
