"""The comparison with others' tools where no GPU is needed: pairs, verdicts, intervals, reasons, nvbench's file."""

from __future__ import annotations

import argparse
import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from overhead.errors import Unverified
from scripts.agreement import protocol
from scripts.agreement import side_by_side as ba
from scripts.agreement.nvbench import OURS, answers, ask, nvbench
from scripts.agreement.ours import seconds_to
from scripts.agreement.protocol import ToolAnswer
from scripts.agreement.side_by_side import WANTED
from scripts.agreement.subjects import ADD, STEP, STEP_GRAPH
from tests.fakes.machine import FakeChain, FakeClock, Law


def test_only_the_same_quantity_is_judged() -> None:
    ours = [ToolAnswer("overhead", ADD, "complete", 4_600.0), ToolAnswer("overhead", ADD, "device_busy", 1_700.0)]
    theirs = [
        ToolAnswer("torch.utils.benchmark", ADD, "complete", 4_500.0),
        ToolAnswer("nvbench", ADD, "cold", 6_000.0),
    ]
    found = {(r.theirs.tool, r.theirs.subject, r.theirs.quantity): r for r in ba.rows(theirs, ours)}
    assert len(found) == len(WANTED)
    timer = found["torch.utils.benchmark", ADD, "complete"]
    assert timer.within is True
    assert timer.ratio == pytest.approx(46 / 45)
    cold = found["nvbench", ADD, "cold"]
    assert cold.ratio is not None
    assert cold.within is None
    assert cold.what


def test_a_tool_may_bring_our_figure_of_its_own_process() -> None:
    brought = [
        ToolAnswer("nvbench", STEP_GRAPH, "batch", 95_000.0),
        ToolAnswer("overhead", STEP_GRAPH, "device_busy", 96_000.0),
    ]
    found = ba.rows(brought, [ToolAnswer("overhead", STEP_GRAPH, "device_busy", 110_000.0)])
    assert [r.within for r in found if r.theirs.subject == STEP_GRAPH] == [True]


@pytest.mark.parametrize(("theirs", "within"), [(953.0, True), (940.0, False), (1_060.0, False)])
def test_five_per_cent(theirs: float, within: bool) -> None:
    row = ba.AgreementRow(ToolAnswer("a", "", "", theirs), ToolAnswer("b", "", "", 1_000.0), same=True)
    assert row.within is within


def test_a_tool_that_fails_is_named_in_each_of_its_rows() -> None:
    def missing() -> list[ToolAnswer]:
        raise ImportError("No module named 'triton'")

    found = ba.rows(ba.attempt("do_bench_cudagraph", missing), [])
    reasons = {r.theirs.subject: r.theirs.reason for r in found if r.theirs.tool == "do_bench_cudagraph"}
    assert reasons == dict.fromkeys((ADD, STEP), "ImportError: No module named 'triton'")
    assert all(r.within is None for r in found)


def test_the_interval_of_the_mean_narrows_to_its_width() -> None:
    values = [100.0, 104.0, 96.0, 100.0, 104.0, 96.0]
    assert protocol.narrow(values, 0.05)
    assert not protocol.narrow(values, 0.01)
    assert protocol.narrow(values + [100.0] * 40, 0.01)
    assert not protocol.narrow([1.0] * 5, 0.5)


def test_a_round_that_was_preempted_does_not_widen_the_interval_again_and_again() -> None:
    values = [100.0, 101.0, 99.0] * 20
    assert protocol.narrow([*values, 900.0, 20.0], 0.01)
    assert not protocol.narrow(values + [120.0] * 12, 0.01)


def test_our_seconds_hold_the_calibration_and_end_with_the_interval() -> None:
    def seconds(width: float, patience: float = 20.0) -> float | None:
        clock = FakeClock()
        return seconds_to(width, FakeChain(Law(host=1_000, device=300), clock), clock, patience)

    tight, loose = seconds(0.01), seconds(0.1)
    assert tight is not None
    assert loose is not None
    assert loose <= tight < 1.0
    assert seconds(0.01, 1e-6) is None


def test_our_seconds_are_refused_where_the_device_ran_other_units() -> None:
    clock = FakeClock()
    chain = FakeChain(Law(host=1_000, device=300), clock)
    chain.executed = lambda: 1  # type: ignore[method-assign]
    with pytest.raises(Unverified, match="units issued, 1 executed"):
        seconds_to(0.01, chain, clock, 20.0)


def test_a_tool_is_repeated_until_its_quartiles_are_close_or_patience_ends() -> None:
    clock = iter(float(i) for i in range(1_000))
    batches = iter([[1.0, 2.0], [1.0, 1.0, 1.0], [1.0] * 40])

    def once() -> Sequence[float]:
        return next(batches)

    seconds, values = protocol.repeat_until(once, 0.01, 50.0, lambda: next(clock))
    assert seconds is not None
    assert len(values) == 45
    never, _ = protocol.repeat_until(lambda: [1.0, 2.0], 0.01, 10.0, lambda: next(clock))
    assert never is None


def summary(tag: str, value: str | None) -> dict[str, object]:
    return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": value}]}


def document(*told: dict[str, object], skip: str | None = None) -> str:
    return json.dumps({"benchmarks": [{"name": "subject", "states": [{"summaries": told, "skip_reason": skip}]}]})


