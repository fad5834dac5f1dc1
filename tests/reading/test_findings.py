"""Each rule fires where the intervals allow it, and is silent where they do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from overhead.errors import UsageError
from overhead.loading.files import read_fingerprint
from overhead.reading import findings
from overhead.reading.findings import Finding, OwnWords, RunsAtHand, findings_of, rule
from overhead.reading.findings._changes import Change
from overhead.reading.findings.batching import OnePassPays, ReplayPays
from overhead.reading.findings.calling import CompiledCodePays, ShortWayPays
from overhead.reading.findings.options import (
    CompiledStepsMeet,
    FreshBindGroupCosts,
    IndirectCosts,
    TinyCompiledCosts,
)
from overhead.reading.findings.stages import StagesTold
from overhead.reading.findings.waiting import SynchronisingCosts, WaitEachCosts
from overhead.reading.view import View
from overhead.results import Figure, Record
from overhead.words.findings import FindingWords, finding_words
from overhead.words.format import count
from tests.fakes.report import figure, fingerprint, record, share

DATA = Path(__file__).parents[2] / "reports" / "data"
CUDA: dict[str, Any] = {"adapter": "Fake GPU 3000", "api": "CUDA", "unit": "launch"}
VULKAN: dict[str, Any] = {"adapter": "Fake GPU 3000"}


def found(*records: Record, **fields: Any) -> dict[str, Finding]:
    """The findings by the name of their rule."""
    return {one.rule: one for one in findings_of(RunsAtHand(View(fingerprint(*records, **fields))))}


def changes(one: Finding, facts: type[Any]) -> tuple[Change, ...]:
    """The changes of a finding whose facts are of this type."""
    assert isinstance(one.facts, facts)
    found: tuple[Change, ...] = one.facts.changes
    return found


def both_of(change: Change) -> tuple[Record, Record]:
    return change.before, change.after


def costs_before_after(change: Change) -> tuple[float | None, ...]:
    """The costs in ns, before and after."""
    return tuple(one.value("complete") for one in both_of(change))


def dawn(pattern: Any = "per-submit", *, dispatch_ns: float, **more: Any) -> Record:
    return record("dawn", pattern, dispatch_ns, **{**VULKAN, **more})


def wide(one: Record, width: float) -> Record:
    """The record with a wider interval of its cost."""
    cost = one.figure("complete")
    assert cost is not None
    return with_cost(one, figure("complete", cost.value, cost.status, width=width))


def test_a_finding_advises_one_pass_instead_of_a_submit_for_each_dispatch() -> None:
    one = found(dawn(dispatch_ns=25_000.0), dawn("one-pass", dispatch_ns=3_000.0))["batch"]
    (change,) = changes(one, OnePassPays)
    assert costs_before_after(change) == (25_000.0, 3_000.0)
    # Both costs have an interval of 2 % to both sides.
    assert change.times.low == pytest.approx(25 * 0.98 / (3 * 1.02))
    assert change.times.high == pytest.approx(25 * 1.02 / (3 * 0.98))
    assert one.times == change.times.value


def test_a_finding_on_a_batch_compares_one_caller() -> None:
    alone = dawn(dispatch_ns=9_000.0, caller="native")
    batch = dawn("one-pass", dispatch_ns=2_000.0, caller="native")
    (change,) = changes(found(alone, batch)["batch"], OnePassPays)
    assert change.before.caller == "native"
    assert change.after.caller == "native"
    # Alone from Python and a batch from compiled code: two things differ.
    from_python = dawn(dispatch_ns=25_000.0)
    from_compiled = dawn("one-pass", dispatch_ns=3_000.0, caller="native")
    assert "batch" not in found(from_python, from_compiled)


def test_a_batch_is_not_advised_where_it_saves_little_or_is_not_sure_to() -> None:
    alone = dawn(dispatch_ns=25_000.0)
    saves_little = dawn("one-pass", dispatch_ns=20_000.0)
    assert "batch" not in found(alone, saves_little)
    of_other_parameters = dawn("one-pass", dispatch_ns=12_000.0, params={"k": 4})
    assert "batch" not in found(alone, of_other_parameters)
    # 12.5 to 37.5 us alone: a batch of 12 us may save nearly nothing.
    uncertain = wide(alone, width=0.5)
    assert "batch" not in found(uncertain, dawn("one-pass", dispatch_ns=12_000.0))


def test_a_noisy_cost_proves_a_saving_if_its_interval_does() -> None:
    alone = dawn(dispatch_ns=25_000.0)
    noisy = dawn("one-pass", dispatch_ns=3_000.0, status="noisy")
    assert "batch" in found(alone, wide(noisy, width=0.5)), "at most 4.5 us"
    assert "batch" not in found(alone, wide(noisy, width=6.0)), "at most 21 us"


def test_a_noisy_cost_is_told_with_its_interval() -> None:
    eager, node = graph(node_ns=1_000.0, making_ns=3_000.0)
    noisy = wide(msgspec.structs.replace(node, status="noisy"), width=0.2)
    cost = noisy.figure("complete")
    assert cost is not None
    noisy = with_cost(noisy, msgspec.structs.replace(cost, status="noisy"))
    words = finding_words(found(eager, noisy)["graph"])
    assert "1.00 (0.80 to 1.20)" in words.title


def test_an_adapter_that_computes_on_the_processor_gives_no_advice() -> None:
    alone = dawn(dispatch_ns=25_000.0, software=True)
    assert found(alone, dawn("one-pass", dispatch_ns=3_000.0, software=True)) == {}


def test_the_finding_on_a_batch_with_two_speeds_has_both() -> None:
    both = Figure(
        name="complete",
        value=4_500.0,
        low=3_400.0,
        high=4_900.0,
        status="bimodal",
        modes=[3_700.0, 4_500.0],
    )
    alone = dawn(dispatch_ns=25_000.0)
    batch = with_cost(dawn("one-pass", dispatch_ns=4_500.0), both)
    one = found(alone, batch)["batch"]
    (change,) = changes(one, OnePassPays)
    assert change.after.figure("complete") == both
    assert "3.7 or 4.5" in finding_words(one).title


def with_cost(one: Record, cost: Figure) -> Record:
    """The record with another cost."""
    figures = [cost if known.name == "complete" else known for known in one.figures]
    return msgspec.structs.replace(one, figures=figures)


def graph(*, node_ns: float, making_ns: float) -> list[Record]:
    """A launch by the CUDA driver of 4 us, and a graph. Each of three parts of its making takes
    ``making_ns`` for each node and once more.
    """
    parts = []
    for part in ("capture", "instantiate", "upload"):
        parts.append(figure(f"making:{part}", making_ns))
        parts.append(figure(f"making:{part}:fixed", making_ns))
    replay = record(
        "cuda-graph",
        "replay",
        node_ns,
        params={"maker": "driver"},
        **{**CUDA, "unit": "node"},
        more=tuple(parts),
    )
    return [record("cuda-driver", each=4_000.0, **CUDA), replay]


def test_a_finding_advises_a_cuda_graph_and_says_after_how_many_replays_it_pays_off() -> None:
    one = found(*graph(node_ns=1_000.0, making_ns=3_000.0))["graph"]
    assert isinstance(one.facts, ReplayPays)
    assert costs_before_after(one.facts.changes[0]) == (4_000.0, 1_000.0)
    assert one.facts.nodes == 100
    assert one.facts.pays_after is not None
    # Three parts of the making, each for 100 nodes and once more. A node saves 4 - 1 us.
    making_ns = 3 * (100 + 1) * 3_000.0
    saved_ns_a_replay = 100 * 3_000.0
    assert one.facts.pays_after.value == pytest.approx(making_ns / saved_ns_a_replay)
    assert count(4, "replay") in finding_words(one).title, "3.03 replays, rounded up"
    # A node that costs nearly as much as a launch saves too little.
    assert "graph" not in found(*graph(node_ns=3_500.0, making_ns=3_000.0))


def test_the_finding_on_a_cuda_graph_of_unknown_making_cost_names_no_number_of_replays() -> None:
    eager, replay = graph(node_ns=1_000.0, making_ns=3_000.0)
    bare = msgspec.structs.replace(
        replay, figures=[f for f in replay.figures if "making" not in f.name]
    )
    one = found(eager, bare)["graph"]
    assert isinstance(one.facts, ReplayPays)
    assert one.facts.pays_after is None
    assert "100" not in finding_words(one).title


def test_a_finding_advises_calls_from_compiled_code() -> None:
    python, compiled = dawn(dispatch_ns=25_000.0), dawn(dispatch_ns=11_000.0, caller="native")
    # The run compares the two callers round by round: the host takes 11.2 us less.
    pairs = [share("python-share", python, compiled, difference=11_200.0)]
    one = found(python, compiled, comparisons=pairs)["compiled"]
    (change,) = changes(one, CompiledCodePays)
    assert costs_before_after(change) == (25_000.0, 11_000.0)
    assert change.before.caller == "binding"
    assert change.after.caller == "native"
    saves_little = dawn(dispatch_ns=20_000.0, caller="native")
    assert "compiled" not in found(python, saves_little, comparisons=pairs)
    # The rule is on launches to a GPU: a case on the CPU gets no advice.
    cpu = record("numpy", api="CPU"), record("numpy", each=20.0, api="CPU", caller="native")
    assert "compiled" not in found(
        *cpu, comparisons=[share("python-share", *cpu, difference=9_000.0)]
    )


def test_compiled_code_is_not_advised_where_the_run_does_not_compare_the_callers() -> None:
    assert "compiled" not in found(
        dawn(dispatch_ns=25_000.0), dawn(dispatch_ns=11_000.0, caller="native")
    )


def test_a_finding_advises_a_librarys_shorter_way_to_launch() -> None:
    jit = record("triton", each=12_000.0, params={"entry": "jit"}, **CUDA)
    shorter = record("triton", each=8_000.0, params={"entry": "compiled"}, **CUDA)
    one = found(jit, shorter)["short-way"]
    (change,) = changes(one, ShortWayPays)
    assert costs_before_after(change) == (12_000.0, 8_000.0)
    assert change.after.params == {"entry": "compiled"}
    saves_little = record("triton", each=10_000.0, params={"entry": "compiled"}, **CUDA)
    assert "short-way" not in found(jit, saves_little)


def test_a_finding_advises_against_dispatch_indirect() -> None:
    direct = dawn(dispatch_ns=23_000.0)
    one = found(direct, dawn(dispatch_ns=211_000.0, params={"indirect": True}))["indirect"]
    (change,) = changes(one, IndirectCosts)
    assert costs_before_after(change) == (211_000.0, 23_000.0)
    adds_little = dawn(dispatch_ns=24_000.0, params={"indirect": True})
    assert "indirect" not in found(direct, adds_little)


def test_a_finding_advises_against_a_new_bind_group_for_each_dispatch() -> None:
    same_group = dawn(dispatch_ns=20_000.0)
    new_groups = dawn(dispatch_ns=30_000.0, params={"bindgroup": "fresh"})
    one = found(same_group, new_groups)["bind-group"]
    (change,) = changes(one, FreshBindGroupCosts)
    assert costs_before_after(change) == (30_000.0, 20_000.0)
    adds_little = dawn(dispatch_ns=22_000.0, params={"bindgroup": "fresh"})
    assert "bind-group" not in found(same_group, adds_little)


def compiled_step(mode: str, *, step_ns: float, ops: int = 1) -> Record:
    return record(
        "torch-compile", each=step_ns, params={"mode": mode, "ops": ops}, **{**CUDA, "unit": "step"}
    )


def test_a_finding_says_from_how_many_tiny_operations_on_torch_compile_pays() -> None:
    eager = compiled_step("eager", step_ns=7_500.0)
    one = found(compiled_step("default", step_ns=39_000.0), eager)["torch-compile"]
    assert isinstance(one.facts, TinyCompiledCosts)
    assert one.facts.pays_from == 6, "5 eager operations take 37.5 us, 6 take 45 us"
    assert costs_before_after(one.facts.change) == (39_000.0, 7_500.0)
    assert "torch-compile" not in found(compiled_step("default", step_ns=7_000.0), eager)


def test_torch_compile_pays_from_where_the_lines_over_operations_meet() -> None:
    run = [
        compiled_step("default", step_ns=38_000.0),
        compiled_step("default", step_ns=38_000.0, ops=5),
        compiled_step("eager", step_ns=7_000.0),
        compiled_step("eager", step_ns=35_000.0, ops=5),
    ]
    facts = found(*run)["torch-compile"].facts
    assert isinstance(facts, CompiledStepsMeet)
    # An eager operation costs 7 us, so 38 us are those of 38/7 operations.
    assert facts.meet_at.value == pytest.approx(38 / 7)
    assert facts.meet_at.floor < 38 / 7 < facts.meet_at.ceiling
    ends = f"{round(facts.meet_at.floor)} to {round(facts.meet_at.ceiling)}"
    assert ends in finding_words(found(*run)["torch-compile"]).title
    # If eager operations may cost nothing more, the lines need not meet.
    unclear = [*run[:3], wide(run[3], width=0.9)]
    assert isinstance(found(*unclear)["torch-compile"].facts, TinyCompiledCosts)


def of_compiling(runs: RunsAtHand) -> list[Finding]:
    """The finding on compiled steps, if there is one."""
    return [one for one in findings_of(runs) if one.rule == "torch-compile"]


def test_another_run_of_the_machine_tells_what_the_run_shown_did_not_measure() -> None:
    shown = fingerprint(compiled_step("default", step_ns=38_000.0))
    other = fingerprint(
        compiled_step("default", step_ns=38_000.0),
        compiled_step("default", step_ns=38_000.0, ops=5),
        compiled_step("eager", step_ns=7_000.0),
        compiled_step("eager", step_ns=35_000.0, ops=5),
        created="2026-01-02T03:04:05Z",
    )
    assert of_compiling(RunsAtHand(View(shown))) == []
    (one,) = of_compiling(RunsAtHand(View(shown), [View(other)]))
    assert one.run == "2026-01-02T03:04:05Z"
    assert "2026-01-02 03:04 UTC" in finding_words(one).detail
    (of_itself,) = of_compiling(RunsAtHand(View(other)))
    assert of_itself.run == ""


def with_stages(one: Record, *stages: Figure) -> Record:
    return msgspec.structs.replace(one, figures=[*one.figures, *stages])


def test_a_finding_tells_the_call_of_a_dispatch_that_surely_takes_most() -> None:
    submit = figure("stage:submit", 10_000.0)
    finish = figure("stage:finish", 8_000.0)
    one = found(with_stages(dawn(dispatch_ns=25_000.0), finish, submit))["stage"]
    assert isinstance(one.facts, StagesTold)
    (told,) = one.facts.found
    assert (told.longest.name, told.second.name) == ("submit", "finish")
    assert one.reader == "webgpu"
    as_long = figure("stage:finish", 9_900.0)
    assert "stage" not in found(with_stages(dawn(dispatch_ns=25_000.0), as_long, submit))


def test_a_finding_advises_against_a_wait_after_each_dispatch() -> None:
    one_wait = dawn(dispatch_ns=25_000.0)
    one = found(one_wait, dawn("wait-each", dispatch_ns=87_000.0))["wait-each"]
    (change,) = changes(one, WaitEachCosts)
    assert costs_before_after(change) == (87_000.0, 25_000.0)
    adds_little = dawn("wait-each", dispatch_ns=30_000.0)
    assert "wait-each" not in found(one_wait, adds_little)


def test_a_finding_advises_against_a_synchronisation_in_each_step() -> None:
    plain = record("torch", each=5_000.0, **CUDA)
    acting = record("torch", "read-each", 15_000.0, params={"sync": "item", "every": 1}, **CUDA)
    one = found(plain, acting)["synchronise"]
    assert isinstance(one.facts, SynchronisingCosts)
    assert one.facts.act == "item"
    assert one.facts.adds.value == 10_000.0, "15 us with the synchronisation, 5 us without"
    assert one.facts.alone.value == 5_000.0
    cheap = record("torch", "read-each", 6_000.0, params={"sync": "item", "every": 1}, **CUDA)
    assert "synchronise" not in found(plain, cheap)
    paired = share("sync-cost", acting, plain, difference=9_000.0)
    # A difference that the run measured round by round stands in place of that of the two costs.
    of_rounds = found(plain, acting, comparisons=[paired])["synchronise"].facts
    assert isinstance(of_rounds, SynchronisingCosts)
    assert of_rounds.adds.value == 9_000.0


def test_each_reader_has_first_what_is_asked_first_and_then_what_saves_most() -> None:
    run = [
        dawn(dispatch_ns=25_000.0),
        dawn("one-pass", dispatch_ns=3_000.0),
        dawn(dispatch_ns=12_000.0, caller="native"),
        dawn(dispatch_ns=250_000.0, params={"indirect": True}),
        *graph(node_ns=1_000.0, making_ns=3_000.0),
        dawn("wait-each", dispatch_ns=87_000.0),
        dawn(dispatch_ns=40_000.0, params={"bindgroup": "fresh"}),
    ]
    pairs = [share("python-share", run[0], run[2], difference=10_400.0)]
    order = [(one.reader, one.rule) for one in found(*run, comparisons=pairs).values()]
    assert order[:6] == [
        ("engines", "graph"),
        ("webgpu", "batch"),
        ("webgpu", "compiled"),
        ("webgpu", "indirect"),  # 250 us become 25 us
        ("webgpu", "wait-each"),  # 87 become 25
        ("webgpu", "bind-group"),  # 40 become 25
    ]
    assert {reader for reader, _ in order[6:]} == {"figures"}


def test_every_finding_of_the_committed_runs_has_words() -> None:
    found_rules = set()
    for path in sorted(DATA.glob("*.json")):
        for one in findings_of(RunsAtHand(View(read_fingerprint(path)))):
            found_rules.add(one.rule)
            assert finding_words(one).title.endswith(".")
            assert finding_words(one).detail.endswith(".")
    assert len(found_rules) > 6


def test_an_empty_run_has_no_findings() -> None:
    assert findings_of(RunsAtHand(View(fingerprint()))) == []


def test_a_decorated_function_becomes_a_rule_of_findings() -> None:
    own = OwnWords("Do this.", "Because.")
    rule("mine")(lambda view: Finding(own, 2.0, ()))
    try:
        (one,) = findings_of(RunsAtHand(View(fingerprint())))
        assert one.facts == own
        assert finding_words(one) == FindingWords(own.title, own.detail)
        with pytest.raises(UsageError, match="taken"):
            rule("batch")(lambda view: None)
    finally:
        del findings._rules._items["mine"]
