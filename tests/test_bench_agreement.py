"""The comparison with others' tools where no GPU is needed: pairs, verdicts, intervals, reasons, nvbench's file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

import pytest
from rich.console import Console

from scripts import bench_agreement as ba
from scripts.agreement_tools import LAUNCHED, from_nvbench
from scripts.bench_agreement import ADD, STEP, WANTED, Answer


def test_only_the_same_quantity_is_judged() -> None:
    ours = [Answer("overhead", ADD, "complete", 4_600.0), Answer("overhead", ADD, "device_busy", 1_700.0)]
    theirs = [Answer("torch.utils.benchmark", ADD, "complete", 4_500.0), Answer("nvbench", ADD, "cold", 6_000.0)]
    found = {(r.theirs.tool, r.theirs.subject, r.theirs.quantity): r for r in ba.rows(theirs, ours)}
    assert len(found) == len(WANTED)
    timer = found["torch.utils.benchmark", ADD, "complete"]
    assert timer.within is True
    assert timer.ratio == pytest.approx(46 / 45)
    cold = found["nvbench", ADD, "cold"]
    assert cold.ratio is not None
    assert cold.within is None
    assert cold.what


@pytest.mark.parametrize(("theirs", "within"), [(953.0, True), (940.0, False), (1_060.0, False)])
def test_five_per_cent(theirs: float, within: bool) -> None:
    row = ba.Row(Answer("a", "", "", theirs), Answer("b", "", "", 1_000.0), same=True)
    assert row.within is within


def test_a_tool_that_fails_is_named_in_each_of_its_rows() -> None:
    def missing() -> list[Answer]:
        raise ImportError("No module named 'triton'")

    found = ba.rows(ba.attempt("do_bench_cudagraph", missing), [])
    reasons = {r.theirs.subject: r.theirs.reason for r in found if r.theirs.tool == "do_bench_cudagraph"}
    assert reasons == dict.fromkeys((ADD, STEP), "ImportError: No module named 'triton'")
    assert all(r.within is None for r in found)


def test_the_interval_of_the_mean_narrows_to_its_width() -> None:
    values = [100.0, 104.0, 96.0, 100.0, 104.0, 96.0] + [100.0] * 40
    times = [float(i) for i in range(len(values))]
    wide, narrow = ba.first_within(times, values, 0.05), ba.first_within(times, values, 0.01)
    assert wide == 5
    assert narrow is not None
    assert narrow > 5
    assert ba.first_within(times[:6], values[:6], 0.01) is None
    assert ba.first_within(times[:5], [1.0] * 5, 0.5) is None


def test_a_tool_is_repeated_until_its_quartiles_are_close_or_patience_ends() -> None:
    clock = iter(float(i) for i in range(1_000))
    batches = iter([[1.0, 2.0], [1.0, 1.0, 1.0], [1.0] * 40])

    def once() -> Sequence[float]:
        return next(batches)

    seconds, values = ba.repeat_until(once, 0.01, 50.0, lambda: next(clock))
    assert seconds is not None
    assert len(values) == 45
    never, _ = ba.repeat_until(lambda: [1.0, 2.0], 0.01, 10.0, lambda: next(clock))
    assert never is None


def test_nvbenchs_file() -> None:
    def summary(tag: str, value: float) -> dict[str, object]:
        return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": str(value)}]}

    told = [summary("nv/cold/time/gpu/mean", 5e-6), summary("nv/cold/time/gpu/stdev/relative", 0.004),
            summary("nv/cold/walltime", 1.5), summary("nv/batch/time/gpu/mean", 2e-6)]  # fmt: skip
    document = {"benchmarks": [
        {"name": "subject1", "states": [{"summaries": told}]},
        {"name": "subject3", "states": [{"summaries": None, "skip_reason": "deadlock"}]},
    ]}  # fmt: skip
    found = {(a.subject, a.quantity): a for a in from_nvbench(document)}
    assert found[STEP, "batch"].value == pytest.approx(2_000)
    assert found[STEP, "cold"].value == pytest.approx(5_000)
    assert found[STEP, "cold"].seconds == 1.5
    assert found[LAUNCHED[3], "batch"].reason == "deadlock"


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
    ours = [Answer("overhead", ADD, "complete", 4_600.0),
            Answer("overhead", ADD, "complete to 1 %", seconds=0.8, rule="half-width")]  # fmt: skip
    theirs = [Answer("torch.utils.benchmark", ADD, "complete", 4_500.0, rule="IQR"),
              Answer("nvbench", "", "", reason="ImportError: cuda.bench")]  # fmt: skip
    ba.show(ba.rows(theirs, ours), ours, Console(width=200))
    said = capsys.readouterr().out
    for words in ("4.500", "1.022", "yes", "ImportError: cuda.bench", "0.80", "over 20"):
        assert words in said