TOLD = (summary("nv/cold/time/gpu/mean", "5e-6"), summary("nv/cold/time/gpu/stdev/relative", "0.004"),
        summary("nv/cold/walltime", "1.5"), summary("nv/batch/time/gpu/mean", "2e-6"))  # fmt: skip


def test_nvbenchs_file() -> None:
    found = {a.quantity: a for a in answers(STEP, document(*TOLD), "")}
    assert found["batch"].value == pytest.approx(2_000)
    assert found["cold"].value == pytest.approx(5_000)
    assert found["cold"].seconds == 1.5
    endless = (TOLD[0], summary("nv/cold/time/gpu/stdev/relative", None), *TOLD[2:])
    assert {a.quantity: a.seconds for a in answers(STEP, document(*endless), "")} == {"cold": None, "batch": None}


def test_nvbenchs_log_serves_where_its_file_is_empty() -> None:
    log = "Pass: Cold: 0.004712ms GPU, 0.010ms CPU, 0.50s total GPU, 1.23s total wall, 106112x\n"
    log += "Pass: Batch: 0.002123ms GPU, 0.51s total GPU, 0.51s total wall, 240000x"
    found = {a.quantity: a.value for a in answers(STEP, "", log)}
    assert found == {"batch": pytest.approx(2_123), "cold": pytest.approx(4_712)}


def test_why_nvbench_gives_no_number() -> None:
    skipped = answers(STEP, document(skip="RuntimeError: deadlock"), "the process ended with 0")
    assert {a.reason for a in skipped} == {"RuntimeError: deadlock; last: the process ended with 0"}
    crashed = answers(STEP, "", "Fatal Python error: Segmentation fault\nthe process ended with -11")
    assert all("its JSON of 0 characters" in a.reason and a.reason.endswith("ended with -11") for a in crashed)


def test_a_subject_is_tried_again_without_the_blocking_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    def child(index: int, path: Path, blocking: bool) -> str:
        if blocking:
            return "Segmentation fault\nthe process ended with -11"
        path.write_text(document(*TOLD))
        path.with_suffix(OURS).write_bytes(msgspec.json.encode([ToolAnswer("overhead", STEP, "device_busy", 1_990.0)]))
        return "the process ended with 0"

    *theirs, ours = ask(1, child)
    assert {a.quantity: a.value for a in theirs} == {"batch": pytest.approx(2_000), "cold": pytest.approx(5_000)}
    assert ours == ToolAnswer("overhead", STEP, "device_busy", 1_990.0)
    assert "Segmentation fault" in capsys.readouterr().err
    never = ask(1, lambda index, path, blocking: "no words\nthe process ended with 3")
    assert len(never) == 2
    assert all("with its blocking kernel" in a.reason and "without its blocking kernel" in a.reason for a in never)
    assert all(a.value is None for a in never)


def test_the_process_of_a_subject_says_why_it_fails() -> None:
    if importlib.util.find_spec("cuda") is not None:
        pytest.skip("cuda is installed: the process would run")
    found = ask(1)
    assert all("No module named 'cuda'" in a.reason or "ended with 1" in a.reason for a in found)
    with pytest.raises(ModuleNotFoundError, match="cuda-bench"):
        nvbench()


def test_the_goal_of_a_third() -> None:
    ours = [ToolAnswer("overhead", ADD, "complete to 1 %", seconds=2.0, rule="ours"),
            ToolAnswer("overhead", STEP, "node to 1 %", seconds=0.5, rule="ours")]  # fmt: skip
    theirs = [ToolAnswer("torch.utils.benchmark", ADD, "complete", 1.0, rule="never there"),
              ToolAnswer("do_bench_cudagraph", STEP, "node", 1.0, seconds=0.05, rule="IQR")]  # fmt: skip
    complete, node = ba.races(ba.rows(theirs, ours), ours)
    assert complete.share == pytest.approx(0.1)
    assert complete.held
    assert node.share == pytest.approx(10.0)
    assert not node.held
    assert not ba.Race(ToolAnswer("overhead", ADD, "complete to 1 %"), complete.theirs).held


@pytest.mark.parametrize("as_json", [False, True])
def test_without_cuda_it_says_why_and_holds(
    as_json: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ba, "no_cuda", lambda: "libcuda.so.1 not found")
    assert ba.agreement(argparse.Namespace(json=as_json), Console())
    said = capsys.readouterr().out
    assert "libcuda.so.1 not found" in said
    if as_json:
        assert json.loads(said)["agreement"] == []


def test_the_tables_hold_values_verdicts_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    ours = [ToolAnswer("overhead", ADD, "complete", 4_600.0),
            ToolAnswer("overhead", ADD, "complete to 1 %", seconds=0.8, rule="half-width")]  # fmt: skip
    theirs = [ToolAnswer("torch.utils.benchmark", ADD, "complete", 4_500.0, rule="IQR"),
              ToolAnswer("nvbench", "", "", reason="ImportError: cuda.bench")]  # fmt: skip
    ba.show(ba.rows(theirs, ours), ours, Console(width=200))
    said = capsys.readouterr().out
    for words in (
        "4.500",
        "1.022",
        "yes",
        "ImportError: cuda.bench",
        "0.80",
        "over 20",
        "met     goal",
        "at most 0.04 times",
    ):
        assert words in said
