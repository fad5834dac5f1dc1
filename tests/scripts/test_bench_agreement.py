"""Test the parts of the comparison with other tools that need no GPU."""

from __future__ import annotations

import json

import pytest

from overhead.errors import Unverified
from overhead.measure.sampling.clock import clock_facts
from scripts.agreement import protocol, side_by_side as ba
from scripts.agreement.nvbench import answers
from scripts.agreement.ours import Passes
from scripts.agreement.protocol import ToolAnswer
from scripts.agreement.side_by_side import WANTED
from scripts.agreement.subjects import LCG_STEP, LCG_STEP_GRAPH, TORCH_ADD
from tests.fakes.machine import FakeChain, FakeClock, Law


def test_only_figures_of_the_same_quantity_must_agree() -> None:
    ours = [
        ToolAnswer("overhead", TORCH_ADD, "complete", 4_600.0),
        ToolAnswer("overhead", TORCH_ADD, "device_busy", 1_700.0),
    ]
    theirs = [
        ToolAnswer("torch.utils.benchmark", TORCH_ADD, "complete", 4_500.0),
        ToolAnswer("nvbench", TORCH_ADD, "cold", 6_000.0),
    ]
    found = {(r.theirs.tool, r.theirs.subject, r.theirs.quantity): r for r in ba.rows(theirs, ours)}
    assert len(found) == len(WANTED)
    timer = found["torch.utils.benchmark", TORCH_ADD, "complete"]
    assert timer.within is True
    assert timer.ratio == pytest.approx(46 / 45)
    cold = found["nvbench", TORCH_ADD, "cold"]
    assert cold.ratio is not None
    assert cold.within is None
    assert cold.what


def test_our_figure_from_the_process_of_the_tool_is_preferred() -> None:
    brought = [
        ToolAnswer("nvbench", LCG_STEP_GRAPH, "batch", 95_000.0),
        ToolAnswer("overhead", LCG_STEP_GRAPH, "device_busy", 96_000.0),
    ]
    found = ba.rows(brought, [ToolAnswer("overhead", LCG_STEP_GRAPH, "device_busy", 110_000.0)])
    assert [r.within for r in found if r.theirs.subject == LCG_STEP_GRAPH] == [True]


@pytest.mark.parametrize(("theirs", "within"), [(953.0, True), (940.0, False), (1_060.0, False)])
def test_figures_agree_within_five_per_cent(theirs: float, within: bool) -> None:
    row = ba.AgreementRow(ToolAnswer("a", "", "", theirs), ToolAnswer("b", "", "", 1_000.0), same=True)
    assert row.within is within


def passes_of(chain: FakeChain, clock: FakeClock) -> Passes:
    return Passes(0.01, chain, clock, clock_facts(clock))


def test_the_slopes_of_passes_are_those_of_the_chain() -> None:
    clock = FakeClock()
    passes = passes_of(FakeChain(Law(host=1_000, device=300), clock), clock)
    slopes = [slope for _ in range(5) for slope in passes.more(2)]
    passes.verify()
    assert slopes == pytest.approx([1_000] * 5, rel=0.05)


def test_passes_are_refused_if_the_device_ran_other_units() -> None:
    clock = FakeClock()
    chain = FakeChain(Law(host=1_000, device=300), clock)
    chain.executed = lambda: 1  # type: ignore[method-assign]
    passes = passes_of(chain, clock)
    passes.more()
    with pytest.raises(Unverified, match="units issued, 1 executed"):
        passes.verify()


def test_a_tool_is_repeated_until_its_quartiles_are_close_or_time_is_up() -> None:
    clock = iter(float(i) for i in range(1_000))
    batches = iter([[1.0, 2.0], [1.0, 1.0, 1.0], [1.0] * 40])
    assert len(protocol.repeat_until(lambda: next(batches), 0.01, 50.0, lambda: next(clock))) == 45
    assert protocol.repeat_until(lambda: [1.0, 2.0], 0.01, 3.0, iter([0.0, 1.0, 2.0, 3.0]).__next__) == [1.0, 2.0] * 2


def summary(tag: str, value: str | None) -> dict[str, object]:
    return {"tag": tag, "data": [{"name": "value", "type": "float64", "value": value}]}


def document(*summaries: dict[str, object], skip: str | None = None) -> str:
    return json.dumps({"benchmarks": [{"name": "subject", "states": [{"summaries": summaries, "skip_reason": skip}]}]})


SUMMARIES = (summary("nv/cold/time/gpu/mean", "5e-6"), summary("nv/batch/time/gpu/mean", "2e-6"))


def test_values_are_read_from_nvbenchs_file() -> None:
    found = {a.quantity: a for a in answers(LCG_STEP, document(*SUMMARIES), "")}
    assert found["batch"].value == pytest.approx(2_000)
    assert found["cold"].value == pytest.approx(5_000)
    missing = answers(LCG_STEP, document(summary("nv/cold/time/gpu/mean", None)), "")
    assert {a.quantity: a.value for a in missing} == {"cold": None, "batch": None}


def test_values_come_from_the_log_of_nvbench_if_its_file_is_empty() -> None:
    log = "Pass: Cold: 0.004712ms GPU, 0.010ms CPU, 0.50s total GPU, 1.23s total wall, 106112x\n"
    log += "Pass: Batch: 0.002123ms GPU, 0.51s total GPU, 0.51s total wall, 240000x"
    found = {a.quantity: a.value for a in answers(LCG_STEP, "", log)}
    assert found == {"batch": pytest.approx(2_123), "cold": pytest.approx(4_712)}
