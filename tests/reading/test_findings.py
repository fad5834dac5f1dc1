"""Each rule fires where the intervals allow it, and is silent where they do not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from overhead.errors import UsageError
from overhead.reading import findings
from overhead.reading.findings import Finding, findings_of, rule
from overhead.reading.view import View
from overhead.results import Figure, Record
from tests.fakes.report import figure, fingerprint, record, share

CUDA: dict[str, Any] = {"adapter": "Fake GPU 3000", "api": "CUDA", "unit": "launch"}
VULKAN: dict[str, Any] = {"adapter": "Fake GPU 3000"}


def found(*records: Record, **fields: Any) -> dict[str, Finding]:
    """The findings by the name of their rule."""
    return {one.rule: one for one in findings_of(View(fingerprint(*records, **fields)))}


def dawn(each: float, pattern: Any = "per-submit", **more: Any) -> Record:
    return record("dawn", pattern, each, **{**VULKAN, **more})


def wide(one: Record, width: float) -> Record:
    """The record with a wider interval of its cost."""
    figures = [figure(f.name, f.value, f.status, width) if f.name == "complete" else f for f in one.figures]
    return msgspec.structs.replace(one, figures=figures)


def test_a_finding_advises_one_pass_instead_of_a_submit_for_each_dispatch() -> None:
    one = found(dawn(25_000.0), dawn(3_000.0, "one-pass"))["batch"]
    assert "through Dawn 3.00 instead of 25.0 µs a dispatch from Python." in one.title
    assert "8.33× (8.01 to 8.67)" in one.detail
    compiled = found(dawn(9_000.0, caller="native"), dawn(2_000.0, "one-pass", caller="native"))["batch"]
    assert "from compiled code" in compiled.title
    assert "batch" not in found(dawn(25_000.0), dawn(3_000.0, "one-pass", caller="native"))
    assert "batch" not in found(dawn(25_000.0), dawn(20_000.0, "one-pass"))
    assert "batch" not in found(dawn(25_000.0), dawn(3_000.0, "one-pass", status="noisy"))
    assert "batch" not in found(dawn(25_000.0), dawn(12_000.0, "one-pass", params={"k": 4}))
    assert "batch" not in found(wide(dawn(25_000.0), 0.5), dawn(12_000.0, "one-pass"))


def test_the_finding_on_a_batch_with_two_speeds_names_both() -> None:
    both = Figure(name="complete", value=4_500.0, low=3_400.0, high=4_900.0, status="bimodal", modes=[3_700.0, 4_500.0])
    one = found(dawn(25_000.0), _with(dawn(4_500.0, "one-pass"), both))
    assert "3.7 or 4.5 instead of 25.0 µs a dispatch" in one["batch"].title


def _with(one: Record, complete: Figure) -> Record:
    return msgspec.structs.replace(one, figures=[complete if f.name == "complete" else f for f in one.figures])


def graph(node: float, making: float) -> list[Record]:
    parts = [
        figure(f"making:{part}{end}", value)
        for part in ("capture", "instantiate", "upload")
        for end, value in (("", making), (":fixed", making))
    ]
    replay = record(
        "cuda-graph", "replay", node, params={"maker": "driver"}, **{**CUDA, "unit": "node"}, more=tuple(parts)
    )
    return [record("cuda-driver", each=4_000.0, **CUDA), replay]


def test_a_finding_advises_a_cuda_graph_and_says_after_how_many_replays_it_pays_off() -> None:
    one = found(*graph(1_000.0, 3_000.0))["graph"]
    assert "made by the CUDA driver: 1.00 instead of 4.00 µs a launch from Python; a graph of 100 nodes" in one.title
    assert "replays" in one.title
    assert "graph" not in found(*graph(3_500.0, 3_000.0))


def test_the_finding_on_a_cuda_graph_of_unknown_making_cost_names_no_number_of_replays() -> None:
    eager, replay = graph(1_000.0, 3_000.0)
    bare = msgspec.structs.replace(replay, figures=[f for f in replay.figures if "making" not in f.name])
    assert (
        found(eager, bare)["graph"].title
        == "Replay a CUDA graph made by the CUDA driver: 1.00 instead of 4.00 µs a launch from Python."
    )


def test_a_finding_advises_calls_from_compiled_code() -> None:
    python, compiled = dawn(25_000.0), dawn(11_000.0, caller="native")
    pairs = [share("python-share", python, compiled, 11_200.0)]
    one = found(python, compiled, comparisons=pairs)["compiled"]
    assert one.title == "Call Dawn from compiled code: 11.0 µs a dispatch instead of 25.0 from Python."
    assert "compiled" not in found(python, dawn(20_000.0, caller="native"), comparisons=pairs)
    assert "compiled" not in found(dawn(25_000.0, status="noisy"), compiled, comparisons=pairs)
    cpu = record("numpy", api="CPU"), record("numpy", each=20.0, api="CPU", caller="native")
    assert "compiled" not in found(*cpu, comparisons=[share("python-share", *cpu, 9_000.0)])


def test_compiled_code_is_not_advised_where_the_run_does_not_compare_the_callers() -> None:
    assert "compiled" not in found(dawn(25_000.0), dawn(11_000.0, caller="native"))


def test_a_finding_advises_a_librarys_shorter_way_to_launch() -> None:
    jit = record("triton", each=12_000.0, params={"entry": "jit"}, **CUDA)
    one = found(jit, record("triton", each=8_000.0, params={"entry": "compiled"}, **CUDA))["short-way"]
    assert "8.00 instead of 12.0 µs a launch from Python" in one.title
    assert "short-way" not in found(jit, record("triton", each=10_000.0, params={"entry": "compiled"}, **CUDA))


def test_a_finding_advises_against_dispatch_indirect() -> None:
    one = found(dawn(23_000.0), dawn(211_000.0, params={"indirect": True}))["indirect"]
    assert one.title == "Avoid dispatchIndirect in Dawn: 211 µs against 23.0 a dispatch from Python."
    assert "indirect" not in found(dawn(23_000.0), dawn(24_000.0, params={"indirect": True}))


def test_a_finding_advises_against_a_new_bind_group_for_each_dispatch() -> None:
    one = found(dawn(20_000.0), dawn(30_000.0, params={"bindgroup": "fresh"}))["bind-group"]
    assert "a new one for each dispatch in Dawn costs 30.0 µs against 20.0 a dispatch" in one.title
    assert "bind-group" not in found(dawn(20_000.0), dawn(22_000.0, params={"bindgroup": "fresh"}))


def compiled_step(mode: str, each: float, ops: int = 1) -> Record:
    return record("torch-compile", each=each, params={"mode": mode, "ops": ops}, **{**CUDA, "unit": "step"})


def test_a_finding_says_from_how_many_tiny_operations_on_torch_compile_pays() -> None:
    one = found(compiled_step("default", 39_000.0), compiled_step("eager", 7_500.0))["torch-compile"]
    assert "from about 6 tiny operations" in one.title
    assert "39.0 µs" in one.title
    assert "7.50" in one.title
    assert "torch-compile" not in found(compiled_step("default", 7_000.0), compiled_step("eager", 7_500.0))


def test_a_finding_advises_against_a_wait_after_each_dispatch() -> None:
    one = found(dawn(25_000.0), dawn(87_000.0, "wait-each"))["wait-each"]
    assert one.title == "Wait once, not after each dispatch: in Dawn 25.0 instead of 87.0 µs a dispatch from Python."
    assert "wait-each" not in found(dawn(25_000.0), dawn(30_000.0, "wait-each"))
    assert "wait-each" not in found(dawn(25_000.0), dawn(87_000.0, "wait-each", status="noisy"))


def test_a_finding_advises_against_a_synchronisation_in_each_step() -> None:
    plain = record("torch", each=5_000.0, **CUDA)
    acting = record("torch", "read-each", 15_000.0, params={"sync": "item", "every": 1}, **CUDA)
    one = found(plain, acting)["synchronise"]
    assert one.title == "Take .item() out of the loop: each one adds 10.0 µs to a step of 5.00 µs from Python."
    cheap = record("torch", "read-each", 6_000.0, params={"sync": "item", "every": 1}, **CUDA)
    assert "synchronise" not in found(plain, cheap)
    paired = share("sync-cost", acting, plain, 9_000.0)
    assert "adds 9.00 µs" in found(plain, acting, comparisons=[paired])["synchronise"].title


def test_the_finding_that_saves_the_largest_share_of_time_comes_first() -> None:
    run = [
        dawn(25_000.0),
        dawn(3_000.0, "one-pass"),
        dawn(12_000.0, caller="native"),
        dawn(250_000.0, params={"indirect": True}),
        *graph(1_000.0, 3_000.0),
        dawn(87_000.0, "wait-each"),
        dawn(40_000.0, params={"bindgroup": "fresh"}),
    ]
    pairs = [share("python-share", run[0], run[2], 10_400.0)]
    assert list(found(*run, comparisons=pairs)) == ["indirect", "batch", "graph", "wait-each", "compiled", "bind-group"]


def test_an_empty_run_has_no_findings() -> None:
    assert findings_of(View(fingerprint())) == []


def test_a_decorated_function_becomes_a_rule_of_findings() -> None:
    rule("mine")(lambda view: Finding("Do this.", "Because.", 2.0, ()))
    try:
        assert [one.title for one in findings_of(View(fingerprint()))] == ["Do this."]
        with pytest.raises(UsageError, match="taken"):
            rule("batch")(lambda view: None)
    finally:
        del findings._rules._items["mine"]
